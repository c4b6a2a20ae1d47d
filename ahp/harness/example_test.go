package harness_test

import (
	"context"
	"fmt"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/ahp/transport"
)

// A harness asks its one backend about a tool call before it runs it.
func Example() {
	registration := &ahp.Registration{ProtocolVersion: ahp.Version, Hooks: []ahp.Backend{{
		ID:            "com.example.policy",
		Transport:     ahp.TransportConfig{Type: ahp.TransportStdio, Command: "/usr/local/bin/policy", Lifecycle: ahp.LifecyclePersistent},
		Subscriptions: []ahp.Subscription{ahptest.Intercept(ahp.FailClosed, time.Second, "tool.before")},
	}}}
	// Instead of the command, a backend inside the program.
	policy := ahptest.NewFake(ahptest.Says(&ahp.Deny{Reason: "not on a Friday"}))
	h, err := harness.New(registration, harness.Options{
		Manifest: ahptest.Manifest(),
		Open:     func(*ahp.Backend) (transport.Transport, error) { return policy, nil },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Close()

	event := ahptest.ToolBefore("event-1", `{"command":"deploy"}`)
	offered := &ahp.Capabilities{Effects: []ahp.EffectType{ahp.EffectDeny, ahp.EffectAsk, ahp.EffectMessage}}
	out, err := h.Dispatch(context.Background(), event, offered, nil, harness.DispatchOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(out.Permission, "by", out.Denial().By.Backend+":", out.Denial().Reason)
	// Output: deny by com.example.policy: not on a Friday
}
