package hookd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/hosts"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/internal/hooklog"
	"github.com/abhed/abhed/internal/hookstate"
	"github.com/abhed/abhed/internal/strictjson"
)

// SelfProtection is the id under which self-protection stands in the log.
const SelfProtection = "org.abhed.self-protection"

// judgement is one call on its way to an answer.
type judgement struct {
	j     *Judge
	c     *Call
	began time.Time
	until time.Time     // by when everybody must have answered
	named *adapter.Host // for which the line was installed
	host  *adapter.Host // which runs it
	event *adapter.Event
	plan  *plan
	state *hookstate.Session
	entry *hooklog.Entry
	// made is the event but for its native form.
	made *harness.Prepared
}

// policy answers what could not be judged.
func (x *judgement) policy(why error) Answer {
	native := x.c.Native
	if x.event != nil {
		native = x.event.Row.Native
	}
	a := ByPolicy(x.named, x.host, x.c, native, "Refused: this call could not be checked: "+adapter.Clean(why.Error())+"\nThat is a fault of the check and no judgement of the call; the person can see more with \"ahp log\" and \"ahp doctor\".")
	x.entry.Decision = hooklog.Deny
	if a.Code == ExitPass {
		x.entry.Decision = hooklog.Pass
	}
	x.entry.Problem = fmt.Sprintf("%s; answered by --on-missing %s", adapter.Clean(why.Error()), map[bool]string{true: "allow", false: "deny"}[x.c.Open])
	x.entry.Milliseconds = time.Since(x.began).Milliseconds()
	if x.entry.ID == "" {
		x.entry.ID = newID()
	}
	_ = x.j.log.Append(x.entry) // the answer is a refusal already, or the person chose that it passes
	return a
}

func (x *judgement) judge(ctx context.Context) (Answer, error) {
	if err := x.read(); err != nil {
		return Answer{}, err
	}
	w := where{x.host.Name, x.c.Registration, x.c.Home, ""}
	if w.home == "" {
		w.home = x.j.home
	}
	if w.registration == "" {
		project, untrusted, err := x.project()
		if err != nil {
			return Answer{}, err
		}
		w.project, x.entry.Untrusted = project, untrusted
	}
	p, err := x.j.plan(x.host, w)
	if err != nil {
		return Answer{}, err
	}
	if p.environ && x.j.opts.Mode == hooklog.ModeService {
		return Answer{}, errElsewhere
	}
	x.plan, x.entry.Registration = p, p.sources
	if p.native {
		if x.event.AHP.Native = x.event.Native; x.event.AHP.Native == nil {
			x.event.AHP.Native = bytes.TrimSpace(bytes.TrimPrefix(x.c.Data, []byte("\xef\xbb\xbf")))
		}
	}
	if x.once() {
		return x.twice(ctx)
	}
	return x.decide(ctx)
}

// read reads the native event and completes it.
func (x *judgement) read() error {
	named := x.j.host(x.c.Host)
	if named == nil {
		return fmt.Errorf("the host %.60q isn't known", x.c.Host)
	}
	x.named, x.host = named, named
	real := hosts.Recognise(named, x.c.Data, x.c.Markers)
	e, err := hosts.Read(real, adapter.Input{Data: x.c.Data, Native: x.c.Native, Markers: x.c.Markers})
	if err != nil {
		return err
	}
	x.host, x.event = real, e
	a := e.AHP
	a.ID, a.Source, a.Time = newID(), x.j.source+":"+x.host.Name, ahp.Timestamp(time.Now())
	x.entry.ID, x.entry.Time, x.entry.Host, x.entry.HostVersion, x.entry.Native, x.entry.Type = a.ID, a.Time, x.host.Name, e.Version, e.Row.Native, a.Type
	if a.Session != nil {
		x.entry.Session = a.Session.ID
	}
	if a.Turn != nil {
		x.entry.Turn = a.Turn.ID
	}
	if a.Tool != nil {
		x.entry.Tool = a.Tool.Name
	}
	if err := x.identify(); err != nil {
		return err
	}
	a.Native = nil
	x.made, err = harness.Prepare(a)
	return err
}

// identify gives a call its id where the host gives none.
func (x *judgement) identify() error {
	a := x.event.AHP
	x.state = x.j.states.Session(x.host.Name, x.entry.Session)
	if a.Call == nil {
		return nil
	}
	if a.Call.ID == "" {
		key, err := x.key()
		if err != nil {
			return err
		}
		if a.Type == ahp.ToolAfter {
			id, paired, err := x.state.After(key)
			if err != nil {
				return err
			}
			if !paired {
				id = "ahp-" + adapter.Digest([]byte(a.ID))
			}
			a.Call.ID = id
		} else {
			if a.Type == ahp.ToolPermissionRequest {
				key = hookstate.Key("permission", key) // it must not be taken for a call of its own
			}
			if a.Call.ID, err = x.state.Before(key); err != nil {
				return err
			}
		}
		a.Call.Synthesized = true
	}
	x.entry.Call, x.entry.CallSynthesized = a.Call.ID, a.Call.Synthesized
	return nil
}

// key names a call by what it is: its turn, tool and input.
func (x *judgement) key() (string, error) {
	input, err := strictjson.Canonical(x.event.AHP.Tool.Input)
	if err != nil {
		return "", err
	}
	return hookstate.Key(x.entry.Turn, x.entry.Tool, string(input)), nil
}

// once reports whether the same event may come twice and can be told from another.
func (x *judgement) once() bool {
	call := x.event.AHP.Call
	return !x.host.Deduplicates && call != nil && !call.Synthesized
}

// twice judges an event that may come a second time, from another of the host's files.
func (x *judgement) twice(ctx context.Context) (Answer, error) {
	var made Answer
	var failed error
	until := x.until.Add(-time.Until(x.until) / 2) // so that there is time to judge it here
	key, err := x.delivery()
	if err != nil {
		return Answer{}, err
	}
	text, again, err := x.state.OnceUntil(until, key, func() []byte {
		if made, failed = x.decide(ctx); failed != nil {
			made = x.policy(failed)
		}
		return encodeAnswer(made)
	})
	switch {
	case again:
		return decodeAnswer(text)
	case err != nil && text == nil: // who judges it takes too long: it is judged twice, and logged so
		x.entry.Duplicate = true
		return x.decide(ctx)
	}
	return made, nil
}

// delivery names what may be answered alike: the whole event, for the provider of a model
// may use an id again for another tool or result, to lines that say the same, for one of
// another scope may allow more.
func (x *judgement) delivery() (string, error) {
	e := *x.event.AHP
	e.ID, e.Time, e.Native = "delivery", ahp.Timestamp(time.Unix(0, 0)), nil
	text, err := e.Encode()
	if err != nil {
		return "", err
	}
	return hookstate.Key(x.c.Host, x.event.Row.Native, adapter.Digest(text), x.c.Registration, fmt.Sprint(x.c.Open, x.c.Unprotected)), nil
}

// decide asks everybody and comes to an answer.
func (x *judgement) decide(ctx context.Context) (Answer, error) {
	if a, is, err := x.canary(); is {
		return a, err
	}
	caps := x.event.Row.Capabilities(x.event.AHP.ContinuationCount)
	seat, err := x.plan.sit(x.j, x.entry.Session)
	if err != nil {
		return Answer{}, err
	}
	defer x.plan.rise(seat)
	if caps == nil || !x.event.Row.Type.Interceptable() {
		return x.observe(ctx, seat.h)
	}
	o, err := x.protect(ctx)
	if err != nil {
		return Answer{}, err
	}
	opts := harness.DispatchOptions{Budget: x.left(), ObserveOnly: o != nil}
	if x.event.AHP.Native == nil {
		opts.Prepared = x.made
	}
	var asked *harness.Outcome
	if len(x.plan.reg.Hooks) > 0 {
		if asked, err = seat.h.Dispatch(ctx, x.event.AHP, caps, nil, opts); err != nil {
			return Answer{}, err
		}
		if o == nil {
			o = &asked.Outcome
		}
	}
	if o == nil {
		o = &ahp.Outcome{Event: x.event.AHP}
	}
	if err := x.heard(o); err != nil {
		return Answer{}, err
	}
	return x.say(o)
}

// left returns the time for asking: a little is kept for the answer itself.
func (x *judgement) left() time.Duration {
	left := time.Until(x.until)
	left -= min(left/20, 250*time.Millisecond)
	return max(left, time.Millisecond)
}

// protect is self-protection: its outcome if it refuses, else nil.
func (x *judgement) protect(ctx context.Context) (*ahp.Outcome, error) {
	if x.c.Unprotected || x.event.AHP.Type != ahp.ToolBefore {
		return nil, nil
	}
	began := time.Now()
	deny, err := x.plan.protect.Judge(ctx, x.event.AHP)
	if err != nil {
		return nil, fmt.Errorf("self-protection: %w", err)
	}
	if deny == nil {
		return nil, nil
	}
	by := ahp.SubscriptionID{Backend: SelfProtection}
	return &ahp.Outcome{
		Event: x.event.AHP, Permission: ahp.PermissionDeny, Denials: []ahp.Denial{{By: by, Reason: deny.Reason, Code: deny.Code}},
		Trace: []ahp.Answer{{By: by, Kind: ahp.AnswerEffects, Effects: []ahp.Effect{deny}, Milliseconds: time.Since(began).Milliseconds(), Attempts: 1}},
	}, nil
}

// observe lets observers know of an event that nobody can decide about.
func (x *judgement) observe(ctx context.Context, h *harness.Harness) (Answer, error) {
	if h.Subscribed(x.event.AHP.Type, ahp.ModeObserve) {
		if _, err := h.Observe(ctx, x.event.AHP); err != nil && !errors.Is(err, context.Canceled) {
			return Answer{}, err
		}
	}
	text, err := x.host.Write(x.event, &adapter.Verdict{})
	if err != nil {
		return Answer{}, err
	}
	return Answer{Code: ExitPass, Stdout: text}, nil
}

// heard writes down what was asked and answered.
func (x *judgement) heard(o *ahp.Outcome) (err error) {
	if x.entry.Answers, err = hooklog.AnswersOf(o.Trace); err != nil {
		return err
	}
	x.entry.Event = x.made.Text() // without its native form: the log has what was judged
	return nil
}

// say turns an outcome into the host's answer, once it is in the log.
func (x *judgement) say(o *ahp.Outcome) (Answer, error) {
	row := x.event.Row
	repeat := 0
	if len(o.Denials) > 0 && x.event.AHP.Tool != nil {
		key, err := x.key()
		if err != nil {
			return Answer{}, err
		}
		if repeat, err = x.state.Denied(key, x.entry.Call); err != nil {
			return Answer{}, err
		}
	}
	asks := row.Find(ahp.EffectAsk, "")
	v := adapter.Settle(x.event, o, adapter.Texts{
		Denial: denialText(o, repeat), Ask: askText(o, asks != nil && asks.How == adapter.Native), Withheld: withheldText(o),
	})
	text, err := x.host.Write(x.event, v)
	if err != nil {
		return Answer{}, err
	}
	a, err := answer(x.named, x.host, row, v, text)
	if err != nil {
		return Answer{}, err
	}
	if err := x.unpaired(v); err != nil {
		return Answer{}, err
	}
	x.conclude(o, v, repeat)
	if err := x.j.log.Append(x.entry); err != nil && v.Deny == "" { // a refusal is told all the same
		return Answer{}, fmt.Errorf("the decision can't be written down: %w", err)
	}
	return a, nil
}

// unpaired gives the id of a call up that won't run, where it was made up: no event will
// come after it.
func (x *judgement) unpaired(v *adapter.Verdict) error {
	a := x.event.AHP
	if v.Deny == "" || a.Type != ahp.ToolBefore || !a.Call.Synthesized {
		return nil
	}
	key, err := x.key()
	if err != nil {
		return err
	}
	return x.state.Refused(key, a.Call.ID)
}

// conclude completes the log's entry.
func (x *judgement) conclude(o *ahp.Outcome, v *adapter.Verdict, repeat int) {
	e := x.entry
	e.Repeat, e.Milliseconds, e.Applied = repeat, time.Since(x.began).Milliseconds(), hooklog.AppliedNative
	switch {
	case v.Deny != "":
		e.Decision, e.Reason = hooklog.Deny, v.Deny
	case v.Ask != "":
		e.Decision, e.Reason = hooklog.Ask, v.Ask
	case v.Input != nil || v.Output != nil || v.Prompt != nil || v.Instructions != nil:
		e.Decision = hooklog.Rewrite
	case !v.Silent():
		e.Decision = hooklog.Tell
	default:
		e.Decision, e.Applied = hooklog.Pass, ""
	}
	if d := o.Denial(); d != nil {
		e.Code = d.Code
	}
	if len(v.Stood) > 0 {
		e.Applied = hooklog.AppliedStoodIn
	}
	if len(v.Lost) > 0 {
		e.Applied = fmt.Sprintf("lost: this host can't enforce %v at %s", v.Lost, x.event.Row.Native)
	}
}
