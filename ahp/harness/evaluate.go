package harness

import (
	"errors"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/elicitation"
)

// Evaluate returns what one reply makes of one request, without any backend: the
// rules are those of Dispatch. The error is an *ahp.Error that says why the reply
// is refused as a whole, or an *ahp.RPCError if it is one; no policy is applied.
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
	next, changed, err := s.stage(ahp.SubscriptionID{}, effects, &q.Capabilities, refsIn(q.Event))
	if err != nil {
		return nil, err
	}
	next.Trace = []ahp.Answer{{Kind: ahp.AnswerEffects, Effects: effects, Changed: changed}}
	return &next.Outcome, nil
}
