package harness

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/strictjson"
)

// refs holds the attachments that one request showed with their bytes, by the
// receiver's ref, of which several parts may have the same. An effect of the reply may repeat them unchanged, and no others:
// a ref of another backend, of another request or of its own making says nothing
// here, whatever bytes it stands for (§8, §19).
type refs map[string][]shown

type shown struct {
	part ahp.Part
	// name is the host's for the same bytes.
	name string
}

// find returns p as it was shown, or nil.
func (r refs) find(p *ahp.Part) *shown {
	list := r[p.Body.Ref]
	for i := range list {
		if reflect.DeepEqual(&list[i].part, p) {
			return &list[i]
		}
	}
	return nil
}

// known refuses attachments that the request didn't show like this.
func (r refs) known(list []ahp.Message) error {
	for i := range list {
		for j := range list[i].Parts {
			p := &list[i].Parts[j]
			if p.Body == nil {
				continue
			}
			refuse := func(found, expected string) error {
				return &ahp.Error{Kind: ahp.KindCapability, Offset: -1, Found: found, Expected: expected, Requirement: "AHP-CONTENT-002"}
			}
			if r[p.Body.Ref] == nil {
				return refuse("a reference to bytes that the backend wasn't given", "only references of the request")
			} else if r.find(p) == nil {
				return refuse("a reference in a part that isn't the one of the request", "the part unchanged")
			}
		}
	}
	return nil
}

// localised returns effects at an event of type t with the host's names in the place
// of receivers' refs. They were checked by known.
func (r refs) localised(t ahp.EventType, effects []ahp.Effect) ([]ahp.Effect, error) {
	if len(r) == 0 {
		return effects, nil
	}
	out := make([]ahp.Effect, len(effects))
	for i, e := range effects {
		out[i] = e
		var (
			value ahp.Raw
			err   error
		)
		switch e := e.(type) {
		case *ahp.Inject:
			out[i] = &ahp.Inject{DeliverAt: e.DeliverAt, Messages: r.rename(e.Messages)}
		case *ahp.Modify:
			if value, err = r.renameIn(e.Value); value != nil {
				out[i] = &ahp.Modify{Target: e.Target, Operation: e.Operation, Value: value}
			}
		case *ahp.Return:
			if t != ahp.ModelRequestBefore {
				continue // any JSON, which nobody looks into
			}
			if value, err = r.renameIn(e.Value); value != nil {
				out[i] = &ahp.Return{Value: value}
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// renameIn does rename in a value, which is nil if that isn't a list of messages.
func (r refs) renameIn(value ahp.Raw) (ahp.Raw, error) {
	list, err := ahp.DecodeMessages(value)
	if err != nil {
		return nil, nil
	}
	out, err := strictjson.Marshal(r.rename(list))
	if err != nil {
		return nil, fmt.Errorf("harness: bug: %w", err)
	}
	return out, nil
}

// rename returns a copy of list with the host's names.
func (r refs) rename(list []ahp.Message) []ahp.Message {
	out := slices.Clone(list)
	for i := range out {
		out[i].Parts = slices.Clone(out[i].Parts)
		for j := range out[i].Parts {
			p := &out[i].Parts[j]
			if p.Body == nil {
				continue
			}
			if s := r.find(p); s != nil {
				p.Body = &ahp.BodyRef{Ref: s.name}
			}
		}
	}
	return out
}

// refsIn returns the attachments that e itself shows, for who has no names of its
// own.
func refsIn(e *ahp.Event) refs {
	r := refs{}
	v := viewer{content: map[string]ahp.Selection{"default": ahp.SelectBody}, meet: func(p *ahp.Part) { r[p.Body.Ref] = append(r[p.Body.Ref], shown{*p, p.Body.Ref}) }}
	v.view(e, true)
	return r
}
