package brokenharness

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/ahp/transport"
	"github.com/abhed/abhed/internal/strictjson"
)

type object = map[string]any

// wire is what a defect does to messages. Nil functions and "" do nothing.
type wire struct {
	// out changes a message before it is sent.
	out func(p *peer, o object, msg []byte) []byte
	// exchange takes the place of an exchange.
	exchange func(ctx context.Context, p *peer, msg []byte) ([]byte, error)
	// notify reports whether a notification is sent.
	notify func(p *peer, o object) bool
	// trip changes what goes over HTTP.
	trip func(r *http.Request)
	// token takes the place of a missing token.
	token string
	// mangle names what Mangle does to the streams of a process.
	mangle string
	// environ gives a process the whole environment.
	environ bool
}

// peer is a transport to one backend.
type peer struct {
	transport.Transport
	s       *session
	backend *ahp.Backend
	place   int
}

// Ready reports why the credential isn't there.
func (p *peer) Ready(ctx context.Context) error {
	if r, is := p.Transport.(interface{ Ready(context.Context) error }); is {
		return r.Ready(ctx)
	}
	return nil
}

// Exchange sends a request.
func (p *peer) Exchange(ctx context.Context, msg []byte) ([]byte, error) {
	if p.s.wire.out != nil {
		msg = p.s.wire.out(p, parsed(msg), msg)
	}
	if p.s.wire.exchange != nil {
		return p.s.wire.exchange(ctx, p, msg)
	}
	return p.Transport.Exchange(ctx, msg)
}

// Notify sends a notification.
func (p *peer) Notify(ctx context.Context, msg []byte) error {
	o := parsed(msg)
	if p.s.wire.notify != nil && !p.s.wire.notify(p, o) {
		return nil
	}
	if p.s.wire.out != nil {
		msg = p.s.wire.out(p, o, msg)
	}
	return p.Transport.Notify(ctx, msg)
}

// remember stores what is first known under a name, and reports what that is.
func (s *session) remember(name string, value []byte) (first []byte, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, is := s.memory[name]; is {
		return v, true
	}
	s.memory[name] = value
	return value, false
}

func (w *wire) lookup(name string) (string, bool) {
	if v, is := os.LookupEnv(name); is || w.token == "" {
		return v, is
	}
	return w.token, true
}

// client is an HTTP client whose requests are changed.
func (w *wire) client() *http.Client {
	return &http.Client{Transport: tripper{w.trip, &http.Transport{}}}
}

type tripper struct {
	change func(*http.Request)
	next   http.RoundTripper
}

// RoundTrip sends the changed request.
func (t tripper) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	t.change(r)
	return t.next.RoundTrip(r)
}

func parsed(msg []byte) object {
	var o object
	if strictjson.Unmarshal(msg, &o, strictjson.Options{}) != nil {
		return object{}
	}
	return o
}

// edited returns a document after f.
func edited(msg []byte, f func(object)) []byte {
	o := parsed(msg)
	f(o)
	out, err := strictjson.Marshal(o)
	if err == nil {
		out, err = strictjson.Canonical(out)
	}
	if err != nil {
		return msg
	}
	return out
}

func event(o object) object {
	params, _ := o["params"].(object)
	e, _ := params["event"].(object)
	return e
}

func typeOf(o object) string {
	t, _ := event(o)["type"].(string)
	return t
}

func idOf(msg []byte) string {
	id, _ := event(parsed(msg))["id"].(string)
	return id
}

// asks changes decision requests, and only those.
func asks(f func(o object)) func(*peer, object, []byte) []byte {
	return func(_ *peer, o object, msg []byte) []byte {
		if o["method"] != ahp.MethodIntercept {
			return msg
		}
		return edited(msg, f)
	}
}

// effectsOf returns the effects of a reply that is valid for a request, or nil.
func effectsOf(msg, reply []byte) []ahp.Effect {
	q, err := ahp.DecodeRequest(msg)
	i, is := q.(*ahp.Intercept)
	if err != nil || !is {
		return nil
	}
	o, err := harness.Evaluate(i, reply)
	if err != nil || len(o.Trace) == 0 {
		return nil
	}
	return o.Trace[0].Effects
}

// reply is a valid reply to a request.
func reply(msg []byte, effects ...ahp.Effect) []byte {
	out, err := ahp.EncodeEffects(ahp.StringID(idOf(msg)), effects)
	if err != nil {
		panic(err) // of this package's own effects
	}
	return out
}

// sole changes the answer where it is one effect that want accepts: to the given
// ones.
func sole(want func(ahp.Effect) bool, instead ...ahp.Effect) func(context.Context, *peer, []byte) ([]byte, error) {
	return func(ctx context.Context, p *peer, msg []byte) ([]byte, error) {
		got, err := p.Transport.Exchange(ctx, msg)
		if err == nil {
			if list := effectsOf(msg, got); len(list) == 1 && want(list[0]) {
				return reply(msg, instead...), nil
			}
		}
		return got, err
	}
}

// failure returns how an exchange failed, as a harness sees it; "" is success.
func failure(msg, got []byte, err error) ahp.FailureClass {
	if err == nil {
		q, derr := ahp.DecodeRequest(msg)
		i, is := q.(*ahp.Intercept)
		if derr != nil || !is {
			return ""
		}
		if _, err = harness.Evaluate(i, got); err == nil {
			return ""
		}
		return ahp.ReplyFailure(err).Class
	}
	var f *ahp.Failure
	if errors.As(err, &f) {
		return f.Class
	}
	return ahp.FailDeadline // what wraps the end of the context
}

// others asks the backends after one as well, and forgets what they say.
func (p *peer) others(ctx context.Context, msg []byte) {
	for _, next := range p.s.peers[p.place+1:] {
		_, _ = next.Transport.Exchange(ctx, msg)
	}
}

func hasMode(b *ahp.Backend, m ahp.Mode) int {
	n := 0
	for i := range b.Subscriptions {
		if b.Subscriptions[i].Mode == m {
			n++
		}
	}
	return n
}

func contains(b []byte, s string) bool { return strings.Contains(string(b), s) }
