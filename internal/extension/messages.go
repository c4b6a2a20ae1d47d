package extension

import (
	"strconv"
	"strings"
	"sync"

	"github.com/abhed/abhed/internal/event"
)

// maxShown is the limit of what a host remembers of messages.
const maxShown = 32 << 20

// shown remembers how messages are encoded, so that a conversation is encoded once
// however often it is shown. It holds each message that it knows, so an address
// can't come to mean another. When the young half is full it becomes the old one,
// and what isn't shown again is forgotten with the next. A shown with a limit is
// ready.
type shown struct {
	limit      int // of each half, in bytes
	mu         sync.Mutex
	young, old map[*event.Message][]byte
	size       int // of young
}

// add adds the member messages to r, as Host.Context describes it.
func (s *shown) add(r *request, messages []*event.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.name("messages")
	r.tail = append(r.tail, '[')
	for i, m := range messages {
		if i > 0 {
			r.tail = append(r.tail, ',')
		}
		r.tail = append(r.tail, `{"index":`...)
		r.tail = strconv.AppendInt(r.tail, int64(i), 10)
		r.tail = append(r.tail, s.encoded(m)...)
		r.tail = append(r.tail, '}')
	}
	r.tail = append(r.tail, ']')
}

// encoded returns the members of a message after its index. s.mu is held.
func (s *shown) encoded(m *event.Message) []byte {
	if b, ok := s.young[m]; ok {
		return b
	}
	b, ok := s.old[m]
	if !ok {
		b = encodeMessage(m)
	}
	if s.size+len(b) > s.limit {
		s.young, s.old, s.size = nil, s.young, 0
	}
	if s.young == nil {
		s.young = map[*event.Message][]byte{}
	}
	s.young[m] = b
	s.size += len(b)
	return b
}

// encodeMessage returns the members of a message after its index.
func encodeMessage(m *event.Message) []byte {
	content, tool, callID := describe(m)
	b := append([]byte(nil), `,"role":`...)
	b = appendString(b, string(m.Role))
	b = append(b, `,"content":`...)
	b = appendString(b, content)
	if tool != "" {
		b = append(b, `,"tool":`...)
		b = appendString(b, tool)
	}
	if callID != "" {
		b = append(b, `,"call_id":`...)
		b = appendString(b, callID)
	}
	return b
}

// describe returns what an extension is shown of a message.
func describe(m *event.Message) (content, tool, callID string) {
	var b strings.Builder
	inText := false
	piece := func(text string, isText bool) {
		if b.Len() > 0 && !(inText && isText) {
			b.WriteByte('\n')
		}
		b.WriteString(text)
		inText = isText
	}
	name := func(t, id string) {
		if tool == "" && callID == "" {
			tool, callID = t, id
		}
	}
	for _, p := range m.Parts {
		switch {
		case p.Text != nil:
			piece(*p.Text, true)
		case p.Reasoning != nil:
			piece(*p.Reasoning, false)
		case p.ToolCall != nil:
			piece(p.ToolCall.Name+" "+p.ToolCall.Args, false)
			name(p.ToolCall.Name, p.ToolCall.ID)
		case p.ToolResult != nil:
			piece(p.ToolResult.Content, false)
			name(p.ToolResult.Name, p.ToolResult.CallID)
			for _, i := range p.ToolResult.Images {
				piece("[image "+i.MediaType+"]", false)
			}
		case p.Image != nil:
			piece("[image "+p.Image.MediaType+"]", false)
		}
	}
	return b.String(), tool, callID
}
