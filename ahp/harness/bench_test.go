package harness_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/ahp/transport"
)

// pipeEchoArgument marks a run of the test binary as the other end of
// BenchmarkPipeEcho.
const pipeEchoArgument = "pipe-echo"

// pipeEcho decodes each line, encodes it again, and answers with an empty reply.
func pipeEcho(in io.Reader, out io.Writer) {
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return
		}
		var m map[string]any
		if json.Unmarshal(line, &m) != nil {
			return
		}
		reply, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": m["id"], "result": map[string]any{"protocolVersion": "draft", "effects": []any{}}})
		out.Write(append(reply, '\n'))
	}
}

func benchEvent() *ahp.Event {
	return ahptest.ToolBefore("e", `{"command":"`+strings.Repeat("go test ./... && ", 90)+`true","timeout":120}`)
}

// BenchmarkDispatch is one decision by one persistent stdio backend: a real
// process that never objects.
func BenchmarkDispatch(b *testing.B) {
	link, err := transport.Stdio(ahptest.StdioConfig(b, "", ahp.LifecyclePersistent), transport.StdioOptions{Env: ahptest.ChildEnv()})
	if err != nil {
		b.Fatal(err)
	}
	h := newHarness(b, harness.Options{}, party{link: link, subs: []ahp.Subscription{ahptest.Intercept(ahp.FailClosed, time.Minute, "tool.before")}})
	caps := noAllow()
	event := benchEvent()
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		n++
		event.ID = "e" + time.Duration(n).String() // the backend remembers answers
		out, err := h.Dispatch(b.Context(), event, caps, nil, harness.DispatchOptions{})
		if err != nil || !out.MayExecute() {
			b.Fatal(err, out)
		}
	}
}

// maxStdio is how many round trips of a pipe, both ends of which decode and encode
// the same messages, a decision of a persistent stdio backend may cost.
const maxStdio = 2.0

// BenchmarkStdio measures BenchmarkDispatch and BenchmarkPipeEcho in the same run,
// one after the other.
func BenchmarkStdio(b *testing.B) {
	link, err := transport.Stdio(ahptest.StdioConfig(b, "", ahp.LifecyclePersistent), transport.StdioOptions{Env: ahptest.ChildEnv()})
	if err != nil {
		b.Fatal(err)
	}
	h := newHarness(b, harness.Options{}, party{link: link, subs: []ahp.Subscription{ahptest.Intercept(ahp.FailClosed, time.Minute, "tool.before")}})
	echo := startPipeEcho(b)
	caps, event := noAllow(), benchEvent()
	var decisions, echoes []time.Duration
	for b.Loop() {
		event.ID = "e" + time.Duration(len(echoes)).String()
		began := time.Now()
		out, err := h.Dispatch(b.Context(), event, caps, nil, harness.DispatchOptions{})
		if err != nil || !out.MayExecute() {
			b.Fatal(err, out)
		}
		middle := time.Now()
		echo()
		decisions, echoes = append(decisions, middle.Sub(began)), append(echoes, time.Since(middle))
	}
	ratio := undisturbed(decisions) / undisturbed(echoes)
	b.ReportMetric(ratio, "echoes")
	if ratio > maxStdio && b.N > 1000 {
		b.Errorf("a decision over stdio costs %.2f round trips of a pipe, the limit is %v", ratio, maxStdio)
	}
}

// BenchmarkPipeEcho is what BenchmarkDispatch is measured against: two Go
// processes and a pipe, each end decoding and encoding the same JSON.
func BenchmarkPipeEcho(b *testing.B) {
	echo := startPipeEcho(b)
	b.ReportAllocs()
	for b.Loop() {
		echo()
	}
}

// startPipeEcho returns one round trip of BenchmarkPipeEcho.
func startPipeEcho(b *testing.B) func() {
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(exe, pipeEchoArgument)
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	event := benchEvent()
	msg, err := (&ahp.Intercept{Event: event, Capabilities: *noAllow()}).Encode()
	if err != nil {
		b.Fatal(err)
	}
	var request map[string]any
	if err := json.Unmarshal(msg, &request); err != nil {
		b.Fatal(err)
	}
	r := bufio.NewReader(out)
	return func() {
		text, err := json.Marshal(request)
		if err != nil {
			b.Fatal(err)
		}
		in.Write(append(text, '\n'))
		line, err := r.ReadBytes('\n')
		if err != nil {
			b.Fatal(err)
		}
		var reply map[string]any
		if err := json.Unmarshal(line, &reply); err != nil {
			b.Fatal(err)
		}
	}
}

// maxInterception is the most that an interception over memory may cost, in
// decodings of its request and its response. The backend has to decode the request
// and the harness the response: that alone is one.
const maxInterception = 3.0

// judge decodes a request and answers that it has no objection.
func judge(_ context.Context, msg []byte) ([]byte, error) {
	q, err := ahp.DecodeRequest(msg)
	if err != nil {
		return nil, err
	}
	return ahp.EncodeEffects(ahp.StringID(q.(*ahp.Intercept).Event.ID), nil)
}

// benchMemory returns a harness with n backends inside the program, and what one of
// them is sent.
func benchMemory(b testing.TB, n int) (h *harness.Harness, e *ahp.Event, request []byte) {
	var parties []party
	for range n {
		parties = append(parties, intercepts(transport.InProcess(judge), ahp.FailClosed))
	}
	e = benchEvent()
	request, err := (&ahp.Intercept{Event: e, Capabilities: *noAllow()}).Encode()
	if err != nil {
		b.Fatal(err)
	}
	return newHarness(b, harness.Options{}, parties...), e, request
}

// undisturbed returns the time that one in ten needs no more than: what a busy
// machine, on which goroutines wait for a processor, disturbs least.
func undisturbed(all []time.Duration) float64 {
	slices.Sort(all)
	return float64(all[len(all)/10])
}

// BenchmarkInterception measures an interception over memory and the decoding of
// its request and response in the same run, one after the other. It counts work: on
// one processor, because waking another for the backend's goroutine, and back, costs
// what the machine and its load make it cost.
func BenchmarkInterception(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	h, e, request := benchMemory(b, 1)
	reply, err := judge(b.Context(), request)
	if err != nil {
		b.Fatal(err)
	}
	caps := noAllow()
	var whole, decoding []time.Duration
	b.ReportAllocs()
	for b.Loop() {
		began := time.Now()
		out, err := h.Dispatch(b.Context(), e, caps, nil, harness.DispatchOptions{})
		if err != nil || !out.MayExecute() {
			b.Fatal(err, out)
		}
		middle := time.Now()
		if _, err := ahp.DecodeRequest(request); err != nil {
			b.Fatal(err)
		}
		if _, err := ahp.DecodeEffectsReply(reply, ahp.StringID(e.ID)); err != nil {
			b.Fatal(err)
		}
		whole, decoding = append(whole, middle.Sub(began)), append(decoding, time.Since(middle))
	}
	ratio := undisturbed(whole) / undisturbed(decoding)
	b.ReportMetric(ratio, "decodings")
	if ratio > maxInterception && b.N > 1000 {
		b.Errorf("an interception costs %.2f decodings of its messages, the limit is %v", ratio, maxInterception)
	}
}

// maxLinear is how much more than ten times one backend ten may cost.
const maxLinear = 1.1

// BenchmarkTenBackends measures one backend and ten in the same run.
func BenchmarkTenBackends(b *testing.B) {
	one, e, _ := benchMemory(b, 1)
	ten, _, _ := benchMemory(b, 10)
	caps := noAllow()
	var first, all []time.Duration
	for b.Loop() {
		for h, took := range map[*harness.Harness]*[]time.Duration{one: &first, ten: &all} {
			began := time.Now()
			out, err := h.Dispatch(b.Context(), e, caps, nil, harness.DispatchOptions{})
			if err != nil || !out.MayExecute() {
				b.Fatal(err, out)
			}
			*took = append(*took, time.Since(began))
		}
	}
	ratio := undisturbed(all) / undisturbed(first) / 10
	b.ReportMetric(ratio, "x")
	if ratio > maxLinear && b.N > 1000 {
		b.Errorf("ten backends cost %.2f times ten of one, the limit is %v", ratio, maxLinear)
	}
}

// maxIdle is the most memory that an idle session may hold, in bytes.
const maxIdle = 16 << 10

// idleSessions starts n chains on h that wait for somebody: half of them for their
// host to ask the next, half with a staged reply.
func idleSessions(t testing.TB, h *harness.Harness, n int) []*harness.Chain {
	var all []*harness.Chain
	for i := range n {
		e := benchEvent()
		e.ID = "e" + time.Duration(i).String()
		c, err := h.Begin(context.Background(), e, noAllow(), nil, harness.DispatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
		if i%2 == 0 {
			continue
		}
		x := c.Next()
		reply, err := x.Send()
		if err == nil {
			err = x.Stage(reply)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// BenchmarkIdleSessions measures what 1,000 idle sessions hold of one harness.
func BenchmarkIdleSessions(b *testing.B) {
	h, _, _ := benchMemory(b, 1)
	const n = 1000
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc + m.StackInuse
	}
	idleSessions(b, h, n) // what is made once is there by now
	for b.Loop() {
		before := heap()
		all := idleSessions(b, h, n)
		each := float64(int64(heap())-int64(before)) / n
		b.ReportMetric(each, "B/session")
		if each > maxIdle {
			b.Errorf("an idle session holds %.0f bytes, the limit is %d", each, maxIdle)
		}
		runtime.KeepAlive(all)
	}
}

// TestThousandSessions holds that sessions on one harness are independent and cost
// no goroutine while nothing of them is on its way.
func TestThousandSessions(t *testing.T) {
	const n = 1000
	h, _, _ := benchMemory(t, 2)
	before := runtime.NumGoroutine()
	all := idleSessions(t, h, n)
	settled := func(what string) {
		t.Helper()
		end := time.Now().Add(20 * time.Second)
		for runtime.NumGoroutine() > before {
			if time.Now().After(end) {
				t.Fatalf("%s: %d goroutines, %d before", what, runtime.NumGoroutine(), before)
			}
			time.Sleep(time.Millisecond) // they are about to end
		}
	}
	settled("1,000 idle sessions")
	var wg sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() {
			e := benchEvent()
			e.ID = "d" + time.Duration(i).String()
			out, err := h.Dispatch(t.Context(), e, noAllow(), nil, harness.DispatchOptions{})
			if err == nil && (len(out.Trace) != 2 || out.Event.ID != e.ID || !out.MayExecute()) {
				err = fmt.Errorf("%+v", out.Outcome)
			}
			errs[i] = err
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	settled("after 1,000 dispatches")
	runtime.KeepAlive(all)
}
