package abhed_test

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/model/modeltest"
)

// scenario is what is set up, and what must come of it on every surface. In a pattern
// " && " stands between texts that must be in one line.
type scenario struct {
	prompt string // "" is "go"
	mode   string // "" is accept-edits
	// permissions and settings hold further members, each with a comma before it.
	permissions, settings string
	extensions            []player
	servers               map[string][]string // the tools of MCP servers
	files                 map[string]string   // below BASE
	turns                 []modeltest.Turn
	stage                 func(s *stage) // what else the stage needs
	on                    []surface      // nil is all

	reason string // "" is "completed"
	// sent patterns must each be in a line of what the model was sent, as "[2] tool c1
	// text"; unsent in none. So it is with the record and with what extensions heard.
	sent, unsent         []string
	recorded, unrecorded []string
	heard, unheard       []string
	has                  map[string]string // files below the workspace
	hasnt                []string
	check                func(t *testing.T, s *stage, record []string)
}

// set makes the stage.
func (sc scenario) set(t *testing.T) *stage {
	s := newStage(t, cmp.Or(sc.prompt, "go"), "{}", sc.turns)
	var entries, servers []string
	for _, p := range sc.extensions {
		entries = append(entries, s.configure(p))
	}
	for name, tools := range sc.servers {
		servers = append(servers, `"`+name+`":{`+s.cast(playServer, name, part{Tools: tools})+`}`)
	}
	text := `{"permissions":{"mode":"` + cmp.Or(sc.mode, "accept-edits") + `"` + sc.permissions + `},"sandbox":{"min_tier":"none"},` +
		`"extensions":[` + strings.Join(entries, ",") + `],"mcp":{` + strings.Join(servers, ",") + `}` + sc.settings + `}`
	s.put("home/.config/abhed/config.json", strings.ReplaceAll(text, "BASE", s.base))
	for name, content := range sc.files {
		s.put(name, content)
	}
	if sc.stage != nil {
		sc.stage(s)
	}
	return s
}

// everywhere runs the scenario on every surface.
func (sc scenario) everywhere(t *testing.T) {
	t.Helper()
	on := sc.on
	if on == nil {
		on = surfaces()
	}
	sameOn(t, on, sc.set, func(t *testing.T, s *stage, e ending, record []string) {
		if e.reason != cmp.Or(sc.reason, "completed") {
			t.Errorf("the run ended with %q", e.reason)
		}
		if n := s.server.Left(); n != 0 {
			t.Errorf("%d replies of the model were not asked for", n)
		}
		expect(t, "what the model was sent", s.sent(), sc.sent, sc.unsent)
		expect(t, "the record", record, sc.recorded, sc.unrecorded)
		expect(t, "what extensions heard", s.allHeard(), sc.heard, sc.unheard)
		for name, want := range sc.has {
			if got, err := os.ReadFile(filepath.Join(s.dir, name)); err != nil || string(got) != want {
				t.Errorf("the file %s has %q (%v), want %q", name, got, err, want)
			}
		}
		for _, name := range sc.hasnt {
			if _, err := os.Lstat(filepath.Join(s.dir, name)); err == nil {
				t.Errorf("there is a file %s", name)
			}
		}
		if sc.check != nil {
			sc.check(t, s, record)
		}
		if t.Failed() && testing.Verbose() {
			t.Logf("sent:\n%s\nrecord:\n%s\nheard:\n%s", strings.Join(s.sent(), "\n"), strings.Join(record, "\n"), strings.Join(s.allHeard(), "\n"))
		}
	})
}

// expect holds that each pattern is in a line, and none of the others in any.
func expect(t *testing.T, what string, lines, want, never []string) {
	t.Helper()
	for _, p := range want {
		if len(matching(lines, p)) == 0 {
			t.Errorf("%s has no line with %s", what, p)
		}
	}
	for _, p := range never {
		if found := matching(lines, p); len(found) > 0 {
			t.Errorf("%s has %s:\n%s", what, p, found[0])
		}
	}
}

// matching returns the lines that a pattern fits.
func matching(lines []string, pattern string) []string {
	var out []string
next:
	for _, l := range lines {
		for text := range strings.SplitSeq(pattern, " && ") {
			if !strings.Contains(l, text) {
				continue next
			}
		}
		out = append(out, l)
	}
	return out
}

// call is a reply of the model with one call.
func call(id, name, args string) modeltest.Turn {
	return modeltest.Turn{Calls: []modeltest.Call{{ID: id, Name: name, Args: args}}}
}

// done is the model's answer.
func done() modeltest.Turn { return modeltest.Turn{Text: "done"} }
