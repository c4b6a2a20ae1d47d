package responses

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/model/httpapi"
	"github.com/abhed/abhed/internal/model/modeltest"
)

// TestReasoningComesBackUnchanged plays thirty turns against a server that takes only
// the reasoning that it sealed, item by item: with a reply that is cut and asked for
// again, a history that another process took over, and a later message that was edited
// (I153, I154). The same session of a model that doesn't reason never holds a reasoning
// item.
func TestReasoningComesBackUnchanged(t *testing.T) {
	for _, reasons := range []bool{true, false} {
		t.Run(fmt.Sprint(reasons), func(t *testing.T) { playLong(t, reasons) })
	}
}

func playLong(t *testing.T, reasons bool) {
	const turns = 30
	o := modeltest.Options{NeedReasoning: reasons, RefuseReasoning: !reasons}
	for i := range turns {
		turn := modeltest.Turn{Text: "I read.", Calls: []modeltest.Call{{ID: fmt.Sprint("c", i), Name: "read", Args: "{}"}}}
		if reasons {
			turn.Reasoning = "because é\u2028<&> \U0001f600" + strings.Repeat(" ", i)
		}
		if i == turns/2 {
			cut := turn
			cut.Faults = []modeltest.Fault{modeltest.CutAt(1200)}
			o.Turns = append(o.Turns, cut)
		}
		o.Turns = append(o.Turns, turn)
	}
	s := modeltest.NewWith(t, o)
	c := newClient(t, s.URL, nil)
	history := []*model.Message{user("go")}
	cuts := 0
	for n := 0; s.Left() > 0; n++ {
		switch n {
		case 10: // another process takes the session over
			c = newClient(t, s.URL, nil)
			for i, m := range history {
				history[i] = &model.Message{Role: m.Role, Parts: slices.Clone(m.Parts)}
			}
		case 20: // a result that was given is written anew
			edited := *history[20].Parts[0].ToolResult
			edited.Content = "edited"
			history[20] = &model.Message{Role: "tool", Parts: []model.Part{{ToolResult: &edited}}}
		}
		resp, err := c.Stream(t.Context(), request(history...), nil)
		if err != nil {
			if asError(t, err).Kind != model.ErrCut {
				t.Fatal(err)
			}
			cuts++
			continue
		}
		history = append(history, resp.Message, results(resp.Message.ToolCalls()))
	}
	body := string(s.Requests()[turns].Body)
	want := 0
	if reasons {
		want = turns - 1
	}
	if cuts != 1 || strings.Count(body, `"encrypted_content":`) != want || strings.Count(body, `"type":"reasoning"`) != want || strings.Count(body, `"edited"`) != 1 {
		t.Errorf("%d cuts, last request %s", cuts, body)
	}
}

// TestErrorAfterText ends a stream of forty pieces with an error in a nameless event:
// the text is kept, and whether another attempt makes sense is the error's (I149).
func TestErrorAfterText(t *testing.T) {
	for body, retryable := range map[string]bool{
		`{"error":{"message":"gone","type":"server_error"}}`:                                              true,
		`{"error":{"message":"slow down","code":"rate_limit_exceeded"}}`:                                  true,
		`{"type":"error","error":{"message":"no","type":"invalid_request_error"}}`:                        false,
		`{"type":"response.failed","response":{"status":"failed","error":{"code":"x","message":"gone"}}}`: true,
	} {
		var in []string
		for range 40 {
			in = append(in, `{"type":"response.output_text.delta","item_id":"m","delta":"abc"}`)
		}
		var got collect
		resp, err := streamBytes(t, strings.NewReader(frames(append(in, body)...)), got.add)
		me := asError(t, err)
		if want := strings.Repeat("abc", 40); resp != nil || me.Partial != want || got.text.String() != want || me.Retryable() != retryable {
			t.Errorf("%s: %v, partial %q", body, err, me.Partial)
		}
	}
}

// TestUsageOfASecondEnd has imitators that say that the response is complete, and what
// it took only later: the call comes once, and the usage is taken (I141). What else
// comes after the end changes nothing.
func TestUsageOfASecondEnd(t *testing.T) {
	call := `{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"a","call_id":"c1","name":"f","arguments":"{}"}}`
	second := strings.Replace(completed, `"completed"}`, `"completed","usage":{"input_tokens":7,"output_tokens":3},"output":[{"type":"function_call","id":"a","call_id":"c1","name":"f","arguments":"{}"}]}`, 1)
	other := strings.Replace(call, `"c1"`, `"c2"`, 1)
	for name, c := range map[string]struct {
		in    []string
		usage bool
	}{
		"at the second end":         {[]string{call, completed, second}, true},
		"after something else":      {[]string{call, completed, other, `{"type":"error","message":"late"}`, second}, true},
		"at the first end":          {[]string{call, second, completed}, true},
		"never":                     {[]string{call, completed, completed}, false},
		"after [DONE] nobody reads": {[]string{call, completed, "[DONE]", second}, false},
		"[DONE] before the end":     {[]string{call, "[DONE]", second}, true},
		"[DONE] before both":        {[]string{call, "[DONE]", completed, second}, true},
		"not at a third end":        {[]string{call, completed, completed, second}, false},
		"nor after what is no JSON": {[]string{call, completed, "oops", second}, false},
		"nothing after the end":     {[]string{call, completed}, false},
	} {
		resp, err := streamBytes(t, strings.NewReader(frames(c.in...)), nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if calls := resp.Message.ToolCalls(); len(calls) != 1 || calls[0].ID != "c1" || resp.Finish != model.FinishToolCalls || resp.Note != "" {
			t.Errorf("%s: %+v", name, resp)
		}
		if got := resp.Usage != nil && *resp.Usage.Input == 7 && *resp.Usage.Output == 3; got != c.usage {
			t.Errorf("%s: usage %+v", name, resp.Usage)
		}
	}
}

// TestNoLongWaitAfterTheEnd has a server that says that the response is complete and
// then nothing more, with no end of the stream: the usage is waited for a moment where
// it is still to come.
func TestNoLongWaitAfterTheEnd(t *testing.T) {
	withUsage := strings.Replace(completed, `"completed"}`, `"completed","usage":{"input_tokens":7,"output_tokens":3}}`, 1)
	for end, least := range map[string]time.Duration{completed: httpapi.TailWait, withUsage: 0} {
		synctest.Test(t, func(t *testing.T) {
			word := frames(`{"type":"response.output_text.delta","item_id":"m","delta":"x"}`, end)
			hc := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				body := &ticker{ctx: r.Context(), every: 24 * time.Hour, n: 1, piece: " "}
				return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(io.MultiReader(strings.NewReader(word), body)), Request: r}, nil
			})}
			c := newClient(t, "http://server.test/v1", func(cfg *Config) { cfg.HTTPClient, cfg.StallTimeout = hc, time.Hour })
			began := time.Now()
			resp, err := c.Stream(t.Context(), request(user("go")), nil)
			if took := time.Since(began); err != nil || resp.Message.Text() != "x" || took < least || took > least+time.Second {
				t.Errorf("%+v %v after %v", resp, err, took)
			}
		})
	}
}
