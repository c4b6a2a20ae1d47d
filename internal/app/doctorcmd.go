package app

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/abhed/abhed/internal/extension"
	"github.com/abhed/abhed/internal/gate"
	"github.com/abhed/abhed/internal/mcp"
	"github.com/abhed/abhed/internal/probe"
	"github.com/abhed/abhed/internal/sandbox"
	"github.com/abhed/abhed/internal/strictjson"
)

// DoctorOptions is one examination.
type DoctorOptions struct {
	SettingsOptions
	// Offline leaves the model's endpoint alone.
	Offline bool
	// Timeout bounds each request to it; zero means a minute.
	Timeout time.Duration
	JSON    bool
}

// finding is one thing that the doctor looked at.
type finding struct {
	What string `json:"what"`
	// State is "ok", "note" or "bad".
	State string `json:"state"`
	Saw   string `json:"saw"`
	// Do says what to do about it.
	Do string `json:"do,omitempty"`
}

// examination collects what is found.
type examination struct {
	Findings []finding     `json:"findings"`
	Endpoint *probe.Report `json:"endpoint,omitempty"`
	OK       bool          `json:"ok"`
}

func (x *examination) add(what, state, saw, do string) {
	x.Findings = append(x.Findings, finding{what, state, saw, do})
	if state == "bad" {
		x.OK = false
	}
}

func (x *examination) ok(what, saw string) { x.add(what, "ok", saw, "") }

// Doctor looks at everything that a session here would need, the endpoint of the
// configured model included, which it asks for a few short replies, and says what is
// wrong and what to do. It exits with 1 if something that is
// configured doesn't work.
func Doctor(ctx context.Context, o DoctorOptions, sys System) int {
	x := &examination{Findings: []finding{}, OK: true}
	x.ok("abhed", fmt.Sprintf("%s on %s/%s", sys.Version, runtime.GOOS, runtime.GOARCH))
	l, err := loadSettings(o.SettingsOptions, sys)
	if err != nil {
		x.add("settings", "bad", err.Error(), "correct them; abhed config check shows every fault")
	} else {
		x.settings(l)
		x.machine(l, sys)
		x.engine(ctx, l, sys)
		if !o.Offline {
			x.endpoint(ctx, l, o, sys)
		}
	}
	if o.JSON {
		b, err := strictjson.Marshal(x)
		if err != nil {
			return sys.fail(ExitFailure, err)
		}
		fmt.Fprintf(sys.Stdout, "%s\n", b)
	} else {
		x.print(sys)
	}
	if !x.OK {
		return ExitNegative
	}
	return ExitOK
}

// settings says what was read, and what of it doesn't count.
func (x *examination) settings(l *loaded) {
	var read []string
	for _, f := range l.files {
		if exists(f) {
			read = append(read, f)
		}
	}
	saw := "none; what is built in holds"
	if len(read) > 0 {
		saw = strings.Join(read, ", ")
	}
	x.ok("settings", saw)
	for _, n := range l.notes() {
		x.add("settings", "note", n, "")
	}
	x.ok("mode", l.Permissions.Mode)
}

// machine looks at what the program needs around it.
func (x *examination) machine(l *loaded, sys System) {
	store, err := openStore(sys)
	if err != nil {
		x.add("records", "bad", err.Error(), "set XDG_STATE_HOME or HOME to a folder that can be written")
	} else if f, err := os.CreateTemp(store.Dir(), ".doctor-"); err != nil {
		x.add("records", "bad", err.Error(), "make the folder writable: nothing runs without a record")
	} else {
		_ = f.Close()
		_ = os.Remove(f.Name())
		x.ok("records", store.Dir()+", signed by key "+store.Key().ID())
	}
	for name, why := range map[string]string{"git": "worktrees of sub-agents need it"} {
		if path, err := exec.LookPath(name); err != nil {
			x.add(name, "note", "not installed; "+why, "")
		} else {
			x.ok(name, path)
		}
	}
	if info, err := os.Stat(filepath.Join(l.workspace, ".git")); err != nil || !info.IsDir() {
		x.add("workspace", "note", l.workspace+" is not the top of a git repository: changes can't be looked at or taken back by git", "")
	} else {
		x.ok("workspace", l.workspace)
	}
}

// engine starts what a session would start.
func (x *examination) engine(ctx context.Context, l *loaded, sys System) {
	e, err := sessionless(ctx, l, sys, nil)
	if err != nil {
		x.add("sandbox, AHP", "bad", err.Error(), "")
		return
	}
	defer e.close()
	x.sandbox(e)
	if r := e.registered.Registration; r != nil {
		x.ok("AHP", fmt.Sprintf("%d backends are registered", len(r.Hooks)))
	} else {
		x.ok("AHP", "no backend is registered")
	}
	if err := e.startExtensions(ctx); err != nil {
		x.add("extensions", "bad", err.Error(), "")
	} else if e.ext != nil {
		for _, s := range e.ext.States() {
			if s.State == extension.StateStarted {
				x.ok("extension "+s.Name, fmt.Sprintf("started, %d tools", len(s.Tools)))
				continue
			}
			x.add("extension "+s.Name, "bad", s.LastError, "abhed ext test "+s.Name+" shows more; when it fails in a session: "+string(s.OnFailure))
		}
	}
	if err := e.startServers(ctx); err != nil {
		x.add("MCP", "bad", err.Error(), "")
	} else if e.servers != nil {
		for _, s := range e.servers.States() {
			if s.State == mcp.StateReady {
				x.ok("MCP server "+s.Name, fmt.Sprintf("%d tools", len(s.Tools)))
				continue
			}
			x.add("MCP server "+s.Name, "bad", s.Error, "abhed mcp list shows more")
		}
	}
	for _, step := range []func(context.Context) error{e.makeTools, e.makeRules, e.firstMode} {
		if err := step(ctx); err != nil {
			x.add("rules", "bad", err.Error(), "")
			return
		}
	}
	x.ok("rules", "they compile for the tools that there are")
	for _, w := range e.warnings {
		x.add("session", "note", w, "")
	}
}

func (x *examination) sandbox(e *engine) {
	network := "without network"
	if e.network() {
		network = "with network"
	}
	if e.plan.Tier() == sandbox.TierNone {
		x.add("sandbox", "note", "tier none: commands can do what you can", "install bubblewrap")
	} else {
		x.ok("sandbox", fmt.Sprintf("tier %s, commands run %s", e.plan.Tier(), network))
	}
	for _, gap := range e.plan.Gaps() {
		x.add("sandbox", "note", "it does not stop: "+gap, "")
	}
}

// endpoint asks the model's endpoint what it can.
func (x *examination) endpoint(ctx context.Context, l *loaded, o DoctorOptions, sys System) {
	ep, err := l.Resolve("")
	if err != nil {
		x.add("model", "bad", err.Error(), "name one with --model provider/model; abhed providers lists them")
		return
	}
	if err := l.CheckCAFile(os.ReadFile); err != nil {
		x.add("model", "bad", err.Error(), "")
		return
	}
	e := &engine{o: buildOptions{loaded: l}, sys: sys, id: "doctor"}
	m, err := e.connect("", "")
	if err != nil {
		x.add("model", "bad", err.Error(), "")
		return
	}
	secret, _, err := secrets(l, sys)
	if err != nil {
		x.add("secrets", "bad", err.Error(), "")
		return
	}
	if ep.API == "script" {
		x.ok("model", m.Client.Name()+" plays a script; there is no endpoint")
		return
	}
	x.Endpoint = probe.Run(ctx, probe.Options{
		Client: m.Client, BaseURL: ep.BaseURL, CAFile: l.HTTP.CAFile, Images: m.Images, Window: m.Window, Timeout: o.Timeout, Secrets: secret,
	})
	state := map[probe.Outcome]string{probe.OK: "ok", probe.No: "bad"}[x.Endpoint.Verdict]
	if state == "" {
		state = "note"
	}
	price := "its price isn't known, so max_cost_usd can't be used"
	if m.Price != nil {
		price = fmt.Sprintf("%g USD for a million tokens in, %g out", m.Price.Input, m.Price.Output)
	}
	x.add("model", state, fmt.Sprintf("%s at %s; %s", m.Client.Name(), x.Endpoint.Endpoint, price), "")
}

func (x *examination) print(sys System) {
	for _, f := range x.Findings {
		mark := map[string]string{"ok": "ok  ", "note": "note", "bad": "BAD "}[f.State]
		fmt.Fprintf(sys.Stdout, "%s  %s: %s\n", mark, gate.Visible(f.What), gate.Visible(f.Saw))
		if f.Do != "" {
			fmt.Fprintf(sys.Stdout, "      → %s\n", gate.Visible(f.Do))
		}
	}
	if x.Endpoint != nil {
		fmt.Fprintf(sys.Stdout, "\n%s", x.Endpoint.Text())
	}
	if x.OK {
		fmt.Fprintln(sys.Stdout, "\nA session would work.")
	} else {
		fmt.Fprintln(sys.Stdout, "\nNot everything works that is configured: see what is BAD.")
	}
}
