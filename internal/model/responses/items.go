package responses

import (
	"fmt"
	"strings"

	"github.com/abhed/abhed/internal/model/httpapi"
)

const maxItems = 1024

type itemKind string

const (
	kindMessage   itemKind = "message"
	kindReasoning itemKind = "reasoning"
	kindCall      itemKind = "function_call"
)

// item is an item of the output as it grows.
type item struct {
	kind      itemKind
	id, index string // "" where the server sends none
	callID    string
	name      string
	encrypted string
	text      strings.Builder // text, summary or arguments
	join      httpapi.Joiner
	part      bool // another part of a summary begins

	done       bool // its end came
	incomplete bool // it says so
}

// itemSet holds the items in the order in which they began.
type itemSet struct {
	list []*item
	note func(string)
}

func (s *itemSet) add(it *item) (*item, error) {
	if len(s.list) == maxItems {
		return nil, fmt.Errorf("more than %d items in one reply", maxItems)
	}
	s.list = append(s.list, it)
	return it, nil
}

func (s *itemSet) last(match func(*item) bool) *item {
	for i := len(s.list) - 1; i >= 0; i-- {
		if match(s.list[i]) {
			return s.list[i]
		}
	}
	return nil
}

// forItem returns the item that w tells of, a new one if it is new, nil if it is of
// a kind that a client has no use for. Some servers give every item the same index,
// so an id counts more, and an item that has ended is not begun again.
func (s *itemSet) forItem(w *wireItem, index string) (*item, error) {
	kind, id, callID := itemKind(httpapi.Scalar(w.Type)), httpapi.Scalar(w.ID), httpapi.Scalar(w.CallID)
	if kind != kindMessage && kind != kindReasoning && kind != kindCall {
		s.note(fmt.Sprintf("an item of type %s was left out", httpapi.QuoteBytes([]byte(kind), 80)))
		return nil, nil
	}
	if id != "" {
		if it := s.last(func(it *item) bool {
			return it.kind == kind && it.id == id && (callID == "" || it.callID == "" || it.callID == callID)
		}); it != nil {
			return it, nil
		}
	}
	if callID != "" {
		if it := s.last(func(it *item) bool {
			return it.kind == kind && it.callID == callID && (id == "" || it.id == "" || it.id == id)
		}); it != nil {
			return it, nil
		}
	}
	free := func(it *item) bool {
		return it.kind == kind && !it.done && (id == "" || it.id == "") && (callID == "" || it.callID == "") && (index == "" || it.index == "" || it.index == index)
	}
	if it := s.last(free); it != nil {
		if it.id == "" {
			it.id = id
		}
		return it, nil
	}
	return s.add(&item{kind: kind, id: id, index: index, callID: callID})
}

// forDelta returns the item that a piece belongs to; one that nothing is known of
// begins with it.
func (s *itemSet) forDelta(kind itemKind, id, index string) (*item, error) {
	if id != "" {
		if it := s.last(func(it *item) bool { return it.kind == kind && it.id == id }); it != nil {
			return it, nil
		}
	}
	// Servers that make ids anew for every event.
	if index != "" {
		if it := s.last(func(it *item) bool { return it.kind == kind && it.index == index && !it.done }); it != nil {
			return it, nil
		}
	}
	if it := s.last(func(it *item) bool { return it.kind == kind && !it.done && (index == "" || it.index == "") }); it != nil {
		return it, nil
	}
	return s.add(&item{kind: kind, id: id, index: index})
}

// calls counts the calls that have begun.
func (s *itemSet) calls() int {
	n := 0
	for _, it := range s.list {
		if it.kind == kindCall {
			n++
		}
	}
	return n
}
