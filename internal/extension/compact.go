package extension

import (
	"context"
	"fmt"
	"strings"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/tool"
)

// maxSummary is the size in bytes of the largest summary that is taken.
const maxSummary = 1 << 20

// CompactAnswer is what the extensions made of a compaction.
type CompactAnswer struct {
	// Cancel says that the history is to be left alone; then Summary is nil.
	Cancel bool
	// Summary stands for the history instead of the model's summary; nil if the model
	// is to make one.
	Summary *string
	// By names, sorted, who cancelled, or who gave the summary.
	By []string
	// Reason says why it was cancelled, or why no summary was taken of several.
	Reason string
	// Asked holds every asking, sorted by name.
	Asked []event.Asked
}

// BeforeCompact asks the subscribers of before_compact before history is
// summarised. Cancelling wins; of two different summaries none is taken. A summary
// that is blank or has more than 1 MiB is left out, with a warning in the record. A
// dead extension cancels unless its OnFailure is Skip, and so does the end of ctx:
// leaving history alone is the only veto there is. See Context for the messages.
func (h *Host) BeforeCompact(ctx context.Context, at At, messages []*event.Message) CompactAnswer {
	r := newRequest(eventCompact, h.opts.SessionID)
	r.at(at)
	h.shown.add(r, messages)
	var out CompactAnswer
	var cancels, gave []string
	var summary *string
	conflict := false
	for _, p := range h.poll(ctx, r) {
		asked, why := p.asked(eventCompact, true), p.vetoed()
		if text := p.summary(&asked); text != nil {
			conflict = conflict || summary != nil && *summary != *text
			summary = text
			gave = append(gave, p.cfg.Name)
		}
		if p.reply != nil && p.reply.cancel {
			why = p.reply.words()
			if why == "" {
				why = fmt.Sprintf("extension %q cancelled the compaction and gave no reason", p.cfg.Name)
			}
			mark(&asked, "deny", why)
		}
		if why != "" {
			cancels = append(cancels, p.cfg.Name)
			if out.Reason == "" {
				out.Reason = why
			}
		}
		out.Asked = append(out.Asked, asked)
	}
	switch {
	case len(cancels) > 0:
		out.Cancel, out.By = true, cancels
	case conflict:
		out.Reason = "the extensions " + quoted(gave) + " gave different summaries, so none is taken"
	case summary != nil:
		out.Summary, out.By = summary, gave
	}
	return out
}

// summary returns the summary of a reply if it can be used.
func (p *polled) summary(asked *event.Asked) *string {
	if p.reply == nil || p.reply.summary == nil {
		return nil
	}
	text, why := tool.Clean(*p.reply.summary), ""
	switch {
	case strings.TrimSpace(text) == "":
		why = "its summary is blank and is left out; leave the field away to have none"
	case len(text) > maxSummary:
		why = fmt.Sprintf("its summary has %d bytes, the limit is %d; it is left out", len(text), maxSummary)
	default:
		mark(asked, "rewrite", p.reply.words())
		return &text
	}
	p.logged("warning", why)
	mark(asked, "none", why)
	return nil
}
