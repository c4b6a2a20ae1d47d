package anthropic

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/model/httpapi"
	"github.com/abhed/abhed/internal/model/modeltest"
)

func TestFailures(t *testing.T) {
	body := func(kind, message string) string {
		return `{"type":"error","error":{"type":"` + kind + `","message":"` + message + `"},"request_id":"req_1"}`
	}
	text := modeltest.Turn{Text: strings.Repeat("abc", 40)}
	cases := []struct {
		name   string
		fault  modeltest.Fault
		kind   model.ErrorKind
		status int
		wait   time.Duration
		detail string
	}{
		{"a key that is echoed", modeltest.Status(401, body("authentication_error", "invalid x-api-key "+testKey)), model.ErrAuth, 401, 0, "invalid x-api-key [redacted]"},
		{"not allowed", modeltest.Status(403, body("permission_error", "no")), model.ErrAuth, 403, 0, "$TEST_KEY"},
		{"no such model", modeltest.Status(404, body("not_found_error", "model: m1")), model.ErrRequest, 404, 0, "/v1/messages"},
		{"too large", modeltest.Status(413, body("request_too_large", "Request exceeds the maximum size")), model.ErrOverflow, 413, 0, "maximum size"},
		{"too long", modeltest.Status(400, body("invalid_request_error", "prompt is too long: 200001 tokens > 200000 maximum")), model.ErrOverflow, 400, 0, "200001"},
		{"not valid", modeltest.Status(400, body("invalid_request_error", "messages: at least one message is required")), model.ErrRequest, 400, 0, "at least one"},
		{"too many requests", modeltest.RateLimited(7), model.ErrRateLimit, 429, 7 * time.Second, "Rate limit"},
		{"failed", modeltest.Status(500, body("api_error", "Internal server error")), model.ErrServer, 500, 0, "Internal"},
		{"overloaded", modeltest.Status(529, body("overloaded_error", "Overloaded")), model.ErrServer, 529, 0, "Overloaded"},
		{"I149 overloaded within the stream", modeltest.ErrorFrame(30, body("overloaded_error", "Overloaded")), model.ErrServer, 0, 0, "Overloaded"},
		{"I149 an error after all text", modeltest.ErrorFrame(1000, body("api_error", "x")), model.ErrServer, 0, 0, "x"},
		{"I150 cut", modeltest.CutAt(1500), model.ErrCut, 0, 0, "bytes of text"},
		{"I150 ended", modeltest.EndAt(1500), model.ErrCut, 0, 0, "message_stop"},
		{"I147 no answer", modeltest.StallHeaders(), model.ErrStalled, 0, 0, "waiting for the answer"},
		{"silence", modeltest.StallAt(1500), model.ErrStalled, 0, 0, "no byte came"},
		{"a web page", modeltest.Raw("text/html", "<html>login</html>"), model.ErrMalformed, 0, 0, "web page"},
		{"half a character in the stream", modeltest.Raw("text/event-stream", "data: {\"type\":\"\xf0\x9f\"}\n\n"), model.ErrMalformed, 0, 0, "byte 0"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			turn := text
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
			if me.Kind != c.kind || me.Status != c.status || me.RetryAfter != c.wait || !strings.Contains(me.Detail, c.detail) {
				t.Errorf("kind %s, status %d, wait %v; want %s, %d, %v, %q: %v", me.Kind, me.Status, me.RetryAfter, c.kind, c.status, c.wait, c.detail, err)
			}
			if me.Partial != got.text.String() || !strings.HasPrefix(turn.Text, me.Partial) {
				t.Errorf("partial %q, streamed %q", me.Partial, got.text.String())
			}
		})
	}
}

// TestErrorAfterText ends a stream of forty pieces with an error: all the text is kept,
// and whether another attempt makes sense is the error's (I149).
func TestErrorAfterText(t *testing.T) {
	for body, retryable := range map[string]bool{
		`{"type":"error","error":{"type":"overloaded_error","message":"x"}}`:       true,
		`{"error":{"message":"upstream failed"}}`:                                  true,
		`{"type":"error","error":{"type":"invalid_request_error","message":"no"}}`: false,
	} {
		in := []any{msgStart, blockStart(0, `{"type":"text","text":""}`)}
		for range 40 {
			in = append(in, textDelta(0, "abc"))
		}
		resp, err := streamBytes(t, strings.NewReader(events(append(in, body)...)), nil)
		if me := asError(t, err); resp != nil || me.Partial != strings.Repeat("abc", 40) || me.Retryable() != retryable {
			t.Errorf("%s: partial %q, %v", body, me.Partial, err)
		}
	}
}

// TestCutAnywhere cuts the connection after every few bytes of a reply: it is either
// whole or an error without a call.
func TestCutAnywhere(t *testing.T) {
	turn := modeltest.Turn{Text: "Größe 😀", Reasoning: "hm", Calls: richCalls[:1]}
	all := modeltest.StreamOf(modeltest.Messages, turn)
	marked := strings.Index(string(all), `"message_stop"`)
	var turns []modeltest.Turn
	var at []int
	for n := 0; n <= len(all); n += 61 {
		for _, f := range []modeltest.Fault{modeltest.CutAt(n), modeltest.EndAt(n)} {
			tn := turn
			tn.Faults = []modeltest.Fault{f}
			turns, at = append(turns, tn), append(at, n)
		}
	}
	turns, at = append(turns, turn), append(at, len(all))
	s := modeltest.New(t, turns...)
	c := newClient(t, s.URL, nil)
	whole := 0
	for _, n := range at {
		var got collect
		resp, err := c.Stream(t.Context(), request(user("go")), got.add)
		if err == nil {
			whole++
			if d := cmp.Diff(turn.Calls, calls(resp.Message)); d != "" || resp.Message.Text() != turn.Text || n < marked {
				t.Errorf("cut at %d: %s %q", n, d, resp.Message.Text())
			}
			continue
		}
		if me := asError(t, err); me.Kind != model.ErrCut || !me.Retryable() || me.Partial != got.text.String() || !strings.HasPrefix(turn.Text, me.Partial) {
			t.Errorf("cut at %d: partial %q, %v", n, me.Partial, err)
		}
	}
	if whole == 0 || whole == len(at) {
		t.Errorf("%d of %d were whole", whole, len(at))
	}
}

// TestDeltasAreNotHeldBack fails if a delta waits for more bytes: the server writes an
// event only when the one before has been seen.
func TestDeltasAreNotHeldBack(t *testing.T) {
	seen := make(chan string, 1)
	s := modeltest.New(t, modeltest.Turn{Text: "abcdefghi", Before: func(i int) {
		if i >= 4 && i <= 6 { // after the start, a ping, the start of the block and a delta
			select {
			case <-seen:
			case <-time.After(10 * time.Second):
				t.Errorf("event %d was not delivered before event %d", i-1, i)
			}
		}
	}})
	if _, err := newClient(t, s.URL, nil).Stream(t.Context(), request(user("go")), func(d model.Delta) { seen <- d.Text }); err != nil {
		t.Error(err)
	}
}

func TestContextEndsAStream(t *testing.T) {
	for name, fault := range map[string]modeltest.Fault{"before headers": modeltest.StallHeaders(), "in the stream": modeltest.StallAt(700)} {
		t.Run(name, func(t *testing.T) {
			s := modeltest.New(t, modeltest.Turn{Text: strings.Repeat("x", 500), Faults: []modeltest.Fault{fault}})
			ctx, cancel := context.WithCancel(t.Context())
			timer := time.AfterFunc(50*time.Millisecond, cancel)
			defer timer.Stop()
			resp, err := newClient(t, s.URL, nil).Stream(ctx, request(user("go")), nil)
			if resp != nil || !errors.Is(err, context.Canceled) {
				t.Errorf("%v %v", resp, err)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newClient(t, nowhere, nil).Stream(ctx, request(user("go")), nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// ticker is a body that yields a piece every interval, n times, and then the last one.
type ticker struct {
	ctx   context.Context
	every time.Duration
	piece string
	n     int
	last  string
	rest  string
}

func (k *ticker) Read(b []byte) (int, error) {
	if k.rest == "" {
		if k.n == 0 && k.last == "" {
			return 0, io.EOF
		}
		select {
		case <-time.After(k.every):
		case <-k.ctx.Done():
			return 0, k.ctx.Err()
		}
		if k.n == 0 {
			k.rest, k.last = k.last, ""
		} else {
			k.rest = k.piece
			k.n--
		}
	}
	n := copy(b, k.rest)
	k.rest = k.rest[n:]
	return n, nil
}

// TestNoLongWaitAfterTheStopReason has a server that says why it stopped and then
// nothing more.
func TestNoLongWaitAfterTheStopReason(t *testing.T) {
	for name, c := range map[string]struct {
		block string
		kind  model.ErrorKind
	}{
		"text":   {`{"type":"text","text":"x"}`, ""},
		"a call": {`{"type":"tool_use","id":"a","name":"read","input":{}}`, model.ErrStalled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				body := ticker{every: time.Millisecond, n: 1, piece: events(blockStart(0, c.block), blockStop(0), ending("end_turn")), last: " "}
				client := newClient(t, nowhere, func(cfg *Config) {
					cfg.StallTimeout = time.Hour
					cfg.HTTPClient = answer(func(ctx context.Context) io.Reader {
						body.ctx = ctx
						return io.MultiReader(&body, &ticker{ctx: ctx, every: 24 * time.Hour, n: 1})
					})
				})
				start := time.Now()
				resp, err := client.Stream(t.Context(), request(user("go")), nil)
				if took := time.Since(start); took > httpapi.TailWait+time.Second {
					t.Errorf("took %v", took)
				}
				if c.kind == "" && (err != nil || resp.Message.Text() != "x") || c.kind != "" && asError(t, err).Kind != c.kind {
					t.Errorf("%+v %v", resp, err)
				}
			})
		})
	}
}

func TestStallLimits(t *testing.T) {
	end := events(ending("end_turn"), msgStop)
	ping := events(`{"type":"ping"}`)
	nameless := "data: {\"type\": \"ping\"}\n\n"
	cases := []struct {
		name  string
		body  ticker
		kind  model.ErrorKind // "" for success
		after time.Duration
	}{
		{"I148 an event a second for two minutes", ticker{every: time.Second, n: 120, piece: events(textDelta(0, "x")), last: end}, "", 121 * time.Second},
		{"I148 pings, then an answer", ticker{every: 4 * time.Second, n: 10, piece: ping, last: end}, "", 44 * time.Second},
		{"I148 pings for ever", ticker{every: 4 * time.Second, n: 1 << 30, piece: ping}, model.ErrStalled, 50 * time.Second},
		{"I148 pings without a name for ever", ticker{every: 4 * time.Second, n: 1 << 30, piece: nameless}, model.ErrStalled, 50 * time.Second},
		{"I147 silence", ticker{every: time.Hour, n: 1, piece: ping}, model.ErrStalled, 5 * time.Second},
		{"no end after the stop reason", ticker{every: time.Second, n: 1, piece: events(blockStart(0, `{"type":"text","text":"x"}`), ending("end_turn"))}, "", time.Second},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := newClient(t, nowhere, func(cfg *Config) {
					cfg.HTTPClient = answer(func(ctx context.Context) io.Reader { c.body.ctx = ctx; return &c.body })
				})
				start := time.Now()
				_, err := client.Stream(t.Context(), request(user("go")), nil)
				if took := time.Since(start); took < c.after || took > c.after+time.Second {
					t.Errorf("took %v, want %v", took, c.after)
				}
				if c.kind == "" && err != nil || c.kind != "" && asError(t, err).Kind != c.kind {
					t.Error(err)
				}
			})
		})
	}
}
