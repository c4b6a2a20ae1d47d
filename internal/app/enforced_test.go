package app_test

import (
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/backend"
	"github.com/abhed/abhed/ahp/backend/httpbackend"
	"github.com/abhed/abhed/internal/app"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/gate"
	"github.com/abhed/abhed/internal/model/modeltest"
)

// enforced is one promise of the manifest: an effect of an event, with its
// operation, kind of delivery or "", and a run in which a backend gives it. The run
// is: the model writes the file marker, reads the result, and says "done".
type enforced struct {
	on     ahp.EventType
	effect ahp.EffectType
	op     string
	// say returns the effects; nil says nothing at this event.
	say func(q *ahp.Intercept) []ahp.Effect
	// first is the model's first reply, where it isn't to write the marker.
	first *modeltest.Turn
	// mode is the permission mode, "" for accept-edits; more is what the model says
	// after "done".
	mode string
	more []modeltest.Turn
	want ran
}

// ran is what a run left. Texts in sent must be in the model's last request, those
// in ever in any, those in unsent in none; said is standard output.
type ran struct {
	code           int
	requests       int
	marker         bool
	said           string
	sent, unsent   []string
	ever           []string
	stderr, record string
	// next must be in the request of a run that goes on with the session, before its
	// prompt.
	next string
}

func (e *enforced) key() string { return fmt.Sprintf("%s %s %s", e.on, e.effect, e.op) }

// well is what a run without any backend leaves.
func well() ran { return ran{requests: 2, marker: true, said: "done\n"} }

// childRow is the argument with which a test's own binary is the backend of a row.
const childRow = "enforced-row"

// init serves a row where a registration names this binary as the command.
func init() {
	if len(os.Args) > 2 && os.Args[1] == childRow {
		for _, row := range promises() {
			if row.key() == os.Args[2] {
				if err := backend.New(row.judge(), backend.Options{}).ServeStdio(context.Background(), os.Stdin, os.Stdout); err != nil {
					fmt.Fprintln(os.Stderr, err)
				}
			}
		}
		os.Exit(0)
	}
}

func (e *enforced) judge() backend.Func {
	return func(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
		effects := e.say(q)
		if q.Event.Type != e.on || effects == nil {
			return nil, nil
		}
		return backend.Answer(q, effects...)
	}
}

// register puts the row's backend into a registration: over HTTP in this process,
// or as a process of its own.
func (e *enforced) register(w *world, asProcess bool) {
	w.t.Helper()
	sub := fmt.Sprintf(`"subscriptions":[{"events":[%q],"mode":"intercept","timeoutMs":20000,"failurePolicy":"fail-closed","content":{"default":"body"}}]`, e.on)
	transport := ""
	if asProcess {
		self, err := os.Executable()
		if err != nil {
			w.t.Fatal(err)
		}
		transport = fmt.Sprintf(`{"type":"stdio","command":%q,"args":[%q,%q],"lifecycle":"persistent"}`, self, childRow, e.key())
	} else {
		server := httptest.NewServer(httpbackend.Handler(backend.New(e.judge(), backend.Options{}), httpbackend.Options{}))
		w.t.Cleanup(server.Close)
		transport = fmt.Sprintf(`{"type":"http","url":%q}`, server.URL)
	}
	w.opts.Registration = w.put(filepath.Join(w.home, "reg.json"),
		fmt.Sprintf(`{"protocolVersion":"draft","hooks":[{"id":"org.test.judge","transport":%s,%s}]}`, transport, sub))
}

// TestEveryPromiseIsHeld runs the whole program for each row, with the backend in
// this process and as a process.
func TestEveryPromiseIsHeld(t *testing.T) {
	for _, row := range promises() {
		for name, asProcess := range map[string]bool{"http": false, "process": true} {
			t.Run(strings.ReplaceAll(row.key(), " ", "/")+"/"+name, func(t *testing.T) {
				row.run(t, asProcess)
			})
		}
	}
}

func (e *enforced) run(t *testing.T, asProcess bool) {
	s := e.scene()
	var more []modeltest.Turn
	if e.want.next != "" {
		more = append(more, modeltest.Turn{Text: "next"})
	}
	w := s.world(t, more...)
	e.register(w, asProcess)
	r := s.run(t.Context(), w)
	e.check(w, r)
	if e.want.next == "" {
		return
	}
	w.opts.Registration, w.opts.Continue, w.opts.Prompt = "", true, "and then?"
	again := w.run(t.Context())
	requests := w.server.Requests()
	lines := sent(requests[len(requests)-1])
	if n := len(lines); again.code != 0 || n < 2 || lines[n-2] != "user "+e.want.next || lines[n-1] != "user and then?" {
		t.Errorf("the next turn: exit %d, the model was sent %q\n%s", again.code, lines, again.err)
	}
}

// scene returns what happens in the row.
func (e *enforced) scene() *scene {
	if s := scenes()[e.on]; s != nil {
		return s
	}
	first := call("write", markerArgs)
	if e.first != nil {
		first = *e.first
	}
	return &scene{mode: e.mode, turns: append([]modeltest.Turn{first, done()}, e.more...)}
}

func (e *enforced) check(w *world, r result) {
	w.t.Helper()
	e.want.check(w, r)
	if !strings.Contains(r.err, e.want.stderr) {
		w.t.Errorf("the user isn't told %q: %s", e.want.stderr, r.err)
	}
	e.recorded(w, r)
}

// check compares what a run left, but for what the user is told and the record.
func (want *ran) check(w *world, r result) {
	w.t.Helper()
	requests := w.server.Requests()
	if r.code != want.code || len(requests) != want.requests || w.has("marker") != want.marker || r.out != want.said {
		w.t.Errorf("exit %d, want %d; %d requests, want %d; marker %t, want %t; said %q, want %q\n%s",
			r.code, want.code, len(requests), want.requests, w.has("marker"), want.marker, r.out, want.said, r.err)
	}
	var all string
	for _, q := range requests {
		all += strings.Join(sent(q), "\n") + "\n"
	}
	last := ""
	if n := len(requests); n > 0 {
		last = strings.Join(sent(requests[n-1]), "\n") + "\n"
	}
	for _, text := range want.sent {
		if !strings.Contains(last, text) {
			w.t.Errorf("the model's last request lacks %q:\n%s", text, last)
		}
	}
	for _, text := range want.ever {
		if !strings.Contains(all, text) {
			w.t.Errorf("no request has %q:\n%s", text, all)
		}
	}
	for _, text := range want.unsent {
		if strings.Contains(all, text) {
			w.t.Errorf("the model was sent %q:\n%s", text, all)
		}
	}
	if v := w.server.Violations(); len(v) > 0 {
		w.t.Errorf("requests that a strict endpoint refuses: %v", v)
	}
}

// recorded holds that the record has who was asked and what that came to.
func (e *enforced) recorded(w *world, r result) {
	w.t.Helper()
	var asked []event.Asked
	var outcomes []string
	for _, ev := range w.events(r) {
		switch p := ev.Payload.(type) {
		case *event.HooksDecided:
			asked, outcomes = append(asked, p.Asked...), append(outcomes, p.Outcome)
		case *event.Decision:
			asked = append(asked, p.Asked...)
		case *event.ToolEnded:
			asked = append(asked, p.Asked...)
		case *event.BackendFailed:
			w.t.Errorf("a backend failed: %+v", p)
		}
	}
	name := string(e.effect)
	switch e.effect {
	case ahp.EffectModify:
		name = "rewrite"
	case ahp.EffectFlow:
		name = e.op
	}
	if !slices.ContainsFunc(asked, func(a event.Asked) bool {
		return a.Step == string(e.on) && a.Name == "org.test.judge#0" && a.EventID != "" && slices.Contains(strings.Split(a.Answer, "+"), name)
	}) {
		w.t.Errorf("the record has no %q of %s: %+v", name, e.on, asked)
	}
	if e.want.record != "" && !slices.Contains(outcomes, e.want.record) {
		w.t.Errorf("the record has the outcomes %q, want %q among them", outcomes, e.want.record)
	}
}

// TestManifestPromisesWhatIsHeld compares what `abhed ahp manifest` prints with the
// rows that are run, and with what session.start carries.
func TestManifestPromisesWhatIsHeld(t *testing.T) {
	var out strings.Builder
	if code := app.AHPManifest(app.System{Stdout: &out, Stderr: io.Discard}); code != 0 {
		t.Fatalf("exit %d", code)
	}
	m, err := ahp.DecodeManifest([]byte(out.String()))
	if err != nil {
		t.Fatal(err)
	}
	var promised, held []string
	for _, row := range m.Events {
		if !slices.Contains(row.Modes, ahp.ModeObserve) {
			t.Errorf("%s can't be observed", row.Event)
		}
		if slices.Contains(row.Modes, ahp.ModeIntercept) != (row.Capabilities != nil) {
			t.Errorf("%s: modes %v, capabilities %+v", row.Event, row.Modes, row.Capabilities)
		}
		promised = append(promised, keys(row)...)
		if row.Capabilities.Has(ahp.EffectAllow) {
			t.Errorf("%s offers allow", row.Event)
		}
	}
	for _, row := range promises() {
		held = append(held, row.key())
	}
	slices.Sort(promised)
	slices.Sort(held)
	if !slices.Equal(promised, held) {
		for _, p := range promised {
			if !slices.Contains(held, p) {
				t.Errorf("promised and not held by a test: %s", p)
			}
		}
		for _, h := range held {
			if !slices.Contains(promised, h) {
				t.Errorf("a test of what isn't promised: %s", h)
			}
		}
	}
	var carried []byte
	w := newWorld(t, done())
	w.judged(ahp.SessionStart, func(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
		carried, err = q.Event.Manifest.Encode()
		return nil, err
	})
	if r := w.run(t.Context()); r.code != 0 || string(carried)+"\n" != out.String() {
		t.Errorf("exit %d, session.start carries\n%s\nprinted is\n%s", r.code, carried, out.String())
	}
}

// keys names each promise of a row as the rows of promises do.
func keys(row ahp.ManifestEvent) []string {
	var out []string
	c := row.Capabilities
	if c == nil {
		return nil
	}
	add := func(e ahp.EffectType, ops ...string) {
		for _, op := range ops {
			out = append(out, fmt.Sprintf("%s %s %s", row.Event, e, op))
		}
	}
	for _, e := range c.Effects {
		switch e {
		case ahp.EffectModify:
			for _, m := range c.Modify {
				if m.Replace {
					add(e, "replace")
				}
				if m.Merge {
					add(e, "merge")
				}
			}
		case ahp.EffectFlow:
			for _, op := range c.Flow.Operations {
				add(e, string(op))
			}
		case ahp.EffectInject:
			for _, d := range c.Inject.Context.DeliverAt {
				add(e, string(d))
			}
		default:
			add(e, "")
		}
	}
	return out
}

// TestGuideNamesEveryPromise compares the guide's table with the manifest.
func TestGuideNamesEveryPromise(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "guide.md"))
	if err != nil {
		t.Fatal(err)
	}
	written := map[string]string{}
	for line := range strings.Lines(string(data)) {
		cells := strings.Split(line, "|")
		if name := strings.Trim(strings.TrimSpace(cells[min(1, len(cells)-1)]), "`"); len(cells) == 5 && ahp.EventType(name).Known() {
			written[name] = strings.TrimSpace(cells[3])
		}
	}
	for _, row := range gate.Manifest().Events {
		want := "observed only"
		if c := row.Capabilities; c != nil {
			var words []string
			for _, e := range c.Effects {
				switch e {
				case ahp.EffectModify:
					words = append(words, fmt.Sprintf("modify (%s)", row.Event.Target()))
				case ahp.EffectFlow:
					var ops []string
					for _, op := range c.Flow.Operations {
						ops = append(ops, string(op))
					}
					words = append(words, "flow ("+strings.Join(ops, ", ")+")")
				default:
					words = append(words, string(e))
				}
			}
			want = strings.Join(words, ", ")
		}
		if got := written[string(row.Event)]; got != want {
			t.Errorf("the guide says of %s %q, the manifest %q", row.Event, got, want)
		}
		delete(written, string(row.Event))
	}
	for name := range written {
		t.Errorf("the guide has %s, which isn't promised", name)
	}
}
