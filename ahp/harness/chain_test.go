package harness_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/ahp/transport"
	"github.com/abhed/abhed/internal/strictjson"
)

// chainScenario is one row of observation-chain-scenarios.json.
type chainScenario struct {
	ID    string `json:"id"`
	Chain struct {
		Subscriptions []struct {
			ID            string            `json:"id"`
			Mode          ahp.Mode          `json:"mode"`
			FailurePolicy ahp.FailurePolicy `json:"failurePolicy"`
			Content       ahp.Selection     `json:"content"`
		} `json:"subscriptions"`
		Interrupt bool `json:"interrupt"`
	} `json:"chain"`
	Requests  map[string]ahp.Raw   `json:"requests"`
	Sequences map[string][]ahp.Raw `json:"responseSequences"`
	Expected  struct {
		Called       []string `json:"called"`
		Failures     []string `json:"failures"`
		Observations []string `json:"observations"`
		Input        ahp.Raw  `json:"input"`
	} `json:"expected"`
	Proof struct {
		Requests     []ahp.Raw `json:"requests"`
		Observations []ahp.Raw `json:"observations"`
	} `json:"chainProof"`
}

func TestObservationChains(t *testing.T) {
	var file struct {
		Scenarios []chainScenario `json:"scenarios"`
	}
	readShared(t, "interop/observation-chain-scenarios.json", &file)
	if len(file.Scenarios) < 6 {
		t.Fatalf("only %d rows", len(file.Scenarios))
	}
	for _, s := range file.Scenarios {
		t.Run(s.ID, func(t *testing.T) { runChain(t, &s) })
	}
}

// chainLog collects what the subscriptions of a chain were sent.
type chainLog struct {
	mu                 sync.Mutex
	called, told       []string
	requests, observed []string
	replies            []ahp.Raw
}

// link returns the transport of one subscription of the chain. It answers with
// the next reply of the scenario, interrupting first if that is asked for.
func (l *chainLog) link(t *testing.T, id string, interrupt func()) transport.Transport {
	return transport.InProcess(func(_ context.Context, msg []byte) ([]byte, error) {
		p, err := ahp.Peek(msg)
		if err != nil {
			t.Error(err)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if p.Method == ahp.MethodObserve {
			l.told, l.observed = append(l.told, id), append(l.observed, canonical(t, msg))
			return nil, nil
		}
		l.called, l.requests = append(l.called, id), append(l.requests, canonical(t, msg))
		if interrupt != nil {
			interrupt()
		}
		reply := l.replies[0]
		l.replies = l.replies[1:]
		return reply, nil
	})
}

func canonical(t *testing.T, raw []byte) string {
	t.Helper()
	b, err := strictjson.Canonical(raw)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func runChain(t *testing.T, s *chainScenario) {
	q, err := ahp.DecodeRequest(s.Requests["a"])
	if err != nil {
		t.Fatal(err)
	}
	req := q.(*ahp.Intercept)
	log := &chainLog{replies: s.Sequences["a"]}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var interrupt func()
	if s.Chain.Interrupt {
		interrupt = cancel
	}
	var parties []party
	for _, sub := range s.Chain.Subscriptions {
		cfg := ahptest.Observe("tool.before")
		if sub.Mode == ahp.ModeIntercept {
			cfg = ahptest.Intercept(sub.FailurePolicy, 30*time.Second, "tool.before")
		}
		cfg.Content["default"] = sub.Content
		parties = append(parties, party{link: log.link(t, sub.ID, interrupt), subs: []ahp.Subscription{cfg}})
	}
	h := newHarness(t, harness.Options{}, parties...)
	out, err := h.Dispatch(ctx, req.Event, &req.Capabilities, req.State, harness.DispatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	settle(t, out)
	log.mu.Lock()
	defer log.mu.Unlock()
	checkChain(t, s, log, out)
}

func checkChain(t *testing.T, s *chainScenario, log *chainLog, out *harness.Outcome) {
	t.Helper()
	want := &s.Expected
	if !slices.Equal(log.called, want.Called) {
		t.Errorf("called %q, want %q", log.called, want.Called)
	}
	told, wantTold := slices.Sorted(slices.Values(log.told)), slices.Sorted(slices.Values(want.Observations))
	if !slices.Equal(told, wantTold) {
		t.Errorf("told %q, want %q", told, wantTold)
	}
	if !out.Event.Tool.Input.Equal(want.Input) {
		t.Errorf("input %s, want %s", out.Event.Tool.Input, want.Input)
	}
	var failures []string
	for _, a := range out.Trace {
		if a.Kind == ahp.AnswerFailure {
			i := int(a.By.Backend[len(a.By.Backend)-1] - '0')
			failures = append(failures, s.Chain.Subscriptions[i].ID)
		}
	}
	if !slices.Equal(failures, want.Failures) {
		t.Errorf("failures %q, want %q", failures, want.Failures)
	}
	compareProof(t, "requests", log.requests, s.Proof.Requests)
	compareProof(t, "observations", log.observed, s.Proof.Observations)
	if out.Interrupted != s.Chain.Interrupt {
		t.Errorf("interrupted %v", out.Interrupted)
	}
}

// compareProof compares messages as a set: the order of observers is free.
func compareProof(t *testing.T, what string, got []string, want []ahp.Raw) {
	t.Helper()
	var list []string
	for _, w := range want {
		list = append(list, canonical(t, w))
	}
	slices.Sort(list)
	got = slices.Sorted(slices.Values(got))
	if !slices.Equal(got, list) {
		t.Errorf("%s:\ngot  %s\nwant %s", what, strings.Join(got, "\n     "), strings.Join(list, "\n     "))
	}
}
