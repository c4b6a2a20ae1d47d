package openai

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/model/modeltest"
)

// asError fails the test unless err is an *Error without the key.
func asError(t *testing.T, err error) *model.Error {
	t.Helper()
	var me *model.Error
	if !errors.As(err, &me) {
		t.Fatalf("got %v, want an *Error", err)
	}
	if strings.Contains(me.Error()+me.Partial, testKey) {
		t.Errorf("the key is in %q", me)
	}
	if me.Endpoint == "" || me.Detail == "" {
		t.Errorf("no endpoint or detail: %#v", me)
	}
	return me
}

func TestFailures(t *testing.T) {
	rate := `{"error":{"message":"slow down","type":"rate_limit_error","code":null}}`
	cases := []struct {
		name   string
		fault  modeltest.Fault
		kind   model.ErrorKind
		status int
		wait   time.Duration
		detail []string
	}{
		{"401 that echoes the key", modeltest.Status(401, `{"error":{"message":"bad key `+testKey+`"}}`), model.ErrAuth, 401, 0, []string{"bad key [redacted]", "$TEST_KEY"}},
		{"403", modeltest.Status(403, `{"detail":"not yours"}`), model.ErrAuth, 403, 0, []string{"not yours"}},
		{"429 seconds", modeltest.RateLimited(7), model.ErrRateLimit, 429, 7 * time.Second, []string{"Rate limit reached"}},
		{"429 date in the past", modeltest.RateLimitedUntil(time.Now().Add(-time.Hour)), model.ErrRateLimit, 429, 0, nil},
		{"400", modeltest.Status(400, `{"error":{"message":"too long","type":"invalid_request_error","code":"context_length_exceeded"}}`), model.ErrOverflow, 400, 0, []string{"too long", "context_length_exceeded"}},
		{"400 in a list", modeltest.Status(400, `[{"error":{"code":400,"message":"no such field"}}]`), model.ErrRequest, 400, 0, []string{"no such field"}},
		{"404", modeltest.Status(404, `404 page not found`), model.ErrRequest, 404, 0, []string{"base_url", `"m1"`, "404 page not found"}},
		{"422", modeltest.Status(422, `{"object":"error","message":"extra","code":422}`), model.ErrRequest, 422, 0, []string{"extra"}},
		{"500", modeltest.Status(500, ``), model.ErrServer, 500, 0, []string{"no message"}},
		{"503 page", modeltest.Status(503, "<html>\x1b[31mbusy</html>"), model.ErrServer, 503, 0, []string{`<html>\x1b[31mbusy`}},
		{"long message", modeltest.Status(500, `{"error":{"message":"`+strings.Repeat("é", 5000)+`"}}`), model.ErrServer, 500, 0, []string{"… (10000 bytes)"}},
		{"I149 error frame", modeltest.ErrorFrame(3, `{"error":{"message":"overloaded","type":"overloaded_error"}}`), model.ErrServer, 0, 0, []string{"overloaded"}},
		{"error frame, rate", modeltest.ErrorFrame(3, rate), model.ErrRateLimit, 0, 0, []string{"slow down"}},
		{"error frame, auth", modeltest.ErrorFrame(3, `{"error":{"message":"`+testKey+`","code":"invalid_api_key"}}`), model.ErrAuth, 0, 0, []string{"[redacted]"}},
		{"error frame, request", modeltest.ErrorFrame(3, `{"error":{"message":"no","code":400}}`), model.ErrRequest, 0, 0, []string{"no"}},
		{"error frame, text", modeltest.ErrorFrame(3, `{"error":"boom"}`), model.ErrServer, 0, 0, []string{"boom"}},
		{"error frame, empty", modeltest.ErrorFrame(3, `{"error":{}}`), model.ErrServer, 0, 0, []string{`{\"error\":{}}`}},
		{"error frame, vllm", modeltest.ErrorFrame(3, `{"object":"error","message":"boom","type":"InternalServerError","code":500}`), model.ErrServer, 0, 0, []string{"boom"}},
		{"I136 I149 error event", modeltest.Raw("text/event-stream", "event:error\ndata:{\"error\":{\"message\":\"gone\"}}\n\n"), model.ErrServer, 0, 0, []string{"gone"}},
		{"error event, text", modeltest.Raw("text/event-stream", "event: error\ndata: it broke\n\n"), model.ErrServer, 0, 0, []string{"it broke"}},
		{"error event, cut", modeltest.Raw("text/event-stream", "event: error\ndata: {\"error\":{\"mess"), model.ErrServer, 0, 0, []string{"mess"}},
		{"error body with 200", modeltest.Raw("application/json", `{"error":{"message":"no such model","type":"invalid_request_error"}}`), model.ErrRequest, 0, 0, []string{"no such model"}},
		{"web page", modeltest.Raw("text/html", "\n<!DOCTYPE html><title>Sign in</title>"), model.ErrMalformed, 0, 0, []string{"web page", "Sign in", "base_url"}},
		{"plain text", modeltest.Raw("text/plain", "upstream timed out"), model.ErrMalformed, 0, 0, []string{"upstream timed out"}},
		{"not JSON", modeltest.Raw("text/event-stream", "data: {\"choices\":[]}\n\ndata: {\"choices\":oops}\n\n"), model.ErrMalformed, 0, 0, []string{"byte 22", `{\"choices\":oops}`}},
		{"repeated member", modeltest.Raw("text/event-stream", `data: {"choices":[{"delta":{"content":"a","content":"b"}}]}`+"\n\n"), model.ErrMalformed, 0, 0, []string{"twice", "/choices/0/delta/content"}},
		{"bad UTF-8", modeltest.Raw("text/event-stream", "data: {\"choices\":[{\"delta\":{\"content\":\"a\xff\"}}]}\n\n"), model.ErrMalformed, 0, 0, []string{`a\xff`}},
		{"content of another type", modeltest.Raw("text/event-stream", `data: {"choices":[{"delta":{"content":{"x":1}}}]}`+"\n\n"), model.ErrMalformed, 0, 0, []string{"content member"}},
		{"json that is no completion", modeltest.Raw("application/json", `{"status":"ok"}`), model.ErrMalformed, 0, 0, []string{"holds neither"}},
		{"json cut", modeltest.Raw("application/json", `{"choices":[{"mess`), model.ErrCut, 0, 0, nil},
		{"json broken", modeltest.Raw("application/json", `{"choices":[}`), model.ErrMalformed, 0, 0, []string{`{\"choices\":[}`}},
		{"nothing", modeltest.Raw("text/event-stream", ""), model.ErrCut, 0, 0, nil},
		{"only done", modeltest.Raw("text/event-stream", "data: [DONE]\n\n"), model.ErrMalformed, 0, 0, []string{"holds neither"}},
		{"unknown packing", modeltest.Header("Content-Encoding", "br"), model.ErrMalformed, 0, 0, []string{`"br"`}},
		{"I150 no finish, no done", modeltest.Both(modeltest.NoFinish(), modeltest.NoDone()), model.ErrCut, 0, 0, []string{"finish reason", "calls begun"}},
		{"finish reason error", modeltest.Finishing("error"), model.ErrServer, 0, 0, nil},
		{"unknown finish reason with calls", modeltest.Finishing("whatever"), model.ErrMalformed, 0, 0, []string{`"whatever"`}},
		{"redirect", modeltest.Both(modeltest.Status(307, ""), modeltest.Header("Location", "https://elsewhere.example/v1?token=x")), model.ErrRequest, 307, 0, []string{"https://elsewhere.example/v1,", "base_url"}},
		{"I147 stall before headers", modeltest.StallHeaders(), model.ErrStalled, 0, 0, []string{"no byte came for 150ms"}},
		{"stall in the stream", modeltest.StallAt(800), model.ErrStalled, 0, 0, []string{"after", "frames"}},
	}
	for _, c := range cases {
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
			if me.Kind != c.kind || me.Status != c.status || me.RetryAfter != c.wait {
				t.Errorf("kind %s, status %d, wait %v; want %s, %d, %v: %v", me.Kind, me.Status, me.RetryAfter, c.kind, c.status, c.wait, err)
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

func TestErrorFrameKeepsTheText(t *testing.T) { // I149
	s := modeltest.New(t, modeltest.Turn{Text: strings.Repeat("abc", 40), Faults: []modeltest.Fault{modeltest.ErrorFrame(41, `{"error":{"message":"x"}}`)}})
	_, err := newClient(t, s.URL, nil).Stream(t.Context(), request(user("go")), nil)
	if me := asError(t, err); me.Partial != strings.Repeat("abc", 40) || !me.Retryable() {
		t.Errorf("partial %q: %v", me.Partial, err)
	}
}

func TestRefusedConnection(t *testing.T) {
	url := modeltest.RefusedURL(t)
	_, err := newClient(t, url+"?version=1", nil).Stream(t.Context(), request(user("go")), nil)
	me := asError(t, err)
	if me.Kind != model.ErrConnect || me.Endpoint != url+"/chat/completions" || !strings.Contains(me.Detail, "refused") || !strings.Contains(me.Detail, "base_url") {
		t.Error(err)
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
		if resp.Finish != want || len(resp.Message.ToolCalls()) != 0 || !strings.Contains(resp.Note, `3 tool calls were withheld`) || !strings.Contains(resp.Note, `"list"`) {
			t.Errorf("%+v", resp)
		}
	}
}

// TestCutAnywhere cuts the connection after every few bytes of a reply: it is either
// whole or an error without a call (I150).
func TestCutAnywhere(t *testing.T) {
	turn := modeltest.Turn{Text: "Größe 😀", Calls: richCalls[:1]}
	size := len(modeltest.Stream(turn))
	finished := strings.Index(string(modeltest.Stream(turn)), `"finish_reason":"tool_calls"`)
	whole := 0
	var turns []modeltest.Turn
	cuts := []modeltest.Fault{}
	for n := 0; n <= size; n += 7 {
		cuts = append(cuts, modeltest.CutAt(n), modeltest.EndAt(n))
	}
	for _, c := range cuts {
		tn := turn
		tn.Faults = []modeltest.Fault{c}
		turns = append(turns, tn)
	}
	s := modeltest.New(t, turns...)
	c := newClient(t, s.URL, nil)
	for i := range cuts {
		n := i / 2 * 7
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
		if me.Kind != model.ErrCut || !me.Retryable() {
			t.Errorf("cut at %d: %v", n, err)
		}
		if me.Partial != got.text.String() || !strings.HasPrefix(turn.Text, me.Partial) {
			t.Errorf("cut at %d: partial %q", n, me.Partial)
		}
	}
	if whole == 0 || whole == len(cuts) {
		t.Errorf("%d of %d were whole", whole, len(cuts))
	}
}

func TestRedirectSendsNothing(t *testing.T) {
	hit := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hit = true }))
	defer other.Close()
	for _, code := range []int{301, 302, 303, 307, 308} {
		from := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, code) }))
		c := newClient(t, from.URL, func(cfg *Config) { cfg.HTTPClient = from.Client() })
		if _, err := c.Stream(t.Context(), request(user("go")), nil); asError(t, err).Kind != model.ErrRequest {
			t.Error(err)
		}
		from.Close()
	}
	if hit {
		t.Error("a redirect was followed")
	}
}
