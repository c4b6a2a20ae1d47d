package gemini

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/model/modeltest"
)

func TestFailures(t *testing.T) {
	raw := func(frame ...string) modeltest.Fault { return modeltest.Raw("text/event-stream", frames(frame...)) }
	whole := func(body string) modeltest.Fault { return modeltest.Raw("application/json", body) }
	const quota = `{"error":{"code":429,"message":"You exceeded your current quota","status":"RESOURCE_EXHAUSTED"}}`
	for _, c := range []struct {
		name   string
		fault  modeltest.Fault
		kind   model.ErrorKind
		status int
		detail []string
	}{
		{"key not valid", modeltest.Status(400, `{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}`), model.ErrAuth, 400, []string{"$TEST_KEY"}},
		{"403 that echoes the key", modeltest.Status(403, `{"error":{"code":403,"message":"`+testKey+`","status":"PERMISSION_DENIED"}}`), model.ErrAuth, 403, []string{"[redacted]"}},
		{"quota", modeltest.Status(429, quota), model.ErrRateLimit, 429, []string{"quota", "RESOURCE_EXHAUSTED"}},
		{"too long", modeltest.Status(400, `{"error":{"code":400,"message":"The input token count (2000000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}`), model.ErrOverflow, 400, []string{"2000000"}},
		{"no such model", modeltest.Status(404, `{"error":{"code":404,"message":"models/gemini-x is not found","status":"NOT_FOUND"}}`), model.ErrRequest, 404, []string{"/v1beta", `"gemini-x"`}},
		{"a list as an error", modeltest.Status(400, `[{"error":{"code":400,"message":"Invalid JSON payload","status":"INVALID_ARGUMENT"}}]`), model.ErrRequest, 400, []string{"Invalid JSON payload"}},
		{"overloaded", modeltest.Status(503, `{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}`), model.ErrServer, 503, []string{"overloaded"}},
		// I149: an error in a stream of status 200.
		{"error in the stream", modeltest.ErrorFrame(3, `{"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}`), model.ErrServer, 0, []string{"overloaded"}},
		{"quota in the stream", modeltest.ErrorFrame(3, quota), model.ErrRateLimit, 0, []string{"quota"}},
		{"error before the end of a list", whole(`[` + parts(`{"text":"abc"}`) + `,` + quota + `]`), model.ErrRateLimit, 0, []string{"quota"}},
		{"a list that is an error", whole(`[` + quota + `]`), model.ErrRateLimit, 0, []string{"quota"}},
		{"no finish reason", modeltest.NoFinish(), model.ErrCut, 0, []string{"without a finish reason", "3 tool calls"}},
		{"[DONE] without a finish reason", raw(parts(`{"text":"a"}`), "[DONE]"), model.ErrCut, 0, []string{"without a finish reason"}},
		{"a list without a finish reason", whole(`[` + parts(`{"text":"a"}`) + `]`), model.ErrCut, 0, []string{"without a finish reason"}},
		{"an empty list", whole(`[]`), model.ErrCut, 0, nil},
		{"a list that is cut", whole(`[` + parts(`{"text":"a"}`) + `,{"cand`), model.ErrCut, 0, nil},
		{"JSON of something else", whole(`{"status":"ok"}`), model.ErrCut, 0, nil},
		{"web page", modeltest.Raw("text/html", "<!DOCTYPE html><title>Sign in</title>"), model.ErrMalformed, 0, []string{"web page", "Sign in", "/v1beta"}},
		{"not JSON", raw(`{"candidates":oops}`), model.ErrMalformed, 0, []string{"byte 0", `{\"candidates\":oops}`}},
		{"bad UTF-8", raw("{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\xff\"}]}}]}"), model.ErrMalformed, 0, []string{`a\xff`}},
		{"text that is none", raw(parts(`{"text":{"x":1}}`)), model.ErrMalformed, 0, []string{"not text"}},
		{"call without a name", raw(parts(`{"functionCall":{"args":{"x":1}}}`), stop), model.ErrMalformed, 0, []string{"without a name", `{\"x\":1}`}},
		{"call in pieces", raw(parts(`{"functionCall":{"name":"f","willContinue":true}}`), stop), model.ErrMalformed, 0, []string{"in pieces"}},
		{"call in pieces, the second", raw(parts(`{"functionCall":{"name":"f","partialArgs":[{"jsonPath":"$.x"}]}}`), stop), model.ErrMalformed, 0, []string{"in pieces"}},
		{"too many calls", raw(parts(strings.Split(strings.Repeat(`{"functionCall":{"name":"f"}} `, maxCalls+1), " ")[:maxCalls+1]...), stop), model.ErrMalformed, 0, []string{"more than 512"}},
		{"malformed call", raw(parts(`{"text":"a"}`), `{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"Malformed function call: print(x"}]}`), model.ErrMalformed, 0, []string{"MALFORMED_FUNCTION_CALL", "print(x"}},
		{"unexpected call", raw(ending("UNEXPECTED_TOOL_CALL")), model.ErrMalformed, 0, []string{"UNEXPECTED_TOOL_CALL"}},
		{"other", modeltest.Finishing("error"), model.ErrServer, 0, []string{"OTHER"}},
		{"unknown reason with calls", modeltest.Finishing("whatever"), model.ErrMalformed, 0, []string{`"WHATEVER"`}},
		{"redirect", modeltest.Both(modeltest.Status(307, ""), modeltest.Header("Location", "https://elsewhere.example/v1?token=x")), model.ErrRequest, 307, []string{"https://elsewhere.example/v1,"}},
		{"stall before the headers", modeltest.StallHeaders(), model.ErrStalled, 0, []string{"no byte came for 150ms"}},
		{"stall in the stream", modeltest.StallAt(800), model.ErrStalled, 0, []string{"frames"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			turn := richTurn
			turn.Faults = []modeltest.Fault{c.fault}
			s := modeltest.New(t, turn)
			var got collect
			resp, err := newClient(t, s.URL, func(cfg *Config) {
				if c.kind == model.ErrStalled {
					cfg.StallTimeout = 150 * time.Millisecond
				}
			}).Stream(t.Context(), request(user("go")), got.add)
			if resp != nil {
				t.Errorf("a response together with an error: %+v", resp)
			}
			me := asError(t, err)
			if me.Kind != c.kind || me.Status != c.status {
				t.Errorf("kind %s, status %d; want %s, %d: %v", me.Kind, me.Status, c.kind, c.status, err)
			}
			if strings.Contains(me.Endpoint, "?") {
				t.Errorf("the endpoint %q has a query", me.Endpoint)
			}
			for _, d := range c.detail {
				if !strings.Contains(me.Detail, d) {
					t.Errorf("%q does not contain %q", me.Detail, d)
				}
			}
			if me.Partial != got.text.String() {
				t.Errorf("partial %q, streamed %q", me.Partial, got.text.String())
			}
		})
	}
}

// I149: forty deltas, then an error: the text is kept, and the failure may pass.
func TestErrorFrameKeepsTheText(t *testing.T) {
	s := modeltest.New(t, modeltest.Turn{Text: strings.Repeat("abc", 40), Faults: []modeltest.Fault{modeltest.ErrorFrame(40, `{"error":{"code":500,"message":"x","status":"INTERNAL"}}`)}})
	_, err := newClient(t, s.URL, nil).Stream(t.Context(), request(user("go")), nil)
	if me := asError(t, err); me.Partial != strings.Repeat("abc", 40) || !me.Retryable() || me.Kind != model.ErrServer {
		t.Errorf("partial %q: %v", me.Partial, err)
	}
}

// I150: the connection is cut, or the body ends, at many bytes of a reply: it is
// either whole or an error without a call.
func TestCutAnywhere(t *testing.T) {
	turn := modeltest.Turn{Text: "Größe 😀", Calls: richCalls[:1], Usage: &modeltest.Usage{Prompt: 1}}
	stream := string(modeltest.StreamOf(modeltest.Gemini, turn))
	finished := strings.Index(stream, `"finishReason":"STOP"`)
	var turns []modeltest.Turn
	var at []int
	for n := 0; n < len(stream)+7; n += 7 {
		n := min(n, len(stream))
		at = append(at, n)
		for _, f := range []modeltest.Fault{modeltest.CutAt(n), modeltest.EndAt(n)} {
			tn := turn
			tn.Faults = []modeltest.Fault{f}
			turns = append(turns, tn)
		}
	}
	s := modeltest.New(t, turns...)
	c := newClient(t, s.URL, nil)
	whole := 0
	for i := range turns {
		n := at[i/2]
		var got collect
		resp, err := c.Stream(t.Context(), request(user("go")), got.add)
		if err == nil {
			whole++
			if n < finished {
				t.Errorf("cut at %d: whole before the finish reason", n)
			}
			if d := cmp.Diff(turn.Calls, calls(resp.Message)); d != "" || resp.Message.Text() != turn.Text {
				t.Errorf("cut at %d: %s %q", n, d, resp.Message.Text())
			}
			continue
		}
		me := asError(t, err)
		if me.Kind != model.ErrCut || !me.Retryable() || me.Partial != got.text.String() || !strings.HasPrefix(turn.Text, me.Partial) {
			t.Errorf("cut at %d: partial %q: %v", n, me.Partial, err)
		}
	}
	if finished < 0 || whole == 0 || whole == len(turns) {
		t.Errorf("%d of %d were whole", whole, len(turns))
	}
}

func TestLengthWithholdsCalls(t *testing.T) {
	s := modeltest.New(t, modeltest.Turn{Text: "so far", Calls: richCalls, Faults: []modeltest.Fault{modeltest.TruncatedArgs()}},
		modeltest.Turn{Calls: richCalls, Finish: "content_filter"})
	c := newClient(t, s.URL, nil)
	for _, want := range []model.Finish{model.FinishLength, model.FinishFiltered} {
		resp, err := c.Stream(t.Context(), request(user("go")), nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp.Finish != want || len(resp.Message.ToolCalls()) != 0 || !strings.Contains(resp.Note, "tool calls were withheld") {
			t.Errorf("%+v", resp)
		}
	}
}

func TestRefusedConnection(t *testing.T) {
	url := modeltest.RefusedURL(t)
	_, err := newClient(t, url, nil).Stream(t.Context(), request(user("go")), nil)
	if me := asError(t, err); me.Kind != model.ErrConnect || me.Endpoint != url+"/models/gemini-x:streamGenerateContent" {
		t.Error(err)
	}
}
