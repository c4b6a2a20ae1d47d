package harness

import (
	"fmt"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/elicitation"
	"github.com/abhed/abhed/internal/strictjson"
)

// modify applies the modify effects of a response in order and reports whether
// the effective value is another one afterwards. s.Event is replaced, never
// changed. The error is an *ahp.Error, or what stop returned.
func (s *settled) modify(effects []ahp.Effect, stop func() error) (changed bool, err error) {
	before := s.Event
	for i, e := range effects {
		m, ok := e.(*ahp.Modify)
		if !ok {
			continue
		}
		if err := stop(); err != nil {
			return false, err
		}
		next := *s.Event
		if err := edit(&next, m, s.asked); err != nil {
			return false, &ahp.Error{Kind: ahp.KindApplication, Pointer: fmt.Sprintf("/result/effects/%d/value", i), Offset: -1,
				Found: err.Error(), Expected: "an edit that the event allows", Requirement: "AHP-EDIT-001", Err: err}
		}
		s.Event = &next
	}
	if s.Event == before {
		return false, nil
	}
	same, err := sameTarget(before, s.Event)
	if same {
		s.Event = before
	}
	return !same, err
}

// edit applies m to e, whose pointers and lists are shared with another event.
func edit(e *ahp.Event, m *ahp.Modify, asked *elicitation.Request) error {
	switch m.Target {
	case ahp.TargetInput:
		input, err := editObject(e.Tool.Input, m)
		if err != nil {
			return err
		}
		tool := *e.Tool
		tool.Input = input
		e.Tool = &tool
		if len(input) < ahp.MaxMessageBytes/4 {
			return nil // any object will do; merging is all that makes a large one
		}
	case ahp.TargetWorkspace:
		if err := editWorkspace(e, m); err != nil {
			return err
		}
	case ahp.TargetInstructions, ahp.TargetSummary:
		parts, err := ahp.DecodeTextParts(m.Value)
		if err != nil {
			return err
		}
		list := &e.Instructions
		if m.Target == ahp.TargetSummary {
			list = &e.Summary
		}
		*list = editList(*list, parts, m.Operation)
	default:
		if e.Elicitation != nil {
			if err := editElicitation(e, m, asked); err != nil {
				return err
			}
			break
		}
		messages, err := ahp.DecodeMessages(m.Value)
		if err != nil {
			return err
		}
		if e.Message != nil {
			user := *e.Message
			user.Messages = editList(user.Messages, messages, m.Operation)
			e.Message = &user
		} else {
			e.Items.Messages = editList(e.Items.Messages, messages, m.Operation)
		}
	}
	return e.Validate()
}

// editList replaces a list, or appends to it without touching it.
func editList[T any](old, add []T, op ahp.Operation) []T {
	out := make([]T, 0, len(old)+len(add))
	if op == ahp.OpMerge {
		out = append(out, old...)
	}
	return append(out, add...)
}

// editObject replaces an object, or overwrites its top-level members; null is a
// literal and nested values are taken whole (§8).
func editObject(old ahp.Raw, m *ahp.Modify) (ahp.Raw, error) {
	if m.Operation == ahp.OpReplace {
		return m.Value, nil
	}
	var target, patch map[string]ahp.Raw
	if err := strictjson.Unmarshal(old, &target, strictjson.Options{}); err != nil {
		return nil, err
	}
	if err := strictjson.Unmarshal(m.Value, &patch, strictjson.Options{}); err != nil {
		return nil, err
	}
	for name, v := range patch {
		target[name] = v
	}
	out, err := strictjson.Marshal(target)
	return out, err
}

func editWorkspace(e *ahp.Event, m *ahp.Modify) error {
	old, err := e.Workspace.Change.Encode()
	if err != nil {
		return err
	}
	raw, err := editObject(old, m)
	if err != nil {
		return err
	}
	change, err := ahp.DecodeWorkspaceState(raw)
	if err != nil {
		return err
	}
	w := *e.Workspace
	w.Change = *change
	e.Workspace = &w
	return nil
}

// sameTarget reports whether two versions of an event have the same effective
// value: the order of members doesn't matter (§11, 5).
func sameTarget(a, b *ahp.Event) (bool, error) {
	if a.Tool != nil && b.Tool != nil && a.Type.Target() == ahp.TargetInput {
		return a.Tool.Input.Equal(b.Tool.Input), nil
	}
	if a.Type == ahp.UserElicitationResult {
		return sameAnswer(a, b), nil
	}
	x, err := a.Encode()
	if err != nil {
		return false, err
	}
	y, err := b.Encode()
	if err != nil {
		return false, err
	}
	return strictjson.Equal(x, y), nil
}
