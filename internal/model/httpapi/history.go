package httpapi

import (
	"bytes"
	"errors"
	"slices"

	"github.com/abhed/abhed/internal/model"
)

// History keeps the encoded form of the messages that it has seen, so that a request
// costs the encoding of what is new. Messages are recognised by their address, so
// they must be immutable. The zero value with Append set is ready.
//
// Slices that it has handed out are never written to again: the HTTP transport may
// still be reading a body after the call that sent it has returned.
type History struct {
	// Append adds the encoding of m as none, one or more elements, each with a comma
	// before it. It depends on m alone, else the client must call Forget.
	Append func(dst []byte, m *model.Message) []byte

	seen    []*model.Message
	ends    []int  // buf[:ends[i]] holds the messages up to and including i
	buf     []byte // each message with a comma before it
	ids     map[string]bool
	encoded int
}

// Encode returns the messages with commas between them, nothing for none.
func (h *History) Encode(ms []*model.Message) []byte {
	same := 0
	for same < len(h.seen) && same < len(ms) && h.seen[same] == ms[same] {
		same++
	}
	if same < len(h.seen) {
		h.forget(same)
	}
	for _, m := range ms[same:] {
		h.remember(m)
		h.buf = h.Append(h.buf, m)
		h.seen = append(h.seen, m)
		h.ends = append(h.ends, len(h.buf))
		h.encoded++
	}
	out := bytes.TrimPrefix(h.buf, []byte(","))
	return out[:len(out):len(out)]
}

// Forget drops all that was kept; the next request is encoded anew.
func (h *History) Forget() { h.forget(0) }

// Used reports whether a call in the messages last encoded has the id.
func (h *History) Used(id string) bool { return h.ids[id] }

// Encoded returns how many messages were encoded so far, for tests of the growth.
func (h *History) Encoded() int { return h.encoded }

// forget drops all but the first n messages.
func (h *History) forget(n int) {
	end := 0
	if n > 0 {
		end = h.ends[n-1]
	}
	h.seen, h.ends = slices.Clone(h.seen[:n]), h.ends[:n]
	h.buf = h.buf[:end:end] // the next append copies
	h.ids = nil
	for _, m := range h.seen {
		h.remember(m)
	}
}

func (h *History) remember(m *model.Message) {
	for _, p := range m.Parts {
		if p.ToolCall != nil {
			if h.ids == nil {
				h.ids = map[string]bool{}
			}
			h.ids[p.ToolCall.ID] = true
		}
	}
}

// Seals knows which seals a client may send back: those of its own origin, but for
// those that the endpoint has refused.
type Seals struct {
	// Origin is what the client writes into the seals that it makes, as
	// "anthropic:provider/model".
	Origin string

	dropped map[string]bool
}

// Mine reports whether s may be sent; false for nil.
func (s *Seals) Mine(seal *model.Seal) bool {
	return seal != nil && seal.Origin == s.Origin && !s.dropped[seal.Data]
}

// Refused takes the failure of a call that sent ms. If the endpoint refused what was
// sent back (model.ErrReplay), the seals in ms are dropped and h forgets; if there
// was none to drop, the kind becomes model.ErrRequest, since the same request would
// be refused again. It returns err.
func (s *Seals) Refused(err error, ms []*model.Message, h *History) error {
	var me *model.Error
	if !errors.As(err, &me) || me.Kind != model.ErrReplay {
		return err
	}
	if s.Drop(ms) {
		h.Forget()
	} else {
		me.Kind = model.ErrRequest
	}
	return err
}

// Drop keeps every seal in ms from being sent again, and reports whether there was
// one that would have been. The client must forget its History then.
func (s *Seals) Drop(ms []*model.Message) bool {
	any := false
	for _, m := range ms {
		for _, p := range m.Parts {
			if s.Mine(p.Seal) {
				if s.dropped == nil {
					s.dropped = map[string]bool{}
				}
				s.dropped[p.Seal.Data], any = true, true
			}
		}
	}
	return any
}
