package responses

import (
	"context"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abhed/abhed/internal/model"
)

// ticker is a body that yields a piece every interval, n times, and then a last one.
type ticker struct {
	ctx         context.Context
	every       time.Duration
	n           int
	piece, last string
	rest        []byte
}

func (k *ticker) Read(b []byte) (int, error) {
	if len(k.rest) == 0 {
		if k.n < 0 {
			return 0, io.EOF
		}
		select {
		case <-time.After(k.every):
		case <-k.ctx.Done():
			return 0, k.ctx.Err()
		}
		k.rest = []byte(k.piece)
		if k.n == 0 {
			k.rest = []byte(k.last)
		}
		k.n--
	}
	n := copy(b, k.rest)
	k.rest = k.rest[n:]
	return n, nil
}

func TestStallLimits(t *testing.T) {
	word := frames(`{"type":"response.output_text.delta","delta":"x"}`)
	alive := frames(`{"type":"keepalive"}`)
	cases := []struct {
		name  string
		body  ticker
		kind  model.ErrorKind // "" for success
		after time.Duration
	}{
		{"I148 an event a second for two minutes", ticker{every: time.Second, n: 120, piece: word, last: frames(completed)}, "", 121 * time.Second},
		{"I147 silence", ticker{every: time.Hour, n: 1, piece: word}, model.ErrStalled, 5 * time.Second},
		{"I148 signs of life, then an answer", ticker{every: 4 * time.Second, n: 10, piece: alive, last: word + frames(completed)}, "", 44 * time.Second},
		{"I148 signs of life for ever", ticker{every: 4 * time.Second, n: 1 << 30, piece: alive}, model.ErrStalled, 50 * time.Second},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hc := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
					if _, err := io.Copy(io.Discard, r.Body); err != nil {
						return nil, err
					}
					c.body.ctx = r.Context()
					return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(&c.body), Request: r}, nil
				})}
				client := testClient(t, func(cfg *Config) { cfg.HTTPClient, cfg.StallTimeout = hc, 5*time.Second })
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
