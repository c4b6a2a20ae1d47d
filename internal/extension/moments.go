package extension

import (
	"context"
	"fmt"
	"strings"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/tool"
)

// PromptAnswer is what the extensions made of a person's message.
type PromptAnswer struct {
	// Refused says that the message must neither be recorded as a message nor sent.
	// By names the extension, Reason is for the person.
	Refused    bool
	By, Reason string
	// Asked holds every asking, sorted by name.
	Asked []event.Asked
}

// PromptSubmit asks the subscribers of user_prompt_submit about a person's message
// before it is recorded and sent. One refusal refuses it; of several the first by
// name is told. A dead extension refuses unless its OnFailure is Skip, and so does
// the end of ctx.
func (h *Host) PromptSubmit(ctx context.Context, at At, text string) PromptAnswer {
	r := newRequest(eventPrompt, h.opts.SessionID)
	r.at(at)
	r.str("content", text)
	var out PromptAnswer
	for _, p := range h.poll(ctx, r) {
		asked, why := p.asked(eventPrompt, true), p.vetoed()
		if p.reply != nil && p.reply.block {
			why = p.reply.words()
			if why == "" {
				why = fmt.Sprintf("extension %q blocked the message and gave no reason", p.cfg.Name)
			}
			mark(&asked, "deny", why)
		}
		if why != "" && !out.Refused {
			out.Refused, out.By, out.Reason = true, p.cfg.Name, why
		}
		out.Asked = append(out.Asked, asked)
	}
	return out
}

// maxSystem is how many bytes one extension may add to the system text.
const maxSystem = 64 << 10

// Appended is what one extension adds to the system text.
type Appended struct {
	By, Text string
}

// AgentStartAnswer is what the extensions add to the system text.
type AgentStartAnswer struct {
	// Append holds the texts in configuration order; none is empty.
	Append []Appended
	// Asked holds every asking, sorted by name.
	Asked []event.Asked
}

// System returns system with every text appended after a blank line.
func (a *AgentStartAnswer) System(system string) string {
	var b strings.Builder
	b.WriteString(system)
	for _, t := range a.Append {
		if b.Len() > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString(t.Text)
	}
	return b.String()
}

// AgentStart asks the subscribers of before_agent_start, before the first model
// call of a run, what to append to the system text; all see system as it is, and
// none can replace it. A text of more than 64 KiB is left out whole, with a warning
// in the record: half an instruction can say the opposite. There is nothing to
// veto, so a dead extension adds nothing, whatever its OnFailure.
func (h *Host) AgentStart(ctx context.Context, at At, system string) AgentStartAnswer {
	r := newRequest(eventAgentStart, h.opts.SessionID)
	r.at(at)
	r.str("system", system)
	var out AgentStartAnswer
	texts := map[*ext]string{}
	for _, p := range h.poll(ctx, r) {
		asked := p.asked(eventAgentStart, false)
		if p.reply != nil && p.reply.system != nil {
			text := tool.Clean(*p.reply.system)
			switch {
			case text == "":
			case len(text) > maxSystem:
				why := fmt.Sprintf("its text for the system prompt has %d bytes, the limit is %d; it is left out", len(text), maxSystem)
				p.logged("warning", why)
				mark(&asked, "none", why)
			default:
				texts[p.ext] = text
				mark(&asked, "rewrite", p.reply.words())
			}
		}
		out.Asked = append(out.Asked, asked)
	}
	for _, e := range h.exts {
		if text := texts[e]; text != "" {
			out.Append = append(out.Append, Appended{e.cfg.Name, text})
		}
	}
	return out
}
