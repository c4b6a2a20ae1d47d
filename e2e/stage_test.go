package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/abhed/abhed/e2e/modelserver"
	"github.com/abhed/abhed/internal/require"
	"github.com/abhed/abhed/internal/strictjson"
)

// stage is what one run of an agent happens on: a home, a repository and a model
// that are thrown away.
type stage struct {
	t     testing.TB
	agent agent
	// bin is the folder of the agent's npm prefix, or of its program, agents that of all.
	bin, agents string
	// root holds all else: home, repo (the agent's working folder) and tmp.
	root, home, repo, tmp string
	// hook is the command that the agent's own configuration of hooks is to hold;
	// empty for none.
	hook string
	// onTurn, if not nil, is called before the model gives its answer of that index.
	onTurn func(turn int)
	// url is the model's, without a path; known once the run begins.
	url string
	env map[string]string
}

// result is what a run came to.
type result struct {
	// ran says that the tool call was carried out: that its file exists.
	ran bool
	// called says that the model was asked and told the agent to call the tool. A
	// run without that proves nothing.
	called bool
	// told are the tool results that the model was told.
	told     []string
	code     int
	timedOut bool
	took     time.Duration
	// out and stderr are the ends of what the agent printed.
	out, stderr string
	// refused are the requests that the model could not read.
	refused []string
	// left is how many processes the run left behind.
	left int
}

// Bounds of a run.
const (
	tail      = 1500             // bytes kept of what an agent prints
	afterKill = 10 * time.Second // until what was killed must be gone
)

// newStage prepares a stage for the agent. The test is skipped if the agent is
// not installed.
func newStage(t testing.TB, a agent) *stage {
	t.Helper()
	return stageIn(t, agentsDir(t, a), a)
}

// stageIn prepares a stage for an agent of the folder.
func stageIn(t testing.TB, agents string, a agent) *stage {
	t.Helper()
	git := require.Path(t, "git")
	// Not t.TempDir: a socket's path in the home has to be short, and what an agent
	// leaves behind must not fail the test.
	root, err := os.MkdirTemp("", "e2e-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() && *keep {
			t.Logf("kept: %s", root)
			return
		}
		if err := os.RemoveAll(root); err != nil {
			t.Log(err)
		}
	})
	s := &stage{t: t, agent: a, agents: agents, bin: filepath.Join(agents, a.name), root: root,
		home: filepath.Join(root, "home"), repo: filepath.Join(root, "repo"), tmp: filepath.Join(root, "tmp")}
	if a.variable != "" {
		s.bin = agents
	}
	for _, dir := range []string{s.home, s.repo, s.tmp} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s.env = map[string]string{
		"HOME": s.home, "TMPDIR": s.tmp, "PATH": os.Getenv("PATH"), "TERM": "dumb", "LANG": "C.UTF-8", "SHELL": "/bin/sh", "NO_COLOR": "1",
		"XDG_CONFIG_HOME": s.home + "/.config", "XDG_DATA_HOME": s.home + "/.local/share",
		"XDG_STATE_HOME": s.home + "/.local/state", "XDG_CACHE_HOME": s.home + "/.cache",
	}
	if a.node22 {
		s.env["PATH"] = filepath.Join(agents, "node22", "node_modules", ".bin") + ":" + s.env["PATH"]
	}
	init := exec.Command(git, "init", "-q", s.repo)
	init.Env = s.environ()
	if out, err := init.CombinedOutput(); err != nil {
		t.Fatalf("git init: %v\n%s", err, out)
	}
	return s
}

func (s *stage) environ() []string {
	out := []string{"ABHED_E2E=" + s.root + "/"}
	for name, value := range maps.All(s.env) {
		out = append(out, name+"="+value)
	}
	slices.Sort(out)
	return out
}

// write puts a file under the stage's root; a text as it is, all else as JSON.
func (s *stage) write(path string, content any) {
	s.t.Helper()
	data, is := content.(string)
	if !is {
		b, err := strictjson.Marshal(content)
		if err != nil {
			s.t.Fatal(err)
		}
		data = string(b)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(data), 0o700); err != nil {
		s.t.Fatal(err)
	}
}

// program returns the path of a program of the agent's npm prefix.
func (s *stage) program(path ...string) string {
	s.t.Helper()
	p := filepath.Join(append([]string{s.bin, "node_modules"}, path...)...)
	if _, err := os.Stat(p); err != nil {
		require.Missing(s.t, "agent-"+s.agent.host, err.Error())
	}
	return p
}

// play writes the agent's configuration, calls before (nil for nothing), and runs
// the agent until it ends or its time is over.
func (s *stage) play(before func() error) result {
	s.t.Helper()
	model, err := modelserver.New([]modelserver.Turn{{Calls: []modelserver.Call{s.agent.call}}, {Text: "All is done."}},
		modelserver.Options{MainTool: s.agent.call.Name, OnTurn: s.onTurn})
	if err != nil {
		s.t.Fatal(err)
	}
	var res result
	var failure error
	alone(func(network string) {
		// No t.Fatal in here: this is another goroutine.
		listener, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			failure = err
			return
		}
		s.url = "http://" + listener.Addr().String()
		server := &http.Server{Handler: model, ReadHeaderTimeout: time.Minute}
		served := make(chan error, 1)
		go func() { served <- server.Serve(listener) }()
		defer func() {
			server.Close()
			<-served
		}()
		argv := s.agent.prepare(s)
		if before != nil {
			if failure = before(); failure != nil {
				return
			}
		}
		for _, setup := range argv[:len(argv)-1] {
			if _, failure = s.run(setup, network); failure != nil {
				return
			}
		}
		res, failure = s.run(argv[len(argv)-1], network)
	})
	if failure != nil {
		s.t.Fatal(failure)
	}
	_, err = os.Stat(filepath.Join(s.repo, "marker.txt"))
	res.ran, res.called, res.told = err == nil, model.Called(), model.Told()
	for _, r := range model.Requests() {
		if r.Err != nil {
			res.refused = append(res.refused, r.Err.Error())
		}
	}
	return res
}

// run runs one command in the repository to its end and ends all that it started.
func (s *stage) run(argv []string, network string) (result, error) {
	out, err := os.Create(filepath.Join(s.root, "out"))
	if err != nil {
		return result{}, err
	}
	defer out.Close()
	stderr, err := os.Create(filepath.Join(s.root, "err"))
	if err != nil {
		return result{}, err
	}
	defer stderr.Close()
	ctx, cancel := context.WithTimeout(context.Background(), s.agent.limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = s.repo, s.environ(), out, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		return result{}, err
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) && ctx.Err() == nil {
		return result{}, err
	}
	res := result{code: cmd.ProcessState.ExitCode(), timedOut: ctx.Err() != nil, took: time.Since(begun)}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // nobody left is the good case
	if res.left, err = s.sweep(network); err != nil {
		return result{}, err
	}
	res.out, res.stderr = end(out), end(stderr)
	return res, nil
}

// sweep ends what a run left behind and returns how many processes there were.
func (s *stage) sweep(network string) (int, error) {
	all := map[int]bool{}
	for deadline := time.Now().Add(afterKill); ; time.Sleep(10 * time.Millisecond) {
		left := slices.DeleteFunc(strays(network, s.root), dead)
		if len(left) == 0 {
			return len(all), nil
		}
		if time.Now().After(deadline) {
			return len(all), fmt.Errorf("processes %v of %s do not die", left, s.agent.name)
		}
		for _, pid := range left {
			all[pid] = true
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended meanwhile
		}
	}
}

// dead says that a process only waits for its parent to notice its end.
func dead(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, found := strings.Cut(string(stat), ") ")
	return err != nil || found && strings.HasPrefix(state, "Z")
}

// end returns the last bytes of a file.
func end(f *os.File) string {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err.Error()
	}
	b := make([]byte, min(size, tail))
	if _, err := f.ReadAt(b, size-int64(len(b))); err != nil && err != io.EOF {
		return err.Error()
	}
	return string(b)
}

// String is what a failed test shows.
func (r result) String() string {
	return fmt.Sprintf("ran %t, called %t, told %q, exit %d, timed out %t, %s, %d processes left\nrefused: %s\nstdout: …%s\nstderr: …%s",
		r.ran, r.called, r.told, r.code, r.timedOut, r.took.Round(10*time.Millisecond), r.left, strings.Join(r.refused, "; "), r.out, r.stderr)
}
