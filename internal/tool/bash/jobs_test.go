package bash_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abhed/abhed/internal/sandbox"
	"github.com/abhed/abhed/internal/tool"
	"github.com/abhed/abhed/internal/tool/bash"
	"github.com/abhed/abhed/internal/tool/tooltest"
)

// session is a bash tool and its jobs.
type session struct {
	t    *testing.T
	jobs *bash.Jobs
	bash *bash.Tool
	look *bash.JobsTool
	dir  string
}

func begin(t *testing.T, p sandbox.Plan, jo bash.JobsOptions, o bash.Options) *session {
	t.Helper()
	o.Jobs = bash.NewJobs(jo)
	it, err := bash.New(p, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := o.Jobs.Close(); err != nil {
			t.Error(err)
		}
	})
	return &session{t, o.Jobs, it, bash.NewJobsTool(o.Jobs), realDir(t)}
}

func (s *session) start(command string) tool.Result {
	s.t.Helper()
	return tooltest.Run(s.t.Context(), s.t, s.bash, tooltest.Options{WorkDir: s.dir}, m{"command": command, "background": true})
}

func (s *session) do(args m) tool.Result {
	s.t.Helper()
	return tooltest.Run(s.t.Context(), s.t, s.look, tooltest.Options{WorkDir: s.dir}, args)
}

// read reads a job until its output holds want.
func (s *session) read(id, want string) string {
	s.t.Helper()
	all := ""
	for end := time.Now().Add(20 * time.Second); ; {
		res := s.do(m{"action": "read", "id": id, "wait_ms": 5000})
		if all += res.Content; strings.Contains(all, want) {
			return all
		}
		if time.Now().After(end) {
			s.t.Fatalf("%s never said %q: %q", id, want, all)
		}
	}
}

func TestJob(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, p sandbox.Plan) {
		s := begin(t, p, bash.JobsOptions{}, bash.Options{})
		res := s.start(`echo one; read x; until [ -e go ]; do sleep 0.02; done; cd /usr; printf '\033[31mtwo\xff\n'; until [ -e "$OLDPWD/on" ]; do sleep 0.02; done; exit 3`)
		if res.IsError || !strings.Contains(res.Content, "job1 was started") || res.WorkDir != "" {
			t.Fatalf("%+v", res)
		}
		if got := s.read("job1", "one\n"); !strings.Contains(got, "(job1 is running since ") {
			t.Errorf("%q", got)
		}
		if res := s.do(m{"action": "read", "id": "job1"}); !strings.HasPrefix(res.Content, "(no new output)\n") {
			t.Errorf("read again: %q", res.Content)
		}
		os.WriteFile(s.dir+"/go", nil, 0o644)
		if got := s.read("job1", "two"); !strings.Contains(got, `two\xff`+"\n") || strings.Contains(got, "\x1b") {
			t.Errorf("%q", got)
		}
		os.WriteFile(s.dir+"/on", nil, 0o644)
		s.read("job1", "has ended after")
		list := s.jobs.List()
		if len(list) != 1 || list[0].Running() || list[0].Exit != "exit code 3" || list[0].Unread != 0 || list[0].ID != "job1" {
			t.Errorf("%+v", list)
		}
		if notes := s.jobs.Ended(); len(notes) != 0 {
			t.Errorf("the model knows that it has ended: %q", notes)
		}
	})
}

func TestJobThatFailsAtOnce(t *testing.T) {
	t.Parallel()
	s := begin(t, plan(t, sandbox.TierNone), bash.JobsOptions{}, bash.Options{})
	for _, tt := range []struct {
		command, want string
		fails         bool
	}{{"echo no >&2; exit 7", "no\n(job1 has ended after 0s: exit code 7)\n", true}, {"echo done", "done\n(job2 has ended after 0s: exit code 0)\n", false}} {
		res := s.start(tt.command)
		if !strings.Contains(res.Content, "has ended") { // a busy machine
			res.Content = s.read(strings.Fields(tt.want)[1][1:], "has ended")
			continue
		}
		if res.Content != tt.want && !strings.Contains(res.Content, strings.Split(tt.want, "0s")[1]) || res.IsError != tt.fails {
			t.Errorf("%s: %+v, want %q", tt.command, res, tt.want)
		}
	}
}

func TestJobOutlivesItsCall(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, p sandbox.Plan) {
		s := begin(t, p, bash.JobsOptions{}, bash.Options{})
		ctx, interrupt := context.WithCancel(t.Context())
		res := tooltest.Run(ctx, t, s.bash, tooltest.Options{WorkDir: s.dir}, m{"command": `until [ -e go ]; do sleep 0.02; done; echo lived`, "background": true})
		interrupt()
		if res.IsError {
			t.Fatalf("%+v", res)
		}
		os.WriteFile(s.dir+"/go", nil, 0o644)
		s.read("job1", "lived\n")
		if res := tooltest.Run(ctx, t, s.bash, tooltest.Options{WorkDir: s.dir}, m{"command": "true", "background": true}); !res.IsError || len(s.jobs.List()) != 1 {
			t.Errorf("started after the interrupt: %+v", res)
		}
	})
}

func TestKillJob(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, p sandbox.Plan) {
		s := begin(t, p, bash.JobsOptions{}, bash.Options{Grace: 100 * time.Millisecond})
		marker := fmt.Sprintf("%d.625", 500000+os.Getpid())
		for i, command := range []string{
			`echo up; sleep ` + marker,
			`trap "" TERM; echo up; while :; do sleep ` + marker + `; done`,
			`echo up; setsid sh -c 'trap "" TERM; sleep ` + marker + `' & wait`,
		} {
			id := fmt.Sprintf("job%d", i+1)
			s.start(command)
			s.read(id, "is running")
			begin := time.Now()
			res := s.do(m{"action": "kill", "id": id})
			if took := time.Since(begin); res.IsError || !strings.Contains(res.Content, "(killed)") && !strings.Contains(res.Content, ": killed") || took > 5*time.Second {
				t.Errorf("%s after %v: %q", command, took, res.Content)
			}
			ends(t, marker)
		}
		if res := s.do(m{"action": "kill", "id": "job1"}); res.IsError || !strings.Contains(res.Content, "nothing to kill") {
			t.Errorf("killed again: %q", res.Content)
		}
		if err := s.jobs.Kill("job9"); err == nil {
			t.Error("a job that isn't there was killed")
		}
		if len(s.jobs.Ended()) != 0 {
			t.Error("the model was told of what it did")
		}
	})
}

func TestCloseEndsAllJobs(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, p sandbox.Plan) {
		s := begin(t, p, bash.JobsOptions{}, bash.Options{Grace: 100 * time.Millisecond})
		marker := fmt.Sprintf("%d.875", 600000+os.Getpid())
		for range 2 {
			s.start(`trap "" TERM; while :; do sleep ` + marker + `; done`)
		}
		begin := time.Now()
		if err := s.jobs.Close(); err != nil || time.Since(begin) > 8*time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		ends(t, marker)
		for _, i := range s.jobs.List() {
			if i.Running() || i.Exit != "ended with the session" {
				t.Errorf("%+v", i)
			}
		}
		if res := s.start("true"); !res.IsError || !strings.Contains(res.Content, "session is being ended") {
			t.Errorf("%+v", res)
		}
	})
}

func TestJobsNotes(t *testing.T) {
	t.Parallel()
	s := begin(t, plan(t, sandbox.TierNone), bash.JobsOptions{}, bash.Options{})
	s.start("until [ -e go ]; do sleep 0.02; done; echo x; exit 2")
	if notes := s.jobs.Ended(); len(notes) != 0 {
		t.Errorf("%q", notes)
	}
	os.WriteFile(s.dir+"/go", nil, 0o644)
	var notes []string
	for end := time.Now().Add(20 * time.Second); len(notes) == 0 && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		notes = s.jobs.Ended()
	}
	if len(notes) != 1 || !strings.HasPrefix(notes[0], "The background command job1 (until [ -e go ];") || !strings.Contains(notes[0], ": exit code 2. It has 2 bytes of output that were not read yet.") {
		t.Errorf("%q", notes)
	}
	if notes := s.jobs.Ended(); len(notes) != 0 {
		t.Errorf("told twice: %q", notes)
	}
	if got := s.do(m{"action": "read", "id": "job1"}).Content; !strings.HasPrefix(got, "x\n(job1 has ended") {
		t.Errorf("%q", got)
	}
}

func TestJobOutputIsBounded(t *testing.T) {
	t.Parallel()
	s := begin(t, plan(t, sandbox.TierNone), bash.JobsOptions{Buffer: 100_000}, bash.Options{})
	s.start(`i=0; while [ $i -lt 30000 ]; do echo "line $i of many"; i=$((i+1)); done; printf 'é%.0s' 1 2 3; printf prompt; touch ready; until [ -e go ]; do sleep 0.02; done`)
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(s.dir + "/ready"); err == nil && s.jobs.List()[0].Unread > 500_000 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%+v", s.jobs.List())
		}
	}
	res := s.do(m{"action": "read", "id": "job1", "wait_ms": 1000})
	for _, want := range []string{"line 29999 of many\n", "bytes left out", "bytes of older output were not read in time and are gone)", "éééprompt\n(", "the last line isn't complete"} {
		if !strings.Contains(res.Content, want) {
			t.Errorf("%q is missing; it ends in %q", want, res.Content[max(0, len(res.Content)-300):])
		}
	}
	if len(res.Content) > 34<<10 || strings.Contains(res.Content, "line 0 of") {
		t.Errorf("%d bytes", len(res.Content))
	}
}

func TestTooManyJobs(t *testing.T) {
	t.Parallel()
	s := begin(t, plan(t, sandbox.TierNone), bash.JobsOptions{Max: 2}, bash.Options{})
	for range 2 {
		s.start("sleep 600")
	}
	if res := s.start("sleep 600"); !res.IsError || !strings.Contains(res.Content, "2 are running (job1, job2)") {
		t.Errorf("%+v", res)
	}
	if err := s.jobs.Kill("job1"); err != nil {
		t.Fatal(err)
	}
	if res := s.start("sleep 600"); res.IsError || !strings.Contains(res.Content, "job3") {
		t.Errorf("%+v", res)
	}
	for range 40 {
		s.start("true")
		s.jobs.EndAgent("")
	}
	if n := len(s.jobs.List()); n > 20 {
		t.Errorf("%d jobs are remembered", n)
	}
}

func TestJobTimeLimit(t *testing.T) {
	t.Parallel()
	s := begin(t, plan(t, sandbox.TierNone), bash.JobsOptions{}, bash.Options{})
	tooltest.Run(t.Context(), t, s.bash, tooltest.Options{WorkDir: s.dir}, m{"command": "sleep 600", "background": true, "timeout_ms": 300})
	s.read("job1", "has ended after")
	if got := s.jobs.List()[0].Exit; got != "ended at its time limit of 300ms" {
		t.Errorf("%q", got)
	}
}

// TestGuardHoldsForTheLife: what a job may not read and not change is decided at its
// start and holds until it ends, whatever other commands begin and end meanwhile.
func TestGuardHoldsForTheLife(t *testing.T) {
	t.Parallel()
	p := plan(t, sandbox.TierProcess)
	var befores, afters, checks atomic.Int64
	root := realDir(t)
	for name, content := range map[string]string{"held": "held", "secret": "secret"} {
		os.WriteFile(root+"/"+name, []byte(content), 0o644)
	}
	hold := func() ([]string, []string) { return []string{root + "/secret"}, []string{root + "/held"} }
	s := begin(t, p, bash.JobsOptions{}, bash.Options{
		Guard: func() (bash.Guard, error) {
			hidden, held := hold()
			return bash.Guard{Hidden: hidden, Protected: held, Check: func() string { checks.Add(1); return "" }}, nil
		},
		Before: func() ([]string, []string, error) { befores.Add(1); return nil, nil, nil },
		After:  func() string { afters.Add(1); return "" },
	})
	s.dir = root
	s.start(`until [ -e go ]; do sleep 0.02; done; cat secret; echo changed >held; mv held away; rm -f held; echo tried; cat held`)
	other := tooltest.Run(t.Context(), t, s.bash, tooltest.Options{WorkDir: root}, m{"command": "cat secret"})
	if other.Content != "secret\n" || befores.Load() != 1 || afters.Load() != 1 {
		t.Errorf("another command: %+v, asked %d and %d times", other, befores.Load(), afters.Load())
	}
	os.WriteFile(root+"/go", nil, 0o644)
	got := s.read("job1", "has ended after")
	if strings.Contains(got, "\nsecret\n") || strings.HasPrefix(got, "secret\n") || !strings.Contains(got, "tried\n") || !strings.Contains(got, "held\n(job1 has ended") {
		t.Errorf("%q", got)
	}
	if data, _ := os.ReadFile(root + "/held"); string(data) != "held" {
		t.Errorf("the held file is now %q", data)
	}
	if checks.Load() == 0 || befores.Load() != 1 || afters.Load() != 1 {
		t.Errorf("checked %d times; Before and After %d and %d times, want once each, for the other command", checks.Load(), befores.Load(), afters.Load())
	}
}

func TestGuardEndsAJob(t *testing.T) {
	t.Parallel()
	var said atomic.Value
	said.Store("")
	guarded := begin(t, plan(t, sandbox.TierNone), bash.JobsOptions{CheckEvery: 20 * time.Millisecond}, bash.Options{Guard: func() (bash.Guard, error) {
		return bash.Guard{Check: func() string { return said.Load().(string) }}, nil
	}})
	guarded.start("sleep 600")
	said.Store("it made what it may not")
	guarded.read("job1", "has ended after")
	if got := guarded.jobs.List()[0].Exit; got != "ended, because it made what it may not" {
		t.Errorf("%q", got)
	}
	broken := begin(t, plan(t, sandbox.TierNone), bash.JobsOptions{CheckEvery: 20 * time.Millisecond}, bash.Options{Guard: func() (bash.Guard, error) {
		return bash.Guard{Check: func() string { panic("boom") }}, nil
	}})
	broken.start("sleep 600")
	if got := broken.read("job1", "has ended after"); !strings.Contains(got, "panic: boom") {
		t.Errorf("%q", got)
	}
	refusing := begin(t, plan(t, sandbox.TierNone), bash.JobsOptions{}, bash.Options{Guard: func() (bash.Guard, error) { return bash.Guard{}, errors.New("no list") }})
	if res := refusing.start("true"); !res.IsError || !strings.Contains(res.Content, "not started: no list") || len(refusing.jobs.List()) != 0 {
		t.Errorf("%+v", res)
	}
}

// TestBeforeAndAfterOfAJob: without a guard a job has what every command has, and
// After comes when it has ended.
func TestBeforeAndAfterOfAJob(t *testing.T) {
	t.Parallel()
	var after atomic.Int64
	s := begin(t, plan(t, sandbox.TierNone), bash.JobsOptions{}, bash.Options{After: func() string { after.Add(1); return "something was set aside" }})
	s.start("until [ -e go ]; do sleep 0.02; done")
	if after.Load() != 0 {
		t.Error("After was called while the job runs")
	}
	os.WriteFile(s.dir+"/go", nil, 0o644)
	if got := s.read("job1", "has ended after"); !strings.Contains(got, "exit code 0; something was set aside") || after.Load() != 1 {
		t.Errorf("%q, called %d times", got, after.Load())
	}
}
