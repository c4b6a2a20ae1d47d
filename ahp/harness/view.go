package harness

import (
	"fmt"
	"slices"
	"strings"

	"github.com/abhed/abhed/ahp"
)

// viewer shows an event to one subscription.
type viewer struct {
	content map[string]ahp.Selection
	// permits says whether the body of a part may be shown; nil permits.
	permits func(p *ahp.Part) bool
	// meet is told of every attachment whose body is to be shown, and may change the
	// part, which is a copy; nil leaves it as it is.
	meet func(p *ahp.Part)
	// hidden tells that some content isn't shown.
	hidden bool
	// changed tells that a part is shown otherwise than the harness has it.
	changed bool
	// failure says why content that was asked for isn't shown; nil unless that counts
	// as one.
	failure *ahp.Failure
}

// view returns e as the subscription may see it (§7): content by its selection, and
// native data only where it is asked for. e isn't changed; what is the same is
// shared, and the result is e where all of it is.
func (v *viewer) view(e *ahp.Event, includeNative bool) *ahp.Event {
	native := e.Native != nil || e.Error != nil && e.Error.Native != nil
	if !hasParts(e) && (includeNative || !native) {
		return e
	}
	c := *e
	if !includeNative {
		c.Native = nil
		if e.Error != nil && e.Error.Native != nil {
			p := *e.Error
			p.Native = nil
			c.Error = &p
		}
	}
	c.Items = ahp.Items{Messages: v.messages(e.Items.Messages), Parts: v.parts(e.Items.Parts)}
	c.Instructions, c.Summary = v.parts(e.Instructions), v.parts(e.Summary)
	c.Delta, c.PartialOutput = v.message(e.Delta), v.message(e.PartialOutput)
	if e.Message != nil {
		m := *e.Message
		m.Messages = v.messages(m.Messages)
		c.Message = &m
	}
	if e.Attention != nil {
		a := *e.Attention
		a.Message, a.Title = v.parts(a.Message), v.parts(a.Title)
		c.Attention = &a
	}
	if e.Elicitation != nil {
		q := *e.Elicitation
		q.Request, q.Result = v.part(q.Request), v.part(q.Result)
		c.Elicitation = &q
	}
	c.FileChanges = slices.Clone(e.FileChanges)
	for i := range c.FileChanges {
		f := &c.FileChanges[i]
		f.Before, f.After = v.part(f.Before), v.part(f.After)
	}
	c.Changes = slices.Clone(e.Changes)
	for i := range c.Changes {
		f := &c.Changes[i]
		f.Before, f.After = v.part(f.Before), v.part(f.After)
	}
	if v.hidden {
		c.Unknown = nil // who knows what content it repeats
	}
	if !v.changed && (includeNative || !native) {
		return e
	}
	return &c
}

// hasParts reports whether e may hold content that is selected part by part.
func hasParts(e *ahp.Event) bool {
	return e.Items.Messages != nil || e.Items.Parts != nil || e.Instructions != nil || e.Summary != nil || e.Delta != nil || e.PartialOutput != nil ||
		e.Message != nil || e.Attention != nil || e.Elicitation != nil || e.FileChanges != nil || e.Changes != nil
}

func (v *viewer) messages(list []ahp.Message) []ahp.Message {
	if list == nil {
		return nil
	}
	out := make([]ahp.Message, len(list))
	for i, m := range list {
		m.Parts = v.parts(m.Parts)
		out[i] = m
	}
	return out
}

func (v *viewer) message(m *ahp.Message) *ahp.Message {
	if m == nil {
		return nil
	}
	c := *m
	c.Parts = v.parts(m.Parts)
	return &c
}

func (v *viewer) parts(list []ahp.Part) []ahp.Part {
	if list == nil {
		return nil
	}
	out := make([]ahp.Part, 0, len(list))
	for i := range list {
		if p := v.part(&list[i]); p != nil {
			out = append(out, *p)
		}
	}
	return out
}

// part returns what is sent of p, nil for nothing. A part is never shown more
// openly than the harness has it.
func (v *viewer) part(p *ahp.Part) *ahp.Part {
	if p == nil {
		return nil
	}
	c := *p
	switch sel := v.selection(p); {
	case sel == ahp.SelectOmit || p.Selection == ahp.SelectOmit:
		v.hidden, v.changed = true, true
		return nil
	case sel == ahp.SelectMetadata && p.Selection == ahp.SelectBody:
		v.hidden, v.changed = true, true
		c.Selection, c.Text, c.Body, c.Gap = ahp.SelectMetadata, nil, nil, nil
	case p.Selection != ahp.SelectBody || p.Gap != nil:
		v.hidden = true
	case v.permits != nil && !v.permits(p):
		v.withhold(&c, gapUnauthorised)
		if v.failure == nil {
			v.failure = &ahp.Failure{Class: ahp.FailContent, Detail: fmt.Sprintf("part %.60q: the host doesn't permit it", p.ID)}
		}
	case p.Body != nil && v.meet != nil:
		v.meet(&c)
	}
	return &c
}

// withhold leaves a gap in p.
func (v *viewer) withhold(p *ahp.Part, reason string) {
	v.hidden, v.changed = true, true
	p.Text, p.Body, p.Gap = nil, nil, &ahp.PartGap{Reason: reason}
}

// selection returns what the subscription wants of p: its category decides, else
// its media type, else the default.
func (v *viewer) selection(p *ahp.Part) ahp.Selection {
	category := p.Category
	if category == "" {
		switch main, _, _ := strings.Cut(p.MediaType, "/"); strings.ToLower(main) {
		case "text":
			category = "text"
		case "image":
			category = "images"
		case "audio":
			category = "audio"
		case "video":
			category = "video"
		default:
			category = "files"
		}
	}
	if sel, ok := v.content[category]; ok {
		return sel
	}
	return v.content["default"]
}

// narrow returns the capabilities for a backend that sees e with or without
// hidden content: replacing a whole list would destroy what it can't see (§8).
func narrow(c *ahp.Capabilities, t ahp.EventType, hidden bool) *ahp.Capabilities {
	target := t.Target()
	if !hidden || target == ahp.TargetInput || target == ahp.TargetWorkspace {
		return c
	}
	m, ok := c.Modify[target]
	if !ok || !m.Replace {
		return c
	}
	out := *c
	if m.Merge {
		out.Modify = map[ahp.Target]ahp.ModifyCapability{target: {Merge: true}}
		return &out
	}
	out.Modify = nil
	out.Effects = slices.DeleteFunc(slices.Clone(c.Effects), func(e ahp.EffectType) bool { return e == ahp.EffectModify })
	return &out
}
