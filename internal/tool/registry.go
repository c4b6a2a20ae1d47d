package tool

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/abhed/abhed/internal/strictjson"
)

const (
	maxArgs    = 1 << 20
	maxContent = 16 << 20
)

// Registry holds the tools of a session by their exact names. It is built once
// and then only read, by any number of goroutines.
type Registry struct {
	order []string
	tools map[string]*entry
}

type entry struct {
	tool Tool
	spec Spec

	once    sync.Once // guards what follows
	schema  *jsonschema.Resolved
	members []string
	err     error // of a schema that can't be used
}

// NewRegistry returns a registry of the given tools in that order. A repeated
// name or a schema that can't be used is an error that names the tool.
func NewRegistry(tools ...Tool) (*Registry, error) {
	r := &Registry{tools: map[string]*entry{}}
	for _, t := range tools {
		spec := t.Spec()
		if _, dup := r.tools[spec.Name]; dup {
			return nil, fmt.Errorf("two tools are named %q", spec.Name)
		}
		e, err := newEntry(t, spec)
		if err != nil {
			return nil, fmt.Errorf("tool %q: %w", spec.Name, err)
		}
		r.tools[spec.Name] = e
		r.order = append(r.order, spec.Name)
	}
	return r, nil
}

func newEntry(t Tool, spec Spec) (*entry, error) {
	e := &entry{tool: t, spec: spec}
	if spec.Fixed {
		return e, nil
	}
	return e, e.ready()
}

// ready compiles the schema, once.
func (e *entry) ready() error {
	e.once.Do(func() {
		if e.err = e.compile(); e.err != nil {
			e.err = fmt.Errorf("schema: %w", e.err)
		}
	})
	return e.err
}

func (e *entry) compile() error {
	var s jsonschema.Schema
	if err := checkSchema(e.spec.Schema); err != nil {
		return err
	}
	if err := s.UnmarshalJSON(e.spec.Schema); err != nil {
		return err
	}
	if s.Type != "object" {
		return fmt.Errorf("found type %q, expected \"object\"", s.Type)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return err
	}
	e.schema = resolved
	for name := range s.Properties {
		e.members = append(e.members, name)
	}
	slices.Sort(e.members)
	return nil
}

// Lookup returns the tool of exactly that name.
func (r *Registry) Lookup(name string) (Tool, bool) {
	e, ok := r.tools[name]
	if !ok {
		return nil, false
	}
	return e.tool, true
}

// Specs returns the specs of all tools in registration order.
func (r *Registry) Specs() []Spec {
	specs := make([]Spec, 0, len(r.order))
	for _, n := range r.order {
		specs = append(specs, r.tools[n].spec)
	}
	return specs
}

// ArgsError says why arguments can't be used, in words that let the model repair
// its call.
type ArgsError struct {
	Tool string
	Msg  string
}

// Error returns the message for the model.
func (e *ArgsError) Error() string { return e.Msg }

// Check decodes a call's arguments strictly and returns them as canonical JSON
// (gate.md §2 step 1). Every error is an *ArgsError.
func (r *Registry) Check(name string, args []byte) ([]byte, error) {
	e, ok := r.tools[name]
	if !ok {
		return nil, &ArgsError{name, fmt.Sprintf("There is no tool named %q. The tools are: %s.", name, strings.Join(r.order, ", "))}
	}
	fail := func(format string, a ...any) error {
		return &ArgsError{name, fmt.Sprintf("The arguments of %s can't be used: ", name) + fmt.Sprintf(format, a...)}
	}
	if err := e.ready(); err != nil {
		return nil, fail("%v. That is a fault of this program.", err)
	}
	limit := maxArgs
	if len(e.spec.ContentMembers) > 0 {
		limit += maxContent
	}
	var obj map[string]any
	if err := strictjson.Unmarshal(args, &obj, strictjson.Options{MaxBytes: limit}); err != nil {
		return nil, fail("%v. Send one JSON object.", err)
	}
	if obj == nil {
		return nil, fail("found null, expected an object.")
	}
	if len(args) > maxArgs {
		if rest := len(args) - e.contentBytes(args); rest > maxArgs {
			return nil, fail("%d bytes, the limit is %d.", rest, maxArgs)
		}
	}
	if member, m := e.folded(obj); m != "" {
		return nil, fail("member %q differs from %q only in case; names are compared exactly.", member, m)
	}
	if err := e.validate(obj); err != nil {
		return nil, fail("%v", err)
	}
	canon, err := strictjson.Canonical(args)
	if err != nil {
		return nil, fail("%v", err)
	}
	return canon, nil
}

// contentBytes returns how many bytes of args, which passed the door, are members
// that may be large.
func (e *entry) contentBytes(args []byte) int {
	var obj map[string]jsontext.Value
	if strictjson.Unmarshal(args, &obj, strictjson.Options{MaxBytes: len(args)}) != nil {
		return 0
	}
	n := 0
	for _, m := range e.spec.ContentMembers {
		n += min(len(obj[m]), maxContent)
	}
	return n
}

// folded returns a member whose name differs from a declared one only in case,
// the first in order, and that one.
func (e *entry) folded(obj map[string]any) (member, declared string) {
	for name := range obj {
		if slices.Contains(e.members, name) || member != "" && member < name {
			continue
		}
		for _, m := range e.members {
			if strings.EqualFold(m, name) {
				member, declared = name, m
			}
		}
	}
	return member, declared
}
