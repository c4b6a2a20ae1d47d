package app_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/control"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model/modeltest"
)

// beside are the events that lie beside the course of a turn.
func beside() []ahp.EventType {
	return []ahp.EventType{
		ahp.ConfigChangeBefore, ahp.ConfigChangeAfter, ahp.ModelSwitchBefore, ahp.ModelSwitchAfter, ahp.ContextCompactBefore, ahp.ContextCompactAfter,
		ahp.TaskChangeBefore, ahp.TaskChangeAfter, ahp.UserAttention, ahp.UserElicitationRequest, ahp.UserElicitationResult,
	}
}

// approver allows everything.
type approver struct{}

func (approver) Approve(_ context.Context, q control.Question) (control.Decision, error) {
	return control.Decision{Hash: q.Hash, Allow: true, Scope: event.ScopeOnce, By: "ann"}, nil
}

// eventful is a session in which everything happens that lies beside: in the first
// prompt two lists, a form, an approval and a question; then a switch of mode and
// model, a compaction, and a second prompt.
func eventful(t *testing.T, w *world, two *modeltest.Server) control.Session {
	t.Helper()
	p := &person{answer: func(context.Context) (control.Reply, error) { return control.Reply{Text: `{"name":"ann"}`}, nil }}
	s := w.open(control.Start{Asker: p, Approver: approver{}})
	if a := s.Prompt(t.Context(), control.Prompt{Text: "do it"}); a.Text != "first" {
		t.Fatalf("%+v", a)
	}
	if err := s.Tune().SetMode(t.Context(), "plan"); err != nil {
		t.Fatal(err)
	}
	if err := s.Tune().SetModel(t.Context(), "two/m2"); err != nil {
		t.Fatal(err)
	}
	if c, err := s.Tune().Compact(t.Context()); err != nil || !c.Done {
		t.Fatalf("%+v, %v", c, err)
	}
	if a := s.Prompt(t.Context(), control.Prompt{Text: "go on"}); a.Text != "second" {
		t.Fatalf("%+v", a)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if len(two.Requests()) != 2 {
		t.Errorf("the second model was asked %d times", len(two.Requests()))
	}
	return s
}

func eventfulTurns() []modeltest.Turn {
	// Long enough that a summary is shorter than what it stands for.
	filler := strings.Repeat("and so on ", 3000)
	return []modeltest.Turn{{Text: "I begin " + filler, Calls: []modeltest.Call{
		{ID: "c1", Name: "todo", Args: `{"items":[{"content":"A","status":"pending"},{"content":"B","status":"pending"}]}`},
	}}, {Calls: []modeltest.Call{
		{ID: "c2", Name: "todo", Args: `{"items":[{"content":"A","status":"completed"},{"content":"C","status":"in_progress"}]}`},
	}}, {Calls: []modeltest.Call{
		{ID: "c3", Name: "mcp__srv__ask", Args: `{}`},
		{ID: "c4", Name: "ask_user", Args: `{"question":"WHY?"}`},
	}}, {Text: "first"}}
}

// TestObserversSeeWhatLiesBeside lets one backend observe a whole session: everything
// once, in order, and what came from what.
func TestObserversSeeWhatLiesBeside(t *testing.T) {
	w := newWorld(t, eventfulTurns()...)
	two := w.providers(modeltest.Turn{Text: "SUMMARY"}, modeltest.Turn{Text: "second"})
	w.together()
	l := &listener{}
	w.hooks("org.test.watch", l.serve(t), observeAll)
	eventful(t, w, two)
	seen, parents := map[string]*ahp.Event{}, map[string]string{}
	var got []string
	lineage := ahp.NewLineage(ahp.LineageOptions{})
	for _, e := range l.events {
		if id, err := uuid.Parse(e.ID); err != nil || id.Version() != 7 || seen[e.ID] != nil {
			t.Errorf("%s: id %q, %v, used before %t", e.Type, e.ID, err, seen[e.ID] != nil)
		}
		seen[e.ID] = e
		if err := lineage.Add(e); err != nil {
			t.Errorf("%s: %v", e.Type, err)
		}
		line := short(e)
		if slices.Contains(beside(), e.Type) {
			got = append(got, line)
			if p := seen[e.ParentEventID]; p != nil {
				parents[line] = short(p)
			} else if e.ParentEventID != "" {
				t.Errorf("%s comes from an event that nobody saw", line)
			}
		}
	}
	want := []string{
		"task.change.before create A", "task.change.before create B", "task.change.after create A", "task.change.after create B",
		"task.change.before update A", "task.change.before create C", "task.change.before remove B",
		"task.change.after update A", "task.change.after create C", "task.change.after remove B",
		"user.attention approval in a turn", "user.elicitation.request", "user.attention question", "user.elicitation.result accept",
		"user.attention question", "user.attention idle",
		"config.change.before default to plan", "config.change.after default to plan",
		"model.switch.before to m2", "model.switch.after to m2", "context.compact.before manual", "context.compact.after SUMMARY",
		"user.attention idle",
	}
	if !slices.Equal(got, want) {
		t.Errorf("observed\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for line, of := range map[string]string{
		"task.change.after update A": "task.change.before update A", "task.change.after create C": "task.change.before create C",
		"task.change.after remove B": "task.change.before remove B", "user.elicitation.result accept": "user.elicitation.request",
		"config.change.after default to plan": "config.change.before default to plan", "model.switch.after to m2": "model.switch.before to m2",
		"context.compact.after SUMMARY": "context.compact.before manual", "user.attention approval in a turn": "tool.permission.request",
	} {
		if parents[line] != of {
			t.Errorf("%s comes from %q, want %q", line, parents[line], of)
		}
	}
	for _, on := range beside() {
		if len(l.of(on)) == 0 {
			t.Errorf("%s is promised and was not sent", on)
		}
	}
	told(t, w, l)
}

// short names an event with what matters of it.
func short(e *ahp.Event) string {
	line := string(e.Type)
	if k := e.Task; k != nil {
		content := string(k.Change) + string(k.Prior)
		_, content, _ = strings.Cut(content, `"content":"`)
		content, _, _ = strings.Cut(content, `"`)
		line += " " + k.Operation + " " + content
	}
	if a := e.Attention; a != nil {
		line += " " + a.Kind
	}
	if e.Elicitation != nil && e.Elicitation.Action != "" {
		line += " " + e.Elicitation.Action
	}
	if c := e.Change; c != nil {
		_, change, _ := strings.Cut(c.Summary, "from ")
		line += " " + change
	}
	switch e.Type {
	case ahp.ModelSwitchBefore:
		line += " to " + e.Proposed.ID
	case ahp.ModelSwitchAfter:
		line += " to " + e.Current.ID
	case ahp.ContextCompactBefore:
		line += " " + e.Trigger
	case ahp.ContextCompactAfter:
		line += " " + *e.Summary[0].Text
	}
	if e.Attention != nil && e.Turn != nil {
		line += " in a turn"
	}
	return line
}

// together adds the server that asks to the configured providers.
func (w *world) together() {
	w.t.Helper()
	first := w.read(w.opts.ConfigFile)
	w.askServer() // in the same file
	w.settings(strings.TrimSuffix(first, "}") + "," + strings.TrimPrefix(w.read(w.opts.ConfigFile), "{"))
}

// told holds that the events say what really happened.
func told(t *testing.T, w *world, l *listener) {
	t.Helper()
	check := func(ok bool, what string, v ...any) {
		t.Helper()
		if !ok {
			t.Errorf(what, v...)
		}
	}
	config := l.of(ahp.ConfigChangeAfter)[0]
	check(fmt.Sprint(*config.Change) == fmt.Sprint(ahp.ConfigChange{Source: "user", Scope: "session", Settings: []string{"permissions.mode"}, Summary: "permissions.mode changes from default to plan"}), "change %+v", config.Change)
	check(config.Turn == nil && config.Session.Model == "one/m1", "session %+v", config.Session)
	before, after := l.of(ahp.ModelSwitchBefore)[0], l.of(ahp.ModelSwitchAfter)[0]
	check(*before.Current == ahp.Model{ID: "m1", Provider: "one"} && *before.Proposed == ahp.Model{ID: "m2", Provider: "two"} && before.Reason != "", "before %+v", before)
	check(before.Pricing != nil && before.Pricing.Currency == "USD" && string(before.Pricing.InputPerMillionTokens) == "1.5" && string(before.Pricing.OutputPerMillionTokens) == "2", "pricing %+v", before.Pricing)
	check(*after.Previous == *before.Current && *after.Current == *before.Proposed && after.Session.Model == "two/m2", "after %+v", after)
	compact, summary := l.of(ahp.ContextCompactBefore)[0], l.of(ahp.ContextCompactAfter)[0]
	check(strings.Contains(text(compact.Items.Messages...), "I begin") && len(compact.Instructions) == 1 && *compact.TokenCounts.Before > 0, "compaction of %+v", compact)
	check(len(summary.Removed) == len(compact.Items.Messages) && summary.Execution.Status == "executed" && *summary.TokenCounts.After < *summary.TokenCounts.Before, "summary %+v", summary)
	for i, m := range compact.Items.Messages {
		check(summary.Removed[i].ID == m.ID, "removed %v", summary.Removed)
	}
	request, answer := l.of(ahp.UserElicitationRequest)[0], l.of(ahp.UserElicitationResult)[0]
	check(request.Elicitation.Server == "srv" && request.Elicitation.Mode == "form" && strings.Contains(*request.Elicitation.Request.Text, "WHO is it?"), "request %+v", request.Elicitation)
	check(answer.Elicitation.Server == "srv" && *answer.Elicitation.Result.Text == `{"action":"accept","content":{"name":"ann"}}`, "answer %+v", answer.Elicitation)
	var said []string
	for _, e := range l.of(ahp.UserAttention) {
		said = append(said, *e.Attention.Title[0].Text+": "+*e.Attention.Message[0].Text)
	}
	check(len(said) == 5 && strings.Contains(said[0], "mcp__srv__ask") && said[1] == "mcp srv asks: WHO is it?" && said[2] == "agent asks: WHY?" && strings.Contains(said[3], "completed"), "attention %q", said)
	list := l.of(ahp.TaskChangeBefore)
	check(list[0].Task.Prior == nil && string(list[2].Task.Prior) == string(list[0].Task.Change) && list[2].Task.ID == list[0].Task.ID && list[4].Task.ID == list[1].Task.ID, "tasks %+v", list)
	turn := l.of(ahp.TurnStart)[0].Turn.ID
	for _, e := range append(list, l.of(ahp.TaskChangeAfter)...) {
		check(e.Turn != nil && e.Turn.ID == turn, "%s is in the turn %+v, want %s", e.Type, e.Turn, turn)
		check(e.Session.Agent.ID == "main" && e.Session.Agent.Type == "", "agent %+v", e.Session.Agent)
	}
}

// TestContentSelectionIsHeldBeside shows the same session to who may see no content.
func TestContentSelectionIsHeldBeside(t *testing.T) {
	for _, selection := range []string{"body", "metadata", "omit"} {
		w := newWorld(t, eventfulTurns()...)
		two := w.providers(modeltest.Turn{Text: "SUMMARY"}, modeltest.Turn{Text: "second"})
		w.together()
		l := &listener{}
		var events []string
		for _, on := range beside() {
			events = append(events, fmt.Sprintf("%q", on))
		}
		w.hooks("org.test.watch", l.serve(t), fmt.Sprintf(`{"events":[%s],"mode":"observe","content":{"default":%q}}`, strings.Join(events, ","), selection))
		eventful(t, w, two)
		raw := strings.Join(l.raw, "\n")
		for _, text := range []string{"SUMMARY", "WHO is it?", `\"ann\"`, "I begin", "WHY?", "Summarise the conversation above"} {
			if strings.Contains(raw, text) != (selection == "body") {
				t.Errorf("%s: %q is shown: %t", selection, text, strings.Contains(raw, text))
			}
		}
		if n := len(l.raw); n != 23 {
			t.Errorf("%s: %d messages", selection, n)
		}
	}
}
