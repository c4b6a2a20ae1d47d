package agent

import (
	"slices"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model"
)

// noImage stands for an image that isn't sent.
const noImage = event.HarnessMark + "An image was here, which this model doesn't take."

// sendable returns the request without images if m takes none: they come from the
// time before a switch, and an endpoint would refuse every request that has them.
// That is said once in a run.
func (l *Loop) sendable(req *model.Request, m Model) (*model.Request, *end) {
	if m.Images || !l.images || !slices.ContainsFunc(req.Messages, hasImages) {
		return req, nil
	}
	if !l.told["images"] {
		l.told["images"] = true
		if e := l.notice("the images of the conversation are not sent: " + m.Client.Name() + " isn't known to take images"); e != nil {
			return nil, e
		}
	}
	out := *req
	out.Messages = slices.Clone(req.Messages)
	for i, msg := range out.Messages {
		if hasImages(msg) {
			out.Messages[i] = withoutImages(msg)
		}
	}
	return &out, nil
}

func hasImages(m *model.Message) bool {
	return slices.ContainsFunc(m.Parts, func(p model.Part) bool {
		return p.Image != nil || p.ToolResult != nil && len(p.ToolResult.Images) > 0
	})
}

func withoutImages(m *model.Message) *model.Message {
	out := &model.Message{Role: m.Role, Parts: slices.Clone(m.Parts)}
	for i, p := range out.Parts {
		switch {
		case p.Image != nil:
			out.Parts[i] = event.TextPart(noImage)
		case p.ToolResult != nil && len(p.ToolResult.Images) > 0:
			res := *p.ToolResult
			res.Content, res.Images = res.Content+"\n"+noImage, nil
			out.Parts[i].ToolResult = &res
		}
	}
	return out
}
