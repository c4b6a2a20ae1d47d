package install

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/internal/require"
)

// answer is what a host gets from a hook.
type answer struct {
	stdout, stderr string
	code           int
}

// shell runs a command line.
type shell func(t *testing.T, line, stdin string) answer

func program(args ...string) shell {
	return func(t *testing.T, line, stdin string) answer {
		t.Helper()
		cmd := exec.Command(args[0], append(args[1:], line)...)
		return run(t, cmd, stdin)
	}
}

// inShells runs f with the shells that a host may hand the line to. Those that a
// machine need not have are tried apart.
func inShells(t *testing.T, f func(t *testing.T, shells map[string]shell)) {
	t.Helper()
	t.Run("usual", func(t *testing.T) {
		t.Parallel()
		f(t, usualShells(t))
	})
	t.Run("busybox", func(t *testing.T) {
		t.Parallel()
		f(t, map[string]shell{"busybox": program(require.Path(t, "busybox"), "sh", "-c")})
	})
}

func usualShells(t *testing.T) map[string]shell {
	t.Helper()
	list := map[string]shell{
		"sh":       program(require.Path(t, "sh"), "-c"),
		"dash":     program(require.Path(t, "dash"), "-c"),
		"bash":     program(require.Path(t, "bash"), "-c"),
		"bash -eu": program(require.Path(t, "bash"), "-euo", "pipefail", "-c"),
	}
	if path, err := exec.LookPath("zsh"); err == nil {
		list["zsh"] = program(path, "-c")
	}
	return list
}

func run(t *testing.T, cmd *exec.Cmd, stdin string) answer {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return answer{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

// executable writes a program. A child writes it, so that no other child of this
// process holds it open for writing while it is started.
func executable(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(require.Path(t, "sh"), "-c", `cat >"$1" && chmod 755 "$1"`, "sh", path)
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// dialect is a host that refuses as d says; it needs no document.
func dialect(d adapter.Delivery) *adapter.Host {
	return &adapter.Host{
		Name: "claude-code", Deny: d,
		Rows: []adapter.Row{
			{Native: "PreToolUse", Type: "tool.before", Can: []adapter.Ability{{Effect: "deny", How: adapter.Native, Level: adapter.Enforced}}},
			{Native: "Stop", Type: "turn.end"},
		},
		Write: func(_ *adapter.Event, v *adapter.Verdict) ([]byte, error) {
			if v.Deny == "" {
				return nil, nil
			}
			return []byte("REFUSED: " + v.Deny + " it's %s \\n"), nil
		},
	}
}

const refused = `REFUSED: AHP could not check this call (the ahp program gave no answer), so it was refused. Run "ahp doctor claude-code" to find out why. it's %s \n` + "\n"

// stub answers as its first lines of standard input say, and proves that it got all
// of it: CODE, then the output, then the number of bytes.
const stub = `#!/bin/sh
read -r code
read -r text
rest=$(cat)
case $code in
kill) kill -9 $$;;
term) kill -15 $$;;
esac
if [ -n "$text" ]; then printf '%s' "$text"; fi
if [ "$rest" != "the rest $*" ]; then printf 'the input was changed: %s' "$rest"; exit 99; fi
printf '' >&2
exit "$code"
`

func TestLine(t *testing.T) {
	t.Parallel()
	inShells(t, testLine)
}

func testLine(t *testing.T, shells map[string]shell) {
	dir := filepath.Join(t.TempDir(), "a b'c$d;e\"f`g\\h%s*é")
	binary := executable(t, filepath.Join(dir, "ahp"), stub)
	on := func(d adapter.Delivery) (code int, out, errs string) {
		if d.Stream == adapter.Stdout {
			return d.Exit, refused, ""
		}
		return d.Exit, "", refused
	}
	const odd = `100% \n \\ "q" 'a' $HOME ; {"x":[1]}`
	for _, d := range []adapter.Delivery{{Exit: 2, Stream: adapter.Stderr}, {Exit: 0, Stream: adapter.Stdout}} {
		denyCode, denyOut, denyErr := on(d)
		missing := answer{denyOut, denyErr, denyCode}
		said := func(text string) answer {
			if d.Stream == adapter.Stdout {
				return answer{text + "\n", "", d.Exit}
			}
			return answer{"", text + "\n", d.Exit}
		}
		for _, c := range []struct {
			name, code, text string
			want             answer
		}{
			{"pass", "40", "", answer{}},
			{"pass with a document", "40", odd, answer{odd + "\n", "", 0}},
			{"deliver", "41", odd, answer{odd + "\n", "", 0}},
			{"deny", "42", odd, said(odd)},
			{"deliver nothing", "41", "", missing},
			{"deny without a reason", "42", "", missing},
			{"exit 0", "0", odd, missing},
			{"exit 1", "1", odd, missing},
			{"exit 2", "2", odd, missing},
			{"exit 43", "43", odd, missing},
			{"killed", "kill", odd, missing},
			{"ended", "term", odd, missing},
		} {
			check(t, shells, fmt.Sprintf("%s, deny by exit %d", c.name, d.Exit), Call{Binary: binary}, d, c.code, c.text, c.want)
		}
	}
}

func check(t *testing.T, shells map[string]shell, name string, call Call, d adapter.Delivery, code, text string, want answer) {
	t.Helper()
	call.Host, call.LimitMS = "claude-code", 60000
	call.Registration = "/r/a b/it's;$x.json"
	for _, policy := range []OnMissing{Deny, Allow} {
		call.OnMissing = policy
		for _, event := range []string{"PreToolUse", "Stop"} {
			line, err := Line(call, dialect(d), event)
			if err != nil {
				t.Fatal(err)
			}
			want := want
			if (policy == Allow || event == "Stop") && strings.HasPrefix(want.stdout+want.stderr, "REFUSED") {
				want = answer{} // nobody is refused
			}
			stdin := code + "\n" + text + "\nthe rest " + strings.Join(call.Args(), " ")
			for shell, start := range shells {
				if got := start(t, line, stdin); got != want {
					t.Errorf("%s, on-missing %s, %s, %s: %+v, want %+v\n%s", name, policy, event, shell, got, want, line)
				}
			}
		}
	}
}

// What there may be in the place of the program.
func TestLineWithoutProgram(t *testing.T) {
	t.Parallel()
	inShells(t, testLineWithoutProgram)
}

func testLineWithoutProgram(t *testing.T, shells map[string]shell) {
	dir := t.TempDir()
	place := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		executable(t, path, text)
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	dead := filepath.Join(dir, "dangling")
	if err := os.Symlink("nowhere", dead); err != nil {
		t.Fatal(err)
	}
	d := adapter.Delivery{Exit: 2, Stream: adapter.Stderr}
	for name, binary := range map[string]string{
		"missing":        filepath.Join(dir, "missing"),
		"dangling":       dead,
		"folder":         dir,
		"empty":          place("empty", "", 0o755),
		"not executable": place("plain", stub, 0o644),
		"no interpreter": place("interpreter", "#!/nowhere/x\nexit 40\n", 0o755),
		"garbage":        place("garbage", "\x7fELF\x00\x01garbage", 0o755),
	} {
		check(t, shells, name, Call{Binary: binary}, d, "40", "", answer{"", refused, 2})
	}
}

func TestLineRefusesPaths(t *testing.T) {
	for _, path := range []string{"/a\nb", "/a\rb", "/a\x00b", "/a\xffb"} {
		if line, err := Line(Call{Binary: path, Host: "x", OnMissing: Deny}, dialect(adapter.Delivery{}), "Stop"); err == nil {
			t.Errorf("%q: %s", path, line)
		}
	}
	if _, err := Line(Call{Binary: "/a"}, dialect(adapter.Delivery{}), "BeforeTool"); err == nil || !strings.Contains(err.Error(), "BeforeTool") {
		t.Errorf("an event of another host: %v", err)
	}
}

func TestParseLine(t *testing.T) {
	calls := []Call{
		{Binary: "/usr/local/bin/ahp", Host: "codex", OnMissing: Deny, LimitMS: 60000},
		{Binary: "/a b/it's \"x\" $y;) 2>&1\\/ahp", Host: "cline", Event: "PreToolUse", Registration: "/r )'", Home: "/h", OnMissing: Allow, LimitMS: 1, NoSelfProtect: true},
	}
	for _, c := range calls {
		line, err := Line(c, dialect(adapter.Delivery{Exit: 2, Stream: adapter.Stderr}), "PreToolUse")
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseLine(line)
		if diff := cmp.Diff(c, got); diff != "" || err != nil || !IsLine(line) {
			t.Errorf("%v (-want +got)\n%s\n%s", err, diff, line)
		}
	}
	for _, bad := range []string{"", "ahp hook codex", mark, mark + opening + "'/a", mark + opening + "'/a' hook x --limit ten 2>&1)", mark + opening + "ahp hook x 2>&1)", mark + opening + "'/a' hook x --extra y 2>&1)", mark + "{ o=$('/a' hook x --limit 1 2>&1)"} {
		if c, err := ParseLine(bad); err == nil {
			t.Errorf("%q: %+v", bad, c)
		}
	}
}

// Words come out of every shell as they went in.
func TestShellWords(t *testing.T) {
	t.Parallel()
	inShells(t, testShellWords)
}

func testShellWords(t *testing.T, shells map[string]shell) {
	for _, word := range []string{`C:\Programs\me\x.exe`, `C:\Program Files\x y.exe`, `/home/a b/c'd$e;f`, "`id`", "$(id)", "!x", "~", "*", "", "-n", `\`, "%s\\n", "é", "a\tb", "#x"} {
		command, err := shellWords([]string{"/usr/bin/printf", "<%s>", word, word})
		if err != nil {
			t.Fatal(err)
		}
		for shell, start := range shells {
			if got := start(t, command, ""); got.stdout != "<"+word+"><"+word+">" {
				t.Errorf("%s: %q came out as %q of %s", shell, word, got.stdout, command)
			}
		}
	}
}
