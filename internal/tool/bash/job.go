package bash

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/proc"
	"github.com/abhed/abhed/internal/run"
)

// job is one command in the background.
type job struct {
	id      string
	command string
	agent   policy.Agent
	started time.Time
	check   func() string // while it runs, or nil
	every   time.Duration // how often that is called
	last    func() string // when it has ended, or nil
	child   *proc.Child

	ctx    context.Context // ends when the job is to end
	cancel context.CancelFunc
	done   chan struct{} // closed when all has ended

	mu      sync.Mutex // guards what follows
	clean   cleaner
	out     ring
	seen    int64         // up to where the model has read
	news    chan struct{} // closed at the next change
	why     string        // why it was ended, "" if by itself
	exit    string
	ended   time.Time
	told    bool // the model knows that it has ended
	guarded string
}

func newJob(command string, agent policy.Agent, o JobsOptions) *job {
	j := &job{command: command, agent: agent, every: o.CheckEvery, out: ring{max: o.Buffer}, done: make(chan struct{}), news: make(chan struct{})}
	j.clean.emit = j.out.write
	return j
}

// begin has the child, and its time limit if that isn't zero.
func (j *job) begin(child *proc.Child, limit time.Duration) {
	j.child, j.started = child, time.Now()
	j.ctx, j.cancel = context.WithCancel(context.Background())
	if limit > 0 {
		stop := j.cancel
		timer := time.AfterFunc(limit, func() { j.stop(fmt.Sprintf("ended at its time limit of %v", limit)) })
		j.cancel = func() { timer.Stop(); stop() }
	}
}

// run takes the output until the job ends. It is the job's only owner of the child.
func (j *job) run() {
	defer close(j.done)
	defer j.child.Kill() // whatever happens
	defer j.cancel()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		j.watch()
	}()
	out := stream{j.write}
	how := out.follow(j.ctx, j.child)
	exit := out.end(j.child, how)
	j.cancel()
	<-watched
	said := ask(j.last)

	j.mu.Lock()
	defer j.mu.Unlock()
	j.clean.flush()
	switch {
	case j.why != "":
		j.exit = j.why
	default:
		j.exit = exitNote(exit)
	}
	if how == held {
		j.exit += "; a process that it had left running was ended with it"
	}
	if said != "" && said != j.guarded {
		j.exit += "; " + said
	}
	j.ended = time.Now()
	j.changed()
}

// watch asks the guard now and then.
func (j *job) watch() {
	if j.check == nil {
		return
	}
	tick := time.NewTicker(j.every)
	defer tick.Stop()
	for {
		select {
		case <-j.ctx.Done():
			return
		case <-tick.C:
			if said := ask(j.check); said != "" {
				j.mu.Lock()
				j.guarded = said
				j.mu.Unlock()
				j.stop("ended, because " + said)
				return
			}
		}
	}
}

// ask returns what a check says. One that panics says so.
func ask(check func() string) (said string) {
	if check == nil {
		return ""
	}
	if err := run.Protect(func() error { said = check(); return nil }); err != nil {
		return err.Error()
	}
	return said
}

func (j *job) write(p []byte) {
	if len(p) == 0 {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.clean.write(p)
	j.changed()
}

// changed wakes who waits. The caller holds mu.
func (j *job) changed() {
	close(j.news)
	j.news = make(chan struct{})
}

// stop asks the job to end, for the first reason given.
func (j *job) stop(why string) {
	j.mu.Lock()
	if j.why == "" && j.ended.IsZero() {
		j.why = why
	}
	j.mu.Unlock()
	j.cancel()
}

// end ends the job and waits until it has.
func (j *job) end(why string) {
	j.stop(why)
	<-j.done
}

func (j *job) info() JobInfo {
	j.mu.Lock()
	defer j.mu.Unlock()
	return JobInfo{
		ID: j.id, Command: j.command, Agent: j.agent, Pid: j.child.Pid(), Started: j.started, Ended: j.ended, Exit: j.exit,
		Unread: j.out.total - j.seen,
	}
}

// await waits for output that the model hasn't seen, or for the end. What comes soon
// after that output is waited for too, so that a read doesn't bring one line of many.
func (j *job) await(ctx context.Context, wait time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		fresh, ended, news := j.standing()
		if ended {
			return
		}
		if fresh {
			break
		}
		select {
		case <-news:
		case <-ctx.Done():
			return
		}
	}
	ctx, cancel = context.WithTimeout(ctx, lingering)
	defer cancel()
	for {
		_, ended, news := j.standing()
		if ended {
			return
		}
		select {
		case <-news:
		case <-time.After(2 * quiet):
			return
		case <-ctx.Done():
			return
		}
	}
}

// standing reports whether there is output that the model hasn't seen and whether the
// job has ended, and what is closed when that changes.
func (j *job) standing() (fresh, ended bool, news <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.out.total > j.seen, !j.ended.IsZero(), j.news
}

// take returns the output since the last take within the bounds, and what there is
// to say of it.
func (j *job) take(head, tail int) (text string, notes []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	fresh, lost := j.out.from(j.seen)
	j.seen = j.out.total
	k := keeper{headMax: head, tailMax: tail}
	k.write(fresh)
	text, _ = k.end()
	if lost > 0 {
		notes = append(notes, fmt.Sprintf("%d bytes of older output were not read in time and are gone", lost))
	}
	if part := string(j.clean.line); part != "" { // there is none after the end
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		text += part + "\n"
		notes = append(notes, "the last line isn't complete yet and will be shown again")
	}
	return text, notes
}

// state says in words how the job stands. What it says of its end counts as known to
// the model.
func (j *job) state() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.ended.IsZero() {
		return fmt.Sprintf("%s is running since %v", j.id, roughly(time.Since(j.started)))
	}
	j.told = true
	return fmt.Sprintf("%s has ended after %v: %s", j.id, roughly(j.ended.Sub(j.started)), j.exit)
}

// note returns what the model should hear of the job's end, once.
func (j *job) note() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.ended.IsZero() || j.told {
		return ""
	}
	j.told = true
	note := fmt.Sprintf("The background command %s (%s) has ended after %v: %s.", j.id, oneLine(j.command, 120), roughly(j.ended.Sub(j.started)), j.exit)
	if unread := j.out.total - j.seen; unread > 0 {
		note += fmt.Sprintf(" It has %d bytes of output that were not read yet.", unread)
	}
	return note
}

func roughly(d time.Duration) time.Duration {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Second)
}

// oneLine returns a command for a list: clean, in one line, and cut.
func oneLine(command string, limit int) string {
	var b strings.Builder
	c := cleaner{emit: func(p []byte) { b.Write(p) }}
	c.write([]byte(strings.Join(strings.Fields(command), " ")))
	c.flush()
	line := b.String()
	if len(line) <= limit {
		return line
	}
	return strings.ToValidUTF8(line[:limit], "") + "…"
}

// ring keeps the newest bytes of a text.
type ring struct {
	max   int
	kept  []byte // at most a quarter more than max
	total int64
}

func (r *ring) write(p []byte) {
	r.total += int64(len(p))
	r.kept = append(r.kept, p...)
	if len(r.kept) > r.max+r.max/4 {
		r.kept = append(r.kept[:0], r.kept[len(r.kept)-r.max:]...)
	}
}

// from returns what is kept of the text from a position on, from the begin of a
// character, and how many bytes are missing before it.
func (r *ring) from(pos int64) (text []byte, lost int64) {
	first := r.total - int64(min(len(r.kept), r.max))
	if pos >= first {
		return r.kept[int64(len(r.kept))-(r.total-pos):], 0
	}
	text = r.kept[max(0, len(r.kept)-r.max):]
	for len(text) > 0 && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	return text, r.total - int64(len(text)) - pos
}
