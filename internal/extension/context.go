package extension

import (
	"context"
	"fmt"

	"github.com/abhed/abhed/internal/event"
)

// ContextAnswer says which messages go to the model.
type ContextAnswer struct {
	// Keep has one entry for each message; nil means that all are sent.
	Keep []bool
	// By names, sorted, who dropped something.
	By []string
	// Refused says that the model must not be called: an extension that might have
	// dropped something could not be asked. RefusedBy and Reason say which and why.
	Refused           bool
	RefusedBy, Reason string
	// Asked holds every asking, sorted by name.
	Asked []event.Asked
}

// Context asks the subscribers of context, before a model call, which messages to
// send. What one of them drops is not sent. A message with tool calls and those
// with their results go together if one of them is dropped; at.Prompt is never
// dropped. Indices that there are none of have no effect, and are warned about.
//
// Each message is shown as one element {index, role, content, tool, call_id}; index
// is its place in messages, which must not be changed any more (see event.Message).
// content is what the model would read, its parts on lines of their own: texts,
// reasoning that isn't sealed, each tool call as the tool's name, a space and the
// arguments as the model wrote them, the content of a result, and "[image image/png]"
// for a picture. tool and call_id are those of the first call or of the result.
//
// There is nothing to veto but the call to the model as such. So a dead extension
// keeps all if its OnFailure is Skip; else, and when ctx ends, the answer is a
// refusal: the messages would go out unfiltered.
func (h *Host) Context(ctx context.Context, at At, messages []*event.Message) ContextAnswer {
	r := newRequest(eventContext, h.opts.SessionID)
	r.at(at)
	h.shown.add(r, messages)
	var out ContextAnswer
	var groups []int
	for _, p := range h.poll(ctx, r) {
		asked, why := p.asked(eventContext, true), p.vetoed()
		if why != "" && !out.Refused {
			out.Refused, out.RefusedBy, out.Reason = true, p.cfg.Name, why
		}
		if p.reply != nil && p.reply.keep != nil {
			if groups == nil {
				groups = together(messages)
			}
			keep, dropped, beyond := kept(*p.reply.keep, groups, newest(messages, at.Prompt))
			if names := p.fresh(eventContext+" keep", beyond); len(names) > 0 {
				p.logged("warning", fmt.Sprintf("its keep names %s, which is no message's index; there were %d messages", names[0], len(messages)))
			}
			if dropped > 0 {
				out.Keep = intersect(out.Keep, keep)
				out.By = append(out.By, p.cfg.Name)
				mark(&asked, "rewrite", fmt.Sprintf("drops %d of %d messages", dropped, len(messages)))
			}
		}
		out.Asked = append(out.Asked, asked)
	}
	return out
}
