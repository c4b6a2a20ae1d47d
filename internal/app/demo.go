package app

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/control"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model/script"
	"github.com/abhed/abhed/internal/session"
	"github.com/abhed/abhed/internal/strictjson"
)

// demoTimeout bounds the whole demo.
const demoTimeout = time.Minute

//go:embed demo
var demoFiles embed.FS

// demoScript is what the scripted model says. Each step expects something of the
// result before it, so that a tool that didn't do its work ends the script.
func demoScript() []script.Step {
	call := func(name, args string) []script.Call { return []script.Call{{Name: name, Args: args}} }
	return []script.Step{
		{Text: "I'll run the tests first.", Calls: call("bash", `{"command":"sh test.sh","description":"run the tests"}`)},
		{Expect: "FAIL: greet Ada", Text: "They fail. I look for the text that is wrong, and read the file.",
			Calls: []script.Call{{Name: "grep", Args: `{"pattern":"Helo"}`}, {Name: "read", Args: `{"path":"greet.sh"}`}}},
		{Expect: "Helo, %s!", Text: "A typing error. I fix it.", Calls: call("edit", `{"path":"greet.sh","old_string":"Helo, %s!","new_string":"Hello, %s!"}`)},
		{Text: "Once more.", Calls: call("bash", `{"command":"sh test.sh","description":"run the tests again"}`)},
		{Expect: "PASS: all tests passed", Text: "It works, so I publish it.", Calls: call("bash", `{"command":"git push origin main","description":"publish"}`)},
		{Expect: "refused by extension guard", Text: "Then I note the release.", Calls: call("write", `{"path":"release/NOTES","content":"greet says hello\n"}`)},
		{Expect: "refused by backend " + demoBackendID, Text: "Then I clean up.", Calls: call("bash", `{"command":"rm -rf build","description":"remove what was built"}`)},
		{Expect: "Nobody can be asked", Text: "The greeting is fixed and its test passes. Pushing, the release notes and the removal of build/ were refused; they are for a person to do."},
	}
}

// Demo plays a scripted model through the real loop in a temporary workspace, and
// tells what happens. It exits with 0 only if everything that it shows happened.
func Demo(ctx context.Context, sys System, keep bool) int {
	ctx, cancel := context.WithTimeoutCause(ctx, demoTimeout, &agent.Interrupted{Reason: agent.ReasonMaxTime})
	defer cancel()
	dir, err := os.MkdirTemp("", "abhed-demo-")
	if err != nil {
		return sys.fail(ExitFailure, err)
	}
	if keep {
		fmt.Fprintf(sys.Stdout, "The workspace stays in %s\n\n", dir)
	} else {
		defer os.RemoveAll(dir)
	}
	d := &demo{sys: sys, dir: dir, story: newStory(sys.Stdout)}
	if err := d.play(ctx); err != nil {
		return sys.fail(ExitNegative, fmt.Errorf("the demo did not go as it should: %w", err))
	}
	return ExitOK
}

// demo is one showing.
type demo struct {
	sys   System
	dir   string
	story *story

	mu        sync.Mutex
	decisions []*event.Decision
	ended     map[string]*event.ToolEnded
}

func (d *demo) play(ctx context.Context) error {
	workspace := filepath.Join(d.dir, "workspace")
	if err := d.prepare(ctx, workspace); err != nil {
		return err
	}
	sys := d.sys
	sys.ManagedDir = filepath.Join(d.dir, "managed") // there is none
	sys.Environ = demoEnviron(sys.Environ)
	if sys.stateDir() == "" {
		sys.Environ = append(sys.Environ, "XDG_STATE_HOME="+filepath.Join(d.dir, "state"))
	}
	model := script.New(demoScript())
	host := NewHost(HostOptions{SettingsOptions: SettingsOptions{Dir: workspace, ConfigFile: filepath.Join(d.dir, "config.json")}, Model: model}, sys)
	c, err := host.open(ctx, control.Start{Sink: d})
	if err != nil {
		return err
	}
	e := c.e
	fmt.Fprintf(d.sys.Stdout, "A scripted model works in %s, sandbox tier %s.\n", workspace, e.plan.Tier())
	fmt.Fprintf(d.sys.Stdout, "Every call passes the gate: rules, the extension guard (a process), the backend %s (a process).\n\n", demoBackendID)
	res := c.Prompt(ctx, control.Prompt{Text: "The test fails. Please fix it."})
	path, key := e.log.Path(), e.key.Public()
	if err := c.Close(); err != nil {
		return err
	}
	if !res.Completed {
		return fmt.Errorf("the run ended with %s: %s", res.Reason, res.Detail)
	}
	if left := model.Left(); left != 0 {
		return fmt.Errorf("%d steps of the script were not played", left)
	}
	if err := d.happened(ctx, workspace); err != nil {
		return err
	}
	rep, err := session.Verify(path, key)
	if err != nil {
		return err
	}
	fmt.Fprintln(d.sys.Stdout)
	printReport(d.sys.Stdout, path, rep)
	if !rep.OK {
		return errors.New("the record does not verify")
	}
	fmt.Fprintf(d.sys.Stdout, "\nSee all of it with: abhed record show %s (or go run ./cmd/abhed record show …)\n", strings.TrimSuffix(filepath.Base(path), ".jsonl"))
	return nil
}

// demoEnviron drops the variables that would configure the run.
func demoEnviron(environ []string) []string {
	var out []string
	for _, v := range environ {
		if !strings.HasPrefix(v, "ABHED_") {
			out = append(out, v)
		}
	}
	return out
}

// prepare makes the workspace, a git repository, and the configuration beside it.
func (d *demo) prepare(ctx context.Context, workspace string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(workspace, "build"), 0o700); err != nil {
		return err
	}
	guard := filepath.Join(d.dir, "guard.sh")
	registration := filepath.Join(d.dir, "registration.json")
	config, err := strictjson.Marshal(demoConfig{
		Permissions: demoPermissions{Mode: "accept-edits", Allow: []string{"bash(sh test.sh)"}},
		Extensions:  []demoExtension{{Name: "guard", Command: "sh", Args: []string{guard}, Events: []string{"tool_call"}, OnFailure: "block"}},
		AHP:         map[string]string{"registration": registration},
		Sandbox:     map[string]string{"min_tier": "none"},
	})
	if err != nil {
		return err
	}
	hooks := fmt.Sprintf(`{"protocolVersion":"draft","hooks":[{"id":%q,"transport":{"type":"stdio","command":%q,"args":[%q],"lifecycle":"persistent"},
 "subscriptions":[{"events":["tool.before"],"mode":"intercept","timeoutMs":5000,"failurePolicy":"fail-closed","content":{"default":"body"}}]}]}`,
		demoBackendID, self, DemoBackendCommand)
	files := map[string][]byte{
		filepath.Join(d.dir, "config.json"): config, registration: []byte(hooks),
		filepath.Join(workspace, "build", "old.o"): []byte("built\n"),
	}
	for name, to := range map[string]string{"greet.sh": workspace, "test.sh": workspace, "guard.sh": d.dir} {
		if files[filepath.Join(to, name)], err = demoFiles.ReadFile("demo/" + name); err != nil {
			return err
		}
	}
	for path, data := range files {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			return err
		}
	}
	return d.git(ctx, workspace)
}

// git makes the workspace a repository, if there is git.
func (d *demo) git(ctx context.Context, workspace string) error {
	git, err := exec.LookPath("git")
	if err != nil {
		fmt.Fprintln(d.sys.Stdout, "git is not installed: the workspace is a plain folder.")
		return nil
	}
	cmd := exec.CommandContext(ctx, git, "init", "-q", workspace)
	cmd.Env = append(demoEnviron(d.sys.Environ), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git init: %w: %s", err, out)
	}
	return nil
}

type demoConfig struct {
	Permissions demoPermissions   `json:"permissions"`
	Extensions  []demoExtension   `json:"extensions"`
	AHP         map[string]string `json:"ahp"`
	Sandbox     map[string]string `json:"sandbox"`
}

type demoPermissions struct {
	Mode  string   `json:"mode"`
	Allow []string `json:"allow"`
}

type demoExtension struct {
	Name      string   `json:"name"`
	Command   string   `json:"command"`
	Args      []string `json:"args"`
	Events    []string `json:"events"`
	OnFailure string   `json:"on_failure"`
}

// Delta does nothing: the story is told from the events.
func (d *demo) Delta(control.Delta) {}

// Event keeps what the end is checked by, and tells the story.
func (d *demo) Event(e event.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch p := e.Payload.(type) {
	case *event.Decision:
		d.decisions = append(d.decisions, p)
	case *event.ToolEnded:
		if d.ended == nil {
			d.ended = map[string]*event.ToolEnded{}
		}
		d.ended[p.CallID] = p
	}
	d.story.tell(e)
}

// happened checks that everything that the demo shows took place.
func (d *demo) happened(ctx context.Context, workspace string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	refusals := map[string]string{} // subject by step
	ran := map[string]bool{}
	for _, p := range d.decisions {
		if p.Outcome == "deny" {
			refusals[p.Step] = p.Subject
		} else if e := d.ended[p.CallID]; p.Outcome == "run" && e != nil {
			ran[p.Tool] = true
		}
	}
	for step, subject := range map[string]string{"extension": "git push origin main", "backend": "release/NOTES", "headless": "rm -rf build"} {
		if refusals[step] != subject {
			return fmt.Errorf("%q was to be refused at step %s; refused there was %q", subject, step, refusals[step])
		}
	}
	for _, tool := range []string{"bash", "grep", "read", "edit"} {
		if !ran[tool] {
			return fmt.Errorf("the tool %s did not run", tool)
		}
	}
	if exists(filepath.Join(workspace, "release")) || !exists(filepath.Join(workspace, "build", "old.o")) {
		return errors.New("a refused call left a trace in the workspace")
	}
	cmd := exec.CommandContext(ctx, "sh", "test.sh")
	cmd.Dir = workspace
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("the workspace's test still fails: %w: %s", err, out)
	}
	return nil
}
