package install

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/internal/hostconf"
	"github.com/abhed/abhed/internal/install/bridge"
	"github.com/abhed/abhed/internal/require"
)

// TestPathsThatShellsEat holds that every shell starts the program that was named, with
// the arguments that were meant: a path with backslashes (I055), and a path and an
// argument that both have to be quoted (I056). Forms for cmd and PowerShell there are
// none, as AHP doesn't install on Windows. The siblings are quotes in quotes, and what
// shells expand.
func TestPathsThatShellsEat(t *testing.T) {
	t.Parallel()
	inShells(t, func(t *testing.T, shells map[string]shell) {
		for _, c := range []struct{ binary, argument string }{
			{`C:\Programs\me\x.exe`, `C:\Programs\me\r.json`},
			{`C:\new\table\x.exe`, `\\server\share\r.json`},
			{`Program Files/x y.exe`, `with a space/r.json`},
			{`it's "quoted"/x`, `say "it's" here/'r'.json`},
			{`-n/--/x`, `-e`},
			{"$HOME ${e} $(id) `id`/x", "!! ~ * ? [a] {b,c} # & | ; < >"},
			{`ends in a backslash\/x\`, `r\`},
		} {
			dir := t.TempDir()
			binary := executable(t, filepath.Join(dir, c.binary), "#!/bin/sh\n"+`cat >/dev/null; printf '<%s>\n' "$0" "$@"; exit 41`+"\n")
			call := Call{Binary: binary, Host: "codex", Event: "PreToolUse", Registration: filepath.Join(dir, c.argument), OnMissing: Deny, LimitMS: 60000}
			if strings.HasPrefix(c.argument, "-") {
				call.Registration = c.argument // as the value of an option
			}
			line, err := Line(call, dialect(adapter.Delivery{Exit: 2, Stream: adapter.Stderr}), "PreToolUse")
			if err != nil {
				t.Fatal(err)
			}
			want := "<" + strings.Join([]string{binary, "hook", "codex", "--event", "PreToolUse", "--registration", call.Registration, "--on-missing", "deny", "--limit", "60000"}, ">\n<") + ">\n"
			for name, start := range shells {
				if got := start(t, line, "{}"); got != (answer{want, "", 0}) {
					t.Errorf("%s: %+v, expected %q of %s", name, got, want, line)
				}
			}
		}
	})
}

// TestProjectsThatShellsRead installs into projects whose names mean something to a shell
// and starts what was installed as the hosts do: the program is the right one, in the
// right folder, and nothing of the name is expanded or run (I057). The siblings are other
// such names, without a backslash, as Node imports nothing from a path that has one.
func TestProjectsThatShellsRead(t *testing.T) {
	t.Parallel()
	for _, name := range []string{`a b/c'd$e;f`, "$(f)`f`&f|f", `"f" &f`, "~*?[f]{f,e}", "-f #f"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, hostconf.Project)
			w.o.Roots.Project = filepath.Join(w.dir, name)
			bin, log := filepath.Join(w.dir, "bin"), filepath.Join(w.dir, "log")
			// Whatever of the name is taken for a command, it is this one.
			executable(t, filepath.Join(bin, "f"), "#!/bin/sh\necho ran f >>"+shellQuote(log)+"\n")
			w.o.Call.Binary = executable(t, filepath.Join(w.dir, "programs", name, "ahp"),
				"#!/bin/sh\ncat >/dev/null\n"+`{ pwd; printf '<%s>' "$0" "$@"; } >>`+shellQuote(log)+"\nexit 40\n")
			w.o.Call.Registration = filepath.Join(w.o.Roots.Project, ".ahp", "registration.json")
			if err := os.MkdirAll(w.o.Roots.Project, 0o755); err != nil {
				t.Fatal(err)
			}
			for _, host := range []string{"claude-code", "cline", "opencode"} {
				if err := os.WriteFile(log, nil, 0o644); err != nil {
					t.Fatal(err)
				}
				w.install(t, host)
				cmd := w.starts(t, host)
				cmd.Dir, cmd.Env = w.o.Roots.Project, append(os.Environ(), "e=EXPANDED", "PWD="+w.o.Roots.Project, "PATH="+bin+":"+os.Getenv("PATH"))
				got := run(t, cmd, "{}")
				call := w.o.Call
				call.Host, call.LimitMS = host, hostconf.LimitMS
				want := w.o.Roots.Project + "\n<" + strings.Join(append([]string{call.Binary}, call.Args()...), "><") + ">"
				logged := read(t, log)
				if event := "<--event><PreToolUse>"; host == "cline" {
					logged = strings.Replace(logged, event, "", 1)
				}
				if logged != want || got.code != 0 || strings.Contains(got.stdout, "refused") {
					t.Errorf("%s: %+v\nstarted  %s\nexpected %s", host, got, logged, want)
				}
			}
		})
	}
}

// starts returns how a host starts what was installed in w's project before a tool runs.
func (w world) starts(t *testing.T, host string) *exec.Cmd {
	t.Helper()
	h, _ := hostconf.Lookup(host)
	target := h.In(hostconf.Project)[0]
	path := w.o.Roots.Path(target.File)
	switch target.Shape {
	case hostconf.Scripts:
		return exec.Command(filepath.Join(path, "PreToolUse"))
	case hostconf.Bridge:
		return exec.Command(require.Path(t, "node"), "--input-type=module", "-e", `
			import { pathToFileURL } from "node:url"
			const { AhpBridge } = await import(pathToFileURL(process.argv[1]))
			const hooks = await AhpBridge({ directory: process.cwd(), worktree: process.cwd() })
			try { await hooks["tool.execute.before"]({ tool: "bash", sessionID: "s", callID: "c" }, { args: {} }) } catch (e) { console.log("refused: " + e.message) }`,
			filepath.Join(path, bridge.FileName("opencode")))
	}
	for _, l := range linesOf(t, target, path) {
		if l.event == "PreToolUse" {
			return exec.Command(require.Path(t, "sh"), "-c", l.command)
		}
	}
	t.Fatal(fmt.Sprint(host, " has no line before a tool"))
	return nil
}
