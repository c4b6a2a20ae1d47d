package app_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/backend"
	"github.com/abhed/abhed/ahp/backend/httpbackend"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/gate"
	"github.com/abhed/abhed/internal/model/modeltest"
)

// listener is a backend that keeps what it is told and asked, in order, and the
// bytes of the messages.
type listener struct {
	mu     sync.Mutex
	events []*ahp.Event
	raw    []string
	judge  backend.Func
}

func (l *listener) Intercept(ctx context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
	l.Observe(ctx, q.Event)
	if l.judge == nil {
		return nil, nil
	}
	return l.judge(ctx, q)
}

func (l *listener) Observe(_ context.Context, e *ahp.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}

// serve returns the address of the listener.
func (l *listener) serve(t *testing.T) string {
	t.Helper()
	inner := httpbackend.Handler(backend.New(l, backend.Options{}), httpbackend.Options{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		l.mu.Lock()
		l.raw = append(l.raw, string(body))
		l.mu.Unlock()
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// of returns the events of one type.
func (l *listener) of(t ahp.EventType) []*ahp.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(l.events), func(e *ahp.Event) bool { return e.Type != t })
}

// hooks writes a registration of HTTP backends: id, address, subscription, and so
// on.
func (w *world) hooks(list ...string) {
	w.t.Helper()
	var hooks []string
	for i := 0; i < len(list); i += 3 {
		hooks = append(hooks, fmt.Sprintf(`{"id":%q,"transport":{"type":"http","url":%q},"subscriptions":[%s]}`, list[i], list[i+1], list[i+2]))
	}
	w.opts.Registration = w.put(filepath.Join(w.home, "reg.json"), `{"protocolVersion":"draft","hooks":[`+strings.Join(hooks, ",")+`]}`)
}

const observeAll = `{"events":["*"],"mode":"observe","content":{"default":"body"}}`

// intercept is a subscription to one event.
func intercept(on ahp.EventType, policy string) string {
	return fmt.Sprintf(`{"events":[%q],"mode":"intercept","timeoutMs":20000,"failurePolicy":%q,"content":{"default":"body"}}`, on, policy)
}

// busy is a run in which everything happens that can be observed.
func busy(t *testing.T) (*world, []modeltest.Turn) {
	t.Helper()
	turns := []modeltest.Turn{
		{Text: "I start. REPLYTEXT", Reasoning: "THINKING", Usage: &modeltest.Usage{Prompt: 10, Completion: 5}, Calls: []modeltest.Call{
			{ID: "c1", Name: "bash", Args: `{"command":"mkdir sub; cd sub; echo OUTPUTTEXT"}`},
			{ID: "c2", Name: "write", Args: `{"path":"made","content":"old\n"}`},
			{ID: "c3", Name: "edit", Args: `{"path":"made","old_string":"old","new_string":"new"}`},
			{ID: "c4", Name: "write", Args: `{"path":7}`},
			{ID: "c5", Name: "bash", Args: `{"command":"rm -rf made"}`},
		}},
		{Text: "lost", Faults: []modeltest.Fault{modeltest.Status(500, "oops")}},
		{Text: "done", Usage: &modeltest.Usage{Prompt: 20, Completion: 7}},
	}
	w := newWorld(t, turns...)
	w.opts.Mode, w.opts.Prompt, w.opts.Allow = "accept-edits", "PROMPTTEXT", []string{"bash(mkdir *)", "bash(cd *)", "bash(echo *)"}
	return w, turns
}

// TestObserversSeeTheWholeRun lets one backend observe everything.
func TestObserversSeeTheWholeRun(t *testing.T) {
	w, _ := busy(t)
	l := &listener{}
	w.hooks("org.test.watch", l.serve(t), observeAll)
	r := w.run(t.Context())
	if r.code != 0 {
		t.Fatalf("exit %d: %s", r.code, r.err)
	}
	var got []string
	for _, e := range l.events {
		line := string(e.Type)
		if e.Call != nil {
			line += " " + e.Call.ID
		}
		got = append(got, line)
	}
	got = slices.Compact(got) // pieces of progress depend on the clock
	want := []string{
		"session.start", "user.message.inbound", "turn.start",
		"model.request.before", "turn.progress", "model.response.after",
		"tool.before c1", "tool.permission.resolved c1", "tool.progress c1", "workspace.change.before", "tool.after c1", "workspace.change.after",
		"tool.before c2", "tool.permission.resolved c2", "tool.after c2", "file.changed",
		"tool.before c3", "tool.permission.resolved c3", "tool.after c3", "file.changed",
		"tool.before c5", "tool.permission.request c5", "tool.permission.resolved c5", "tool.after c5",
		"tool.batch.after",
		"model.request.before", "model.error", "model.request.before", "turn.progress", "model.response.after",
		"turn.finish.before", "user.message.outbound", "turn.end", "session.end",
	}
	if !slices.Equal(got, want) {
		t.Errorf("observed\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, row := range gate.Manifest().Events {
		if row.Event != ahp.HookFailure && !slices.Contains(beside(), row.Event) && len(l.of(row.Event)) == 0 {
			t.Errorf("%s is promised and was not sent", row.Event)
		}
	}
	identities(t, l.events)
	facts(t, w, l)
}

// identities holds what is the same and what is not between the events of a run.
func identities(t *testing.T, events []*ahp.Event) {
	t.Helper()
	lineage := ahp.NewLineage(ahp.LineageOptions{})
	seen, byCall := map[string]bool{}, map[string]string{}
	turn := ""
	for _, e := range events {
		id, err := uuid.Parse(e.ID)
		if err != nil || id.Version() != 7 || seen[e.ID] {
			t.Errorf("%s: id %q, %v, used before %t", e.Type, e.ID, err, seen[e.ID])
		}
		seen[e.ID] = true
		if err := lineage.Add(e); err != nil {
			t.Errorf("%s: %v", e.Type, err)
		}
		if e.ParentEventID != "" && !seen[e.ParentEventID] {
			t.Errorf("%s has the parent %s, which was never sent", e.Type, e.ParentEventID)
		}
		if e.Session == nil || e.Session.ID != events[0].Session.ID || e.Session.Agent == nil || e.Session.Agent.ID != "main" || e.Source != events[0].Source {
			t.Errorf("%s: session %+v, source %s", e.Type, e.Session, e.Source)
		}
		outside := e.Type == ahp.SessionStart || e.Type == ahp.SessionEnd || e.Type == ahp.UserMessageInbound
		switch {
		case outside != (e.Turn == nil):
			t.Errorf("%s: turn %+v", e.Type, e.Turn)
		case e.Turn != nil && turn == "":
			turn = e.Turn.ID
		case e.Turn != nil && e.Turn.ID != turn:
			t.Errorf("%s is in the turn %s, others in %s", e.Type, e.Turn.ID, turn)
		}
		if e.Native != nil || e.Synthesized {
			t.Errorf("%s has native data, or says that it was made up", e.Type)
		}
		if e.Type == ahp.ToolBefore {
			byCall[e.Call.ID] = e.ID
		} else if e.Call != nil && e.Type != ahp.ToolPermissionResolved && e.ParentEventID != byCall[e.Call.ID] {
			t.Errorf("%s of %s has the parent %q, want the proposal %q", e.Type, e.Call.ID, e.ParentEventID, byCall[e.Call.ID])
		}
		if e.Call != nil && (e.Batch == nil || !slices.Equal(e.Batch.CallIDs, []string{"c1", "c2", "c3", "c4", "c5"})) {
			t.Errorf("%s of %s: batch %+v", e.Type, e.Call.ID, e.Batch)
		}
	}
}

// text returns the texts of messages.
func text(list ...ahp.Message) string {
	var out []string
	for _, m := range list {
		for _, p := range m.Parts {
			if p.Text != nil {
				out = append(out, *p.Text)
			}
		}
	}
	return strings.Join(out, "|")
}

// facts holds that the events say what really happened.
func facts(t *testing.T, w *world, l *listener) {
	t.Helper()
	check := func(ok bool, what string, v ...any) {
		t.Helper()
		if !ok {
			t.Errorf(what, v...)
		}
	}
	var streamed string
	for _, e := range l.of(ahp.TurnProgress) {
		streamed += text(*e.Delta)
	}
	check(streamed == "THINKINGI start. REPLYTEXTdone", "streamed %q", streamed)
	progress := l.of(ahp.TurnProgress)
	check(progress[len(progress)-1].Final && !progress[0].Final && progress[0].Item.ID == "m2", "progress %+v", progress[0])
	replies := l.of(ahp.ModelResponseAfter)
	check(*replies[0].Usage.InputTokens == 10 && *replies[1].Usage.OutputTokens == 7 && replies[1].Attempt.Number == 2, "usage %+v", replies[0].Usage)
	check(replies[0].FinishReason == "tool_calls" && replies[0].Model.Provider == "env" && replies[0].Model.ID == "test" && replies[0].LatencyMs != nil, "reply %+v", replies[0])
	failed := l.of(ahp.ModelErrorEvent)[0]
	check(failed.Error.Class == "server" && string(failed.Error.Status) == "500" && failed.Attempt.Number == 1 && strings.HasPrefix(failed.Recovery, "retry in"), "error %+v", failed.Error)
	end := l.of(ahp.TurnEnd)[0]
	check(end.Outcome == "completed" && *end.Usage.InputTokens == 30 && end.Usage.Completeness == "complete" && text(end.Items.Messages...) == "done", "end %+v %+v", end, end.Usage)
	over := l.of(ahp.SessionEnd)[0]
	check(fmt.Sprint(over.Counters) == "map[inputTokens:30 modelReplies:2 outputTokens:12]", "counters %v", over.Counters)
	ends := map[string]string{}
	for _, e := range l.of(ahp.ToolAfter) {
		ends[e.Call.ID] = e.Outcome + " " + e.Execution.Status + " " + e.Execution.Reason
	}
	check(ends["c1"] == "ok executed " && ends["c5"] == "denied skipped policy", "ends %v", ends)
	var calls []string
	batch := l.of(ahp.ToolBatchAfter)[0]
	for _, c := range batch.Calls {
		calls = append(calls, c.Call.ID+" "+c.Outcome)
	}
	check(slices.Equal(calls, []string{"c1 ok", "c2 ok", "c3 ok", "c5 denied"}) && len(batch.Gaps) == 1 && strings.Contains(batch.Gaps[0].Reason, "c4"), "batch %v %v", calls, batch.Gaps)
	changes := l.of(ahp.FileChanged)
	made, edited := changes[0].Changes[0], changes[1].Changes[0]
	check(made.Path == filepath.Join(w.dir, "sub", "made") && made.Operation == "create" && made.AgentCaused && *made.After.Text == "old\n" && made.Before == nil, "made %+v", made)
	check(edited.Operation == "update" && *edited.Before.Text == "old\n" && *edited.After.Text == "new\n", "edited %+v", edited)
	after := l.of(ahp.ToolAfter)[1]
	check(len(after.FileChanges) == 1 && after.FileChanges[0].Change == "created", "tool.after %+v", after.FileChanges)
	moved := l.of(ahp.WorkspaceChangeAfter)[0].Workspace
	check(*moved.Change.Cwd == filepath.Join(w.dir, "sub") && *moved.Prior.Cwd == w.dir, "moved %+v", moved)
	decided := map[string]string{}
	for _, e := range l.of(ahp.ToolPermissionResolved) {
		decided[e.Call.ID] = e.Decision + " " + e.DecidedBy
	}
	want := map[string]string{"c1": "allow policy", "c2": "allow auto", "c3": "allow auto", "c5": "deny policy"}
	check(fmt.Sprint(decided) == fmt.Sprint(want), "decided %v, want %v", decided, want)
	var output string
	for _, e := range l.of(ahp.ToolProgress) {
		output += text(*e.PartialOutput)
	}
	check(output == "OUTPUTTEXT\n", "output %q", output)
}

// TestContentSelectionIsHeld shows the same run to who may see no content.
func TestContentSelectionIsHeld(t *testing.T) {
	for _, selection := range []string{"metadata", "omit"} {
		w, _ := busy(t)
		l := &listener{}
		w.hooks("org.test.watch", l.serve(t), strings.Replace(observeAll, "body", selection, 1))
		if r := w.run(t.Context()); r.code != 0 {
			t.Fatalf("exit %d: %s", r.code, r.err)
		}
		for _, raw := range l.raw {
			e, err := ahp.DecodeRequest([]byte(raw))
			if err != nil {
				t.Fatal(err)
			}
			about := e.(*ahp.Observe).Event
			for _, text := range []string{"PROMPTTEXT", "REPLYTEXT", "THINKING", "OUTPUTTEXT", "coding agent", `"old\n"`} {
				// A call's input isn't content: it is what tool events are about.
				if strings.Contains(raw, text) && (about.Tool == nil || !strings.Contains(string(about.Tool.Input), text)) && about.Type != ahp.ToolBatchAfter {
					t.Errorf("%s: %s shows %q: %s", selection, about.Type, text, raw)
				}
			}
		}
		if len(l.raw) < 30 {
			t.Errorf("%d messages", len(l.raw))
		}
	}
}

// TestFailureIsNewsForTheOthers lets one backend fail in every way that a policy
// opens, while it, another, and a dead one observe failures.
func TestFailureIsNewsForTheOthers(t *testing.T) {
	w := newWorld(t, call("write", markerArgs), done())
	w.opts.Mode = "accept-edits"
	observe := `{"events":["hook.failure"],"mode":"observe","content":{"default":"body"}}`
	broken, other := &listener{judge: func(context.Context, *ahp.Intercept) ([]ahp.Effect, error) { return nil, fmt.Errorf("SECRET DETAIL") }}, &listener{}
	w.hooks("org.test.broken", broken.serve(t), intercept(ahp.ToolBefore, "fail-open")+","+observe,
		"org.test.other", other.serve(t), observe, "org.test.dead", modeltest.RefusedURL(t), observe)
	r := w.run(t.Context())
	if r.code != 0 || !w.has("marker") {
		t.Fatalf("exit %d: %s", r.code, r.err)
	}
	if n := len(broken.of(ahp.HookFailure)); n != 0 {
		t.Errorf("the broken backend heard of its own failure %d times", n)
	}
	asked, news := broken.of(ahp.ToolBefore), other.of(ahp.HookFailure)
	if len(asked) == 0 || len(news) != 1 {
		t.Fatalf("asked %d times, %d pieces of news", len(asked), len(news))
	}
	if f := news[0]; f.Failure.BackendID != "org.test.broken" || f.Failure.Reason != "rpc_error" || f.Failure.Policy != "fail-open" || f.ParentEventID != asked[0].ID || f.Turn == nil {
		t.Errorf("news %+v of %s", f.Failure, f.ParentEventID)
	}
	if raw := strings.Join(other.raw, ""); strings.Contains(raw, "SECRET") {
		t.Errorf("the news tell what the backend said: %s", raw)
	}
	var failed []string
	for _, e := range w.events(r) {
		if p, ok := e.Payload.(*event.BackendFailed); ok {
			failed = append(failed, fmt.Sprintf("%s %s %s", p.Backend, p.EventType, p.Policy))
		}
	}
	if want := []string{"org.test.broken tool.before fail-open", "org.test.dead hook.failure none"}; !slices.Equal(failed, want) {
		t.Errorf("the record has the failures %q, want %q", failed, want)
	}
}

// TestMessagesKeepTheirIds compares the ids under which messages are sent: with a
// request each time, and in the events that are about one of them, a resume and
// injected context included.
func TestMessagesKeepTheirIds(t *testing.T) {
	w := newWorld(t, call("write", markerArgs), done(), modeltest.Turn{Text: "next"})
	w.opts.Mode = "accept-edits"
	l := &listener{judge: func(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
		if e := q.Event; e.Type == ahp.TurnStart || e.Type == ahp.ToolAfter {
			return backend.Answer(q, inject(ahp.DeliverNow))
		}
		return nil, nil
	}}
	w.hooks("org.test.watch", l.serve(t), intercept("*", "fail-closed")+","+strings.Replace(observeAll, "*", "turn.*", 1))
	if r := w.run(t.Context()); r.code != 0 {
		t.Fatalf("exit %d: %s", r.code, r.err)
	}
	w.opts.Continue, w.opts.Prompt = true, "more"
	if r := w.run(t.Context()); r.code != 0 {
		t.Fatalf("exit %d: %s", r.code, r.err)
	}
	byID := map[string]string{}
	for _, e := range l.events {
		list := e.Items.Messages
		if e.Message != nil {
			list = append(list, e.Message.Messages...)
		}
		for _, m := range list {
			said := string(m.Role) + " " + text(m)
			if was, ok := byID[m.ID]; ok && was != said {
				t.Errorf("%s has the message %s as %q, before it was %q", e.Type, m.ID, said, was)
			}
			byID[m.ID] = said
		}
	}
	ids := slices.Sorted(maps.Keys(byID))
	if want := []string{"call_1:result", "m1", "m2", "m3", "m5", "m6", "m7", "m8", "m9", "system"}; !slices.Equal(ids, want) {
		t.Errorf("ids %v, want %v: %v", ids, want, byID)
	}
}

// TestEndsAreTold holds outcome and reason of turns that end without an answer, and
// that nothing but a message is accepted there.
func TestEndsAreTold(t *testing.T) {
	w := newWorld(t, call("write", markerArgs), done())
	w.opts.Mode, w.opts.MaxTurns = "accept-edits", 1
	var offered []ahp.EffectType
	l := &listener{judge: func(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
		offered = q.Capabilities.Effects
		return backend.Answer(q, &ahp.Notice{Text: "NOTICE"})
	}}
	w.hooks("org.test.judge", l.serve(t), intercept(ahp.TurnFinishBefore, "fail-closed")+","+strings.Replace(observeAll, "*", "turn.end", 1))
	r := w.run(t.Context())
	finish, end := l.of(ahp.TurnFinishBefore), l.of(ahp.TurnEnd)
	if r.code != 3 || len(finish) != 1 || len(end) != 1 || !strings.Contains(r.err, "NOTICE") || !slices.Equal(offered, []ahp.EffectType{ahp.EffectMessage}) {
		t.Fatalf("exit %d, %d and %d events, offered %v\n%s", r.code, len(finish), len(end), offered, r.err)
	}
	if f, e := finish[0], end[0]; f.Outcome != "max_iterations" || f.LastAssistantItem != nil || e.Outcome != "max_iterations" || e.Error.Class != "max_turns" {
		t.Errorf("asked about %+v, told of %+v", f, e)
	}
}
