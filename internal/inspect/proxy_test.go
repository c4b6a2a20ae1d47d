package inspect_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/inspect"
)

// answerOf returns the effects of a reply, or its error, as they are on the wire.
func answerOf(t *testing.T, body string) string {
	t.Helper()
	var got struct {
		Result struct {
			Effects []json.RawMessage
		}
		Error json.RawMessage
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	if got.Error != nil {
		return "error " + string(got.Error)
	}
	var list []string
	for _, e := range got.Result.Effects {
		list = append(list, string(e))
	}
	return strings.Join(list, " ")
}

// TestCombined holds what is answered to a harness, for what the backends answer.
func TestCombined(t *testing.T) {
	const (
		toB, toA   = `{"type":"modify","target":"input","operation":"replace","value":{"command":"b"}}`, `{"type":"modify","target":"input","operation":"replace","value":{"command":"a"}}`
		allow, ask = `{"type":"allow"}`, `{"type":"ask"}`
		deny       = `{"type":"deny","reason":"no"}`
		result     = `{"type":"return","value":null}`
		stop       = `{"type":"flow","reason":"s","operation":"stop"}`
	)
	all := boundaries()[0].caps[0]
	before := func(state, caps string) string {
		return `{"jsonrpc":"2.0","id":"e","method":"hooks/intercept","params":{"protocolVersion":"draft","event":` + toolEvent("e", "s", "a") + `,"capabilities":` + caps + state + `}}`
	}
	tests := []struct {
		name    string
		request string
		answers []string // "fail" and "fail-open" fail
		want    string
	}{
		{"nobody objects", before("", all), []string{"", ""}, ""},
		{"ask and allow", before("", all), []string{ask, allow}, ask + " " + allow},
		{"a deny ends it", before("", all), []string{allow, deny, ask}, allow + " " + deny},
		{"a stop ends it", before("", all), []string{stop, deny}, stop},
		{"an allow of what was changed later", before("", all), []string{allow, toB}, toB},
		{"an allow of what was changed before", before("", all), []string{toB, allow}, toB + " " + allow},
		{"an allow with a change", before("", all), []string{allow + "," + toB}, allow + " " + toB},
		{"a result of what was changed later", before("", all), []string{result, toB}, toB},
		{"a change that changes nothing", before("", all), []string{result, toA}, result + " " + toA},
		{"there and back", before("", all), []string{toB, toA}, toB + " " + toA},
		{"there and back, and an allow of before", before(`,"state":{"permission":"allow","candidate":null}`, all), []string{toB, toA}, `error {"code":-32003,"message":"backend_unavailable"}`},
		{"there and back, and a result of before", before(`,"state":{"permission":"none","candidate":{"value":1}}`, all), []string{toB, toA}, `error {"code":-32003,"message":"backend_unavailable"}`},
		{"there, and an allow of before", before(`,"state":{"permission":"allow","candidate":null}`, all), []string{toB}, toB},
		{"an allow of before is nobody's here", before(`,"state":{"permission":"allow","candidate":null}`, all), []string{""}, ""},
		{"a required one fails", before("", all), []string{ask, "fail", deny}, ask + ` {"type":"deny","reason":"A required policy check of this operation could not be completed, so the operation was refused."}`},
		{"another fails", before("", all), []string{ask, "fail-open", deny}, ask + " " + deny},
		{"a required one fails, and nothing can be denied", before("", `{"effects":["ask"]}`), []string{ask, "fail"}, `error {"code":-32003,"message":"backend_unavailable"}`},
		{"an effect that wasn't advertised", before("", `{"effects":["deny","ask"]}`), []string{ask, allow}, ask + ` {"type":"deny","reason":"A required policy check of this operation could not be completed, so the operation was refused."}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var hooks []hook
			for i, a := range tt.answers {
				policy := ahp.FailClosed
				if a == "fail-open" {
					policy = ahp.FailOpen
				}
				hooks = append(hooks, scripted(fmt.Sprintf("com.example.b%d", i), policy, []string{a}, strings.HasPrefix(a, "fail")))
			}
			s := start(t, inspect.Options{}, hooks...)
			status, body := s.post(t, tt.request)
			if got := answerOf(t, body); status != 200 || got != tt.want {
				t.Errorf("%d\ngot  %s\nwant %s", status, got, tt.want)
			}
		})
	}
}

// keeper is a backend that keeps what it gets.
type keeper struct {
	mu   sync.Mutex
	got  []string
	more chan struct{}
}

func newKeeper() *keeper { return &keeper{more: make(chan struct{}, 100)} }

func (k *keeper) handle(effects string) func(context.Context, []byte) ([]byte, error) {
	answer := answering(effects)
	return func(ctx context.Context, msg []byte) ([]byte, error) {
		k.mu.Lock()
		k.got = append(k.got, string(msg))
		k.mu.Unlock()
		k.more <- struct{}{}
		return answer(ctx, msg)
	}
}

// answering answers every request with the same effects.
func answering(effects string) func(context.Context, []byte) ([]byte, error) {
	return func(_ context.Context, msg []byte) ([]byte, error) {
		p, err := ahp.Peek(msg)
		if err != nil || !p.HasID {
			return nil, err
		}
		return []byte(`{"jsonrpc":"2.0","id":` + p.ID.String() + `,"result":{"protocolVersion":"draft","effects":[` + effects + `]}}`), nil
	}
}

// wait returns the n messages that come.
func (k *keeper) wait(t *testing.T, n int) []string {
	t.Helper()
	for range n {
		select {
		case <-k.more:
		case <-time.After(20 * time.Second):
			t.Fatal("nothing came")
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	out := k.got
	k.got = nil
	return out
}

// TestPassedOn holds that a backend behind sees the event and the state as they
// came, members without a meaning included, and no more capabilities.
func TestPassedOn(t *testing.T) {
	all, some := newKeeper(), newKeeper()
	hooks := []hook{{id: "com.example.all", handler: all.handle("")}, {id: "com.example.some", handler: some.handle("")}}
	reg := registration(t, hooks...)
	reg.Hooks[1].Subscriptions[0].Content = map[string]ahp.Selection{"default": ahp.SelectMetadata}
	s := start(t, inspect.Options{Registration: reg, Open: opener(hooks...)})
	_, body := s.post(t, `{"jsonrpc":"2.0","x-envelope":1,"id":"e","method":"hooks/intercept","params":{"protocolVersion":"draft","x-params":{"n":1.00},"extensions":{"com.example.p":[1e2]},`+
		`"capabilities":{"effects":["deny"],"x-caps":true},"state":{"permission":"ask","candidate":null,"x-state":"kept"},`+
		`"event":{"id":"e","source":"urn:test","type":"turn.start","time":"2026-01-01T00:00:00Z","turn":{"id":"t"},"trigger":"user","x-event":[1.0],"extensions":{"com.example.e":{"a":10000000000000000000001}},`+
		`"items":[{"id":"m","role":"user","parts":[{"id":"p","kind":"text","mediaType":"text/plain","selection":"body","text":"hello"}]}]}}}`)
	if got := answerOf(t, body); got != "" {
		t.Error(got)
	}
	whole, part := all.wait(t, 1)[0], some.wait(t, 1)[0]
	for _, member := range []string{`"x-params":{"n":1.00}`, `"com.example.p":[1e2]`, `"x-caps":true`, `"x-state":"kept"`, `"x-event":[1.0]`, `{"a":10000000000000000000001}`, `"text":"hello"`, `"effects":["deny"]`, `"permission":"ask"`} {
		if !strings.Contains(whole, member) {
			t.Errorf("%s is lost in %s", member, whole)
		}
	}
	// Who doesn't see all content doesn't get what may repeat it.
	for member, want := range map[string]bool{`"com.example.p":[1e2]`: true, `"x-params"`: false, `"x-state"`: false, `"x-event"`: false, `"text":"hello"`: false} {
		if strings.Contains(part, member) != want {
			t.Errorf("%s: %v, want %v in %s", member, !want, want, part)
		}
	}
}

// TestObserversBehind holds who is told of an event when the harness tells inspect:
// the observers, of the event as it became, and those who weren't asked; once.
func TestObserversBehind(t *testing.T) {
	denying, never, watching := newKeeper(), newKeeper(), newKeeper()
	s := start(t, inspect.Options{},
		hook{id: "com.example.denying", events: "tool.before", handler: denying.handle(`{"type":"deny","reason":"no"}`)},
		hook{id: "com.example.never", events: "tool.before", handler: never.handle("")},
		hook{id: "com.example.watching", events: "turn.start", more: observing, handler: watching.handle("")})
	s.post(t, toolBefore("e1", "s", "ls"))
	denying.wait(t, 1)
	// The harness has it otherwise by now.
	for range 2 {
		if status, _ := s.post(t, observed(toolEvent("e1", "s", "ls -l"))); status != 202 {
			t.Fatal(status)
		}
	}
	for name, k := range map[string]*keeper{"who wasn't asked": never, "the observer": watching} {
		if got := k.wait(t, 1)[0]; !strings.Contains(got, `"hooks/observe"`) || !strings.Contains(got, "ls -l") {
			t.Errorf("%s got %s", name, got)
		}
	}
	// An event about which inspect was not asked, and one that is only observed.
	s.post(t, observed(toolEvent("e2", "s", "cat")))
	s.post(t, observed(`{"id":"e3","source":"urn:test","type":"session.end","time":"2026-01-01T00:00:00Z","session":{"id":"s"},"outcome":"completed","reason":"done"}`))
	if got := watching.wait(t, 2); !strings.Contains(got[0], `"e2"`) || !strings.Contains(got[1], `"e3"`) {
		t.Errorf("%q", got) // and e1 came once
	}
	for name, k := range map[string]*keeper{"denying": denying, "never": never} {
		if got := k.wait(t, 1)[0]; !strings.Contains(got, `"e2"`) || !strings.Contains(got, `"hooks/observe"`) {
			t.Errorf("%s got %s", name, got)
		}
	}
}

// TestObserversAfterAnError holds that who was asked isn't told again where inspect
// could only answer with an error, and that the others are.
func TestObserversAfterAnError(t *testing.T) {
	failing, watching := newKeeper(), newKeeper()
	s := start(t, inspect.Options{},
		hook{id: "com.example.failing", events: "tool.before", handler: failing.handle(`{"type":"nonsense"}`)},
		hook{id: "com.example.watching", events: "turn.start", more: observing, handler: watching.handle("")})
	if _, body := s.post(t, toolBefore("e1", "s", "ls", "ask")); !strings.HasPrefix(answerOf(t, body), "error ") {
		t.Error(body)
	}
	s.post(t, observed(toolEvent("e1", "s", "ls")))
	s.post(t, observed(toolEvent("e2", "s", "ls")))
	if got := watching.wait(t, 2); !strings.Contains(got[0], `"e1"`) || !strings.Contains(got[1], `"e2"`) {
		t.Errorf("the observer got %q", got)
	}
	if got := failing.wait(t, 2); !strings.Contains(got[0], "hooks/intercept") || !strings.Contains(got[1], `"e2"`) {
		t.Errorf("who was asked got %q", got)
	}
}

// TestNoEffectAlone holds that inspect without backends answers everything with no
// effect, and what isn't a message with an error.
func TestNoEffectAlone(t *testing.T) {
	s := start(t, inspect.Options{})
	if status, body := s.post(t, toolBefore("e", "s", "rm -rf /")); status != 200 || answerOf(t, body) != "" {
		t.Error(status, body)
	}
	if status, body := s.post(t, observed(toolEvent("e", "s", "x"))); status != 202 || body != "" {
		t.Error(status, body)
	}
	if status, body := s.post(t, `{"jsonrpc":"2.0","id":1,"method":"hooks/capabilities","params":{"protocolVersion":"draft"}}`); status != 200 || !strings.Contains(body, `"manifest"`) {
		t.Error(status, body)
	}
	if status, body := s.post(t, `{"jsonrpc":"2.0","id":1,"method":"hooks/other","params":{}}`); status != 200 || !strings.Contains(body, "-32601") {
		t.Error(status, body)
	}
}

// TestUploadsAreRefused holds that a backend that wants attachments is refused, and
// that no ref of another receiver gets through.
func TestUploadsAreRefused(t *testing.T) {
	k := newKeeper()
	h := hook{id: "com.example.b", handler: k.handle("")}
	reg := registration(t, h)
	reg.Hooks[0].Subscriptions[0].Upload = &ahp.Upload{Endpoint: "http://127.0.0.1:1/", TimeoutMs: 1}
	if _, err := inspect.New(inspect.Options{Registration: reg, Open: opener(h)}); err == nil || !strings.Contains(err.Error(), "com.example.b, subscription 0: found an upload") {
		t.Errorf("got %v", err)
	}
	s := start(t, inspect.Options{}, h)
	s.post(t, `{"jsonrpc":"2.0","id":"e","method":"hooks/intercept","params":{"protocolVersion":"draft","capabilities":{"effects":["deny"]},"event":{"id":"e","source":"urn:test","type":"turn.start",`+
		`"time":"2026-01-01T00:00:00Z","turn":{"id":"t"},"trigger":"user","items":[{"id":"m","role":"user","parts":[{"id":"p","kind":"attachment","mediaType":"image/png","selection":"body","body":{"ref":"secret-ref"}}]}]}}}`)
	if got := k.wait(t, 1)[0]; strings.Contains(got, "secret-ref") || !strings.Contains(got, `"gap"`) {
		t.Error(got)
	}
}

// TestElicitations holds that a result is judged behind inspect once its request
// came, that one without is an error where somebody is to judge it and nothing
// otherwise, and that requests which nobody answers don't add up.
func TestElicitations(t *testing.T) {
	request := func(id string) string {
		return `{"jsonrpc":"2.0","id":"` + id + `","method":"hooks/intercept","params":{"protocolVersion":"draft","capabilities":{"effects":["message"]},"event":{"id":"` + id + `","source":"urn:test","type":"user.elicitation.request",` +
			`"time":"2026-01-01T00:00:00Z","elicitation":{"server":"s","mode":"form","request":{"id":"p","kind":"text","mediaType":"text/plain","selection":"body","text":"{\"message\":\"?\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{}}}"}}}}}`
	}
	result := func(id, parent string) string {
		return `{"jsonrpc":"2.0","id":"` + id + `","method":"hooks/intercept","params":{"protocolVersion":"draft","capabilities":{"effects":["message"]},"event":{"id":"` + id + `","source":"urn:test","type":"user.elicitation.result","parentEventId":"` + parent +
			`","time":"2026-01-01T00:00:00Z","elicitation":{"server":"s","mode":"form","action":"accept","result":{"id":"p","kind":"text","mediaType":"text/plain","selection":"body","text":"{\"action\":\"accept\",\"content\":{}}"}}}}}`
	}
	noted := `{"type":"message","text":"seen"}`
	s := start(t, inspect.Options{}, judgingOne("com.example.b", "user.elicitation.result", noted))
	for i := range 1200 {
		if _, body := s.post(t, request(fmt.Sprintf("q%d", i))); answerOf(t, body) != "" {
			t.Fatalf("request %d: %s", i, body)
		}
	}
	if _, body := s.post(t, result("r", "q1199")); answerOf(t, body) != noted {
		t.Error(body)
	}
	for _, parent := range []string{"q1199", "q0", "none"} {
		if _, body := s.post(t, result("r-"+parent, parent)); !strings.HasPrefix(answerOf(t, body), "error ") {
			t.Errorf("%s: %s", parent, body)
		}
	}
	other := start(t, inspect.Options{}, judgingOne("com.example.b", "tool.before", noted))
	if _, body := other.post(t, result("r", "none")); answerOf(t, body) != "" {
		t.Error(body)
	}
}

// judgingOne is a backend for one type of event that answers with the same whatever
// the id.
func judgingOne(id, events, effect string) hook {
	return hook{id: id, events: events, handler: answering(effect)}
}
