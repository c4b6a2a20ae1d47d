package harness

import (
	"fmt"
	"slices"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/elicitation"
)

// settled is what the chain has come to so far. It is copied before a response is
// staged, and replaced as a whole when the response is accepted.
type settled struct {
	ahp.Outcome
	// given is set once a candidate or permission came with the dispatch.
	initial bool
	// text is the encoding of Event, nil if it isn't known.
	text ahp.Raw
	// asked is the request of an elicitation, or what is known of it.
	asked *elicitation.Request
}

// begin returns the state of a chain that starts with event e and what the host
// had already decided.
func begin(e *ahp.Event, st *ahp.State) (*settled, error) {
	s := &settled{Outcome: ahp.Outcome{Event: e, Permission: ahp.PermissionNone, Flow: ahp.FlowStateNone}}
	var err error
	if s.asked, err = askedOf(e); err != nil {
		return nil, elicitationFault(err)
	}
	if st == nil {
		return s, nil
	}
	s.initial = true
	s.Permission, s.Candidate = st.Permission, st.Candidate
	if st.Flow != "" {
		s.Flow = st.Flow
	}
	s.Instructions = slices.Clone(st.Instructions)
	for _, raw := range st.Injections {
		list, err := ahp.DecodeEffects(slices.Concat([]byte("["), raw, []byte("]")))
		if err != nil || len(list) != 1 {
			return nil, fmt.Errorf("harness: an injection of the state is no effect: %v", err)
		}
		inject, ok := list[0].(*ahp.Inject)
		if !ok {
			return nil, fmt.Errorf("harness: an injection of the state is the effect %q", list[0].EffectType())
		}
		s.Injections = append(s.Injections, inject)
	}
	s.dropCandidate()
	return s, nil
}

// state returns what a backend is told of the chain so far (§12), nil for nothing.
// Messages that others supplied are content, which v shows as it does the event's.
func (s *settled) state(v *viewer) (*ahp.State, error) {
	if !s.initial && s.Permission == ahp.PermissionNone && s.Candidate == nil && s.Flow == ahp.FlowStateNone && len(s.Injections) == 0 {
		return nil, nil
	}
	candidate, err := v.candidate(s.Event.Type, s.Candidate)
	if err != nil {
		return nil, err
	}
	st := &ahp.State{Permission: s.Permission, Candidate: candidate, Instructions: s.Instructions}
	if s.Flow != ahp.FlowStateNone {
		st.Flow = s.Flow
	}
	for _, i := range s.Injections {
		raw, err := ahp.EncodeEffect(&ahp.Inject{DeliverAt: i.DeliverAt, Messages: v.messages(i.Messages)})
		if err != nil {
			return nil, err
		}
		st.Injections = append(st.Injections, raw)
	}
	return st, nil
}

// stage returns what s becomes with the effects of one response, or why they are
// refused as a whole. given are the attachments that the request showed. s isn't
// changed. The error is an *ahp.Error, or what stop returned, which is asked between
// the effects: each may cost as much as the event is large. A nil stop never does.
func (s *settled) stage(by ahp.SubscriptionID, effects []ahp.Effect, caps *ahp.Capabilities, given refs, stop func() error) (*settled, bool, error) {
	if stop == nil {
		stop = func() error { return nil }
	}
	if err := s.accept(effects, caps, given, stop); err != nil {
		return nil, false, err
	}
	effects, err := given.localised(s.Event.Type, effects)
	if err != nil {
		return nil, false, err
	}
	next := s.clone()
	changed, err := next.modify(effects, stop)
	if err != nil {
		return nil, false, err
	}
	if changed {
		next.text = nil
		next.Changed, next.ChangedBy = true, by
		// Both were about another input (§11, 5).
		next.Candidate, next.CandidateBy = nil, ahp.SubscriptionID{}
		if next.Permission == ahp.PermissionAllow {
			next.Permission = ahp.PermissionNone
		}
	}
	for _, e := range effects {
		next.apply(by, e)
	}
	next.dropCandidate()
	return next, changed, nil
}

// accept checks the effects of one response against the advertisement and the
// boundary. What was not advertised is said before what can't be applied now,
// whatever their order in the list.
func (s *settled) accept(effects []ahp.Effect, caps *ahp.Capabilities, given refs, stop func() error) error {
	var later error
	for i, e := range effects {
		if err := stop(); err != nil {
			return err
		}
		err := accept(s.Event.Type, e, caps, given)
		if err == nil {
			err = s.acceptElicitation(e, caps)
		}
		if err == nil {
			continue
		}
		err = locateEffect(err, i)
		if fault, ok := err.(*ahp.Error); !ok || fault.Kind != ahp.KindApplication {
			return err
		}
		if later == nil {
			later = err
		}
	}
	return later
}

func locateEffect(err error, i int) error {
	if e, ok := err.(*ahp.Error); ok {
		e.Pointer = fmt.Sprintf("/result/effects/%d", i)
	}
	return err
}

// accept checks one effect against the advertisement and the boundary (§8).
func accept(t ahp.EventType, e ahp.Effect, caps *ahp.Capabilities, given refs) error {
	if err := caps.Accepts(e); err != nil || isElicitation(t) {
		return err
	}
	refuse := func(expected string, cause error) error {
		return &ahp.Error{Kind: ahp.KindCapability, Offset: -1, Found: "a value of another shape", Expected: expected, Requirement: "AHP-EDIT-001", Err: cause}
	}
	messages := func(value ahp.Raw) error {
		list, err := ahp.DecodeMessages(value)
		if err != nil {
			return refuse("a list of messages", err)
		}
		return given.known(list)
	}
	switch e := e.(type) {
	case *ahp.Inject:
		return given.known(e.Messages)
	case *ahp.Modify:
		switch e.Target {
		case ahp.TargetInput, ahp.TargetWorkspace, ahp.TargetInstructions, ahp.TargetSummary:
		default:
			return messages(e.Value)
		}
	case *ahp.Return:
		switch t {
		case ahp.ModelRequestBefore:
			return messages(e.Value)
		case ahp.ContextCompactBefore:
			if _, err := ahp.DecodeTextParts(e.Value); err != nil {
				return refuse("a list of text parts", err)
			}
		}
	}
	return nil
}

func (s *settled) clone() *settled {
	c := *s
	c.Denials, c.Instructions = slices.Clip(s.Denials), slices.Clip(s.Instructions)
	c.Messages, c.Injections = slices.Clip(s.Messages), slices.Clip(s.Injections)
	return &c
}

// apply adds one accepted effect other than modify. Order doesn't matter to
// permission and flow: the strictest stays.
func (s *settled) apply(by ahp.SubscriptionID, e ahp.Effect) {
	switch e := e.(type) {
	case *ahp.Deny:
		s.raise(ahp.PermissionDeny)
		s.Denials = append(s.Denials, ahp.Denial{By: by, Reason: e.Reason, Code: e.Code})
	case *ahp.Ask:
		s.raise(ahp.PermissionAsk)
	case *ahp.Allow:
		s.raise(ahp.PermissionAllow)
	case *ahp.Notice:
		s.Messages = append(s.Messages, e.Text)
	case *ahp.Return:
		s.Candidate, s.CandidateBy = &ahp.Candidate{Value: e.Value}, by
	case *ahp.Inject:
		s.Injections = append(s.Injections, e)
	case *ahp.Flow:
		if e.Operation == ahp.FlowStop {
			if s.Flow != ahp.FlowStateStop {
				s.StopReason, s.StoppedBy = e.Reason, by
			}
			s.Flow = ahp.FlowStateStop
			return
		}
		if s.Flow == ahp.FlowStateNone {
			s.Flow = ahp.FlowStateContinue
		}
		if e.Instruction != "" {
			s.Instructions = append(s.Instructions, e.Instruction)
		}
	}
}

func (s *settled) raise(p ahp.Permission) {
	if p.Stricter(s.Permission) {
		s.Permission = p
	}
}

// dropCandidate drops a supplied result that can't be used any more.
func (s *settled) dropCandidate() {
	if s.Permission == ahp.PermissionDeny || s.Flow == ahp.FlowStateStop {
		s.Candidate, s.CandidateBy = nil, ahp.SubscriptionID{}
	}
}

// ends reports whether the chain ends with what was accepted last (§11, 10).
func ends(effects []ahp.Effect) bool {
	return slices.ContainsFunc(effects, func(e ahp.Effect) bool {
		f, flow := e.(*ahp.Flow)
		return e.EffectType() == ahp.EffectDeny || flow && f.Operation == ahp.FlowStop
	})
}
