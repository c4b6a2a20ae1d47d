package openai

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/model/modeltest"
)

// ticker is a body that yields a piece every interval, and a last one at the end;
// with no last one it goes on for ever.
type ticker struct {
	ctx   context.Context
	every time.Duration
	piece func(i int) string
	n     int
	i     int
	last  string
	rest  []byte
}

func (k *ticker) Read(b []byte) (int, error) {
	if len(k.rest) == 0 {
		if k.i == k.n && k.last == "" {
			return 0, io.EOF
		}
		select {
		case <-time.After(k.every):
		case <-k.ctx.Done():
			return 0, k.ctx.Err()
		}
		if k.i == k.n {
			k.rest, k.last = []byte(k.last), ""
		} else {
			k.rest = []byte(k.piece(k.i))
			k.i++
		}
	}
	n := copy(b, k.rest)
	k.rest = k.rest[n:]
	return n, nil
}

func TestStallLimits(t *testing.T) {
	word := func(int) string { return frames(delta1(`{"content":"x"}`)) }
	ping := func(int) string { return ": ping\n\n" }
	role := func(int) string { return "data: {}\n\n" }
	end := frames(`{"choices":[{"delta":{},"finish_reason":"stop"}]}`, "[DONE]")
	cases := []struct {
		name  string
		body  ticker
		kind  model.ErrorKind // "" for success
		after time.Duration
	}{
		{"I148 an event a second for two minutes", ticker{every: time.Second, n: 120, piece: word, last: end}, "", 121 * time.Second},
		{"I147 silence", ticker{every: time.Hour, n: 1, piece: word}, model.ErrStalled, 5 * time.Second},
		{"I148 pings, then an answer", ticker{every: 4 * time.Second, n: 10, piece: ping, last: end}, "", 44 * time.Second},
		{"I148 pings for ever", ticker{every: 4 * time.Second, n: 1 << 30, piece: ping}, model.ErrStalled, 50 * time.Second},
		{"empty frames for ever", ticker{every: 4 * time.Second, n: 1 << 30, piece: role}, model.ErrStalled, 50 * time.Second},
		{"no end of stream after the finish reason", ticker{every: time.Second, n: 1, piece: func(int) string { return frames(`{"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}`) }, last: " "}, "", 2 * time.Second},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, err := New(Config{BaseURL: "http://server.test/v1", Model: "m", StallTimeout: 5 * time.Second,
					HTTPClient: answer(func(ctx context.Context) io.Reader { c.body.ctx = ctx; return &c.body })})
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				resp, err := client.Stream(t.Context(), request(user("go")), nil)
				if took := time.Since(start); took < c.after || took > c.after+time.Second {
					t.Errorf("took %v, want %v", took, c.after)
				}
				if c.kind == "" && err != nil || c.kind != "" && asError(t, err).Kind != c.kind {
					t.Errorf("%+v %v", resp, err)
				}
			})
		})
	}
}

func TestReplyIsBounded(t *testing.T) {
	frame := frames(delta1(`{"content":"` + strings.Repeat("x", 900) + `"}`))
	for _, gz := range []bool{false, true} {
		turn := modeltest.Turn{Faults: []modeltest.Fault{modeltest.Raw("text/event-stream", strings.Repeat(frame, 20))}}
		if gz {
			turn.Faults = append(turn.Faults, modeltest.Gzip())
		}
		c := newClient(t, modeltest.New(t, turn).URL, func(cfg *Config) { cfg.MaxReply = 10_000 })
		_, err := c.Stream(t.Context(), request(user("go")), nil)
		if me := asError(t, err); me.Kind != model.ErrMalformed || !strings.Contains(me.Detail, "more than 10000 bytes") || len(me.Partial) != 9000 {
			t.Errorf("packed %v: %v, partial of %d bytes", gz, err, len(me.Partial))
		}
	}
	_, err := streamBytes(t, io.MultiReader(strings.NewReader("data: "), strings.NewReader(strings.Repeat("x", 17<<20))), nil)
	if me := asError(t, err); me.Kind != model.ErrMalformed || !strings.Contains(me.Detail, "too long") {
		t.Error(me.Detail)
	}
}

func TestFinishedReplyDoesNotWaitForTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		finished := frames(`{"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}`)
		c := testClient(t, func(cfg *Config) {
			cfg.HTTPClient = answer(func(ctx context.Context) io.Reader {
				return io.MultiReader(strings.NewReader(finished), &ticker{ctx: ctx, every: time.Hour, n: 1, piece: func(int) string { return " " }})
			})
		})
		start := time.Now()
		resp, err := c.Stream(t.Context(), request(user("go")), nil)
		if err != nil || resp.Message.Text() != "x" || !strings.Contains(resp.Note, "broke off") || time.Since(start) != tailWait {
			t.Errorf("%+v %v after %v", resp, err, time.Since(start))
		}
	})
}
