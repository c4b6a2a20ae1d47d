package harness_test

import (
	"context"
	"fmt"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/backend"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/ahp/transport"
)

const registration = `{"protocolVersion": "draft", "hooks": [{
	"id": "com.example.policy",
	"transport": {"type": "stdio", "command": "/usr/local/bin/policy", "lifecycle": "persistent"},
	"subscriptions": [{"events": ["tool.before"], "mode": "intercept", "timeoutMs": 2000, "failurePolicy": "fail-closed", "content": {"default": "body"}}]
}]}`

// A harness asks its one backend about a tool call before it runs it.
func Example() {
	// What this harness can enforce, and where.
	offer := &ahp.Capabilities{Effects: []ahp.EffectType{ahp.EffectDeny, ahp.EffectMessage}}
	manifest := &ahp.Manifest{
		Events: []ahp.ManifestEvent{{Event: ahp.ToolBefore, Modes: []ahp.Mode{ahp.ModeIntercept}, Capabilities: offer}},
		Gaps:   []ahp.Gap{}, Transports: []string{"stdio"}, ToolPaths: []string{"native"}, ManagedPolicy: ahp.ManagedPolicy{Scopes: []string{"user"}},
	}
	reg, err := ahp.DecodeRegistration([]byte(registration))
	if err != nil {
		fmt.Println(err)
		return
	}
	h, err := harness.New(reg, harness.Options{Manifest: manifest, Open: open}) // without Open the command is run
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Close()

	event := &ahp.Event{
		ID: "event-1", Source: "urn:example:laptop", Type: ahp.ToolBefore, Time: ahp.Timestamp(time.Now()), Path: "native",
		Call: &ahp.Identity{ID: "call-1"}, Tool: &ahp.Tool{Name: "bash", Origin: ahp.OriginNative, Input: ahp.Raw(`{"command":"deploy"}`)},
	}
	out, err := h.Dispatch(context.Background(), event, offer, nil, harness.DispatchOptions{})
	switch {
	case err != nil: // a bug, or an event that can't be sent: the call must not run
		fmt.Println(err)
	case out.MayExecute(): // no permission yet: the harness's own rules come next
		fmt.Println("no objection")
	case out.Denial() != nil:
		fmt.Println("refused by", out.Denial().By.Backend+":", out.Denial().Reason)
	}
	// Output: refused by com.example.policy: not on a Friday
}

// open stands for the command: a backend inside the program.
func open(*ahp.Backend) (transport.Transport, error) {
	s := backend.New(backend.Func(func(context.Context, *ahp.Intercept) ([]ahp.Effect, error) {
		return []ahp.Effect{&ahp.Deny{Reason: "not on a Friday"}}, nil
	}), backend.Options{})
	return transport.InProcess(s.Handle), nil
}
