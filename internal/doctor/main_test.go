package doctor

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp/adapter/hosts"
	"github.com/abhed/abhed/ahp/backend"
	"github.com/abhed/abhed/internal/backends/rules"
	"github.com/abhed/abhed/internal/hookd"
	"github.com/abhed/abhed/internal/hookline"
	"github.com/abhed/abhed/internal/hooklog"
	"github.com/abhed/abhed/internal/hostconf"
	"github.com/abhed/abhed/internal/install"
	"github.com/abhed/abhed/internal/require"
	"github.com/abhed/abhed/internal/trust"
)

// TestMain makes the test binary an ahp: with "hook" it judges as that command does, in
// its own process, and with "backend rules --rules FILE" it is that backend.
func TestMain(m *testing.M) {
	syscall.Umask(0o022)
	if h := hookline.First(); h != nil {
		os.Exit(beHook(h))
	}
	if len(os.Args) == 5 && os.Args[1] == "backend" {
		if os.Getenv("GORACE") == "" { // the race detector waits for a second at the end else
			if exe, err := os.Executable(); err == nil {
				_ = syscall.Exec(exe, os.Args, append(os.Environ(), "GORACE=atexit_sleep_ms=0"))
			}
		}
		doc, err := rules.ReadFile(os.Args[4])
		if err == nil {
			var b *rules.Backend
			if b, _, err = rules.New(doc, rules.Options{}); err == nil {
				backend.Main(b, backend.Options{})
				return
			}
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	os.Exit(m.Run())
}

func beHook(h *hookline.Attempt) int {
	if h.Err != nil {
		fmt.Fprintln(os.Stderr, h.Err)
		return hookline.ExitNone
	}
	ctx, cancel := context.WithDeadline(context.Background(), h.Until)
	defer cancel()
	j, err := hookd.New(hookd.Options{Home: h.Call.Home, Executable: h.Program})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return hookline.ExitNone
	}
	a, err := j.Do(ctx, &h.Call)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return hookline.ExitNone
	}
	_ = j.Close()
	return a.Deliver(h.Until)
}

// world is a machine with an account, a project and an ahp of its own.
type world struct {
	t                   *testing.T
	dir, home, project  string
	machine, ahp, state string
	o                   Options
}

func newWorld(t *testing.T) *world {
	t.Helper()
	// The names that paths have without links: so a project is known.
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: dir, home: filepath.Join(dir, "home"), project: filepath.Join(dir, "project"), machine: filepath.Join(dir, "machine"), ahp: filepath.Join(dir, "bin", "ahp")}
	for _, d := range []string{w.home, w.project, w.machine, filepath.Dir(w.ahp)} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Link(exe, w.ahp); err != nil { // another file system
		w.copy(exe, w.ahp)
	}
	if w.state, err = hooklog.StateDir(w.home); err != nil {
		t.Fatal(err)
	}
	w.o = Options{
		Roots: hostconf.Roots{Home: w.home, Project: w.project, Machine: w.machine, Mac: runtime.GOOS == "darwin"},
		State: w.state, Self: w.ahp, Managed: filepath.Join(w.machine, "registration.json"),
		Environ:  append(os.Environ(), "GORACE=atexit_sleep_ms=0"),
		Measured: func(string) []string { return nil },
		Fit:      hookd.Fit, Announce: hookd.AnnounceCanary, CanaryDeny: hookd.CanaryDeny, CanaryPass: hookd.CanaryPass,
		Service: func(context.Context, string) (*Service, error) { return nil, nil },
	}
	w.write(filepath.Join(w.home, "rules"), `{"rules":{"deny":["bash(git push*)"]}}`)
	w.register(`"failurePolicy":"fail-closed"`)
	return w
}

func (w *world) registration() string {
	return filepath.Join(w.home, ".config", "ahp", "registration.json")
}

func (w *world) register(policy string) {
	w.t.Helper()
	w.write(w.registration(), fmt.Sprintf(`{"protocolVersion":"draft","hooks":[{"id":"com.example.rules","transport":{"type":"stdio","lifecycle":"persistent","command":%q,"args":["backend","rules","--rules",%q]},"subscriptions":[{"events":["tool.before"],"mode":"intercept","timeoutMs":5000,%s,"content":{"default":"body"}}]}]}`, w.ahp, filepath.Join(w.home, "rules"), policy))
}

func (w *world) write(path, text string) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// copy copies a program in a process of its own, so that no child of this one holds it
// open for writing.
func (w *world) copy(from, to string) {
	w.t.Helper()
	if out, err := exec.Command(require.Path(w.t, "sh"), "-c", `cp "$1" "$2.new" && mv "$2.new" "$2"`, "sh", from, to).CombinedOutput(); err != nil {
		w.t.Fatalf("%v: %s", err, out)
	}
}

// program writes a script in a process of its own.
func (w *world) program(path, text string) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	c := exec.Command(require.Path(w.t, "sh"), "-c", `cat >"$1.new" && chmod 755 "$1.new" && mv "$1.new" "$1"`, "sh", path)
	c.Stdin = strings.NewReader(text)
	if out, err := c.CombinedOutput(); err != nil {
		w.t.Fatalf("%v: %s", err, out)
	}
}

func (w *world) read(path string) string {
	w.t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(data)
}

// replace changes one text in a file, keeping its mode.
func (w *world) replace(path, from, to string) {
	w.t.Helper()
	text := w.read(path)
	if !strings.Contains(text, from) {
		w.t.Fatalf("%s holds no %q:\n%s", path, from, text)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(text, from, to, 1)), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// install installs as ahp install does.
func (w *world) install(host string, scope hostconf.Scope) {
	w.t.Helper()
	h, _ := hostconf.Lookup(host)
	sum, err := install.SumFile(w.ahp)
	if err != nil {
		w.t.Fatal(err)
	}
	o := install.Options{
		Scope: scope, Roots: w.o.Roots, State: w.state, Trust: host == "codex" && scope == hostconf.User, BinarySHA256: sum,
		Call:          install.Call{Binary: w.ahp, OnMissing: install.Deny, Home: w.home},
		Registrations: []install.Sum{{Path: w.registration(), SHA256: trust.Sum([]byte(w.read(w.registration())))}},
	}
	p, err := install.Install(h, hosts.Lookup(host), o)
	if err == nil {
		err = install.Locked(w.state, p.Apply)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// run is one run of the doctor.
func (w *world) run(names ...string) *Report {
	w.t.Helper()
	o := w.o
	o.Hosts = names
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	r, err := Run(ctx, o)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// find returns the findings of a check at a level, "" for any.
func (r *Report) find(level Level, check string) (out []Finding) {
	for _, f := range r.Findings {
		if f.Check == check && (level == "" || f.Level == level) {
			out = append(out, f)
		}
	}
	return out
}

// want is one finding that has to be there.
type want struct {
	level       Level
	check, what string
	// where is what the place begins with, after the world's folder.
	where string
}

func (w *world) wants(r *Report, list ...want) {
	w.t.Helper()
	for _, one := range list {
		is := false
		for _, f := range r.find(one.level, one.check) {
			is = is || strings.Contains(f.What, one.what) && strings.HasPrefix(f.Where, w.path(one.where))
		}
		if !is {
			w.t.Errorf("no finding %+v in\n%s", one, r.Text(true))
		}
	}
}

func (w *world) path(rel string) string {
	if rel == "" {
		return ""
	}
	return filepath.Join(w.dir, rel)
}
