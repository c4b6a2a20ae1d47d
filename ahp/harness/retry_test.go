package harness_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/ahp/transport"
	"github.com/abhed/abhed/ahp/transport/httptransport"
)

// failing is a link that fails n times and then answers with a note.
type failing struct {
	failure *ahp.Failure
	n       int
	mu      sync.Mutex
	got     [][]byte
	at      []time.Time
}

func (l *failing) Exchange(_ context.Context, msg []byte) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.got, l.at = append(l.got, bytes.Clone(msg)), append(l.at, time.Now())
	if len(l.got) <= l.n {
		return nil, l.failure
	}
	id, _ := ahp.MessageID(msg)
	return ahp.EncodeEffects(id, []ahp.Effect{&ahp.Notice{Text: "at last"}})
}
func (l *failing) Notify(context.Context, []byte) error { return nil }
func (l *failing) Close() error                         { return nil }

// TestWhatIsRetried holds the class table of retries.
func TestWhatIsRetried(t *testing.T) {
	retried := map[string]bool{"connect": true, "exit": true, "http_status 408": true, "http_status 425": true, "http_status 429": true, "http_status 500": true, "http_status 503": true}
	failures := []*ahp.Failure{}
	for _, class := range ahp.FailureClasses() {
		failures = append(failures, &ahp.Failure{Class: class})
	}
	for _, status := range []int{201, 307, 400, 404, 408, 413, 425, 429, 500, 503} {
		failures = append(failures, &ahp.Failure{Class: ahp.FailHTTPStatus, Status: status})
	}
	for _, class := range ahp.FailureClasses() {
		failures = append(failures, &ahp.Failure{Class: class, Status: 503, Final: true})
	}
	for _, f := range failures {
		name := string(f.Class)
		if f.Status != 0 {
			name += fmt.Sprintf(" %d", f.Status)
		}
		if f.Final {
			name += " final"
		}
		synctest.Test(t, func(t *testing.T) {
			link := &failing{failure: f, n: 1}
			h := newHarness(t, harness.Options{}, intercepts(link, ahp.FailOpen))
			out := dispatch(t, h, "e")
			a := out.Trace[0]
			if !retried[name] {
				if len(link.got) != 1 || a.Kind != ahp.AnswerFailure || a.Failure.Class != f.Class || a.Attempts != 1 || a.Earlier != nil {
					t.Errorf("%s: sent %d times, %+v", name, len(link.got), a)
				}
				return
			}
			if len(link.got) != 2 || a.Kind != ahp.AnswerEffects || a.Attempts != 2 || len(a.Earlier) != 1 || a.Earlier[0] != f || a.Failure != nil || len(out.Messages) != 1 {
				t.Fatalf("%s: sent %d times, %+v", name, len(link.got), a)
			}
			if !bytes.Equal(link.got[0], link.got[1]) {
				t.Errorf("%s: the retry differs:\n%s\n%s", name, link.got[0], link.got[1])
			}
		})
	}
}

// TestRetriesAreBounded holds that retries end with their number and with the
// deadline, and that the pauses grow.
func TestRetriesAreBounded(t *testing.T) {
	for _, tt := range []struct {
		retries  int
		timeout  time.Duration
		attempts int
		took     time.Duration
	}{
		{0, time.Minute, 2, 50 * time.Millisecond},
		{-1, time.Minute, 1, 0},
		{3, time.Minute, 4, 350 * time.Millisecond},
		{1000, time.Minute, 17, 50*31*time.Millisecond + 11*time.Second},
		{5, 200 * time.Millisecond, 3, 150 * time.Millisecond}, // the next pause would be 200 ms
		{5, 50 * time.Millisecond, 1, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			link := &failing{failure: &ahp.Failure{Class: ahp.FailConnect}, n: 1 << 20}
			h := newHarness(t, harness.Options{Retries: tt.retries}, party{link: link, subs: []ahp.Subscription{ahptest.Intercept(ahp.FailClosed, tt.timeout, "tool.before")}})
			began := time.Now()
			out := dispatch(t, h, "e")
			a := out.Trace[0]
			if took := time.Since(began); took != tt.took || a.Milliseconds != took.Milliseconds() {
				t.Errorf("%+v: took %v, %d ms in the trace", tt, took, a.Milliseconds)
			}
			if len(link.got) != tt.attempts || a.Attempts != tt.attempts || len(a.Earlier) != tt.attempts-1 || a.Failure.Class != ahp.FailConnect || out.Denial() == nil {
				t.Errorf("%+v: sent %d times, %+v", tt, len(link.got), a)
			}
		})
	}
}

// TestCancelledBetweenAttempts holds that a pause ends with the call.
func TestCancelledBetweenAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := &failing{failure: &ahp.Failure{Class: ahp.FailExit}, n: 1 << 20}
		h := newHarness(t, harness.Options{Retries: 9}, intercepts(link, ahp.FailOpen))
		ctx, cancel := context.WithTimeout(t.Context(), 75*time.Millisecond)
		defer cancel()
		out, err := h.Dispatch(ctx, ahptest.ToolBefore("e", "{}"), noAllow(), nil, harness.DispatchOptions{})
		if err != nil || !out.Interrupted || !out.Expired || len(link.got) != 2 {
			t.Fatalf("sent %d times, %+v, %v", len(link.got), out, err)
		}
		if a := out.Trace[0]; a.Kind != ahp.AnswerInterrupted || a.Attempts != 2 || len(a.Earlier) != 1 || a.Milliseconds != 75 {
			t.Errorf("%+v", a)
		}
	})
}

// TestRetryOverHTTP holds that a server which is away for a moment is asked again,
// and that an answer is not asked for again.
func TestRetryOverHTTP(t *testing.T) {
	var bodies [][]byte
	var status atomic.Int32
	status.Store(503)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var b bytes.Buffer
		b.ReadFrom(r.Body)
		bodies = append(bodies, b.Bytes())
		w.Header().Set("Content-Type", "application/json")
		if code := status.Swap(200); code != 200 {
			w.WriteHeader(int(code))
			return
		}
		id, _ := ahp.MessageID(b.Bytes())
		reply, _ := ahp.EncodeEffects(id, []ahp.Effect{&ahp.Deny{Reason: "no"}})
		w.Write(reply)
	}))
	defer s.Close()
	link, err := httptransport.New(&ahp.Backend{ID: "test.http", Transport: ahp.TransportConfig{Type: ahp.TransportHTTP, URL: s.URL}}, httptransport.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h := newHarness(t, harness.Options{}, intercepts(link, ahp.FailOpen))
	out := dispatch(t, h, "e")
	if d := out.Denial(); d == nil || d.Synthetic || len(bodies) != 2 || !bytes.Equal(bodies[0], bodies[1]) {
		t.Fatalf("%d requests, %+v", len(bodies), out.Outcome)
	}
	if a := out.Trace[0]; a.Attempts != 2 || a.Earlier[0].Status != 503 {
		t.Errorf("%+v", a)
	}
	dispatch(t, h, "f")
	if len(bodies) != 3 {
		t.Errorf("%d requests: a deny was asked for again", len(bodies))
	}
}

// TestNoRetryOfBadTLS holds that a server whose certificate isn't valid, or that
// doesn't speak TLS, is connected to once for a dispatch.
func TestNoRetryOfBadTLS(t *testing.T) {
	for name, start := range map[string]func(*httptest.Server) string{
		"self-signed": func(s *httptest.Server) string { s.StartTLS(); return s.URL },
		"no TLS":      func(s *httptest.Server) string { s.Start(); return strings.Replace(s.URL, "http:", "https:", 1) },
	} {
		var connections, requests atomic.Int32
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				connections.Add(1)
			}
		}
		url := start(s)
		link, err := httptransport.New(&ahp.Backend{ID: "test.http", Transport: ahp.TransportConfig{Type: ahp.TransportHTTP, URL: url}}, httptransport.Options{})
		if err != nil {
			t.Fatal(err)
		}
		out := dispatch(t, newHarness(t, harness.Options{Retries: 3}, intercepts(link, ahp.FailClosed)), "e")
		a := out.Trace[0]
		if a.Kind != ahp.AnswerFailure || a.Failure.Class != ahp.FailConnect || !a.Failure.Final || a.Attempts != 1 || out.MayExecute() {
			t.Errorf("%s: %+v: %v", name, a, a.Failure)
		}
		s.Close()
		if connections.Load() != 1 || requests.Load() != 0 {
			t.Errorf("%s: %d connections, %d requests", name, connections.Load(), requests.Load())
		}
	}
}

// TestRetryAfterDeath holds that a process which died during a request is started
// anew and asked again, within the same dispatch.
func TestRetryAfterDeath(t *testing.T) {
	link := remoteThatDies(t)
	h := newHarness(t, harness.Options{}, intercepts(link, ahp.FailClosed))
	out := dispatch(t, h, "e")
	if a := out.Trace[0]; a.Kind != ahp.AnswerEffects || a.Attempts != 2 || a.Earlier[0].Class != ahp.FailExit || !out.MayExecute() {
		t.Errorf("%+v: %v", a, a.Failure)
	}
}

// TestBudget holds that the budget spans the whole call, that at its end everybody
// counts as failed under its own policy, and that this is no interruption.
func TestBudget(t *testing.T) {
	for _, last := range []ahp.FailurePolicy{ahp.FailOpen, ahp.FailClosed} {
		synctest.Test(t, func(t *testing.T) {
			slow := transport.InProcess(func(ctx context.Context, msg []byte) ([]byte, error) {
				select {
				case <-time.After(400 * time.Millisecond):
				case <-ctx.Done():
				}
				id, _ := ahp.MessageID(msg)
				return ahp.EncodeEffects(id, []ahp.Effect{&ahp.Notice{Text: "heard"}})
			})
			third, audit := ahptest.NewFake(nil), ahptest.NewFake(nil)
			var told []harness.Delivery
			h := newHarness(t, harness.Options{OnDelivery: func(d harness.Delivery) { told = append(told, d) }},
				intercepts(slow, ahp.FailOpen), intercepts(slow, ahp.FailOpen), intercepts(third, last),
				party{link: audit, subs: []ahp.Subscription{ahptest.Observe("*")}})
			began := time.Now()
			out, err := h.Dispatch(t.Context(), ahptest.ToolBefore("e", "{}"), noAllow(), nil, harness.DispatchOptions{Budget: 500 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took != 500*time.Millisecond {
				t.Errorf("took %v", took)
			}
			settle(t, out)
			if out.Interrupted || !out.Expired || len(out.Messages) != 1 || len(out.Trace) != 3 || out.MayExecute() != (last == ahp.FailOpen) {
				t.Errorf("%s: %+v", last, out.Outcome)
			}
			for i, attempts := range []int{1, 1, 0} {
				a := out.Trace[i]
				if i > 0 && (a.Failure == nil || a.Failure.Class != ahp.FailDeadline) || a.Attempts != attempts {
					t.Errorf("%s: answer %d is %+v", last, i, a)
				}
			}
			if len(third.Messages()) != 0 || len(audit.Messages()) != 0 || len(told) == 0 || told[len(told)-1].Failure.Class != ahp.FailDeadline {
				t.Errorf("%s: work after the end of the budget, or no trace of it: %+v", last, told)
			}
			h.Close()
		})
	}
}

// TestNoBudgetLeft holds that less than nothing is no unbounded budget.
func TestNoBudgetLeft(t *testing.T) {
	for _, policy := range []ahp.FailurePolicy{ahp.FailOpen, ahp.FailClosed} {
		fake := ahptest.NewFake(nil)
		h := newHarness(t, harness.Options{}, intercepts(fake, policy))
		out, err := h.Dispatch(t.Context(), ahptest.ToolBefore("e", "{}"), noAllow(), nil, harness.DispatchOptions{Budget: -time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if len(fake.Messages()) != 0 || !out.Expired || out.Interrupted || (out.Denial() != nil) != (policy == ahp.FailClosed) {
			t.Errorf("%s: asked %d times, %+v", policy, len(fake.Messages()), out.Outcome)
		}
		if a := out.Trace[0]; a.Attempts != 0 || a.Failure.Class != ahp.FailDeadline || a.Policy != policy {
			t.Errorf("%s: %+v", policy, a)
		}
	}
}
