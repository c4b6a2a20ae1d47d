package gate

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/run"
	"github.com/abhed/abhed/internal/tool"
)

// hookKind is what the record and a refusal call a Hook.
const hookKind = "hook"

// Hook is a judge that is compiled in: what an embedding program has in place of an
// extension. It is asked in every round in which the extensions are, after them, and
// like them it can object and nothing else.
type Hook struct {
	Name string
	// Judge returns the objection to c, of which policy.NoObjection or the zero value
	// is none. What it says of its source is replaced by Name. A panic refuses the call.
	// Several goroutines may call it, and nothing bounds the time that it takes but ctx.
	Judge func(ctx context.Context, c policy.Call, d policy.Declaration) policy.Objection
}

// askHooks asks every hook about the effective arguments. All are asked, whatever
// one says, so that their order changes no verdict.
func (j *judgement) askHooks(ctx context.Context, round int) {
	for _, h := range j.g.o.Hooks {
		began := j.g.o.Now()
		c := j.call // a hook that writes into it writes into its own
		c.Args, c.Roots = bytes.Clone(j.call.Args), slices.Clone(j.call.Roots)
		o, bug := h.objection(ctx, c, j.decl)
		a := event.Asked{Kind: hookKind, Name: h.Name, Step: "tool_call", Round: round, Answer: "none", Reason: o.Reason(), Code: o.Code()}
		switch {
		case bug != nil:
			a.Answer, a.Failure, a.Policy, a.Reason = "failed", "internal_bug", "block", tool.Clean(cut(bug.Error(), 4096))
		case o.Denies():
			a.Answer = "deny"
		case o.Asks():
			a.Answer = "ask"
		}
		a.MS = j.g.o.Now().Sub(began).Milliseconds()
		j.object(o, hookKind)
		j.d.Asked = append(j.d.Asked, a)
	}
}

// objection asks h. bug says that it panicked, which is an objection too.
func (h *Hook) objection(ctx context.Context, c policy.Call, d policy.Declaration) (out policy.Objection, bug error) {
	by := policy.Source{Kind: hookKind, Name: h.Name}
	var o policy.Objection
	if err := run.Protect(func() error { o = h.Judge(ctx, c, d); return nil }); err != nil {
		return policy.ObjectDeny(by, fmt.Sprintf("the hook %s failed while it judged the call", h.Name), "internal"), err
	}
	reason := tool.Clean(cut(o.Reason(), 4096))
	if reason == "" {
		reason = "it gave no reason"
	}
	switch {
	case o.Denies():
		return policy.ObjectDeny(by, reason, o.Code()), nil
	case o.Asks():
		return policy.ObjectAsk(by, reason, o.Code()), nil
	}
	return policy.NoObjection(by), nil
}
