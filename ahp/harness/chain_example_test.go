package harness_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/harness"
)

// A host that owns its loop plays the exchanges itself: here it lets nobody's reply
// count before it has authorised it.
func ExampleChain() {
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
	h, err := harness.New(reg, harness.Options{Manifest: manifest, Open: open})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Close()
	event := &ahp.Event{
		ID: "event-1", Source: "urn:example:laptop", Type: ahp.ToolBefore, Time: ahp.Timestamp(time.Now()), Path: "native",
		Call: &ahp.Identity{ID: "call-1"}, Tool: &ahp.Tool{Name: "bash", Origin: ahp.OriginNative, Input: ahp.Raw(`{"command":"deploy"}`)},
	}

	c, err := h.Begin(context.Background(), event, offer, nil, harness.DispatchOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for x := c.Next(); x != nil; x = c.Next() {
		reply, err := x.Send() // blocks, at most until the deadline
		if err == nil {
			err = x.Stage(reply)
		}
		if err == nil {
			_, err = x.Accept(func(_ context.Context, o *ahp.Outcome) error {
				fmt.Println("would be", o.Permission)
				return nil
			})
		}
		if err != nil && !errors.Is(err, harness.ErrInterrupted) {
			_, _ = x.Fail(err) // by the subscription's policy; a bug ends the chain
		}
	}
	out, err := c.Finish()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("refused:", out.Denial().Reason)
	// Output:
	// would be deny
	// refused: not on a Friday
}
