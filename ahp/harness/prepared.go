package harness

import (
	"fmt"

	"github.com/abhed/abhed/ahp"
)

// Prepared is an event with its text, which was checked when it was made: who needs the
// text as well, for a log, needn't have it made twice.
type Prepared struct {
	event *ahp.Event
	text  ahp.Raw
}

// Prepare encodes and checks e, which must not be changed until it was dispatched. The
// error is that of an event which can't be sent.
func Prepare(e *ahp.Event) (*Prepared, error) {
	text, err := e.Encode()
	if err != nil {
		return nil, err
	}
	return &Prepared{e, text}, nil
}

// Text returns the event as JSON. It must not be changed.
func (p *Prepared) Text() ahp.Raw { return p.text }

// textOf returns the text of e, from p if that is of this very event.
func (p *Prepared) textOf(e *ahp.Event) (ahp.Raw, error) {
	if p == nil || p.event != e {
		var err error
		if p, err = Prepare(e); err != nil {
			return nil, fmt.Errorf("harness: invalid event: %w", err)
		}
	}
	return p.text, nil
}
