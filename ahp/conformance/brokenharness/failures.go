package brokenharness

import (
	"context"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/abhed/abhed/ahp"
)

// failed is how an exchange went wrong.
type failed struct {
	class ahp.FailureClass
	// got is the reply, nil where the transport gave none, and text the error.
	got  []byte
	text string
}

// kind is a kind of failure, by the group of checks that is about it.
type kind struct {
	name string
	is   func(f *failed) bool
}

// kinds are disjoint: each failure is of the first that fits.
func kinds() []kind {
	class := func(list ...ahp.FailureClass) func(*failed) bool {
		return func(f *failed) bool {
			for _, c := range list {
				if f.class == c {
					return true
				}
			}
			return false
		}
	}
	return []kind{
		{"silence", class(ahp.FailDeadline, ahp.FailLate)},
		{"loss", func(f *failed) bool {
			// A process for one event that ends without an answer has sent a bad one.
			return class(ahp.FailConnect, ahp.FailLaunch, ahp.FailExit)(f) || f.class == ahp.FailMalformed && f.got == nil && strings.Contains(f.text, "exit")
		}},
		{"credential", class(ahp.FailAuth)},
		{"status", func(f *failed) bool { return f.class == ahp.FailHTTPStatus && !strings.Contains(f.text, "307") }},
		{"media-type", func(f *failed) bool { return f.class == ahp.FailMalformed && strings.Contains(f.text, "text/") }},
		{"doubtful", func(f *failed) bool { return f.class == ahp.FailMalformed && (f.got == nil || doubtful(f.got)) }},
		{"malformed", class(ahp.FailMalformed)},
		{"other-id", class(ahp.FailIDMismatch)},
		{"error", func(f *failed) bool { return contains(f.got, `"error":{"code":-3`) }},
		{"version", class(ahp.FailVersion)},
		{"effect", class(ahp.FailEffect)},
	}
}

// doubtful reports whether a reply is one that only strict readers refuse.
func doubtful(got []byte) bool {
	s := strings.TrimSpace(string(got))
	return strings.HasPrefix(s, "\xef\xbb\xbf") || strings.HasPrefix(s, "starting up") || strings.Contains(s, `\ud800`) || strings.Count(s, `"effects":`) > 1 && !strings.Contains(s, "\n")
}

func kindOf(f *failed) string {
	for _, k := range kinds() {
		if k.is(f) {
			return k.name
		}
	}
	return ""
}

// failureDefects ignore one failure policy for one kind of failure, each.
func failureDefects() []Defect {
	out := []Defect{
		{Check: "deadline", About: "doesn't keep its deadlines", wire: wire{exchange: func(ctx context.Context, p *peer, msg []byte) ([]byte, error) {
			got, err := p.Transport.Exchange(ctx, msg)
			if _, again := p.s.remember("waited", nil); failure(msg, got, err) == ahp.FailDeadline && !again {
				time.Sleep(4 * time.Second)
			} else {
				p.s.forget("waited")
			}
			return got, err
		}}},
		{Check: "atomic", About: "leaves unknown effects out and applies the rest", wire: wire{exchange: func(ctx context.Context, p *peer, msg []byte) ([]byte, error) {
			got, err := p.Transport.Exchange(ctx, msg)
			if contains(got, `"modify"`) {
				got = []byte(strings.Replace(string(got), `,{"type":"teleport"}`, "", 1))
			}
			return got, err
		}}},
		{Check: "retry", About: "sends again with another time", wire: wire{out: func(p *peer, o object, msg []byte) []byte {
			if o["method"] != ahp.MethodIntercept {
				return msg
			}
			if _, again := p.s.remember("asked "+idOf(msg), nil); !again {
				return msg
			}
			return edited(msg, func(o object) { event(o)["time"] = "2026-01-01T00:00:00Z" })
		}}},
	}
	for _, k := range kinds() {
		out = append(out,
			Defect{Check: "closed." + k.name, About: "takes it for consent where a backend fails: " + k.name, wire: wire{exchange: instead(k.name)}},
			Defect{Check: "open." + k.name, About: "refuses where a backend fails, whatever its policy: " + k.name, wire: wire{exchange: instead(k.name, &ahp.Deny{Reason: "it failed"})}})
	}
	return out
}

// Faithless is a harness without failure policies: it takes every failure for
// consent or, if refuses is set, for a denial.
func Faithless(refuses bool) Defect {
	if refuses {
		return Defect{wire: wire{exchange: instead("", &ahp.Deny{Reason: "it failed"})}}
	}
	return Defect{wire: wire{exchange: instead("")}}
}

// instead answers a kind of failure, or with "" any, with effects.
func instead(name string, effects ...ahp.Effect) func(context.Context, *peer, []byte) ([]byte, error) {
	return func(ctx context.Context, p *peer, msg []byte) ([]byte, error) {
		bounded := ctx
		if deadline, is := ctx.Deadline(); is && (name == "silence" || name == "") {
			var cancel context.CancelFunc
			// It has to answer before the deadline, or its answer counts for nothing.
			bounded, cancel = context.WithDeadline(ctx, deadline.Add(-time.Until(deadline)/2))
			defer cancel()
		}
		got, err := p.Transport.Exchange(bounded, msg)
		f := &failed{class: failure(msg, got, err), got: got}
		if err != nil {
			f.text = err.Error()
		}
		if f.class != "" && (name == "" || kindOf(f) == name) {
			return reply(msg, effects...), nil
		}
		return got, err
	}
}

// post sends a message by itself; path "" is the backend's own.
func (p *peer) post(ctx context.Context, path string, msg []byte) error {
	url := p.backend.Transport.URL
	if path != "" {
		url = url[:strings.LastIndexByte(url, '/')] + path
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(string(msg)))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

func ownToken() string { return os.Getenv("AHP_CONFORM_TOKEN") }
