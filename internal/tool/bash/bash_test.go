package bash_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/abhed/abhed/internal/require"
	"github.com/abhed/abhed/internal/sandbox"
	"github.com/abhed/abhed/internal/tool"
	"github.com/abhed/abhed/internal/tool/bash"
	"github.com/abhed/abhed/internal/tool/tooltest"
)

func TestMain(m *testing.M) {
	noPlan = nonePlan() // before any test, since it takes PATH away for a moment
	goleak.VerifyTestMain(m)
}

// noPlan is the plan that confines nothing.
var noPlan sandbox.Plan

// nonePlan makes it, by detecting where no program is.
func nonePlan() sandbox.Plan {
	path := os.Getenv("PATH")
	os.Setenv("PATH", "")
	defer os.Setenv("PATH", path)
	p, err := sandbox.Detect(context.Background(), sandbox.Memory{}).Plan(sandbox.TierNone)
	if err != nil {
		panic(err)
	}
	return p
}

type m = map[string]any

func plan(t testing.TB, tier sandbox.Tier) sandbox.Plan {
	t.Helper()
	if tier == sandbox.TierNone {
		return noPlan
	}
	require.Path(t, "bwrap")
	p, err := sandbox.Detect(context.Background(), sandbox.Memory{}).Plan(tier)
	if err != nil {
		require.Missing(t, "bwrap", err.Error())
	}
	return p
}

// both runs a test in tier none and in tier process.
func both(t *testing.T, test func(t *testing.T, p sandbox.Plan)) {
	for _, tier := range []sandbox.Tier{sandbox.TierNone, sandbox.TierProcess} {
		t.Run(tier.String(), func(t *testing.T) { test(t, plan(t, tier)) })
	}
}

func run(t testing.TB, p sandbox.Plan, o bash.Options, dir string, args m) tool.Result {
	t.Helper()
	return runCtx(t.Context(), t, p, o, tooltest.Options{WorkDir: dir}, args)
}

func runCtx(ctx context.Context, t testing.TB, p sandbox.Plan, o bash.Options, to tooltest.Options, args m) tool.Result {
	t.Helper()
	it, err := bash.New(p, o)
	if err != nil {
		t.Fatal(err)
	}
	return tooltest.Run(ctx, t, it, to, args)
}

func realDir(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestOutputAndExit(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, p sandbox.Plan) {
		dir := realDir(t)
		for _, tt := range []struct{ command, want string }{
			{`echo hi`, "hi\n"},
			{`printf 'no newline'`, "no newline\n"},
			{`true`, "(no output; exit code 0)\n"},
			{`echo out; echo err >&2; exit 3`, "out\nerr\n(exit code 3)\n"},
			{`false | true`, "(no output; exit code 0)\n"},
			{`sh -c 'kill -SEGV $$' & wait $! 2>/dev/null`, "(exit code 139, as after SIGSEGV)\n"},
			{`read x || echo "no input"`, "no input\n"},
			{`(read x </dev/tty) 2>/dev/null || echo "no terminal"`, "no terminal\n"},
			{`if`, "bash: eval: line 2: syntax error: unexpected end of file\n(exit code 2)\n"},
			{"cat <<E\na $((1+1))\nE", "a 2\n"},
			{`echo x >&3`, "bash: line 1: 3: Bad file descriptor\n(exit code 1)\n"},
			{`set -x; true; set +x; set -eu; echo done`, "++ true\n++ set +x\ndone\n"},
			{`set -x; true`, "++ true\n"},
			{`echo "$0" "$#"`, "bash 1\n"},
			{`printf '\xff\xfe\x00ok\xed\xa0\x80'`, `\xff\xfe\x00ok\xed\xa0\x80` + "\n"},
		} {
			res := run(t, p, bash.Options{}, dir, m{"command": tt.command})
			if res.Content != tt.want || res.IsError != strings.Contains(tt.want, "(exit code") {
				t.Errorf("%s: %q (error %v), want %q", tt.command, res.Content, res.IsError, tt.want)
			}
		}
	})
}

func TestShellKilled(t *testing.T) {
	t.Parallel()
	dir := realDir(t)
	if res := run(t, plan(t, sandbox.TierNone), bash.Options{}, dir, m{"command": `echo a; kill -9 $$`}); res.Content != "a\n(killed by SIGKILL)\n" || !res.IsError {
		t.Errorf("%q", res.Content)
	}
	if res := run(t, plan(t, sandbox.TierProcess), bash.Options{}, dir, m{"command": `echo a; kill -9 $$`}); res.Content != "a\n(exit code 137, as after SIGKILL)\n" {
		t.Errorf("%q", res.Content)
	}
}

func TestWorkingDirectory(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, p sandbox.Plan) {
		dir := realDir(t)
		os.Mkdir(dir+"/sub dir", 0o755)
		for _, tt := range []struct{ command, want string }{
			{`cd "sub dir"`, dir + "/sub dir"},
			{`cd "sub dir"; exit 4`, dir + "/sub dir"},
			{`cd "sub dir"; set -e; false`, dir + "/sub dir"},
			{`trap 'echo mine' EXIT; cd "sub dir"`, dir + "/sub dir"},
			{`f() { cd "sub dir"; return 3; }; f`, dir + "/sub dir"},
			{`(cd "sub dir")`, ""},
			{`cd /usr`, "/usr"},
			{`printf '/etc\0\0'; printf '/etc\0\0' >&2`, ""},
			{`exec true`, ""},
			{`cd "sub dir"; cd ..`, ""},
			{`pwd() { echo /etc; }; cd /usr`, "/usr"},
		} {
			res := run(t, p, bash.Options{}, dir, m{"command": tt.command})
			if res.WorkDir != tt.want {
				t.Errorf("%s: %q, want %q (%q)", tt.command, res.WorkDir, tt.want, res.Content)
			}
		}
		if res := run(t, p, bash.Options{}, dir, m{"command": `mkdir gone; cd gone; rmdir ../gone`}); res.WorkDir != "" || res.IsError {
			t.Errorf("a removed folder: %+v", res)
		}
		if res := run(t, p, bash.Options{}, dir+"/none", m{"command": `true`}); !res.IsError || !strings.Contains(res.Content, "none") {
			t.Errorf("in a missing folder: %q", res.Content)
		}
	})
}

func TestTemporaryFolderAsWorkingDirectory(t *testing.T) {
	t.Parallel()
	p, dir := plan(t, sandbox.TierProcess), realDir(t)
	res := run(t, p, bash.Options{}, dir, m{"command": `mkdir /tmp/abhed-x; cd /tmp/abhed-x`})
	if res.WorkDir != "" || !strings.Contains(res.Content, "stays "+dir) {
		t.Errorf("private /tmp: %+v", res)
	}
	o := bash.Options{Policy: sandbox.Policy{TmpDir: realDir(t)}}
	res = run(t, p, o, dir, m{"command": `mkdir /tmp/abhed-x; cd /tmp/abhed-x`})
	if res.WorkDir != o.Policy.TmpDir+"/abhed-x" {
		t.Fatalf("kept folder: %+v", res)
	}
	to := tooltest.Options{WorkDir: res.WorkDir, Root: dir}
	if res := runCtx(t.Context(), t, p, o, to, m{"command": "pwd"}); res.Content != to.WorkDir+"\n" {
		t.Errorf("the next command: %+v", res)
	}
}

func ends(t *testing.T, marker string) {
	t.Helper()
	for end := time.Now().Add(3 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if exec.Command("pgrep", "-f", "sleep "+marker).Run() != nil {
			return
		}
		if time.Now().After(end) {
			exec.Command("pkill", "-9", "-f", "sleep "+marker).Run()
			t.Fatalf("sleep %s lives on", marker)
		}
	}
}

func TestBackgroundDoesNotHoldTheCall(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, p sandbox.Plan) {
		marker := fmt.Sprintf("%d.125", 300000+os.Getpid())
		for _, command := range []string{
			`sleep ` + marker + ` & echo ok`,
			`setsid sleep ` + marker + ` & echo ok`,
			`(setsid sleep ` + marker + ` &) ; sleep 0.1; echo ok`,
			`sleep ` + marker + ` >/dev/null 2>&1 & echo ok`,
			`(while :; do sleep ` + marker + ` & echo x; sleep 0.02; done) & echo ok; sleep 0.1`,
		} {
			begin := time.Now()
			res := run(t, p, bash.Options{}, realDir(t), m{"command": command})
			if took := time.Since(begin); took > 3*time.Second {
				t.Errorf("%s took %v", command, took)
			}
			if res.IsError || !strings.Contains(res.Content, "ok\n") {
				t.Errorf("%s: %q", command, res.Content)
			}
			if !strings.Contains(res.Content, "still running in the background") && !strings.Contains(command, "&) ;") {
				t.Errorf("%s: nothing is said of the background: %q", command, res.Content)
			}
			ends(t, marker)
		}
	})
}

func TestTimeLimit(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, p sandbox.Plan) {
		marker := fmt.Sprintf("%d.375", 400000+os.Getpid())
		for _, command := range []string{
			`echo begin; sleep ` + marker,
			`trap "" TERM; echo begin; while :; do sleep ` + marker + `; done`,
			`echo begin; setsid sh -c 'trap "" TERM; sleep ` + marker + `' & wait`,
			`echo begin; exec >&- 2>&-; sleep ` + marker,
			`echo begin; yes >/dev/null & sleep ` + marker,
		} {
			begin := time.Now()
			res := run(t, p, bash.Options{Grace: 200 * time.Millisecond}, realDir(t), m{"command": command, "timeout_ms": 300})
			if took := time.Since(begin); took > 4*time.Second {
				t.Errorf("%s took %v", command, took)
			}
			if !res.IsError || !res.TimedOut || res.Content != "begin\n(timed out after 300ms: the command and everything it started were ended)\n" {
				t.Errorf("%s: %+v", command, res)
			}
			ends(t, marker)
		}
	})
	res := run(t, plan(t, sandbox.TierNone), bash.Options{Timeout: 200 * time.Millisecond}, realDir(t), m{"command": "sleep 60"})
	if !res.TimedOut {
		t.Errorf("no limit without timeout_ms: %+v", res)
	}
}

func TestTermIsHandled(t *testing.T) {
	t.Parallel()
	res := run(t, plan(t, sandbox.TierNone), bash.Options{Grace: 5 * time.Second}, realDir(t),
		m{"command": `trap 'echo cleaned; exit 0' TERM; echo x; while :; do sleep 0.01; done`, "timeout_ms": 300})
	if !res.TimedOut || !strings.Contains(res.Content, "\ncleaned\n") {
		t.Errorf("%+v", res)
	}
}

func TestLargeOutput(t *testing.T) {
	t.Parallel()
	p, dir, full := plan(t, sandbox.TierNone), realDir(t), realDir(t)
	o := bash.Options{OutputDir: opened(t, full)}
	res := run(t, p, o, dir, m{"command": `for i in $(seq 1 20000); do echo "line $i"; done`})
	if len(res.Content) > 34<<10 || !strings.HasPrefix(res.Content, "line 1\nline 2\n") || !strings.Contains(res.Content, "\nline 20000\n(the full output of 208894 bytes is in "+full) {
		t.Errorf("%d bytes: %.40q … %q", len(res.Content), res.Content, res.Content[len(res.Content)-200:])
	}
	files, _ := filepath.Glob(full + "/*")
	if len(files) != 1 {
		t.Fatalf("files %q", files)
	}
	if data, err := os.ReadFile(files[0]); err != nil || len(data) != 208894 || !strings.Contains(string(data), "line 10000\n") {
		t.Errorf("the file holds %d bytes, %v", len(data), err)
	}
	run(t, p, o, dir, m{"command": `echo short`})
	if files, _ := filepath.Glob(full + "/*"); len(files) != 1 {
		t.Errorf("a short output left a file: %q", files)
	}
}

func TestLiveOutputIsClean(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var all strings.Builder
	to := tooltest.Options{WorkDir: realDir(t), Output: func(s string) {
		mu.Lock()
		defer mu.Unlock()
		all.WriteString(s)
	}}
	res := runCtx(t.Context(), t, plan(t, sandbox.TierNone), bash.Options{}, to, m{"command": `printf '\033[?1003h\033[31mred\033[0m\033]52;c;AAAA\007 \377\n'`})
	if want := "red \\xff\n"; res.Content != want || all.String() != want {
		t.Errorf("result %q, live %q", res.Content, all.String())
	}
}

func TestSandboxHolds(t *testing.T) {
	t.Parallel()
	p, dir, outside := plan(t, sandbox.TierProcess), realDir(t), realDir(t)
	res := run(t, p, bash.Options{}, dir, m{"command": "echo x > in && echo x > " + outside + "/out"})
	if !res.IsError || strings.Contains(res.Content, "could not be set up") {
		t.Errorf("%+v", res)
	}
	if _, err := os.Stat(dir + "/in"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(outside + "/out"); err == nil {
		t.Error("it wrote outside the workspace")
	}
}

func TestEnvironmentIsSmall(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-secret")
	both(t, func(t *testing.T, p sandbox.Plan) {
		res := run(t, p, bash.Options{}, realDir(t), m{"command": "env; cat /proc/self/environ | tr '\\0' '\\n'"})
		if strings.Contains(res.Content, "sk-secret") || !strings.Contains(res.Content, "TERM=dumb") {
			t.Errorf("%q", res.Content)
		}
	})
}

func TestRefuses(t *testing.T) {
	it, err := bash.New(noPlan, bash.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, raw := range []string{`{}`, `{"command":""}`, `{"command":"x","timeout_ms":0}`, `{"command":"x","timeout_ms":600001}`, `{"command":"x","background":true}`, `{"command":["x"]}`} {
		if tooltest.Check(t, it, raw) == nil {
			t.Errorf("%s was accepted", raw)
		}
	}
	for _, command := range []string{strings.Repeat("x", 101<<10), "a\x00b"} {
		if res := run(t, noPlan, bash.Options{}, realDir(t), m{"command": command}); !res.IsError {
			t.Errorf("%.20q: %q", command, res.Content)
		}
	}
}

func TestWithoutBash(t *testing.T) {
	sh := require.Path(t, "sh")
	p, bin := noPlan, realDir(t)
	for _, name := range []string{"sh", "sleep"} {
		path, _ := exec.LookPath(name)
		if name == "sh" {
			path = sh
		}
		if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin)
	it, err := bash.New(p, bash.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(it.Spec().Description, "bash is not installed") {
		t.Error("the description doesn't say that bash is missing")
	}
	dir := realDir(t)
	res := tooltest.Run(t.Context(), t, it, tooltest.Options{WorkDir: dir}, m{"command": "cd /usr; sleep 300 & echo ok; exit 3"})
	if res.WorkDir != "/usr" || !strings.HasPrefix(res.Content, "ok\n(exit code 3)\n") {
		t.Errorf("%+v", res)
	}
	t.Setenv("PATH", realDir(t))
	if _, err := bash.New(p, bash.Options{}); err == nil {
		t.Error("no shell at all was no error")
	}
}

// opened opens a folder.
func opened(t *testing.T, dir string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

// TestOutputStaysInItsFolder lets a command put a link in the place of the folder in
// which the outputs of later ones are kept.
func TestOutputStaysInItsFolder(t *testing.T) {
	dir := realDir(t)
	full, other := filepath.Join(dir, "full"), filepath.Join(dir, "other")
	for _, d := range []string{full, other} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	o := bash.Options{OutputDir: opened(t, full), Head: 100, Tail: 100}
	run(t, noPlan, o, dir, m{"command": "mv full away; ln -s other full"})
	res := run(t, noPlan, o, dir, m{"command": "seq 10000"})
	if entries, err := os.ReadDir(other); err != nil || len(entries) != 0 {
		t.Errorf("the output is in the folder that the link leads to: %v, %v", entries, err)
	}
	if entries, err := os.ReadDir(filepath.Join(dir, "away")); err != nil || len(entries) != 1 || !strings.Contains(res.Content, entries[0].Name()) {
		t.Errorf("the output is not kept: %v, %v: %s", entries, err, res.Content)
	}
}
