package harness

import (
	"errors"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/elicitation"
)

// Evaluate returns what one reply makes of one request, without any backend: the
// rules are those of Dispatch. The error is an *ahp.Error that says why the reply
// is refused as a whole, or an *ahp.RPCError if it is one; no policy is applied. A
// replacement of a list whose content the request doesn't show in full counts as
// not advertised, whatever the request says (§8).
func Evaluate(q *ahp.Intercept, reply []byte) (*ahp.Outcome, error) {
	if q.Event == nil {
		return nil, errors.New("harness: a request without an event")
	}
	s, err := begin(q.Event, q.State)
	if err != nil {
		return nil, err
	}
	if q.Event.Type == ahp.UserElicitationResult {
		if _, err := elicitation.OfResult(q.Event, nil); err != nil {
			return nil, elicitationFault(err)
		}
	}
	effects, err := ahp.DecodeEffectsReply(reply, ahp.StringID(q.Event.ID))
	if err != nil {
		return nil, err
	}
	caps := narrow(&q.Capabilities, q.Event.Type, incomplete(q.Event))
	next, changed, err := s.stage(ahp.SubscriptionID{}, effects, caps, refsIn(q.Event), nil)
	if err != nil {
		return nil, err
	}
	next.Trace = []ahp.Answer{{Kind: ahp.AnswerEffects, Effects: effects, Changed: changed}}
	return &next.Outcome, nil
}

// incomplete reports whether e lacks content: whoever sees it sees less than there
// is.
func incomplete(e *ahp.Event) bool {
	v := viewer{content: map[string]ahp.Selection{"default": ahp.SelectBody}}
	v.view(e, true)
	return v.hidden
}
