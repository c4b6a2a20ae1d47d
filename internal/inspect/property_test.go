package inspect_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/ahp/transport"
	"github.com/abhed/abhed/internal/inspect"
)

// boundary is a kind of event with the effects that backends may try there. Some
// are never advertised, or can't be applied.
type boundary struct {
	event   string
	effects []string
	// rare are those that end the chain, or are refused, so that others get a turn.
	rare []string
	// caps are advertisements to choose from.
	caps []string
}

func boundaries() []boundary {
	edits := []string{`{"type":"modify","target":"input","operation":"replace","value":{"command":"a"}}`, `{"type":"modify","target":"input","operation":"replace","value":{"command":"b"}}`,
		`{"type":"modify","target":"input","operation":"merge","value":{"command":"b","x":1}}`}
	after := `{"id":"e","source":"urn:test","type":"tool.after","time":"2026-01-01T00:00:00Z","call":{"id":"c"},"path":"native","outcome":"ok","execution":{"status":"executed"},` +
		`"tool":{"name":"bash","origin":"native","input":{}},"items":[{"id":"m","role":"tool","parts":[{"id":"p","kind":"text","mediaType":"text/plain","selection":"body","text":"out"}]}]}`
	return []boundary{{
		event: `{"id":"e","source":"urn:test","type":"tool.before","time":"2026-01-01T00:00:00Z","call":{"id":"c"},"path":"native","x-unknown":{"k":1},"extensions":{"com.example.x":[1.50]},` +
			`"tool":{"name":"bash","origin":"native","input":{"command":"a"}}}`,
		effects: append(edits, `{"type":"ask"}`, `{"type":"allow"}`, `{"type":"message","text":"m"}`, `{"type":"return","value":null}`, `{"type":"return","value":"r"}`, inject("i")),
		rare:    []string{`{"type":"deny","reason":"no"}`, `{"type":"flow","operation":"stop","reason":"stop"}`, `{"type":"flow","operation":"continue"}`},
		caps: []string{`{"effects":["deny","allow","ask","modify","message","return","flow","inject"],"modify":{"input":{"replace":true,"merge":true}},"flow":{"operations":["stop"]},"inject":{"context":{"append":true,"deliverAt":["now"]}}}`,
			`{"effects":["deny","modify","message","allow","return"],"modify":{"input":{"replace":true,"merge":false}}}`, `{"effects":["ask","message"]}`, `{"effects":["deny"]}`},
	}, {
		event: after,
		effects: []string{`{"type":"modify","target":"output","operation":"merge","value":[{"id":"n","role":"tool","parts":[]}]}`, `{"type":"modify","target":"output","operation":"replace","value":[]}`,
			`{"type":"flow","operation":"continue","instruction":"go on"}`, `{"type":"flow","operation":"continue"}`, `{"type":"message","text":"m"}`, inject("j")},
		rare: []string{`{"type":"flow","operation":"stop","reason":"s"}`, `{"type":"deny","reason":"no"}`},
		caps: []string{`{"effects":["modify","flow","message","inject"],"modify":{"output":{"replace":true,"merge":true}},"flow":{"operations":["stop","continue"],"remainingContinuations":1,"continuationCount":0},"inject":{"context":{"append":true,"deliverAt":["now"]}}}`,
			`{"effects":["message"]}`},
	}}
}

func inject(id string) string {
	return `{"type":"inject","target":"context","operation":"append","deliverAt":"now","value":[{"id":"` + id + `","role":"developer","parts":[]}]}`
}

// scripted is a backend that always answers with the same.
func scripted(id string, policy ahp.FailurePolicy, effects []string, fails bool) hook {
	return hook{id: id, policy: policy, handler: func(_ context.Context, msg []byte) ([]byte, error) {
		if fails {
			return []byte("garbage"), nil
		}
		p, err := ahp.Peek(msg)
		if err != nil || !p.HasID {
			return nil, err
		}
		return []byte(`{"jsonrpc":"2.0","id":"e","result":{"protocolVersion":"draft","effects":[` + strings.Join(effects, ",") + `]}}`), nil
	}}
}

// dispatch sends an event through hooks and returns what it came to.
func dispatch(t *rapid.T, tb testing.TB, reg *ahp.Registration, open func(*ahp.Backend) (transport.Transport, error), event, caps string) *harness.Outcome {
	h, err := harness.New(reg, harness.Options{Manifest: ahptest.Manifest(), Open: open})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	r, err := ahp.DecodeRequest([]byte(`{"jsonrpc":"2.0","id":"e","method":"hooks/intercept","params":{"protocolVersion":"draft","event":` + event + `,"capabilities":` + caps + `}}`))
	if err != nil {
		t.Fatal(err)
	}
	q := r.(*ahp.Intercept)
	o, err := h.Dispatch(tb.Context(), q.Event, &q.Capabilities, nil, harness.DispatchOptions{NoObservers: true})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// summary is what of an outcome a harness acts on.
type summary struct {
	Event, Permission, Candidate, Flow, Stop string
	Denials, Messages, Instructions          []string
	Injections                               []string
}

func summaryOf(t *rapid.T, o *harness.Outcome) summary {
	event, err := o.Event.Encode()
	if err != nil {
		t.Fatal(err)
	}
	s := summary{Event: string(event), Permission: string(o.Permission), Flow: string(o.Flow), Stop: o.StopReason, Messages: o.Messages, Instructions: o.Instructions}
	if o.Candidate != nil {
		s.Candidate = string(o.Candidate.Value)
	}
	for _, d := range o.Denials {
		s.Denials = append(s.Denials, d.Reason)
	}
	for _, i := range o.Injections {
		raw, err := ahp.EncodeEffect(i)
		if err != nil {
			t.Fatal(err)
		}
		s.Injections = append(s.Injections, string(raw))
	}
	return s
}

// TestProxyIsTransparent holds that a harness comes to the same with inspect in
// front of backends as with the backends themselves, whatever they answer, however
// they fail, and whoever else is asked before and after them. Where that can't be
// said in one answer it comes to a denial.
func TestProxyIsTransparent(t *testing.T) {
	equal, stricter := 0, 0
	rapid.Check(t, func(r *rapid.T) {
		b := rapid.SampledFrom(boundaries()).Draw(r, "boundary")
		caps := b.caps[max(0, rapid.IntRange(-2*len(b.caps), len(b.caps)-1).Draw(r, "caps"))] // mostly the widest
		var all []hook
		for i := range rapid.IntRange(1, 3).Draw(r, "backends") + 2 {
			policy := rapid.SampledFrom([]ahp.FailurePolicy{ahp.FailOpen, ahp.FailClosed}).Draw(r, "policy")
			effects := rapid.SliceOfN(rapid.SampledFrom(b.effects), 0, 2).Draw(r, "effects")
			if rapid.IntRange(0, 9).Draw(r, "rarely") == 5 {
				effects = append(effects, rapid.SampledFrom(b.rare).Draw(r, "rare"))
			}
			all = append(all, scripted(fmt.Sprintf("com.example.b%d", i), policy, effects, rapid.IntRange(0, 9).Draw(r, "fails") == 5))
		}
		behind := all[1 : len(all)-1]
		i, err := inspect.New(inspect.Options{Registration: registration(t, behind...), Open: opener(behind...)})
		if err != nil {
			r.Fatal(err)
		}
		defer i.Close()
		front := []hook{all[0], {id: "com.example.inspect", handler: served(i)}, all[len(all)-1]}
		flat := dispatch(r, t, registration(t, all...), opener(all...), b.event, caps)
		proxied := dispatch(r, t, registration(t, front...), opener(front...), b.event, caps)
		if flat.Permission.Stricter(proxied.Permission) {
			r.Fatalf("%s became %s", flat.Permission, proxied.Permission)
		}
		if failed := proxied.Trace[min(1, len(proxied.Trace)-1)]; len(proxied.Trace) > 1 && failed.Failure != nil {
			stricter++
			if proxied.Permission != ahp.PermissionDeny {
				r.Fatalf("%v didn't deny", failed.Failure)
			}
			return
		}
		equal++
		if diff := cmp.Diff(summaryOf(r, flat), summaryOf(r, proxied)); diff != "" {
			r.Fatalf("without inspect (-) and with it (+):\n%s", diff)
		}
	})
	if equal == 0 || equal < stricter {
		t.Errorf("%d outcomes were compared, %d were denials in place of an answer: the test shows too little", equal, stricter)
	}
}
