package app_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/backend"
	"github.com/abhed/abhed/internal/control"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model/modeltest"
	"github.com/abhed/abhed/internal/strictjson"
)

// serverRow is the argument with which a test's own binary is an MCP server whose one
// tool, ask, asks the person for a name and returns the answer.
const serverRow = "ask-server"

func init() {
	if len(os.Args) > 1 && os.Args[1] == serverRow {
		serveAsk()
		os.Exit(0)
	}
}

const nameForm = `{"message":"WHO is it?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"}},"required":["name"]}}`

// wireMessage is a message of the protocol.
type wireMessage struct {
	ID     ahp.Raw `json:"id"`
	Method string  `json:"method"`
	Result ahp.Raw `json:"result"`
	Error  ahp.Raw `json:"error"`
}

func serveAsk() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	next := func() *wireMessage {
		for in.Scan() {
			var m wireMessage
			if strictjson.Unmarshal(in.Bytes(), &m, strictjson.Options{}) == nil {
				return &m
			}
		}
		return nil
	}
	reply := func(m *wireMessage, result string) {
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result)
	}
	for m := next(); m != nil; m = next() {
		switch m.Method {
		case "initialize":
			reply(m, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"asker","version":"1"}}`)
		case "tools/list":
			reply(m, `{"tools":[{"name":"ask","description":"asks for a name","inputSchema":{"type":"object"}}]}`)
		case "tools/call":
			fmt.Printf(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":%s}`+"\n", nameForm)
			a := next()
			for a != nil && string(a.ID) != `"q"` {
				a = next()
			}
			if a == nil {
				return
			}
			quoted, _ := strictjson.AppendString(nil, "it was told "+string(a.Result)+string(a.Error))
			reply(m, fmt.Sprintf(`{"content":[{"type":"text","text":%s}]}`, quoted))
		default:
			if m.ID != nil && m.Method != "" {
				fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`+"\n", m.ID)
			}
		}
	}
}

// askServer configures the server.
func (w *world) askServer() {
	w.t.Helper()
	self, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	w.settings(fmt.Sprintf(`{"mcp":{"srv":{"command":%q,"args":[%q],"env":{"GORACE":"atexit_sleep_ms=0"}}}}`, self, serverRow))
}

// person answers questions, and keeps them.
type person struct {
	answer func(ctx context.Context) (control.Reply, error)

	mu    sync.Mutex
	asked []control.Inquiry
}

// Ask answers.
func (p *person) Ask(ctx context.Context, q control.Inquiry) (control.Reply, error) {
	p.mu.Lock()
	p.asked = append(p.asked, q)
	p.mu.Unlock()
	return p.answer(ctx)
}

func (p *person) questions() []control.Inquiry {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}

// ann is a person of that name.
func ann() *person {
	return &person{answer: func(context.Context) (control.Reply, error) { return control.Reply{Text: `{"name":"ann"}`}, nil }}
}

// accepted is what a server is told of ann.
const accepted = `it was told {"action":"accept","content":{"name":"ann"}}`

// asking lets a server ask a person while a call runs.
func asking() *scene {
	want, closed := well(), well()
	want.sent = []string{accepted}
	closed.sent, closed.unsent = []string{`it was told {"action":"decline"}`}, []string{"ann"}
	return &scene{
		turns: []modeltest.Turn{{Calls: []modeltest.Call{{ID: "call_0", Name: "mcp__srv__ask", Args: `{}`}, {ID: "call_1", Name: "write", Args: markerArgs}}}, done()},
		mode:  "bypass", setup: (*world).askServer, want: want, closed: closed,
		play: func(ctx context.Context, w *world) result { return w.driven(ctx, control.Start{Asker: ann()}, nil) },
	}
}

// elicitations are the effects on what a server asks, and on what it is answered.
func elicitations() []enforced {
	request, answer := ahp.UserElicitationRequest, ahp.UserElicitationResult
	base := asking().want
	told, refused, supplied, merged, replaced := base, asking().closed, base, base, base
	told.stderr, told.unsent = "NOTICE", []string{"NOTICE"}
	refused.stderr, refused.record = "not on Fridays", "denied"
	supplied.sent, supplied.unsent, supplied.record = []string{`it was told {"action":"accept","content":{"name":"bob"}}`}, []string{"ann"}, "supplied"
	merged.sent, merged.record = []string{`it was told {"action":"accept","content":{"age":7,"name":"ann"}}`}, "changed"
	replaced.sent, replaced.unsent, replaced.record = supplied.sent, supplied.unsent, "changed"
	return []enforced{
		{on: request, effect: ahp.EffectMessage, say: always(&ahp.Notice{Text: "NOTICE"}), want: told},
		{on: request, effect: ahp.EffectDeny, say: always(deny()), want: refused},
		{on: request, effect: ahp.EffectReturn, say: always(&ahp.Return{Value: ahp.Raw(`{"action":"accept","content":{"name":"bob"}}`)}), want: supplied},
		{on: answer, effect: ahp.EffectMessage, say: always(&ahp.Notice{Text: "NOTICE"}), want: told},
		{on: answer, effect: ahp.EffectModify, op: "merge", say: always(modify(ahp.TargetContent, ahp.OpMerge, ahp.Raw(`{"age":7}`))), want: merged},
		{on: answer, effect: ahp.EffectModify, op: "replace", say: always(modify(ahp.TargetContent, ahp.OpReplace, ahp.Raw(`{"name":"bob"}`))), want: replaced},
	}
}

// TestFormsAreJudgedInOrder has two backends around one form: the second sees what the
// first let through, the answer it gets is what the person filled in, and the server is
// told what the last one made of it.
func TestFormsAreJudgedInOrder(t *testing.T) {
	s := asking()
	w := s.world(t)
	gives := func(e ahp.Effect) *listener {
		return &listener{judge: func(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
			if q.Event.Type == ahp.UserElicitationResult {
				return backend.Answer(q, e)
			}
			return nil, nil
		}}
	}
	first, second := gives(modify(ahp.TargetContent, ahp.OpMerge, ahp.Raw(`{"age":7}`))), gives(modify(ahp.TargetContent, ahp.OpMerge, ahp.Raw(`{"name":"bob"}`)))
	both := intercept("user.*", "fail-closed")
	w.hooks("org.test.one", first.serve(t), both, "org.test.two", second.serve(t), both)
	p := ann()
	r := w.driven(t.Context(), control.Start{Asker: p}, nil)
	want := s.want
	want.sent = []string{`it was told {"action":"accept","content":{"age":7,"name":"bob"}}`}
	want.check(w, r)
	if q := p.questions(); len(q) != 1 || q[0].From != "mcp srv" || q[0].Text != "WHO is it?" || !strings.Contains(string(q[0].Schema), `"age"`) {
		t.Errorf("the person was asked %+v", q)
	}
	for l, want := range map[*listener]string{first: `{"action":"accept","content":{"name":"ann"}}`, second: `{"action":"accept","content":{"age":7,"name":"ann"}}`} {
		request, answer := l.of(ahp.UserElicitationRequest), l.of(ahp.UserElicitationResult)
		if len(request) != 1 || len(answer) != 1 || answer[0].ParentEventID != request[0].ID || *answer[0].Elicitation.Result.Text != want {
			t.Fatalf("%d requests, %d answers: %+v", len(request), len(answer), answer)
		}
	}
}

// TestFormsAnsweredInPlaceOfAPerson never ask the person, who may not even be there;
// what doesn't fit the form is no answer.
func TestFormsAnsweredInPlaceOfAPerson(t *testing.T) {
	tests := map[string]string{
		`{"action":"accept","content":{"name":"bob"}}`:                  `{"action":"accept","content":{"name":"bob"}}`,
		`{"action":"cancel"}`:                                           `{"action":"cancel"}`,
		`{"action":"accept","content":{"name":7}}`:                      `{"action":"decline"}`,
		`{"action":"accept","content":{"name":"bob","secret":{"a":1}}}`: `{"action":"decline"}`,
		`"bob"`: `{"action":"decline"}`,
	}
	for value, told := range tests {
		for name, p := range map[string]*person{"a person": ann(), "nobody": nil} {
			s := asking()
			w := s.world(t)
			w.judged(ahp.UserElicitationRequest, func(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
				return []ahp.Effect{&ahp.Return{Value: ahp.Raw(value)}}, nil
			})
			start := control.Start{}
			if p != nil {
				start.Asker = p
			}
			r := w.driven(t.Context(), start, nil)
			want := s.want
			want.sent = []string{"it was told " + told}
			want.check(w, r)
			if p != nil && len(p.questions()) != 0 {
				t.Errorf("%s, %s: the person was asked", value, name)
			}
		}
	}
}

// TestInterruptedForms ends the prompt while a person, or a backend, is asked: the
// server is told nothing that anybody filled in, and the session goes on.
func TestInterruptedForms(t *testing.T) {
	for _, on := range []ahp.EventType{"", ahp.UserElicitationRequest, ahp.UserElicitationResult} {
		t.Run("at "+string(on), func(t *testing.T) {
			s := asking()
			w := s.world(t, done())
			p := ann()
			judge, asked := hanging(on)
			w.hooks("org.test.judge", (&listener{judge: judge}).serve(t), intercept("user.elicitation.request", "fail-open")+","+intercept("user.elicitation.result", "fail-open")+","+observeAll)
			waits := asked
			if on == "" {
				waits = make(chan struct{}, 1)
				p.answer = func(ctx context.Context) (control.Reply, error) {
					waits <- struct{}{}
					<-ctx.Done()
					return control.Reply{Text: `{"name":"ann"}`}, nil
				}
			}
			session := w.open(control.Start{Asker: p})
			answers := make(chan control.Answer, 1)
			go func() { answers <- session.Prompt(t.Context(), control.Prompt{Text: "do it"}) }()
			<-waits
			if !session.Interrupt() {
				t.Error("nothing ran")
			}
			if a := <-answers; a.Reason != "user_interrupt" || a.Text != "" || w.has("marker") {
				t.Errorf("%+v, marker %t", a, w.has("marker"))
			}
			if a := session.Prompt(t.Context(), control.Prompt{Text: "and now"}); a.Text != "done" {
				t.Errorf("%+v", a)
			}
			if all := strings.Join(sent(w.server.Requests()[1]), "\n"); strings.Contains(all, "ann") || !strings.Contains(all, "interrupted") {
				t.Errorf("the model was sent %s", all)
			}
			if err := session.Close(); err != nil {
				t.Error(err)
			}
			for _, e := range w.events(result{record: session.Info().Record}) {
				if p, ok := e.Payload.(*event.Notice); ok && strings.Contains(p.Text, "could not be asked") {
					t.Errorf("the record calls an interruption a defect: %s", p.Text)
				}
				if p, ok := e.Payload.(*event.HooksDecided); ok && on != "" && (p.EventType == string(on)) != (p.Outcome == "interrupted") {
					t.Errorf("the record has %s: %s", p.EventType, p.Outcome)
				}
			}
		})
	}
}

// TestRefusedSchema has the endpoint refuse a request because of an MCP server's tool:
// the tool is left out from then on, and the rest works (I178).
func TestRefusedSchema(t *testing.T) {
	for _, why := range []string{`{"error":{"message":"Invalid schema for function 'mcp__srv__ask'"}}`, `{"error":{"message":"tools[LAST].function.parameters: bad"}}`} {
		w := newWorld(t, done())
		w.askServer()
		w.run(t.Context())
		last := len(w.server.Requests()[0].Tools) - 1
		why = strings.ReplaceAll(why, "LAST", fmt.Sprint(last))
		w = newWorld(t, modeltest.Turn{Faults: []modeltest.Fault{modeltest.Status(400, why)}}, modeltest.Turn{Calls: []modeltest.Call{{ID: "c", Name: "mcp__srv__ask", Args: `{}`}, {ID: "g", Name: "glob", Args: `{"pattern":"*"}`}}}, done())
		w.opts.Mode = "bypass"
		w.askServer()
		r := w.run(t.Context())
		requests := w.server.Requests()
		if r.code != 0 || len(requests) != 3 {
			t.Fatalf("exit %d, %d requests: %s", r.code, len(requests), r.err)
		}
		for i, q := range requests {
			if has := strings.Contains(fmt.Sprint(q.Tools), "mcp__srv__ask"); has != (i == 0) || len(q.Tools) < last {
				t.Errorf("request %d has %d tools, the refused one %t", i+1, len(q.Tools), has)
			}
		}
		events := w.events(r)
		if got := outcome(events, "c"); !strings.Contains(got, "refused its description") {
			t.Errorf("the call: %q", got)
		}
		if data, err := os.ReadFile(r.record); err != nil || !strings.Contains(string(data), "is left out from now on") {
			t.Errorf("%v, the record doesn't say that the tool is left out", err)
		}
	}
}

// TestRulesNameServersTools holds a rule on a server's own name of a tool, also where
// the model knows it by another (I184).
func TestRulesNameServersTools(t *testing.T) {
	for _, rule := range []string{"mcp__srv__ask", "mcp__srv__*"} {
		w := newWorld(t, modeltest.Turn{Calls: []modeltest.Call{{ID: "c", Name: "mcp__srv__ask", Args: `{}`}}}, done())
		w.opts.Mode, w.opts.Deny = "bypass", []string{rule}
		w.askServer()
		r := w.run(t.Context())
		if got := outcome(w.events(r), "c"); r.code != 0 || !strings.Contains(got, "deny rule "+rule) {
			t.Errorf("%s: exit %d, %q %s", rule, r.code, got, r.err)
		}
	}
	long := strings.Repeat("s", 60)
	w := newWorld(t, done())
	w.askServer()
	w.settings(strings.Replace(w.read(w.opts.ConfigFile), `"srv"`, `"`+long+`"`, 1))
	w.opts.Mode, w.opts.Deny = "bypass", []string{"mcp__" + long + "__ask"}
	w.run(t.Context())
	name := ""
	for _, tool := range w.server.Requests()[0].Tools {
		if at := strings.Index(string(tool), "mcp__"); at >= 0 {
			name, _, _ = strings.Cut(string(tool)[at:], `"`)
		}
	}
	v := newWorld(t, modeltest.Turn{Calls: []modeltest.Call{{ID: "c", Name: name, Args: `{}`}}}, done())
	text := w.read(w.opts.ConfigFile)
	v.opts = w.opts
	v.opts.Dir = v.dir
	v.settings(text)
	r := v.run(t.Context())
	if got := outcome(v.events(r), "c"); len(name) > 64 || name == "mcp__"+long+"__ask" || !strings.Contains(got, "deny rule") {
		t.Errorf("the tool is %q: exit %d, %q %s", name, r.code, got, r.err)
	}
}
