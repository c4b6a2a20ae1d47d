package app_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/app"
	"github.com/abhed/abhed/internal/control"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model/modeltest"
)

// surface is what a person in front of a session is told.
type surface struct {
	mu   sync.Mutex
	told []string
}

func (s *surface) say(texts ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, texts...)
}

func (s *surface) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.told, "\n")
}

// Event hears an event.
func (s *surface) Event(e event.Event) {
	switch p := e.Payload.(type) {
	case *event.HooksDecided:
		s.say(append(p.Messages, p.Reason)...)
	case *event.Notice:
		s.say(p.Text)
	}
}

// Delta hears a piece of text.
func (*surface) Delta(control.Delta) {}

// host returns the engine with the world's settings.
func (w *world) host() *app.Host {
	var out, errs safeBuffer
	return app.NewHost(app.HostOptions{SettingsOptions: w.opts.SettingsOptions}, w.system(&out, &errs))
}

// open starts a session. It ends with the test if it hasn't before.
func (w *world) open(start control.Start) control.Session {
	w.t.Helper()
	s, err := w.host().Start(w.t.Context(), start)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = s.Close() })
	return s
}

// driven is one session as a surface has it: tune, then the world's prompt. What it
// returns looks as if the program had run.
func (w *world) driven(ctx context.Context, start control.Start, tune func(context.Context, control.Session) error) result {
	w.t.Helper()
	told := &surface{}
	start.Sink = told
	s := w.open(start)
	if tune != nil {
		if err := tune(ctx, s); err != nil {
			told.say(err.Error())
		}
	}
	a := s.Prompt(ctx, control.Prompt{Text: w.opts.Prompt})
	if a.Err != nil {
		w.t.Errorf("the prompt was not run: %v", a.Err)
	}
	r := result{record: s.Info().Record}
	codes := map[string]int{"completed": 0, "prompt_refused": 7, "stopped": 8, "user_interrupt": 130}
	code, known := codes[a.Reason]
	if !known {
		code = 1
	}
	r.code = code
	if a.Text != "" {
		r.out = a.Text + "\n"
	}
	if err := s.Close(); err != nil {
		w.t.Error(err)
	}
	r.err = told.text() + "\n" + a.Detail
	return r
}

// scene is a run in which an event happens that no prompt alone causes. play is nil
// for one run of the program. want is what it leaves where nobody has a say, closed
// where a backend that must be asked can't be.
type scene struct {
	turns        []modeltest.Turn
	mode         string
	setup        func(w *world)
	play         func(ctx context.Context, w *world) result
	want, closed ran
}

// world returns a world for the scene, with more turns after its own.
func (s *scene) world(t *testing.T, more ...modeltest.Turn) *world {
	w := newWorld(t, append(append([]modeltest.Turn{}, s.turns...), more...)...)
	w.opts.Mode = "accept-edits"
	if s.mode != "" {
		w.opts.Mode = s.mode
	}
	if s.setup != nil {
		s.setup(w)
	}
	return w
}

func (s *scene) run(ctx context.Context, w *world) result {
	w.t.Helper()
	if s.play == nil {
		return w.run(ctx)
	}
	return s.play(ctx, w)
}

// scenes has the scene of every event that needs one.
func scenes() map[ahp.EventType]*scene {
	compacting, refusedLater := compacting(), compacting()
	refusedLater.closed = ran{requests: 4, marker: true, said: "done\n", sent: []string{"0123456789 first"}, unsent: []string{"The summary:"}}
	asking, unreviewed := asking(), asking()
	unreviewed.closed.sent = []string{`{"action":"cancel"}`}
	return map[ahp.EventType]*scene{
		ahp.ConfigChangeBefore: setMode(), ahp.ModelSwitchBefore: setModel(), ahp.ContextCompactBefore: compacting, ahp.ContextCompactAfter: refusedLater,
		ahp.TaskChangeBefore: listing(), ahp.UserElicitationRequest: asking, ahp.UserElicitationResult: unreviewed,
	}
}

// setMode makes the mode stricter, so that the marker isn't written.
func setMode() *scene {
	closed := well()
	return &scene{
		turns: []modeltest.Turn{call("write", markerArgs), done()}, want: ran{requests: 2, said: "done\n", sent: []string{"Nobody can be asked"}}, closed: closed,
		play: func(ctx context.Context, w *world) result {
			return w.driven(ctx, control.Start{}, func(ctx context.Context, s control.Session) error {
				err := s.Tune().SetMode(ctx, "default")
				if is := s.Info().Mode == "default"; is != (err == nil) {
					w.t.Errorf("the mode is %s: %v", s.Info().Mode, err)
				}
				return err
			})
		},
	}
}

// setModel goes on with the model of another provider.
func setModel() *scene {
	turns := []modeltest.Turn{call("write", markerArgs), done()}
	return &scene{
		turns: turns, want: ran{marker: true, said: "done\n"}, closed: well(),
		play: func(ctx context.Context, w *world) result {
			two := w.providers(turns...)
			r := w.driven(ctx, control.Start{}, func(ctx context.Context, s control.Session) error {
				err := s.Tune().SetModel(ctx, "two/m2")
				if is := s.Info().Model == "two/m2"; is != (err == nil) {
					w.t.Errorf("the model is %s: %v", s.Info().Model, err)
				}
				return err
			})
			for n, server := range []*modeltest.Server{w.server, two} {
				for _, q := range server.Requests() {
					if want := fmt.Sprintf("m%d", n+1); q.Model != want {
						w.t.Errorf("the endpoint of %s was asked for the model %q", want, q.Model)
					}
				}
			}
			if n := len(two.Requests()) + len(w.server.Requests()); n != 2 && r.code == 0 {
				w.t.Errorf("the models were asked %d times, want 2", n)
			}
			return r
		},
	}
}

// providers configures two of them: one/m1 is the world's server, two/m2 another
// one, which is returned.
func (w *world) providers(turns ...modeltest.Turn) *modeltest.Server {
	two := modeltest.NewWith(w.t, modeltest.Options{Turns: turns})
	provider := func(name, url string) string {
		return fmt.Sprintf(`{"name":%q,"api":"openai","base_url":%q}`, name, url)
	}
	w.env = []string{"HOME=" + w.home, "PATH=" + os.Getenv("PATH")}
	w.settings(fmt.Sprintf(`{"model":"one/m1","custom_providers":[%s,%s],"models":{"two/m2":{"context_window":16000,"price":{"input":1.5,"output":2}}}}`,
		provider("one", w.server.URL), provider("two", two.URL)))
	return two
}

// large is what fills a context window, with words at its start to look for.
func large(path, word string) string {
	return fmt.Sprintf(`{"path":%q,"content":"0123456789 %s %s"}`, path, word, strings.Repeat("filler ", 4000))
}

// compacting fills the window, so that what came first is summarised before the third
// request.
func compacting() *scene {
	write := func(id, path, word string) modeltest.Turn {
		return modeltest.Turn{Calls: []modeltest.Call{{ID: id, Name: "write", Args: large(path, word)}}, Faults: []modeltest.Fault{modeltest.WholeCalls()}}
	}
	return &scene{
		turns: []modeltest.Turn{write("call_1", "marker", "first"), write("call_2", "other", "second"), {Text: "SUMMARY"}, done()},
		setup: func(w *world) {
			w.settings(`{"context":{"threshold":0.4},"models":{"env/test":{"context_window":40000}}}`)
		},
		want:   ran{requests: 4, marker: true, said: "done\n", sent: []string{"The summary:\n\nSUMMARY\n", "0123456789 second"}},
		closed: ran{requests: 3, marker: true, said: "SUMMARY\n", sent: []string{"0123456789 first", "0123456789 second"}, unsent: []string{"The summary:"}},
	}
}

// compactions are the effects on what stands for the older part of a conversation.
func compactions() []enforced {
	before, after := ahp.ContextCompactBefore, ahp.ContextCompactAfter
	parts := ahp.Raw(`[{"id":"p1","kind":"text","mediaType":"text/plain","selection":"body","text":"BETTER"}]`)
	base := compacting().want
	asked := func(say, unsaid string) ran {
		want := base
		want.sent, want.record = []string{"The summary:\n\nSUMMARY\n"}, "changed"
		want.ever = []string{say}
		if unsaid != "" {
			want.unsent = []string{unsaid}
		}
		return want
	}
	refused, supplied := compacting().closed, compacting().closed
	refused.stderr, refused.record = "not on Fridays", "denied"
	supplied.sent, supplied.unsent, supplied.record = []string{"The summary:\n\nBETTER\n"}, []string{"Summarise the conversation above", "The summary:\n\nSUMMARY"}, "supplied"
	told, replaced, merged := base, base, base
	told.stderr, told.unsent = "NOTICE", []string{"NOTICE"}
	replaced.sent, replaced.record = []string{"The summary:\n\nBETTER\n"}, "changed"
	merged.sent, merged.record = []string{"The summary:\n\nSUMMARY\nBETTER\n"}, "changed"
	now, later := base, base
	now.sent = []string{"The summary:\n\nSUMMARY\n", "for call_2\nuser CONTEXT\n"}
	later.unsent, later.next = []string{"CONTEXT"}, "CONTEXT"
	rows := []enforced{
		{on: before, effect: ahp.EffectDeny, say: always(deny()), want: refused},
		{on: before, effect: ahp.EffectModify, op: "replace", say: always(modify(ahp.TargetInstructions, ahp.OpReplace, parts)), want: asked("BETTER", "Summarise the conversation above")},
		{on: before, effect: ahp.EffectModify, op: "merge", say: always(modify(ahp.TargetInstructions, ahp.OpMerge, parts)), want: asked("plain text, no longer than needed.\nBETTER", "")},
		{on: before, effect: ahp.EffectReturn, say: always(&ahp.Return{Value: parts}), want: supplied},
		{on: after, effect: ahp.EffectModify, op: "replace", say: always(modify(ahp.TargetSummary, ahp.OpReplace, parts)), want: replaced},
		{on: after, effect: ahp.EffectModify, op: "merge", say: always(modify(ahp.TargetSummary, ahp.OpMerge, parts)), want: merged},
	}
	for _, t := range []ahp.EventType{before, after} {
		rows = append(rows,
			enforced{on: t, effect: ahp.EffectMessage, say: always(&ahp.Notice{Text: "NOTICE"}), want: told},
			enforced{on: t, effect: ahp.EffectInject, op: "now", say: always(inject(ahp.DeliverNow)), want: now},
			enforced{on: t, effect: ahp.EffectInject, op: "next_turn", say: always(inject(ahp.DeliverNextTurn)), want: later})
	}
	return rows
}

// changes are the effects on changes of the session.
func changes() []enforced {
	var rows []enforced
	for t, s := range map[ahp.EventType]*scene{ahp.ConfigChangeBefore: setMode(), ahp.ModelSwitchBefore: setModel(), ahp.TaskChangeBefore: listing()} {
		told, refused := s.want, s.closed
		told.stderr, told.unsent = "NOTICE", []string{"NOTICE"}
		refused.stderr, refused.record = "not on Fridays", "denied"
		rows = append(rows,
			enforced{on: t, effect: ahp.EffectMessage, say: always(&ahp.Notice{Text: "NOTICE"}), want: told},
			enforced{on: t, effect: ahp.EffectDeny, say: always(deny()), want: refused})
	}
	stopped := setModel().closed
	stopped.stderr, stopped.record = "that is enough", "stopped"
	return append(rows, enforced{on: ahp.ModelSwitchBefore, effect: ahp.EffectFlow, op: "stop", say: always(stop()), want: stopped})
}

// refusal returns the error of a tuner, which must be one of that code.
func refusal(t *testing.T, err error, code control.Code) string {
	t.Helper()
	var e *control.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Errorf("the error is %v, want one of the code %s", err, code)
		return ""
	}
	return e.Msg
}

// read returns a file's text.
func (w *world) read(file string) string {
	w.t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(data)
}
