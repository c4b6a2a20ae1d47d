// Package hooks measures "ahp hook" and its warm service, each beside a peer in the same
// run. Run it on a machine that does nothing else:
//
//	go test ./bench/hooks -run '^$' -bench . -benchtime 20x
//
// It guarantees that what is measured did its work: each answer is looked at. Do not
// assume that a figure holds elsewhere: the ratios to the peers do, roughly.
package hooks

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed/internal/hookline"
	"github.com/abhed/abhed/internal/require"
)

// TestMain makes the test binary the echo server that the service is compared with.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "echo" {
		l, err := net.Listen("unix", os.Args[2])
		if err != nil {
			panic(err)
		}
		panic(http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.Copy(w, r.Body); err != nil {
				panic(err)
			}
		})))
	}
	os.Exit(m.Run())
}

// world is a home with registrations, and the programs.
type world struct {
	home, ahp, hello, launcher string
	// rules is a registration of one rules backend that is this very program, spawned
	// one that is another file, so that it is started for each event, and small one that
	// starts a program which does nothing but answer.
	rules, spawned, small string
}

// build compiles a main package of this module, or a file, as releases are.
func build(tb testing.TB, what, name string) string {
	tb.Helper()
	out := filepath.Join(tb.TempDir(), name)
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", out, what)
	cmd.Dir, cmd.Env = require.Root(tb), append(os.Environ(), "CGO_ENABLED=0")
	if msg, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("go build %s: %v\n%s", what, err, msg)
	}
	return out
}

func write(tb testing.TB, file, text string) string {
	tb.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	return file
}

const helloSource = `package main

import "fmt"

func main() { fmt.Println("hello") }
`

// smallSource is the least backend that a person would write without a library.
const smallSource = `package main

import (
	"bufio"
	"fmt"
	"os"
	"regexp"
)

func main() {
	line, _ := bufio.NewReader(os.Stdin).ReadBytes('\n')
	id := regexp.MustCompile("\"id\":(\"[^\"]*\"|[0-9]+)").FindSubmatch(line)
	fmt.Printf("{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"protocolVersion\":\"draft\",\"effects\":[]}}\n", id[1])
}
`

// launcherSource starts a program and prints the peak of its resident memory in KiB. The
// peak that a process is told for a child is at least that of its own, so this has to be
// a small one.
const launcherSource = `package main

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

func main() {
	c := exec.Command(os.Args[1], os.Args[2:]...)
	c.Stdin = os.Stdin
	_ = c.Run()
	fmt.Println(c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)
}
`

func newWorld(tb testing.TB) *world {
	tb.Helper()
	dir := tb.TempDir()
	w := &world{home: filepath.Join(dir, "home"), ahp: build(tb, "./cmd/ahp", "ahp"), hello: build(tb, write(tb, filepath.Join(dir, "hello.go"), helloSource), "hello")}
	w.launcher = build(tb, write(tb, filepath.Join(dir, "launcher.go"), launcherSource), "launcher")
	if err := os.Mkdir(w.home, 0o700); err != nil {
		tb.Fatal(err)
	}
	file := write(tb, filepath.Join(dir, "rules.json"), `{"rules":{"deny":["bash(git push*)"],"ask":["bash(git commit*)"]}}`)
	other := filepath.Join(dir, "other")
	program, err := os.ReadFile(w.ahp)
	if err == nil {
		err = os.WriteFile(other, program, 0o700)
	}
	if err != nil {
		tb.Fatal(err)
	}
	args := fmt.Sprintf(`["backend","rules","--rules",%q]`, file)
	w.rules = w.register(tb, dir, "rules", w.ahp, args)
	w.spawned = w.register(tb, dir, "spawned", other, args)
	w.small = w.register(tb, dir, "small", build(tb, write(tb, filepath.Join(dir, "small.go"), smallSource), "small"), `[]`)
	return w
}

func (w *world) register(tb testing.TB, dir, name, command, args string) string {
	return write(tb, filepath.Join(dir, name+".registration.json"), fmt.Sprintf(`{"protocolVersion":"draft","hooks":[{"id":"org.example.%s",
"transport":{"type":"stdio","command":%q,"args":%s,"lifecycle":"per_event"},
"subscriptions":[{"events":["tool.before"],"mode":"intercept","timeoutMs":5000,"failurePolicy":"fail-closed","content":{"default":"body"}}]}]}
`, name, command, args))
}

// event is a native event of about size bytes, the nth of its session.
func event(command string, n, size int) []byte {
	e := fmt.Sprintf(`{"session_id":"00893aaf-19fa-41d2-8238-13269b9b3ca0","transcript_path":"/home/ada/.claude/projects/x/00893aaf.jsonl","cwd":"/tmp","permission_mode":"default",`+
		`"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":%q,"description":"%%s"},"tool_use_id":"toolu_%d"}`, command, n)
	return []byte(strings.Replace(e, "%s", strings.Repeat("x", max(size-len(e), 0)), 1))
}

// hook returns the command line of a hook.
func (w *world) hook(registration string, more ...string) []string {
	return append([]string{w.ahp, "hook", "claude-code", "--home", w.home, "--registration", registration}, more...)
}

// serve starts the service, and ends it with the test.
func (w *world) serve(tb testing.TB) *exec.Cmd {
	tb.Helper()
	cmd := exec.Command(w.ahp, "daemon", "run", "--home", w.home)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	awaitSocket(tb, w.socket(), &errs)
	return cmd
}

func (w *world) socket() string { return hookline.Socket(filepath.Join(w.home, ".local/state/ahp")) }

// awaitSocket returns once somebody listens.
func awaitSocket(tb testing.TB, path string, said fmt.Stringer) {
	tb.Helper()
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		c, err := net.Dial("unix", path)
		if err == nil {
			c.Close()
			return
		}
		if time.Now().After(until) {
			tb.Fatalf("nobody listens at %s: %v\n%s", path, err, said)
		}
	}
}
