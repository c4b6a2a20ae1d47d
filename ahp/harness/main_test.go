package harness_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/ahp/transport"
)

// announcement is what a child that was asked to says on its standard error.
const announcement = "a backend was started"

func TestMain(m *testing.M) {
	if os.Getenv("AHP_ANNOUNCE") != "" {
		fmt.Fprintln(os.Stderr, announcement)
	}
	ahptest.RunIfChild()
	if len(os.Args) == 2 && os.Args[1] == pipeEchoArgument {
		pipeEcho(os.Stdin, os.Stdout)
		os.Exit(0)
	}
	if len(os.Args) == 3 && os.Args[1] == remoteArgument {
		os.Exit(remote(os.Args[2], os.Stdin, os.Stdout))
	}
	if len(os.Args) == 3 && os.Args[1] == dyingArgument {
		os.Exit(dying(os.Args[2]))
	}
	goleak.VerifyTestMain(m)
}

// party is one backend of a test: its link and its subscriptions.
type party struct {
	link transport.Transport
	subs []ahp.Subscription
}

// newHarness returns a harness with the parties as backends "test.b0", "test.b1"
// and so on. It is closed at the end of the test.
func newHarness(t testing.TB, opts harness.Options, parties ...party) *harness.Harness {
	t.Helper()
	reg := &ahp.Registration{ProtocolVersion: ahp.Version}
	links := map[string]transport.Transport{}
	for i, p := range parties {
		id := fmt.Sprintf("test.b%d", i)
		links[id] = p.link
		reg.Hooks = append(reg.Hooks, ahp.Backend{
			ID: id, Transport: ahp.TransportConfig{Type: ahp.TransportStdio, Command: "unused", Lifecycle: ahp.LifecyclePersistent}, Subscriptions: p.subs,
		})
	}
	if opts.Manifest == nil {
		opts.Manifest = ahptest.Manifest()
	}
	opts.Open = func(b *ahp.Backend) (transport.Transport, error) { return links[b.ID], nil }
	h, err := harness.New(reg, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

// intercepts is a party that judges tool.before.
func intercepts(link transport.Transport, policy ahp.FailurePolicy) party {
	return party{link: link, subs: []ahp.Subscription{ahptest.Intercept(policy, 30*time.Second, "tool.before")}}
}

// dispatch runs a tool.before with everything advertised but allow.
func dispatch(t testing.TB, h *harness.Harness, id string) *harness.Outcome {
	t.Helper()
	out, err := h.Dispatch(t.Context(), ahptest.ToolBefore(id, `{"command":"ls"}`), noAllow(), nil, harness.DispatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func noAllow() *ahp.Capabilities {
	return ahptest.Without(ahptest.FullCapabilities(ahp.ToolBefore), ahp.EffectAllow)
}

// settle waits for the outcome's observations.
func settle(t testing.TB, out *harness.Outcome) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := out.Wait(ctx); err != nil {
		t.Fatal(err)
	}
}
