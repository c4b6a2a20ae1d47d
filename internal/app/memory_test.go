package app_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/control"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model/modeltest"
)

// TestInstructionsReachTheModel puts the instruction files of the workspace into the
// system text, and those of a folder below into the conversation once the agent touches
// something there; a summary keeps both, and a sub-agent begins with its own.
func TestInstructionsReachTheModel(t *testing.T) {
	read := func(path string) modeltest.Turn {
		return modeltest.Turn{Calls: []modeltest.Call{{ID: "r" + path, Name: "read", Args: fmt.Sprintf(`{"path":%q}`, path)}}}
	}
	w := newWorld(t, read("sub/a.txt"), read("sub/b.txt"), read("sub/a.txt"), read("sub/b.txt"), read("sub/a.txt"), read("sub/b.txt"), modeltest.Turn{Text: "read"},
		modeltest.Turn{Text: "what came before in short"}, done(),
		modeltest.Turn{Calls: []modeltest.Call{{ID: "t", Name: "task", Args: `{"description":"look","prompt":"look"}`}}}, read("sub/a.txt"), modeltest.Turn{Text: "looked"}, done())
	w.write("AGENTS.md", "say PLEASE\n")
	w.write("ABHED.md", "say THANKS\n")
	w.write("sub/AGENTS.md", "say SORRY\n")
	w.write("sub/a.txt", strings.Repeat("a long text that a summary is shorter than\n", 40))
	w.write("sub/b.txt", strings.Repeat("another one\n", 40))
	s := w.open(control.Start{})
	if a := s.Prompt(t.Context(), control.Prompt{Text: "read"}); !a.Completed {
		t.Fatal(a)
	}
	info := s.Info()
	if list := strings.Join(info.Memory, " "); !strings.Contains(list, "AGENTS.md") || !strings.Contains(list, "ABHED.md") || strings.Contains(list, "sub/") {
		t.Errorf("the surface is told of %v", info.Memory)
	}
	requests := w.server.Requests()
	first, second := strings.Join(sent(requests[0]), "\n"), strings.Join(sent(requests[1]), "\n")
	if !strings.Contains(first, "say PLEASE") || !strings.Contains(first, "say THANKS") || strings.Contains(first, "say SORRY") {
		t.Errorf("the first request:\n%s", first)
	}
	if strings.Count(second, "say SORRY") != 1 || strings.Count(strings.Join(sent(requests[6]), "\n"), "say SORRY") != 1 {
		t.Errorf("the second request:\n%s", second)
	}
	if c, err := s.Tune().Compact(t.Context()); err != nil || !c.Done {
		t.Fatalf("%+v, %v", c, err)
	}
	if a := s.Prompt(t.Context(), control.Prompt{Text: "go on"}); !a.Completed {
		t.Fatal(a)
	}
	after := strings.Join(sent(w.server.Requests()[8]), "\n")
	for _, want := range []string{"say PLEASE", "say THANKS", "say SORRY", "what came before in short"} {
		if strings.Count(after, want) != 1 {
			t.Errorf("after the summary %q is there %d times:\n%s", want, strings.Count(after, want), after)
		}
	}
	if a := s.Prompt(t.Context(), control.Prompt{Text: "give it away"}); !a.Completed {
		t.Fatal(a)
	}
	requests = w.server.Requests()
	began, went := strings.Join(sent(requests[10]), "\n"), strings.Join(sent(requests[11]), "\n")
	if !strings.Contains(began, "say PLEASE") || strings.Contains(began, "say SORRY") || strings.Count(went, "say SORRY") != 1 {
		t.Errorf("the sub-agent was sent\n%s\n--\n%s", began, went)
	}
	started := payloads[*event.SessionStarted](w.events(result{record: info.Record}))
	if len(started) != 1 || strings.Join(started[0].Memory, " ") != strings.Join(info.Memory, " ") {
		t.Errorf("the record has %+v", started)
	}
}

// TestSkills lists what there is by name and description, and gives the text when the
// model asks.
func TestSkills(t *testing.T) {
	w := newWorld(t, modeltest.Turn{Calls: []modeltest.Call{{ID: "s", Name: "skill", Args: `{"name":"release"}`}}}, done())
	w.write(".agents/skills/release/SKILL.md", "---\nname: release\ndescription: how to publish a version\n---\nRun make PUBLISH.\n")
	r := w.run(t.Context())
	first := strings.Join(sent(w.server.Requests()[0]), "\n")
	if r.code != 0 || !strings.Contains(first, "release") || !strings.Contains(first, "how to publish a version") || strings.Contains(first, "PUBLISH") {
		t.Errorf("exit %d, the first request:\n%s", r.code, first)
	}
	if got := outcome(w.events(r), "s"); !strings.Contains(got, "Run make PUBLISH.") {
		t.Errorf("the skill says %q", got)
	}
	bare := newWorld(t, done())
	bare.run(t.Context())
	for _, tool := range bare.server.Requests()[0].Tools {
		if strings.Contains(string(tool), `"skill"`) {
			t.Error("the tool is offered without a skill")
		}
	}
}
