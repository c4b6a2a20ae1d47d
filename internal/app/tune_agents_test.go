package app_test

import (
	"context"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/backend"
	"github.com/abhed/abhed/internal/control"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model/modeltest"
)

// giving is a reply that gives a task away.
func giving() modeltest.Turn { return call("task", `{"description":"look","prompt":"SUBTASK"}`) }

// TestSwitchReachesLaterSubAgents switches the model, then gives a task away: the new
// model does it, and every event of the sub-agent says so.
func TestSwitchReachesLaterSubAgents(t *testing.T) {
	w := newWorld(t, giving(), modeltest.Turn{Text: "report one"}, done())
	two := w.providers(giving(), modeltest.Turn{Text: "report two"}, done())
	l := &listener{}
	w.hooks("org.test.watch", l.serve(t), observeAll)
	s := w.open(control.Start{})
	for _, model := range []string{"one/m1", "two/m2"} {
		if err := s.Tune().SetModel(t.Context(), model); err != nil {
			t.Fatal(err)
		}
		if a := s.Prompt(t.Context(), control.Prompt{Text: "do it"}); a.Text != "done" {
			t.Fatalf("%+v", a)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if n, m := len(w.server.Requests()), len(two.Requests()); n != 3 || m != 3 {
		t.Errorf("%d and %d requests", n, m)
	}
	want := map[string]string{"main": "one/m1", "a1": "one/m1", "a2": "two/m2"}
	for _, e := range l.events {
		if e.Type == ahp.ModelSwitchAfter {
			want["main"] = "two/m2"
		}
		if id := e.Session.Agent.ID; e.Session.Model != want[id] || e.Model != nil && e.Model.Provider+"/"+e.Model.ID != want[id] {
			t.Errorf("%s of %s: the model is %s, %+v; want %s", e.Type, id, e.Session.Model, e.Model, want[id])
		}
	}
}

// TestCompactionOfASubAgent fills the window of a sub-agent: backends are asked about
// its conversation, in its name, and what they say holds for it alone.
func TestCompactionOfASubAgent(t *testing.T) {
	for name, refuse := range map[string]bool{"no opinion": false, "refused": true} {
		t.Run(name, func(t *testing.T) {
			c := compacting()
			turns := append(append([]modeltest.Turn{giving()}, c.turns...), modeltest.Turn{Text: "end"})
			if refuse { // the summary is never asked for
				turns = append(turns[:3:3], turns[4:]...)
			}
			c.turns = turns
			w := c.world(t)
			l := &listener{judge: func(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
				if refuse {
					return backend.Answer(q, deny())
				}
				return nil, nil
			}}
			w.hooks("org.test.judge", l.serve(t), intercept(ahp.ContextCompactBefore, "fail-closed")+","+strings.Replace(observeAll, "*", "context.*", 1))
			r := w.run(t.Context())
			if r.code != 0 || r.out != "end\n" || !w.has("marker") || !w.has("other") || w.server.Left() != 0 {
				t.Fatalf("exit %d, said %q, %d turns left: %s", r.code, r.out, w.server.Left(), r.err)
			}
			requests := w.server.Requests()
			all := strings.Join(sent(requests[len(requests)-2]), "\n")
			if strings.Contains(all, "The summary:\n\nSUMMARY\n") == refuse || strings.Contains(all, "0123456789 first") != refuse || !strings.Contains(all, "user SUBTASK") {
				t.Errorf("the sub-agent's model was sent %.300s", all)
			}
			if len(l.events) == 0 {
				t.Error("the backend was not asked")
			}
			for _, e := range l.events {
				if a := e.Session.Agent; a.ID != "a1" || a.Type != "subagent" || e.Turn == nil || e.Type == ahp.ContextCompactBefore && !strings.Contains(text(e.Items.Messages...), "0123456789 first") {
					t.Errorf("%s of %+v", e.Type, a)
				}
			}
			for _, p := range payloads[*event.HooksDecided](w.events(r)) {
				if p.AgentID != "a1" || (p.Outcome == "denied") != refuse {
					t.Errorf("the record has %+v", p)
				}
			}
		})
	}
}
