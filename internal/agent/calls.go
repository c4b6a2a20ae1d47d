package agent

import (
	"context"
	"errors"
	"path/filepath"
	"sync"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/tool"
)

// maxParallel bounds the read-only calls that run at the same time.
const maxParallel = 8

// unrecordedText answers a call whose outcome is not in the record.
const unrecordedText = "The outcome of this call could not be recorded. It may have done part of its work: check before you repeat it."

// refusals counts the same call refused in a row.
type refusals struct {
	same string
	n    int
}

// add counts a refusal and reports whether it is one too many.
func (r *refusals) add(same string) bool {
	if r.same != same {
		r.same, r.n = same, 0
	}
	r.n++
	return r.n >= maxSameRefusals
}

// slot is one call of a turn. Its goroutine, or the loop's, fills it; the loop
// reads it only after the turn's wait group is done.
type slot struct {
	call    *model.ToolCall
	batch   *Batch
	outcome Outcome
	final   Final
	workDir string
	moved   bool // workDir is in force
	stop    *end // ends the run, whatever the outcome
	err     error
	done    bool
}

// runCalls judges the calls in the model's order and runs what may run: read-only
// calls side by side, a mutating one alone after everything before it has ended,
// so that each call is judged on the state that it will meet (gate.md §2).
func (l *Loop) runCalls(ctx context.Context, calls []*model.ToolCall) *end {
	slots, batch := make([]slot, len(calls)), l.batch(calls)
	var running sync.WaitGroup
	limit := make(chan struct{}, maxParallel)
	var stop *end
	for i, c := range calls {
		s := &slots[i]
		s.call, s.batch = c, batch
		if stop == nil && ctx.Err() != nil {
			stop = interrupted(ctx)
		}
		if stop != nil {
			l.skip(ctx, s)
			continue
		}
		ruling := l.o.Gate.Judge(ctx, Proposal{Turn: l.turn, Call: c, WorkDir: l.workDir, TurnID: l.turnID, Batch: batch})
		r, ok := ruling.(*Run)
		if !ok {
			stop = l.notRun(ctx, s, ruling)
			continue
		}
		l.refusals = refusals{}
		if r.Decl.Mutates {
			running.Wait()
			l.alone(ctx, s, r)
			stop = l.ended(ctx, s)
			continue
		}
		limit <- struct{}{}
		running.Go(func() {
			defer func() { <-limit }()
			l.execute(ctx, s, r)
		})
	}
	running.Wait()
	return l.collect(ctx, slots, stop)
}

// alone runs a mutating call while none of another agent runs. The end of ctx ends the
// wait for that.
func (l *Loop) alone(ctx context.Context, s *slot, r *Run) {
	if l.o.Serial != nil {
		select {
		case l.o.Serial <- struct{}{}:
			defer func() { <-l.o.Serial }()
		case <-ctx.Done(): // execute finds that out
		}
	}
	l.execute(ctx, s, r)
}

// ended looks at a call that has just been run alone.
func (l *Loop) ended(ctx context.Context, s *slot) *end {
	switch {
	case s.err != nil:
		return recordFailed(s.err)
	case s.stop != nil:
		return s.stop
	case s.final.Stop != "":
		return &end{ReasonStopped, s.final.Stop}
	}
	if s.workDir != "" && !s.moved {
		from := l.workDir
		l.workDir, s.moved = s.workDir, true
		l.tell(ctx, ahp.WorkspaceChangeAfter, func() Moment { return &WorkDirChange{CallID: s.call.ID, From: from, To: s.workDir} })
	}
	return nil
}

// collect adds the results to the history in the model's order.
func (l *Loop) collect(ctx context.Context, slots []slot, stop *end) *end {
	var injected []string
	for i := range slots {
		s := &slots[i]
		if e := l.ended(ctx, s); e != nil && stop == nil {
			stop = e
		}
		if !s.done { // the record or the gate failed: no further turn, but the history stays valid
			s.final = Final{Content: unrecordedText, IsError: true}
		}
		res := &model.ToolResult{CallID: s.call.ID, Name: s.call.Name, Content: s.final.Content, IsError: s.final.IsError, Images: s.final.Images}
		l.push(&model.Message{Role: event.RoleTool, Parts: []model.Part{{ToolResult: res}}})
		injected = append(injected, s.final.Injected...)
		l.later = append(l.later, s.final.Later...)
	}
	if len(injected) > 0 { // one message, as a resume folds it
		m := &model.Message{Role: event.RoleUser}
		for _, text := range injected {
			m.Parts = append(m.Parts, event.TextPart(text))
		}
		l.push(m)
	}
	if stop == nil && l.o.Memory != nil {
		stop = l.sayAll(l.o.Memory(touched(slots)))
	}
	if ctx.Err() == nil && l.hooked(ahp.ToolBatchAfter) {
		if e := l.batchEnded(ctx, slots); stop == nil {
			stop = e
		}
	}
	if stop == nil && ctx.Err() != nil {
		stop = interrupted(ctx)
	}
	return stop
}

// touched lists the places that the calls which ran were about.
func touched(slots []slot) []string {
	var out []string
	for i := range slots {
		o := &slots[i].outcome
		if !o.Ran || o.Decl.Kind != policy.SubjectPath || o.Decl.Subject == "" {
			continue
		}
		path := o.Decl.Subject
		if !filepath.IsAbs(path) {
			path = filepath.Join(o.Call.WorkDir, path)
		}
		out = append(out, filepath.Clean(path))
	}
	return out
}

// batchEnded asks about all calls of a reply together.
func (l *Loop) batchEnded(ctx context.Context, slots []slot) *end {
	m := &BatchAfter{Batch: slots[0].batch}
	for i := range slots {
		if !slots[i].done {
			return nil // the record failed
		}
		m.Outcomes = append(m.Outcomes, slots[i].outcome)
	}
	say, e := l.consult(ctx, m)
	switch {
	case e != nil:
		return e
	case say.Refusal != nil:
		return refused(ReasonStopped, "the results were refused", say.Refusal)
	}
	if e := l.sayAll(say.Injected); e != nil {
		return e
	}
	if say.Stop != "" {
		return &end{ReasonStopped, say.Stop}
	}
	return nil
}

// notRun finishes a call that the gate did not let run.
func (l *Loop) notRun(ctx context.Context, s *slot, ruling Ruling) *end {
	switch r := ruling.(type) {
	case *Refused:
		l.finish(ctx, s, Outcome{Call: r.Call, Kind: "denied", Content: r.Text, IsError: true})
		if s.err == nil && l.refusals.add(r.Same) {
			return &end{ReasonDeniedLoop, "the same call was refused three times in a row: " + r.Text}
		}
		return l.ended(ctx, s)
	case *Supplied:
		l.refusals = refusals{}
		l.finish(ctx, s, Outcome{Call: r.Call, Decl: r.Decl, Kind: "supplied", Content: r.Content})
		return l.ended(ctx, s)
	case *Stopped:
		l.finish(ctx, s, Outcome{Call: r.Call, Kind: "stopped", Content: "Not run: " + r.By + " stopped the run: " + r.Reason, IsError: true})
		return &end{ReasonStopped, r.By + ": " + r.Reason}
	case *Cancelled:
		l.finish(ctx, s, cancelled(r.Call))
		return interrupted(ctx)
	case *Broken:
		s.err = r.Err
		return recordFailed(r.Err)
	default:
		s.err = errors.New("the gate gave no ruling")
		return &end{ReasonError, s.err.Error()}
	}
}

// skipAll gives an outcome to all calls of a reply after which the run ends.
func (l *Loop) skipAll(ctx context.Context, calls []*model.ToolCall, stop *end) *end {
	if len(calls) == 0 {
		return stop
	}
	slots, batch := make([]slot, len(calls)), l.batch(calls)
	for i, c := range calls {
		slots[i].call, slots[i].batch = c, batch
		o := Outcome{Call: policy.Call{ID: c.ID, Tool: c.Name, Turn: l.turn}, Kind: "stopped", Content: "Not run: the run was stopped before this call: " + stop.detail, IsError: true}
		l.finish(ctx, &slots[i], o)
	}
	return l.collect(ctx, slots, stop)
}

// skip gives an outcome to a call that is not judged any more.
func (l *Loop) skip(ctx context.Context, s *slot) {
	l.finish(ctx, s, cancelled(policy.Call{ID: s.call.ID, Tool: s.call.Name, Turn: l.turn}))
}

func cancelled(c policy.Call) Outcome {
	return Outcome{Call: c, Kind: "cancelled", Content: "Not run: the turn was ended before this call.", IsError: true}
}

// execute runs a permitted call and finishes it. One that had to wait, or that was
// judged, until the run was interrupted isn't started any more.
func (l *Loop) execute(ctx context.Context, s *slot, r *Run) {
	if ctx.Err() != nil {
		l.finish(ctx, s, cancelled(r.Call))
		return
	}
	start := &event.ToolStarted{Turn: l.turn, CallID: s.call.ID, Tool: r.Call.Tool, Hash: r.Permit.Hash()}
	if _, err := l.o.Log.AppendDurable(event.Draft{Actor: event.ActorTool, Trust: event.TrustHarness, Payload: start}); err != nil {
		s.err = err
		return
	}
	began := l.o.Now()
	output, done := l.watch(ctx, s, r)
	res, err := l.o.Exec.Run(ctx, r.Permit, output)
	done()
	if res.WorkDir != "" && r.Decl.Mutates && l.hooked(ahp.WorkspaceChangeBefore) {
		l.mayMove(ctx, s, &res)
	}
	o := Outcome{Call: r.Call, Decl: r.Decl, Ran: true, Duration: l.o.Now().Sub(began), Changes: res.Changes}
	switch {
	case err != nil:
		o.Kind, o.IsError = "error", true
		o.Content = "The tool failed: " + tool.Clean(err.Error())
	case ctx.Err() != nil:
		o.Kind, o.IsError, o.Content = "cancelled", true, res.Content
	default:
		o.Kind, o.Content, o.IsError, o.WorkDir, o.Images = kind(res), res.Content, res.IsError, res.WorkDir, res.Images
	}
	s.workDir = res.WorkDir
	l.finish(ctx, s, o)
}

// mayMove asks whether the working directory may change as the call, which has run
// alone, wants it. If not the result says so.
func (l *Loop) mayMove(ctx context.Context, s *slot, res *tool.Result) {
	to := res.WorkDir
	res.WorkDir = ""
	say, e := l.consult(ctx, &WorkDirBefore{CallID: s.call.ID, From: l.workDir, To: to})
	switch {
	case e != nil:
		s.stop = e
	case say.Refusal != nil:
		res.Content += "[abhed] The working directory stays " + l.workDir + ": the change was refused by " + say.Refusal.By + ". Reason: " + say.Refusal.Reason + "\n"
	default:
		res.WorkDir = to
	}
}

func kind(r tool.Result) string {
	switch {
	case r.TimedOut:
		return "timeout"
	case r.IsError:
		return "error"
	default:
		return "ok"
	}
}

// finish records an outcome, in an interrupted run too: every call has one.
func (l *Loop) finish(ctx context.Context, s *slot, o Outcome) {
	o.Turn, o.TurnID, o.Batch = l.turn, l.turnID, s.batch
	s.outcome = o
	s.final, s.err = l.o.Gate.Finish(ctx, o)
	s.done = s.err == nil
}
