package probe

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/abhed/abhed/internal/model"
)

const interrupted = "the check was interrupted"

// answer is how one request went.
type answer struct {
	resp *model.Response
	err  error
	// late says that err is that of the time limit.
	late bool
	// pieces is how many pieces came, texts how many of them were of text and not of
	// reasoning; first and last say when, from the request on.
	pieces      int
	texts       int
	first, last time.Duration
	// thought is how many bytes of reasoning came in pieces.
	thought int
}

// call makes one request. It must not be called once r.blocked is set.
func (r *runner) call(ctx context.Context, req *model.Request) *answer {
	req.MaxOutput = r.o.MaxOutput
	limited, cancel := context.WithTimeout(ctx, r.o.Timeout)
	defer cancel()
	a := &answer{}
	began := time.Now()
	r.report.Requests++
	a.resp, a.err = r.o.Client.Stream(limited, req, func(d model.Delta) {
		a.last = time.Since(began)
		if a.pieces == 0 {
			a.first = a.last
		}
		a.pieces++
		if d.Text != "" {
			a.texts++
		}
		a.thought += len(d.Reasoning)
	})
	if a.err == nil {
		r.count(a.resp.Usage)
		r.thoughts.take(a)
		return a
	}
	switch {
	case ctx.Err() != nil:
		r.blocked = interrupted
	case limited.Err() != nil:
		a.late, r.blocked = true, "a request before it was not answered in time"
	default:
		r.block(a.err)
	}
	return a
}

// block ends the run after failures that every other request would meet too.
func (r *runner) block(err error) {
	var me *model.Error
	if !errors.As(err, &me) {
		return
	}
	switch me.Kind {
	case model.ErrRateLimit:
		r.blocked = "the endpoint limits the rate"
	case model.ErrAuth:
		r.blocked = "the endpoint refuses the credentials"
	case model.ErrConnect, model.ErrTLS:
		r.blocked = "the endpoint can't be reached"
	case model.ErrStalled:
		r.blocked = "a request before it was not answered in time"
	}
}

func (r *runner) count(u *model.Usage) {
	if u == nil {
		return
	}
	for _, n := range []*int64{u.Input, u.CacheRead, u.CacheWrite} {
		r.report.InputTokens += orZero(n)
	}
	r.report.OutputTokens += orZero(u.Output)
}

func orZero(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// failed says of a probe that its request failed. What the endpoint refused is No, with
// do as the advice; what may be another time is Unclear.
func (r *runner) failed(name string, a *answer, do string) {
	var me *model.Error
	switch {
	case r.blocked == interrupted:
		r.set(name, Unclear, "", interrupted)
	case a.late:
		r.set(name, Unclear, "try again with more time", "no whole reply came within %v (%d pieces did)", r.o.Timeout, a.pieces)
	case !errors.As(a.err, &me):
		r.set(name, Unclear, "", "the request failed: %v", a.err)
	case me.Kind == model.ErrRequest:
		r.set(name, No, do, "%s", said(me))
	case me.Kind == model.ErrRateLimit && me.RetryAfter > 0:
		r.set(name, Unclear, "try again after "+me.RetryAfter.Round(time.Second).String(), "%s; it asks to wait %v", said(me), me.RetryAfter.Round(time.Second))
	case me.Kind == model.ErrRateLimit:
		r.set(name, Unclear, "try again later, or check the account's limits", "%s", said(me))
	default:
		r.set(name, Unclear, "try again; if it stays, look at the server", "%s", said(me))
	}
}

// said is a failure in a sentence.
func said(e *model.Error) string {
	detail := strings.TrimSpace(e.Detail)
	if e.Status != 0 {
		return "HTTP " + itoa(int64(e.Status)) + ": " + detail
	}
	return string(e.Kind) + ": " + detail
}

// unfinished says of a probe that its reply did not come to its end, and reports whether
// that is so.
func (r *runner) unfinished(name string, resp *model.Response) bool {
	switch resp.Finish {
	case model.FinishLength:
		limit := "the configured limit"
		if r.o.MaxOutput > 0 {
			limit = "the limit of " + itoa(r.o.MaxOutput) + " tokens"
		}
		r.set(name, Unclear, "if the model reasons at length, try with more output or less effort", "the reply was cut by %s%s", limit, noted(resp))
	case model.FinishFiltered:
		r.set(name, Unclear, "", "the provider withheld the reply%s", noted(resp))
	default:
		return false
	}
	return true
}

// noted is what the client had to repair or assume.
func noted(resp *model.Response) string {
	if resp.Note == "" {
		return ""
	}
	return " (" + resp.Note + ")"
}

// user returns a message of the user's.
func user(text string) *model.Message {
	return &model.Message{Role: "user", Parts: []model.Part{{Text: &text}}}
}
