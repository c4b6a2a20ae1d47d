package e2e

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/hooklog"
	"github.com/abhed/abhed/internal/require"
)

var update = flag.Bool("update", false, "run the whole matrix and write its rows to internal/coverage/measured.json")

// guardID is the id of the only backend in the registrations of these tests.
const guardID = "test.e2e.guard"

// repeats is how often a run is done again in which the agent never asked its
// model, which proves nothing.
const repeats = 2

// cell is one cell of the matrix.
type cell struct {
	scenario Scenario
	policy   string
}

func (c cell) String() string { return string(c.scenario) + " " + c.policy }

// cells returns what is to be run of the matrix.
func cells() []cell {
	if !*update {
		return []cell{{Allow, PolicyClosed}, {Deny, PolicyClosed}, {Crash, PolicyClosed}, {Missing, PolicyClosed}}
	}
	var out []cell
	for _, s := range Scenarios() {
		out = append(out, cell{s, PolicyClosed}, cell{s, PolicyOpen})
	}
	return out
}

// answered says that the backend gives an answer in this cell, so that the policy
// doesn't count.
func (c cell) answered() bool {
	return c.scenario == Allow || c.scenario == Deny || c.scenario == Ask || c.scenario == Rewrite
}

// runs says that the tool call must be carried out as the model wrote it.
func (c cell) runs() bool {
	return c.scenario == Allow || !c.answered() && c.policy == PolicyOpen
}

// decisions are those of which one must be in the log.
func (c cell) decisions() []hooklog.Decision {
	switch {
	case c.runs():
		return []hooklog.Decision{hooklog.Pass}
	case c.scenario == Ask:
		return []hooklog.Decision{hooklog.Ask, hooklog.Deny}
	case c.scenario == Rewrite:
		return []hooklog.Decision{hooklog.Rewrite, hooklog.Deny}
	}
	return []hooklog.Decision{hooklog.Deny}
}

// failure is how the backend must have failed; empty for not at all.
func (c cell) failure() ahp.FailureClass {
	return map[Scenario]ahp.FailureClass{Crash: ahp.FailExit, Hang: ahp.FailDeadline, Garbage: ahp.FailMalformed}[c.scenario]
}

// tells says that what the model was told is what it has to be told: the result
// of the call if it ran, else why it did not. success is as in agent.
func (c cell) tells(told []string, success string) bool {
	all := strings.Join(told, "\n")
	made := strings.Contains(all, made)
	switch {
	case c.runs():
		return made || success != "" && strings.Contains(all, success)
	case c.scenario == Deny:
		return !made && strings.Contains(all, refusal)
	case c.scenario == Rewrite: // its result, or the refusal that carries it
		return !made && strings.Contains(all, "rewritten")
	case c.scenario == Ask:
		return !made && strings.Contains(all, "a person")
	case c.scenario == Missing:
		return !made && strings.Contains(all, "ahp")
	}
	return !made && strings.Contains(all, guardID)
}

// programs are the programs under test, built once.
type programs struct{ ahp, guard string }

func build(root, dir string) (programs, error) {
	p := programs{ahp: filepath.Join(dir, "ahp"), guard: filepath.Join(dir, "guard")}
	for program, pkg := range map[string]string{p.ahp: "./cmd/ahp", p.guard: "./e2e/guard"} {
		cmd := exec.Command("go", "build", "-o", program, pkg)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			return programs{}, fmt.Errorf("go build %s: %w\n%s", pkg, err, out)
		}
	}
	return p, nil
}

// own is the program that the installed line starts, a copy for each run.
func (s *stage) own() string { return filepath.Join(s.root, "bin", "ahp") }

// install puts the hook into the agent's configuration by our own command, with
// a registration whose backend does what the cell is about.
func (s *stage) install(p programs, c cell) error {
	own := s.own()
	if err := os.MkdirAll(filepath.Dir(own), 0o755); err != nil {
		return err
	}
	// Another process writes it: a child of another test's must not have it open.
	if out, err := exec.Command(require.Path(s.t, "sh"), "-c", `cp "$1" "$2"`, "sh", p.ahp, own).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	s.write(s.home+"/.config/ahp/registration.json", s.registration(p, c))
	onMissing := "deny"
	if c.policy == PolicyOpen {
		onMissing = "allow"
	}
	cmd := exec.Command(own, "install", s.agent.host, "--scope", "user", "--home", s.home, "--on-missing", onMissing)
	if s.agent.host == "codex" { // it skips a hook that the user has not trusted
		cmd.Args = append(cmd.Args, "--trust")
	}
	cmd.Dir, cmd.Env = s.repo, s.environ()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return nil
}

// registration is the document whose one backend does what the cell is about.
func (s *stage) registration(p programs, c cell) object {
	backend, milliseconds := []string{p.guard, string(c.scenario), refusal}, 20000
	switch c.scenario {
	case Rewrite:
		backend[2] = strings.ReplaceAll(strings.ReplaceAll(cmp.Or(s.agent.seen, s.agent.call.Args), "marker", "rewritten"), "made", "rewritten")
	case Crash:
		backend = []string{p.ahp, "backend", "fault", "dies_during"}
	case Garbage:
		backend = []string{p.ahp, "backend", "fault", "garbage"}
	case Hang:
		backend, milliseconds = []string{p.ahp, "backend", "fault", "never"}, 1000
	case Missing:
		backend = []string{p.guard, string(Allow), refusal}
	}
	return object{"protocolVersion": "draft", "hooks": []any{object{
		"id":        guardID,
		"transport": object{"type": "stdio", "lifecycle": "persistent", "command": backend[0], "args": backend[1:]},
		"subscriptions": []any{object{"events": []any{"tool.before"}, "mode": "intercept", "timeoutMs": milliseconds,
			"failurePolicy": c.policy, "content": object{"default": "body"}}},
	}}}
}

// logged returns the host's name of the event at which the call was judged, by the
// cell's decision in the log; empty if it isn't there.
func (s *stage) logged(c cell) (native string, err error) {
	state, err := hooklog.StateDir(s.home)
	if err != nil {
		return "", err
	}
	dir := hooklog.LogDir(state)
	if _, err := os.Stat(dir); os.IsNotExist(err) {
		return "", nil
	}
	var other []string
	err = hooklog.Read(dir, func(e *hooklog.Entry) error {
		if e.Host != s.agent.host || e.Type != ahp.ToolBefore {
			return nil
		}
		var failure ahp.FailureClass
		for _, a := range e.Answers {
			if a.Failure != nil {
				failure = ahp.FailureClass(a.Failure.Class)
			}
		}
		if slices.Contains(c.decisions(), e.Decision) && failure == c.failure() && len(e.Answers) == 1 {
			native = e.Native
		} else {
			other = append(other, fmt.Sprintf("%s after %d answers and failure %q, for %q", e.Decision, len(e.Answers), failure, e.Reason))
		}
		return nil
	})
	if err == nil && len(other) > 0 {
		err = fmt.Errorf("decisions in the log: %s; want one of %s after one answer and failure %q", strings.Join(other, "; "), c.decisions(), c.failure())
	}
	return native, err
}

// measure runs one cell and returns its row.
func measure(t *testing.T, a agent, built func() (programs, error), c cell) (Row, result) {
	t.Helper()
	agentsDir(t, a)
	p, err := built()
	if err != nil {
		t.Fatal(err)
	}
	for again := 0; ; again++ {
		s := newStage(t, a)
		if c.scenario == Missing {
			s.onTurn = func(int) {
				if err := os.Remove(s.own()); err != nil && !os.IsNotExist(err) {
					t.Error(err)
				}
			}
		}
		res := s.play(func() error { return s.install(p, c) })
		if !res.called && again < repeats {
			t.Logf("the agent never asked its model, once more: %s", res)
			continue
		}
		if !res.called {
			t.Fatalf("the agent never asked its model, %d times: %s", again+1, res)
		}
		row := Row{Host: a.host, Version: s.version(), Date: time.Now().UTC().Format(time.DateOnly), System: runtime.GOOS + "/" + runtime.GOARCH,
			Scenario: string(c.scenario), Policy: c.policy, Scope: "user", Ran: res.ran, Told: c.tells(res.told, a.success)}
		_, err = os.Stat(filepath.Join(s.repo, "rewritten.txt"))
		row.Changed = err == nil
		if row.Native, err = s.logged(c); err != nil {
			t.Error(err)
		}
		row.Logged = row.Native != ""
		if again > 0 {
			row.Note = fmt.Sprintf("repeated %d times, as the agent never asked its model", again)
		}
		return row, res
	}
}

// TestInstalled is the matrix: each agent guarded by what `ahp install` wrote.
func TestInstalled(t *testing.T) {
	root, dir := require.Root(t), t.TempDir()
	built := sync.OnceValues(func() (programs, error) { return build(root, dir) })
	table := exceptions()
	var rows collected
	t.Run("agents", func(t *testing.T) {
		for _, a := range chosen(t) {
			for _, c := range cells() {
				t.Run(a.name+"/"+string(c.scenario)+"/"+c.policy, func(t *testing.T) {
					t.Parallel()
					row, res := measure(t, a, built, c)
					if problems := judge(&row, c, table); len(problems) > 0 {
						t.Errorf("%s\n%s", strings.Join(problems, "\n"), res)
					}
					t.Logf("%+v in %s", row, res.took.Round(time.Millisecond))
					rows.add(row)
				})
			}
		}
	})
	if *update {
		rows.save(t)
	}
}
