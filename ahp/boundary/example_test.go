package boundary_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/backend"
	"github.com/abhed/abhed/ahp/boundary"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/ahp/transport"
)

const registration = `{"protocolVersion": "draft", "hooks": [{
	"id": "com.example.policy",
	"transport": {"type": "stdio", "command": "/usr/local/bin/policy", "lifecycle": "persistent"},
	"subscriptions": [{"events": ["tool.*"], "mode": "intercept", "timeoutMs": 2000, "failurePolicy": "fail-closed", "content": {"default": "body"}}]
}]}`

// A whole harness: it starts a session, makes the calls that a model asked for, and
// ends. See examples/harness for one that reads files and runs commands.
func Example() {
	reg, err := ahp.DecodeRegistration([]byte(registration))
	if err != nil {
		fmt.Println(err)
		return
	}
	h, err := harness.New(reg, harness.Options{Manifest: boundary.Manifest(), Open: policy}) // without Open the command is run
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Close()
	b, err := boundary.New(h, boundary.Options{Source: "urn:example:laptop", Session: &ahp.Session{ID: "s1"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	if s, err := b.Start(ctx, boundary.SessionStart{Harness: ahp.HarnessInfo{Name: "example", Version: "1"}}); err != nil || !s.OK() {
		fmt.Println("no session:", s.Reason, err)
		return
	}
	for _, line := range []string{`{"name": "shout", "input": {"text": "hi"}}`, `{"name": "deploy", "input": {}}`} {
		call, err := boundary.ParseCall([]byte(line))
		if err != nil {
			fmt.Println(err)
			return
		}
		r, err := b.Tool(ctx, call, func(_ context.Context, input ahp.Raw) (boundary.ToolOutput, error) {
			return boundary.ToolOutput{Text: strings.ToUpper(string(input))}, nil // the tool itself
		})
		fmt.Println(call.Name, r.Status, r.Text(), err)
	}
	if err := b.End(ctx, "completed", "done", nil); err != nil {
		fmt.Println(err)
	}
	// Output:
	// shout ran {"TEXT":"HELLO"} <nil>
	// deploy denied not on a Friday <nil>
}

// policy stands for the command: a backend inside the program, which edits the
// input of one tool and denies another.
func policy(*ahp.Backend) (transport.Transport, error) {
	s := backend.New(backend.Func(func(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
		switch {
		case q.Event.Type == ahp.ToolBefore && q.Event.Tool.Name == "deploy":
			return []ahp.Effect{&ahp.Deny{Reason: "not on a Friday"}}, nil
		case q.Event.Type == ahp.ToolBefore:
			return []ahp.Effect{&ahp.Modify{Target: ahp.TargetInput, Operation: ahp.OpMerge, Value: ahp.Raw(`{"text":"hello"}`)}}, nil
		}
		return nil, nil
	}), backend.Options{})
	return transport.InProcess(s.Handle), nil
}
