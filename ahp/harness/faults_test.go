package harness_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/ahp/transport"
	"github.com/abhed/abhed/ahp/transport/httptransport"
)

// TestEveryFault runs the whole menu: every fault, both policies, every carrier
// that can have it. The faulty backend comes first; a second interceptor and an
// observer show whether the chain went on.
func TestEveryFault(t *testing.T) {
	for _, f := range ahptest.Faults() {
		for _, carrier := range ahptest.Carriers() {
			class, ok := f.Classes[carrier]
			if !ok {
				continue
			}
			for _, policy := range []ahp.FailurePolicy{ahp.FailOpen, ahp.FailClosed} {
				t.Run(f.Name+"/"+string(carrier)+"/"+string(policy), func(t *testing.T) {
					runFault(t, f, carrier, policy, class)
				})
			}
		}
	}
}

func runFault(t *testing.T, f ahptest.Fault, carrier ahptest.Carrier, policy ahp.FailurePolicy, class ahp.FailureClass) {
	timeout := 30 * time.Second
	if class == ahp.FailDeadline {
		timeout = 150 * time.Millisecond
	}
	second, audit := ahptest.NewFake(ahptest.Says(&ahp.Notice{Text: "from the second"})), ahptest.NewFake(nil)
	h := newHarness(t, harness.Options{CloseTimeout: time.Millisecond},
		party{link: f.Transport(t, carrier), subs: []ahp.Subscription{ahptest.Intercept(policy, timeout, "tool.before")}},
		intercepts(second, ahp.FailClosed),
		party{link: audit, subs: []ahp.Subscription{ahptest.Observe("tool.*")}})

	began := time.Now()
	out := dispatch(t, h, "e1")
	took := time.Since(began)
	settle(t, out)

	first := out.Trace[0]
	goesOn := class == "" || policy == ahp.FailOpen
	if class == "" {
		if first.Kind != ahp.AnswerEffects {
			t.Fatalf("answer %+v: %v", first, first.Failure)
		}
	} else if first.Kind != ahp.AnswerFailure || first.Failure.Class != class || first.Policy != policy {
		t.Fatalf("want class %s under %s, got %+v: %v", class, policy, first, first.Failure)
	}
	if class == ahp.FailDeadline && took > ahptest.LateBy-500*time.Millisecond {
		t.Errorf("took %v with a deadline of %v", took, timeout)
	}
	if goesOn {
		if out.Permission != ahp.PermissionNone || len(out.Trace) != 2 || len(out.Messages) != 1 || !out.MayExecute() {
			t.Errorf("the chain should have gone on: %+v", out.Outcome)
		}
		if len(second.Observed()) != 0 || len(second.Requests()) != 1 {
			t.Errorf("the second was asked %d times and told %d times", len(second.Requests()), len(second.Observed()))
		}
	} else {
		d := out.Denial()
		if out.Permission != ahp.PermissionDeny || d == nil || !d.Synthetic || d.Reason != harness.SyntheticReason || out.MayExecute() {
			t.Errorf("not denied by the policy: %+v", out.Outcome)
		}
		if len(out.Messages) != 0 || len(second.Requests()) != 0 || len(second.Observed()) != 1 {
			t.Errorf("messages %q, second asked %d, told %d", out.Messages, len(second.Requests()), len(second.Observed()))
		}
	}
	if len(audit.Observed()) != 1 {
		t.Errorf("the observer was told %d times", len(audit.Observed()))
	}
}

// TestNotifyFaults checks that a failed observation is reported and changes
// nothing.
func TestNotifyFaults(t *testing.T) {
	for _, f := range ahptest.NotifyFaults() {
		for carrier, class := range f.Classes {
			t.Run(f.Name, func(t *testing.T) {
				reports := make(chan harness.Delivery, 1)
				h := newHarness(t, harness.Options{OnDelivery: func(d harness.Delivery) { reports <- d }},
					party{link: f.Transport(t, carrier), subs: []ahp.Subscription{ahptest.Observe("*")}})
				out := dispatch(t, h, "e1")
				settle(t, out)
				if got := <-reports; got.Failure == nil || got.Failure.Class != class {
					t.Errorf("want class %s, got %v", class, got.Failure)
				}
				if !out.MayExecute() {
					t.Errorf("an observer changed the outcome: %+v", out.Outcome)
				}
			})
		}
	}
}

// TestUnreachable covers what needs no backend: a command that can't be started
// and a port where nobody listens.
func TestUnreachable(t *testing.T) {
	stdio := func(lifecycle string) transport.Transport {
		link, err := transport.Stdio(ahp.TransportConfig{Type: ahp.TransportStdio, Command: "/nonexistent/backend", Lifecycle: lifecycle}, transport.StdioOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return link
	}
	s := httptest.NewServer(nil)
	s.Close()
	links := map[string]func() transport.Transport{
		"launch/persistent": func() transport.Transport { return stdio(ahp.LifecyclePersistent) },
		"launch/per_event":  func() transport.Transport { return stdio(ahp.LifecyclePerEvent) },
		"connect/http": func() transport.Transport {
			link, err := httptransport.New(&ahp.Backend{Transport: ahp.TransportConfig{Type: ahp.TransportHTTP, URL: s.URL}}, httptransport.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return link
		},
	}
	for name, open := range links {
		class, _, _ := strings.Cut(name, "/")
		for policy, want := range map[ahp.FailurePolicy]ahp.Permission{ahp.FailOpen: ahp.PermissionNone, ahp.FailClosed: ahp.PermissionDeny} {
			t.Run(name+"/"+string(policy), func(t *testing.T) {
				out := dispatch(t, newHarness(t, harness.Options{}, intercepts(open(), policy)), "e")
				if f := out.Trace[0].Failure; f == nil || string(f.Class) != class || out.Permission != want {
					t.Errorf("%s, %v", out.Permission, f)
				}
			})
		}
	}
}
