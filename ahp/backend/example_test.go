package backend_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/backend"
)

// noForce refuses forced pushes.
func noForce(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
	if q.Event.Type == ahp.ToolBefore && strings.Contains(string(q.Event.Tool.Input), "push --force") {
		return backend.Answer(q, &ahp.Deny{Reason: "Forced pushes are not allowed here."})
	}
	return nil, nil
}

// A whole backend. Its main function is
//
//	func main() { backend.Main(backend.Func(noForce), backend.Options{}) }
//
// and it is registered as {"type": "stdio", "command": …, "lifecycle": "persistent"}.
func Example() {
	requests := `{"jsonrpc":"2.0","id":"e1","method":"hooks/intercept","params":{"protocolVersion":"draft","capabilities":{"effects":["deny"]},` +
		`"event":{"id":"e1","source":"urn:x","type":"tool.before","time":"2026-01-01T00:00:00Z","path":"native","call":{"id":"c1"},` +
		`"tool":{"name":"bash","origin":"native","input":{"command":"git push --force"}}}}}` + "\n"
	server := backend.New(backend.Func(noForce), backend.Options{})
	if err := server.ServeStdio(context.Background(), strings.NewReader(requests), os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output: {"jsonrpc":"2.0","id":"e1","result":{"protocolVersion":"draft","effects":[{"type":"deny","reason":"Forced pushes are not allowed here."}]}}
}

// Handlers has a function for each event type; Reply writes an answer and refuses
// what the request doesn't advertise. Here nobody can be asked, which the author has
// foreseen.
func ExampleHandlers() {
	h := &backend.Handlers{On: map[ahp.EventType]backend.Func{
		ahp.ToolBefore: func(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
			if command, ok := backend.InputText(q.Event, "command"); ok && !strings.Contains(command, "deploy") {
				return nil, nil // no objection
			}
			return backend.Reply(q).Message("Deployments are approved by a person.").AskOrDeny("Nobody is there to approve a deployment.").Effects()
		},
	}}
	request := `{"jsonrpc":"2.0","id":"e1","method":"hooks/intercept","params":{"protocolVersion":"draft","capabilities":{"effects":["deny","message"]},` +
		`"event":{"id":"e1","source":"urn:x","type":"tool.before","time":"2026-01-01T00:00:00Z","path":"native","call":{"id":"c1"},` +
		`"tool":{"name":"shell","origin":"native","input":{"command":["make","deploy"]}}}}}`
	reply, err := backend.New(h, backend.Options{}).Handle(context.Background(), []byte(request))
	fmt.Println(string(reply), err)
	// Output: {"jsonrpc":"2.0","id":"e1","result":{"protocolVersion":"draft","effects":[{"type":"message","text":"Deployments are approved by a person."},{"type":"deny","reason":"Nobody is there to approve a deployment."}]}} <nil>
}
