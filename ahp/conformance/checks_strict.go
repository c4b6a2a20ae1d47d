package conformance

import (
	"bytes"
	"context"
	"iter"
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/strictjson"
)

// strictChecks are about bytes that aren't one strict JSON object within the
// bounds.
func strictChecks() []backendCheck {
	return []backendCheck{
		base("rpc.parse", "AHP-RPC-001.f", "What isn't JSON is answered with -32700 and a null id", runParse),
		base("strict.utf8", "AHP-RPC-001.j", "Bytes that are no UTF-8 are refused", runUTF8),
		base("strict.duplicates", "AHP-RPC-001.k", "A message with a repeated member is refused", runDuplicates).level(Should),
		base("strict.surrogate", "AHP-RPC-001.k", "Half of a surrogate pair is refused", runSurrogate).level(Should),
		base("strict.mark", "AHP-RPC-001.k", "A byte order mark is refused", runMark).level(Should),
		base("strict.depth", "AHP-RPC-001.l", "128 levels are taken, 129 refused", runDepth).level(Should),
		base("strict.nesting", "AHP-RPC-001.l", "Very deep nesting is refused and does no harm", runNesting).level(Should),
		base("strict.size", "AHP-RPC-001.m", "A message beyond the bound is refused and does no harm", runSize).level(Should),
		must("rpc.recovers", "AHP-RPC-001.p", ProfileBase, "After bad messages good ones are answered", []Binding{StdioPersistent, HTTP}, runRecovers),
	}
}

// lists reports whether data is an object whose "supported" lists the text.
func lists(data ahp.Raw, text string) bool {
	var d struct {
		Supported []string `json:"supported"`
	}
	if data == nil || strictjson.Unmarshal(data, &d, strictjson.Options{}) != nil {
		return false
	}
	for _, s := range d.Supported {
		if s == text {
			return true
		}
	}
	return false
}

func runParse(ctx context.Context, p *probe, e *backendEnv) error {
	l, err := e.open(p)
	if err != nil {
		return err
	}
	good, err := e.plain()
	if err != nil {
		return err
	}
	for what, text := range inOrder(
		"half of an object", `{"jsonrpc":"2.0",`, "other quotes", `{'jsonrpc':'2.0'}`, "a word", `hello`,
		"NaN for a number", string(good.raw[:len(good.raw)-1])+`,"n":NaN}`, "two values", string(good.raw)+"{}",
	) {
		m := message{raw: []byte(text), breaks: ahp.KindSyntax}
		a, err := l.ask(ctx, m)
		if err == nil {
			err = p.wantRefused(a, m.id, ahp.CodeParse)
		}
		if err != nil {
			return named(what, err)
		}
	}
	return nil
}

// inOrder yields pairs of names and texts.
func inOrder(pairs ...string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for i := 0; i+1 < len(pairs); i += 2 {
			if !yield(pairs[i], pairs[i+1]) {
				return
			}
		}
	}
}

// spoilt returns a valid request in which a text was replaced, so that it isn't
// strict JSON any more.
func (e *backendEnv) spoilt(old, replacement string, edits ...edit) (message, error) {
	m, err := e.request(0, edits...)
	if err != nil {
		return m, err
	}
	m.raw = bytes.Replace(m.raw, []byte(old), []byte(replacement), 1)
	m.breaks = ahp.KindSyntax
	return m, nil
}

// refusesBytes holds that a message is refused in whatever way; what isn't JSON
// need not have an id.
func (e *backendEnv) refusesBytes(ctx context.Context, p *probe, m message, err error) error {
	if err != nil {
		return err
	}
	a, err := e.asked(ctx, p, m)
	if err != nil {
		return err
	}
	return p.wantRefused(a, m.id)
}

func runUTF8(ctx context.Context, p *probe, e *backendEnv) error {
	for _, bytes := range []string{"\xff", "\xc0\xaf", "\xed\xa0\x80"} {
		m, err := e.spoilt("SPOIL", bytes, set("params.event.native", "SPOIL"))
		if err := e.refusesBytes(ctx, p, m, err); err != nil {
			return err
		}
	}
	return nil
}

func runDuplicates(ctx context.Context, p *probe, e *backendEnv) error {
	for _, member := range []struct{ old, text string }{
		{`"method":"hooks/intercept"`, `"method":"hooks/observe","method":"hooks/intercept"`},
		{`"protocolVersion":"draft"`, `"protocolVersion":"draft","protocolVersion":"draft"`},
		{`"effects":[`, `"effects":[],"effects":[`},
		{`"source":"`, `"source":"urn:other","source":"`},
	} {
		m, err := e.spoilt(member.old, member.text)
		if err := e.refusesBytes(ctx, p, m, err); err != nil {
			return named(member.old, err)
		}
	}
	return nil
}

func runSurrogate(ctx context.Context, p *probe, e *backendEnv) error {
	m, err := e.spoilt("SPOIL", `\ud83d`, set("params.event.native", "SPOIL"))
	return e.refusesBytes(ctx, p, m, err)
}

func runMark(ctx context.Context, p *probe, e *backendEnv) error {
	m, err := e.spoilt("{", "\xef\xbb\xbf{")
	return e.refusesBytes(ctx, p, m, err)
}

// nested returns a request that is depth levels deep.
func (e *backendEnv) nested(depth int) (message, error) {
	// The object, params and the event are three levels.
	arrays := depth - 3
	m, err := e.request(0, set("params.event.native", "NEST"))
	m.raw = bytes.Replace(m.raw, []byte(`"NEST"`), []byte(strings.Repeat("[", arrays)+strings.Repeat("]", arrays)), 1)
	if depth > ahp.MaxDepth {
		m.breaks = ahp.KindSyntax
	}
	return m, err
}

func runDepth(ctx context.Context, p *probe, e *backendEnv) error {
	m, err := e.nested(ahp.MaxDepth)
	if err != nil {
		return err
	}
	if err := e.accepts(ctx, p, m); err != nil {
		return err
	}
	m, err = e.nested(ahp.MaxDepth + 1)
	return e.refusesBytes(ctx, p, m, err)
}

func runNesting(ctx context.Context, p *probe, e *backendEnv) error {
	l, err := e.open(p)
	if err != nil {
		return err
	}
	m, err := e.nested(200_000)
	if err != nil {
		return err
	}
	return e.refusedAndOn(ctx, p, l, m)
}

// refusedAndOn holds that m is refused in whatever way, and a good message after
// it answered.
func (e *backendEnv) refusedAndOn(ctx context.Context, p *probe, l link, m message) error {
	a, err := l.ask(ctx, m)
	if err != nil {
		return err
	}
	if a.raw != nil || a.status < 400 || a.status > 499 {
		if err := p.wantError(a, m.id, true); err != nil {
			return err
		}
	}
	good, err := e.plain()
	if err != nil {
		return err
	}
	if a, err = l.ask(ctx, good); err != nil {
		return err
	}
	_, err = p.wantEffects(a, &good)
	return err
}

func runSize(ctx context.Context, p *probe, e *backendEnv) error {
	l, err := e.open(p)
	if err != nil {
		return err
	}
	m, err := e.oversized()
	if err != nil {
		return err
	}
	return e.refusedAndOn(ctx, p, l, m)
}

// oversized returns a request that is just beyond the bound. That is the peer's,
// and may be another one than ours.
func (e *backendEnv) oversized() (message, error) {
	m, err := e.request(0, set("params.event.native", "FILL"))
	m.raw = bytes.Replace(m.raw, []byte("FILL"), bytes.Repeat([]byte("x"), e.opts.MaxBytes), 1)
	m.own = true
	return m, err
}

func runRecovers(ctx context.Context, p *probe, e *backendEnv) error {
	l, err := e.open(p)
	if err != nil {
		return err
	}
	wrong, err := e.request(ahp.KindShape, drop("params.event"))
	if err != nil {
		return err
	}
	for range 5 {
		for _, m := range []message{{raw: []byte("{"), breaks: ahp.KindSyntax}, {raw: []byte("[]"), breaks: ahp.KindEnvelope}, wrong} {
			if _, err := l.ask(ctx, m); err != nil {
				return err
			}
		}
	}
	good, err := e.plain()
	if err != nil {
		return err
	}
	a, err := l.ask(ctx, good)
	if err != nil {
		return err
	}
	_, err = p.wantEffects(a, &good)
	return err
}
