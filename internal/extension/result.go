package extension

import (
	"context"
	"fmt"
	"slices"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/tool"
)

// ResultAnswer is a tool's result after the extensions have seen it.
type ResultAnswer struct {
	// Content is what the model may read; if Withheld, a text that says why it can't
	// read the result.
	Content string
	IsError bool
	// RewrittenBy names the extensions that changed the result, in the order in
	// which they first did.
	RewrittenBy []string
	Withheld    bool
	// Asked holds every asking in order; Round is 2 for those asked once more.
	Asked []event.Asked
}

// WatchesResults reports whether an extension subscribes to tool_result, dead
// ones included: then live output must neither be shown nor recorded.
func (h *Host) WatchesResults() bool {
	return slices.ContainsFunc(h.exts, func(e *ext) bool { return e.cfg.subscribes(eventToolResult) })
}

// ToolResult asks the subscribed extensions about a result, one after the other
// in configuration order; each sees what its predecessors made of it. If a later
// one changed it, the earlier ones are asked once more, and a further change
// withholds the result: rewrites must be idempotent. So does a dead extension
// whose OnFailure isn't Skip, and the end of ctx.
func (h *Host) ToolResult(ctx context.Context, call policy.Call, _ policy.Declaration, content string, isError bool) ResultAnswer {
	w := &resultWalk{ctx: ctx, host: h, call: call, out: ResultAnswer{Content: content, IsError: isError}}
	var asked []*ext
	for _, e := range h.exts {
		if e.cfg.subscribes(eventToolResult) {
			asked = append(asked, e)
		}
	}
	last := -1 // the last one that changed it
	for i, e := range asked {
		changed := w.ask(e, 1)
		if w.out.Withheld {
			return w.out
		}
		if changed {
			last = i
		}
	}
	for _, e := range asked[:max(last, 0)] {
		if w.ask(e, 2) {
			w.withhold(fmt.Sprintf("extension %q changed it again after extension %q had changed it, so that the order of the extensions would decide what you read", e.cfg.Name, asked[last].cfg.Name))
		}
		if w.out.Withheld {
			return w.out
		}
	}
	return w.out
}

// resultWalk is one result on its way through the extensions.
type resultWalk struct {
	ctx  context.Context
	host *Host
	call policy.Call
	out  ResultAnswer
}

// ask shows the result to one extension, takes its changes and reports whether
// there were any.
func (w *resultWalk) ask(e *ext, round int) (changed bool) {
	r := newRequest(eventToolResult, w.host.opts.SessionID)
	r.call(w.call)
	var a answer
	asked := event.Asked{Kind: "extension", Name: e.cfg.Name, Version: e.hash, Step: eventToolResult, Round: round, Answer: "none"}
	if err := r.subject(w.call); err != nil {
		a.fail = &failure{class: failBug, msg: err.Error()}
	} else {
		r.str("content", w.out.Content)
		r.flag("is_error", w.out.IsError)
		var took int64
		a, took = w.send(e, r)
		asked.MS = took
	}
	if a.reply != nil && w.apply(a.reply) {
		changed = true
		asked.Answer = "rewrite"
		asked.Reason = tool.Clean(cut(a.reply.reason, maxReason))
		if !slices.Contains(w.out.RewrittenBy, e.cfg.Name) {
			w.out.RewrittenBy = append(w.out.RewrittenBy, e.cfg.Name)
		}
	}
	if a.fail != nil {
		name, obj := e.failed(a.fail)
		asked.Answer, asked.Reason, asked.Failure, asked.Policy = "failed", cut(a.fail.msg, maxReason), a.fail.class, name
		if changed {
			asked.Answer = "rewrite+failed"
		}
		if obj.Asks() || obj.Denies() {
			w.withhold(obj.Reason())
		}
	}
	w.out.Asked = append(w.out.Asked, asked)
	return changed
}

func (w *resultWalk) send(e *ext, r *request) (answer, int64) {
	a, took := e.ask(w.ctx, r)
	return a, took.Milliseconds()
}

// apply takes over what a reply changes.
func (w *resultWalk) apply(r *reply) (changed bool) {
	if r.content != nil {
		if text := tool.Clean(*r.content); text != w.out.Content {
			w.out.Content, changed = text, true
		}
	}
	if r.isError != nil && *r.isError != w.out.IsError {
		w.out.IsError, changed = *r.isError, true
	}
	return changed
}

// withhold replaces the result by an error text.
func (w *resultWalk) withhold(why string) {
	w.out.Withheld, w.out.IsError = true, true
	w.out.Content = fmt.Sprintf("The result of %s is withheld: %s. The tool did run; doing the same again will not show its result.", w.call.Tool, why)
}
