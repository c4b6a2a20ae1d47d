package bash

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/run"
)

// keptEnded is how many jobs that have ended are remembered.
const keptEnded = 16

// JobsOptions are the bounds of a session's background commands. The zero value is
// the usual.
type JobsOptions struct {
	// Max is how many jobs may run at once; zero means 16.
	Max int
	// Buffer is how many bytes of the newest output of a job are kept; zero means
	// 1 MiB. The file that OutputDir names for other commands isn't made.
	Buffer int
	// CheckEvery is how often Guard.Check is called; zero means every second.
	CheckEvery time.Duration
}

// Guard is what holds for one job as long as it lives.
type Guard struct {
	// Hidden and Protected are paths that the job may not read and not change, beside
	// those of Options.Policy, as they are at its start.
	Hidden, Protected []string
	// Check, if set, is called every CheckEvery while the job runs and once more when it
	// and everything it started have ended, never twice at a time. What it returns,
	// unless empty, ends the job and is told to the model.
	Check func() string
}

// Jobs are the background commands of one session. Make it with NewJobs, give it to
// New in Options.Jobs and to NewJobsTool, and end it with Close. It is safe for
// concurrent use.
//
// A job is a command and everything it started; it ends with its shell, when it is
// killed, at its time limit if it was given one, and with the session. It doesn't end
// with the call that started it, nor with the run that the call belonged to. How a
// job is confined was decided when it started and holds as long as it lives: the
// sandbox's mounts are the job's own. Two things they can't hold: a path that didn't
// exist and matches a deny rule only later, and a single file that somebody outside
// the sandbox replaces by another under its name, which takes the mount away with the
// file. Folders that are protected whole stay so. Guard.Check is there to look at what
// matters.
type Jobs struct {
	o     JobsOptions
	group *run.Group

	mu     sync.Mutex // guards what follows
	list   []*job
	last   int // the number of the newest job
	closed bool
}

// NewJobs returns an empty table of jobs.
func NewJobs(o JobsOptions) *Jobs {
	o.Max, o.Buffer = cmp.Or(max(o.Max, 0), 16), cmp.Or(max(o.Buffer, 0), 1<<20)
	o.CheckEvery = cmp.Or(max(o.CheckEvery, 0), time.Second)
	return &Jobs{o: o, group: run.New(context.Background())}
}

// JobInfo is what there is to know of a job.
type JobInfo struct {
	ID, Command string
	// Agent is who started it.
	Agent policy.Agent
	// Pid is the id of its process group.
	Pid     int
	Started time.Time
	// Ended is zero while the job runs.
	Ended time.Time
	// Exit says in words how it ended, as for the end of a sentence: "exit code 1",
	// "killed"; "" while it runs.
	Exit string
	// Unread counts the bytes of output that the model hasn't been shown.
	Unread int64
}

// Running reports whether the job had not ended.
func (i JobInfo) Running() bool { return i.Ended.IsZero() }

// List returns all jobs that run and the newest of those that have ended, in the
// order of their start.
func (js *Jobs) List() []JobInfo {
	js.mu.Lock()
	list := slices.Clone(js.list)
	js.mu.Unlock()
	infos := make([]JobInfo, 0, len(list))
	for _, j := range list {
		infos = append(infos, j.info())
	}
	return infos
}

// Kill ends a job and everything it started, and returns when that is done. A job
// that has ended is left as it is.
func (js *Jobs) Kill(id string) error {
	j := js.find(id)
	if j == nil {
		return fmt.Errorf("there is no background command %q", id)
	}
	j.end("killed")
	return nil
}

// EndAgent ends the jobs that an agent started, as when a sub-agent is done, and
// returns when they have ended. It returns how many those were.
func (js *Jobs) EndAgent(id string) int {
	return js.endAll("ended with the agent that started it", func(j *job) bool { return j.agent.ID == id })
}

// Close ends all jobs and returns when none is left. No job can be started any more.
// The error is a defect of this package. Close may be called more than once.
func (js *Jobs) Close() error {
	js.mu.Lock()
	js.closed = true
	js.mu.Unlock()
	js.endAll("ended with the session", func(*job) bool { return true })
	return js.group.Wait()
}

func (js *Jobs) endAll(why string, which func(*job) bool) int {
	js.mu.Lock()
	list := slices.Clone(js.list)
	js.mu.Unlock()
	n := 0
	var wg sync.WaitGroup
	for _, j := range list {
		if which(j) && j.info().Running() {
			n++
			wg.Go(func() { j.end(why) })
		}
	}
	wg.Wait()
	return n
}

// Ended returns a short note for the model on each job that has ended since the last
// call, unless the model knows it already from a result.
func (js *Jobs) Ended() []string {
	js.mu.Lock()
	list := slices.Clone(js.list)
	js.mu.Unlock()
	var notes []string
	for _, j := range list {
		if note := j.note(); note != "" {
			notes = append(notes, note)
		}
	}
	return notes
}

func (js *Jobs) find(id string) *job {
	js.mu.Lock()
	defer js.mu.Unlock()
	for _, j := range js.list {
		if j.id == id {
			return j
		}
	}
	return nil
}

// errJobs is why no job can be started.
var errJobs = errors.New("no more background commands can be started")

// add takes a job in, if there is room, and starts it.
func (js *Jobs) add(j *job, start func() error) error {
	js.mu.Lock()
	defer js.mu.Unlock()
	if js.closed {
		return fmt.Errorf("%w: the session is being ended", errJobs)
	}
	var running []string
	ended := 0
	for _, other := range js.list {
		if other.info().Running() {
			running = append(running, other.id)
		} else {
			ended++
		}
	}
	if len(running) >= js.o.Max {
		return fmt.Errorf("%w: %d are running (%s). Kill one that isn't needed with the tool jobs", errJobs, len(running), strings.Join(running, ", "))
	}
	js.list = slices.DeleteFunc(js.list, func(j *job) bool {
		drop := ended > keptEnded && !j.info().Running()
		if drop {
			ended--
		}
		return drop
	})
	j.id = fmt.Sprintf("job%d", js.last+1)
	if err := start(); err != nil {
		return err
	}
	js.last++
	js.list = append(js.list, j)
	js.group.Go(func(context.Context) error { j.run(); return nil })
	return nil
}
