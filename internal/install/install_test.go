package install

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/abhed/abhed/ahp/adapter/hosts"
	"github.com/abhed/abhed/internal/confedit"
	"github.com/abhed/abhed/internal/hostconf"
	"github.com/abhed/abhed/internal/install/bridge"
)

// world is a machine of its own.
type world struct {
	dir string
	o   Options
}

func newWorld(t *testing.T, s hostconf.Scope) world {
	t.Helper()
	dir := t.TempDir()
	w := world{dir: dir, o: Options{
		Scope: s,
		Roots: hostconf.Roots{Home: filepath.Join(dir, "home"), Project: filepath.Join(dir, "project"), Machine: filepath.Join(dir, "machine")},
		State: filepath.Join(dir, "state"),
		Call:  Call{Binary: "/opt/it's ahp/ahp", Registration: "/opt/r.json", OnMissing: Deny},
	}}
	for _, d := range []string{w.o.Roots.Home, w.o.Roots.Project, w.o.Roots.Machine} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// files returns everything in the three places, with modes.
func (w world) files(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || strings.HasPrefix(path, w.o.State) {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := info.Mode().String()
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += " " + string(data)
		}
		out[path] = text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (w world) write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
}

func (w world) install(t *testing.T, host string) *Plan {
	t.Helper()
	h, _ := hostconf.Lookup(host)
	p, err := Install(h, hosts.Lookup(host), w.o)
	if err != nil {
		t.Fatalf("%s: %v", host, err)
	}
	if err := Locked(w.o.State, p.Apply); err != nil {
		t.Fatalf("%s: %v", host, err)
	}
	return p
}

func (w world) uninstall(t *testing.T, host string) *Plan {
	t.Helper()
	h, _ := hostconf.Lookup(host)
	p, err := Uninstall(h, w.o)
	if err != nil {
		t.Fatalf("%s: %v", host, err)
	}
	if err := Locked(w.o.State, p.Apply); err != nil {
		t.Fatalf("%s: %v", host, err)
	}
	return p
}

// existing is what somebody else has in a host's file already.
func existing(t hostconf.Target) string {
	switch {
	case t.Format == hostconf.TOML:
		return "# mine\r\nmodel = \"x\"\r\n\r\n[[hooks]]\r\nevent = \"Stop\"\r\ncommand = \"say done\""
	case t.Format == hostconf.JSONC:
		return "\xef\xbb\xbf// mine\n{\n\t\"z\": 1, // last\n\t\"hooks\": {},\n}"
	}
	return "{\n    \"z\" : [1,2],\n    \"a\": {}\n}\n\n"
}

// everywhere runs f for each host and each of its scopes.
func everywhere(t *testing.T, f func(t *testing.T, h hostconf.Host, w world)) {
	for _, h := range hostconf.All() {
		for _, s := range hostconf.Scopes() {
			if len(h.In(s)) > 0 {
				t.Run(h.Name+"/"+string(s), func(t *testing.T) {
					t.Parallel()
					f(t, h, newWorld(t, s))
				})
			}
		}
	}
}

// There and back: into nothing, and into files of others.
func TestInstallUninstall(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, h hostconf.Host, w world) {
		for _, others := range []bool{false, true} {
			if others {
				for _, target := range h.In(w.o.Scope) {
					path := w.o.Roots.Path(target.File)
					switch target.Shape {
					case hostconf.Scripts, hostconf.Bridge:
						w.write(t, filepath.Join(path, "theirs"), "x")
					default:
						w.write(t, strings.ReplaceAll(path, "*", "coder"), existing(target))
					}
				}
			}
			before := w.files(t)
			first := w.install(t, h.Name)
			once := w.files(t)
			if !first.Changes() || cmp.Equal(before, once) {
				t.Fatal("nothing was installed")
			}
			w.parse(t, h)
			if second := w.install(t, h.Name); second.Changes() || !cmp.Equal(once, w.files(t)) {
				t.Errorf("the second time: %s", second.Diff())
			}
			w.uninstall(t, h.Name)
			if diff := cmp.Diff(before, w.files(t)); diff != "" {
				t.Errorf("others %v: after all (-before +after)\n%s", others, diff)
			}
			if again := w.uninstall(t, h.Name); again.Changes() {
				t.Error("uninstalled twice")
			}
			if left, _ := os.ReadDir(recordDir(h.Name, w.o)); len(left) > 0 {
				t.Errorf("the backup stays: %v", left)
			}
		}
	})
}

// parse checks that the host can read what was installed, and that every line is ours.
func (w world) parse(t *testing.T, h hostconf.Host) {
	t.Helper()
	lines := map[string]int{}
	dialect := hosts.Lookup(h.Name)
	for _, target := range h.In(w.o.Scope) {
		paths, err := places(target, w.o)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			for _, l := range linesOf(t, target, path) {
				c, err := ParseLine(l.command)
				if err != nil {
					t.Fatal(err)
				}
				want, err := Line(c, dialect, l.event)
				if err != nil || want != l.command {
					t.Errorf("%s: the line for %s is another: %v", path, l.event, err)
				}
				lines[path+" "+l.event]++
			}
			if target.Shape == hostconf.Bridge {
				continue
			}
			for _, e := range target.Events {
				if n := lines[path+" "+e.Name]; n != 1 {
					t.Errorf("%s: %d lines for %s", path, n, e.Name)
				}
			}
		}
	}
}

type found struct{ event, command string }

func linesOf(t *testing.T, target hostconf.Target, path string) (out []found) {
	t.Helper()
	read := func(path string) []byte {
		s, err := confedit.Read(path)
		if err != nil || !s.Exists {
			t.Fatalf("%s: %v", path, err)
		}
		return s.Data
	}
	switch target.Shape {
	case hostconf.Bridge:
		name := bridge.FileName("opencode")
		if strings.Contains(path, ".pi/") {
			name = bridge.FileName("pi")
		}
		if _, err := bridge.Read(read(filepath.Join(path, name))); err != nil {
			t.Error(err)
		}
	case hostconf.Scripts:
		for _, e := range target.Events {
			info, err := os.Stat(filepath.Join(path, e.Name))
			if err != nil || info.Mode() != 0o755 {
				t.Errorf("%s: %v, %v", e.Name, info, err)
			}
			_, line, _ := strings.Cut(string(read(filepath.Join(path, e.Name))), "\n")
			out = append(out, found{e.Name, strings.TrimSuffix(line, "\n")})
		}
	case hostconf.Tables:
		d, err := confedit.ParseTOML(read(path), path)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range d.Blocks("hooks") {
			if IsLine(b.Values["command"]) {
				out = append(out, found{b.Values["event"], b.Values["command"]})
			}
		}
	default:
		d, err := confedit.ParseJSON(read(path), confedit.JSONOptions{Name: path, Comments: target.Format == hostconf.JSONC})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range d.List(listPattern(target.Shape)...) {
			if o, is := readOurs(target.Shape, f.Path, f.JSON); is {
				out = append(out, found{o.event, o.commands[0]})
			}
		}
	}
	return out
}

// The table of places and the adapters speak of the same events.
func TestEventsAreThoseOfTheAdapters(t *testing.T) {
	t.Parallel()
	for _, h := range hostconf.All() {
		dialect := hosts.Lookup(h.Name)
		if dialect == nil {
			t.Errorf("%s has no adapter", h.Name)
			continue
		}
		registered := map[string]bool{}
		for _, target := range h.Targets {
			for _, e := range target.Events {
				registered[e.Name] = true
				row := dialect.Row(e.Name)
				if row == nil {
					t.Errorf("%s: the adapter does not know %s", h.Name, e.Name)
				} else if row.Denies() != e.Gate {
					t.Errorf("%s: %s is a gate: %v here, %v for the adapter", h.Name, e.Name, e.Gate, row.Denies())
				}
			}
		}
		for _, row := range dialect.Rows {
			// Copilot serves the names of Claude Code too, whose files it reads.
			if guest := h.Name == "copilot" && row.Native[0] < 'a'; !guest && !registered[row.Native] && h.Unregistered[row.Native] == "" {
				t.Errorf("%s: %s is not registered", h.Name, row.Native)
			}
		}
	}
}

// The same command stands in every scope, for hosts that run an identical one once.
func TestSameLineInEveryScope(t *testing.T) {
	t.Parallel()
	for _, h := range hostconf.All() {
		seen := map[string]string{}
		for _, s := range hostconf.Scopes() {
			w := newWorld(t, s)
			for _, target := range h.In(s) {
				if target.Existing || target.Shape == hostconf.Bridge {
					continue
				}
				w.install(t, h.Name)
				for _, l := range linesOf(t, target, w.o.Roots.Path(target.File)) {
					if was, is := seen[l.event]; is && was != l.command {
						t.Errorf("%s %s: %s, elsewhere %s", h.Name, l.event, l.command, was)
					}
					seen[l.event] = l.command
				}
			}
		}
	}
}

// A file that does not parse is refused and left alone, in each format.
func TestMalformedIsLeftAlone(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, h hostconf.Host, w world) {
		target := h.In(w.o.Scope)[0]
		if target.Shape == hostconf.Scripts || target.Shape == hostconf.Bridge {
			return
		}
		path := w.o.Roots.Path(target.File)
		w.write(t, path, "{\n  \"a\" = [1,\n")
		before := w.files(t)
		_, err := Install(h, hosts.Lookup(h.Name), w.o)
		if !errors.As(err, new(*confedit.Error)) || !strings.Contains(err.Error(), path+":") {
			t.Errorf("%v", err)
		}
		if _, err := Uninstall(h, w.o); !errors.As(err, new(*confedit.Error)) {
			t.Errorf("uninstall: %v", err)
		}
		if diff := cmp.Diff(before, w.files(t)); diff != "" {
			t.Error(diff)
		}
	})
}

// Somebody changes the file after us: our entries go, the rest stays.
func TestUninstallAfterOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, hostconf.User)
	path := filepath.Join(w.o.Roots.Home, ".claude/settings.json")
	w.write(t, path, "{\n  \"model\": \"a\"\n}\n")
	w.install(t, "claude-code")
	text := strings.Replace(read(t, path), `"model": "a"`, `"model": "b"`, 1)
	text = strings.Replace(text, "\"Stop\": [\n", "\"Stop\": [\n      {\n        \"hooks\": [{\"type\": \"command\", \"command\": \"theirs\"}]\n      },\n", 1)
	w.write(t, path, text)
	changed := text
	for _, again := range []bool{false, true} {
		w.write(t, path, changed)
		if again {
			w.install(t, "claude-code")
		}
		w.uninstall(t, "claude-code")
		want := "{\n  \"model\": \"b\",\n  \"hooks\": {\n    \"Stop\": [\n      {\n        \"hooks\": [{\"type\": \"command\", \"command\": \"theirs\"}]\n      }\n    ]\n  }\n}\n"
		if diff := cmp.Diff(want, read(t, path)); diff != "" {
			t.Errorf("again %v: (-want +got)\n%s", again, diff)
		}
	}
}

// A second installation with other parameters takes the place of the first, and what
// was before the first is what comes back.
func TestInstallOver(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, h hostconf.Host, w world) {
		before := w.files(t)
		w.install(t, h.Name)
		w.o.Call.Registration, w.o.Call.OnMissing = "/opt/other.json", Allow
		w.install(t, h.Name)
		for path, text := range w.files(t) {
			if strings.Contains(text, "/opt/r.json") || strings.Contains(text, "onFailure") {
				t.Errorf("%s keeps the first installation", path)
			}
		}
		w.parse(t, h)
		w.uninstall(t, h.Name)
		if diff := cmp.Diff(before, w.files(t)); diff != "" {
			t.Errorf("(-before +after)\n%s", diff)
		}
	})
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
