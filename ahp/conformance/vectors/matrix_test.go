package vectors_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/conformance/vectors"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/ahp/transport"
	"github.com/abhed/abhed/ahp/transport/httptransport"
	"github.com/abhed/abhed/internal/strictjson"
)

// childArgument marks a run of the test binary as a backend that always gives the
// effects in the next argument.
const childArgument = "vectors-backend"

func TestMain(m *testing.M) {
	ahptest.RunIfChild()
	if len(os.Args) == 3 && os.Args[1] == childArgument {
		r := bufio.NewReader(os.Stdin)
		for {
			line, err := r.ReadBytes('\n')
			if err != nil {
				os.Exit(0)
			}
			if answer := reply(line, os.Args[2]); answer != nil {
				os.Stdout.Write(append(answer, '\n'))
			}
		}
	}
	goleak.VerifyTestMain(m)
}

// reply answers a request with effects, whether they are valid or not; nil for an
// observation, such as those that a chain which ended early leaves behind.
func reply(msg []byte, effects string) []byte {
	id, is := ahp.MessageID(msg)
	if !is {
		return nil
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"draft","effects":%s}}`, id, effects)
}

// TestExchanges runs every exchange over every carrier, with both failure policies,
// with its own backends alone and with others between them that never object.
func TestExchanges(t *testing.T) {
	list, err := vectors.Exchanges()
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, x := range list {
		for _, carrier := range ahptest.Carriers() {
			if !possible(t, &x, carrier) {
				continue
			}
			for _, policy := range x.Policies {
				for _, several := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s/%s/%s/several=%v", x.ID, carrier, policy, several), func(t *testing.T) {
						t.Parallel()
						runExchange(t, &x, carrier, policy, several)
					})
					ran++
				}
			}
		}
	}
	if ran < 8*len(list) {
		t.Errorf("%d runs of %d exchanges", ran, len(list))
	}
}

// place is a backend with its id.
type place struct {
	id string
	vectors.Backend
}

// possible reports whether the carrier can have the faults of x, as the menu says.
func possible(t *testing.T, x *vectors.Exchange, carrier ahptest.Carrier) bool {
	t.Helper()
	for _, b := range x.Backends {
		if b.Fault == "" {
			continue
		}
		f, ok := ahptest.FindFault(b.Fault)
		if !ok {
			t.Fatalf("%s: no fault %q", x.ID, b.Fault)
		}
		if _, has := f.Classes[carrier]; !has {
			return false
		}
	}
	return true
}

// runExchange runs one cell of the matrix.
func runExchange(t *testing.T, x *vectors.Exchange, carrier ahptest.Carrier, policy ahp.FailurePolicy, several bool) {
	var places []place
	neutral := func() {
		if several {
			places = append(places, place{fmt.Sprintf("neutral.n%d", len(places)), vectors.Backend{Effects: ahp.Raw("[]")}})
		}
	}
	neutral()
	for i, b := range x.Backends {
		places = append(places, place{fmt.Sprintf("vector.b%d", i), b})
		neutral()
	}
	reg := &ahp.Registration{ProtocolVersion: ahp.Version}
	byID := map[string]vectors.Backend{}
	for _, p := range places {
		byID[p.id] = p.Backend
		reg.Hooks = append(reg.Hooks, ahp.Backend{
			ID: p.id, Transport: ahp.TransportConfig{Type: ahp.TransportStdio, Command: "unused", Lifecycle: ahp.LifecyclePersistent},
			Subscriptions: []ahp.Subscription{ahptest.Intercept(policy, time.Duration(x.TimeoutMs)*time.Millisecond, "tool.*")},
		})
	}
	h, err := harness.New(reg, harness.Options{Manifest: ahptest.Manifest(), Open: func(b *ahp.Backend) (transport.Transport, error) {
		return open(t, byID[b.ID], carrier), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for i, s := range x.Steps {
		q := decodeStep(t, s)
		out, err := h.Dispatch(t.Context(), q.Event, &q.Capabilities, q.State, harness.DispatchOptions{})
		if err != nil {
			t.Fatalf("step %d: %v", i+1, err)
		}
		if diff := cmp.Diff(plain(t, x.Outcomes[policy][i]), plain(t, outcomeOf(out))); diff != "" {
			t.Errorf("step %d: %s (-want +got):\n%s", i+1, x.About, diff)
			for _, a := range out.Trace {
				t.Logf("%s: %s after %d ms, %v", a.By.Backend, a.Kind, a.Milliseconds, a.Failure)
			}
		}
		for _, a := range out.Trace {
			if f, is := ahptest.FindFault(byID[a.By.Backend].Fault); is && a.Failure != nil && a.Failure.Class != f.Classes[carrier] {
				t.Errorf("the failure is of class %s, expected %s: %v", a.Failure.Class, f.Classes[carrier], a.Failure)
			}
		}
	}
}

func decodeStep(t *testing.T, s vectors.Step) *ahp.Intercept {
	t.Helper()
	e, err := ahp.DecodeEvent(s.Event)
	if err != nil {
		t.Fatal(err)
	}
	state := ""
	if s.State != nil {
		state = `,"state":` + string(s.State)
	}
	q, err := ahp.DecodeRequest(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":"hooks/intercept","params":{"protocolVersion":"draft","event":%s,"capabilities":%s%s}}`,
		ahp.StringID(e.ID), s.Event, s.Capabilities, state))
	if err != nil {
		t.Fatal(err)
	}
	return q.(*ahp.Intercept)
}

// open returns a transport to a backend of an exchange.
func open(t *testing.T, b vectors.Backend, carrier ahptest.Carrier) transport.Transport {
	t.Helper()
	if b.Fault != "" {
		f, _ := ahptest.FindFault(b.Fault)
		return f.Transport(t, carrier)
	}
	effects := string(b.Effects)
	switch carrier {
	case ahptest.InProcess:
		return transport.InProcess(func(_ context.Context, msg []byte) ([]byte, error) { return reply(msg, effects), nil })
	case ahptest.HTTP:
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			msg, _ := io.ReadAll(r.Body)
			answer := reply(msg, effects)
			if answer == nil {
				w.WriteHeader(http.StatusAccepted)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			w.Write(answer)
		}))
		t.Cleanup(s.Close)
		link, err := httptransport.New(&ahp.Backend{ID: "test.vector", Transport: ahp.TransportConfig{Type: ahp.TransportHTTP, URL: s.URL}}, httptransport.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return link
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	lifecycle := ahp.LifecyclePersistent
	if carrier == ahptest.StdioPerEvent {
		lifecycle = ahp.LifecyclePerEvent
	}
	link, err := transport.Stdio(ahp.TransportConfig{Type: ahp.TransportStdio, Command: exe, Args: []string{childArgument, effects}, Lifecycle: lifecycle},
		transport.StdioOptions{Env: ahptest.ChildEnv()})
	if err != nil {
		t.Fatal(err)
	}
	return link
}

// outcomeOf returns an outcome as a vector has it, without what backends beside
// its own did.
func outcomeOf(out *harness.Outcome) vectors.Outcome {
	got := vectors.Outcome{Permission: out.Permission, Executes: out.Event.Type == ahp.ToolBefore && out.MayExecute(), Flow: out.Flow, Instructions: out.Instructions, Messages: out.Messages, Injections: len(out.Injections)}
	for _, d := range out.Denials {
		if d.Synthetic {
			got.Synthetic++
		} else {
			got.Denials = append(got.Denials, d.Reason)
		}
	}
	if out.Event.Tool != nil {
		got.Input = out.Event.Tool.Input
	}
	if out.Candidate != nil {
		got.Result = out.Candidate.Value
	}
	for _, a := range out.Trace {
		if strings.HasPrefix(a.By.Backend, "vector.") {
			got.Asked++
			if a.Failure != nil {
				got.Failed++
			}
		}
	}
	return got
}

// plain makes outcomes comparable: values as canonical JSON, no list as an empty
// one.
func plain(t *testing.T, o vectors.Outcome) vectors.Outcome {
	t.Helper()
	for _, v := range []*ahp.Raw{&o.Input, &o.Result} {
		if *v == nil {
			continue
		}
		c, err := strictjson.Canonical(*v)
		if err != nil {
			t.Fatal(err)
		}
		*v = bytes.TrimSpace(c)
	}
	for _, list := range []*[]string{&o.Denials, &o.Instructions, &o.Messages} {
		if len(*list) == 0 {
			*list = nil
		}
	}
	return o
}
