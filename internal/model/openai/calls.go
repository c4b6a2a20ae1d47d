package openai

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/model/httpapi"
	"github.com/abhed/abhed/internal/strictjson"
)

const maxCalls = 512

// piece is a fragment of a call with its members read.
type piece struct {
	index    int64
	hasIndex bool
	id       string
	name     string
	args     string
	marked   bool // the strings may hold marks of half characters
	later    bool // not the first piece in its frame
}

// call is a tool call as it grows.
type call struct {
	index    int64
	hasIndex bool
	id       string
	name     string
	args     strings.Builder
	join     httpapi.Joiner
}

// complete reports whether the arguments are a whole JSON object.
func (c *call) complete() bool {
	args := strings.TrimRight(c.args.String(), " \t\r\n")
	return strings.HasSuffix(args, "}") && strictjson.Check([]byte(args), strictjson.Options{MaxBytes: len(args)}) == nil
}

// callSet assembles calls from pieces. Servers differ in what they put into a
// piece: the index may be missing, be 0 for every call or be repeated for a
// second call; the id may be missing, come late or come with every piece. The
// name may come once, in pieces, or whole with every piece.
type callSet struct {
	list []*call
	note func(string)
}

// add puts p where it belongs.
func (s *callSet) add(p piece) error {
	c := s.find(p)
	if c == nil {
		if len(s.list) == maxCalls {
			return fmt.Errorf("more than %d tool calls in one reply", maxCalls)
		}
		c = &call{index: p.index, hasIndex: p.hasIndex}
		s.list = append(s.list, c)
	} else if p.name != "" && p.args != "" && p.args == c.args.String() && c.complete() {
		s.note("a tool call that was sent twice was taken once")
		return nil
	}
	if c.id == "" {
		c.id = p.id
	}
	c.addName(p.name)
	c.args.WriteString(c.join.Add(p.args, p.marked))
	return nil
}

// addName takes a name that is new, the same again, a longer form, or the next
// piece of it.
func (c *call) addName(name string) {
	switch {
	case name == "" || name == c.name:
	case strings.HasPrefix(name, c.name):
		c.name = name
	default:
		c.name += name
	}
}

// find returns the call that p continues, or nil if p starts one.
func (s *callSet) find(p piece) *call {
	if p.id != "" {
		return s.findByID(p)
	}
	if p.hasIndex {
		c := s.last(func(c *call) bool { return c.hasIndex && c.index == p.index })
		// Without ids a second call under one index shows only by its name.
		if c != nil && p.name != "" && (p.name != c.name || p.args != "" && p.args != c.args.String()) && c.complete() {
			return nil
		}
		return c
	}
	c := s.last(func(*call) bool { return true })
	if c == nil || p.name == "" || c.name == "" {
		return c
	}
	if p.later || p.name != c.name || c.complete() {
		return nil
	}
	return c
}

func (s *callSet) findByID(p piece) *call {
	sameID := func(c *call) bool { return c.id == p.id }
	if c := s.last(func(c *call) bool { return sameID(c) && c.hasIndex == p.hasIndex && c.index == p.index }); c != nil {
		return c
	}
	if c := s.last(sameID); c != nil {
		// The same id under another index with a name is another call of a server
		// that doesn't keep its ids apart.
		if p.hasIndex && c.hasIndex && p.name != "" {
			return nil
		}
		return c
	}
	if p.name != "" {
		return nil
	}
	// An unknown id without a name: the id came late, or is made anew for every
	// piece.
	if p.hasIndex {
		return s.last(func(c *call) bool { return c.hasIndex && c.index == p.index })
	}
	return s.last(func(*call) bool { return true })
}

func (s *callSet) last(match func(*call) bool) *call {
	for i := len(s.list) - 1; i >= 0; i-- {
		if match(s.list[i]) {
			return s.list[i]
		}
	}
	return nil
}

// names lists the calls for a note.
func (s *callSet) names() string {
	var out []string
	for _, c := range s.list {
		out = append(out, httpapi.QuoteBytes([]byte(c.name), 80))
	}
	return strings.Join(out, ", ")
}

var errNameless = errors.New("a tool call came without a name")

// finish returns the calls as they are to be judged. Ids are made unique within
// the reply and against used.
func (s *callSet) finish(used func(id string) bool) ([]*model.ToolCall, error) {
	var out []*model.ToolCall
	seen := map[string]bool{}
	for _, c := range s.list {
		c.args.WriteString(c.join.Flush())
		if c.name == "" {
			return nil, fmt.Errorf("%w (id %s, arguments %s)", errNameless, httpapi.QuoteBytes([]byte(c.id), 80), httpapi.QuoteBytes([]byte(c.args.String()), 200))
		}
		args := c.args.String()
		if strings.TrimSpace(args) == "" {
			args = "{}" // how many servers write a call without arguments
		}
		id := c.id
		if id == "" || seen[id] || used(id) {
			if id != "" {
				s.note(fmt.Sprintf("the call id %s was used before and got a new one", httpapi.QuoteBytes([]byte(id), 80)))
			}
			id = "call_" + rand.Text()
		}
		seen[id] = true
		out = append(out, &model.ToolCall{ID: id, Name: c.name, Args: args})
	}
	return out, nil
}
