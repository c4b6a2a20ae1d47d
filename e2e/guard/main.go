// Command guard is the backend of the tests with real agents: it gives every tool
// call the answer that its first argument names. The second is the reason of a
// denial, or the members that a rewrite puts into the call's input, as JSON.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/backend"
	"github.com/abhed/abhed/internal/strictjson"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: guard allow|deny|ask|rewrite REASON|MEMBERS")
		os.Exit(2)
	}
	judge, err := judgeOf(os.Args[1], os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, "guard:", err)
		os.Exit(2)
	}
	backend.Main(&backend.Handlers{On: map[ahp.EventType]backend.Func{ahp.ToolBefore: judge}}, backend.Options{})
}

// judgeOf returns what gives the answer of that name.
func judgeOf(answer, more string) (backend.Func, error) {
	var draft func(*backend.Draft) *backend.Draft
	switch answer {
	case "allow":
		draft = func(d *backend.Draft) *backend.Draft { return d }
	case "deny":
		draft = func(d *backend.Draft) *backend.Draft { return d.Deny(more) }
	case "ask":
		draft = (*backend.Draft).Ask
	case "rewrite":
		var members map[string]any
		if err := strictjson.Unmarshal([]byte(more), &members, strictjson.Options{}); err != nil {
			return nil, fmt.Errorf("members of the input: %w", err)
		}
		draft = func(d *backend.Draft) *backend.Draft { return d.MergeInput(members) }
	default:
		return nil, fmt.Errorf("no answer %q; want allow, deny, ask or rewrite", answer)
	}
	return func(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
		return draft(backend.Reply(q)).Effects()
	}, nil
}
