package transport_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/transport"
	"github.com/abhed/abhed/internal/require"
)

// short is a deadline that is meant to pass.
const short = 60 * time.Millisecond

func TestLateRepliesAreDropped(t *testing.T) {
	link, stderr := start(t, "", ahp.LifecyclePersistent, transport.StdioOptions{})
	mustExchange(t, link, "ok-1")
	_, err := exchange(t, link, "hold-1", short)
	wantClass(t, err, ahp.FailDeadline)
	_, err = exchange(t, link, "hold-2", short)
	wantClass(t, err, ahp.FailDeadline)
	mustExchange(t, link, "ok-2") // the replies to both come first
	mustExchange(t, link, "ok-3")
	stderr.wantStarts(t, 1)
}

// TestRetryTakesEitherReply holds that a retry with the same id isn't failed by
// the late reply to the first attempt.
func TestRetryTakesEitherReply(t *testing.T) {
	link, _ := start(t, "", ahp.LifecyclePersistent, transport.StdioOptions{})
	_, err := exchange(t, link, "again-1", short)
	wantClass(t, err, ahp.FailDeadline)
	mustExchange(t, link, "again-1") // gets the first of two replies
	mustExchange(t, link, "ok-1")    // and the second belongs to nobody
}

func TestStrayOutput(t *testing.T) {
	link, stderr := start(t, "", ahp.LifecyclePersistent, transport.StdioOptions{})
	// The first stray line fails the request; its own reply is then a late one.
	out, err := exchange(t, link, "strays-1", 30*time.Second)
	if err != nil || out != "noise" {
		t.Fatalf("%q, %v", out, err)
	}
	// A second reply in the same write belongs to nobody and is counted.
	mustExchange(t, link, "twice-1")
	mustExchange(t, link, "ok-1")
	stderr.wantStarts(t, 1)
}

func TestNoisyBackendIsEnded(t *testing.T) {
	link, stderr := start(t, "", ahp.LifecyclePersistent, transport.StdioOptions{Backoff: time.Millisecond})
	for i := range 8 {
		exchange(t, link, fmt.Sprintf("strays-%d", i), 30*time.Second)
	}
	mustExchange(t, link, "ok-1")
	stderr.wait(t, "started", 2)
}

func TestHungBackendIsEnded(t *testing.T) {
	link, stderr := start(t, "", ahp.LifecyclePersistent, transport.StdioOptions{})
	mustExchange(t, link, "ok-1")
	for i := range 65 {
		_, err := exchange(t, link, fmt.Sprintf("silent-%d", i), 30*time.Millisecond) // enough to be sent on a busy machine
		wantClass(t, err, ahp.FailDeadline)
		stderr.wait(t, "got", i+2) // so that each was really sent
	}
	mustExchange(t, link, "ok-2")
	stderr.wantStarts(t, 2)
}

func TestRestartWithBackoff(t *testing.T) {
	link, stderr := start(t, "", ahp.LifecyclePersistent, transport.StdioOptions{Backoff: time.Minute})
	mustExchange(t, link, "ok-1")
	_, err := exchange(t, link, "die-1", 30*time.Second)
	wantClass(t, err, ahp.FailExit)
	if !strings.Contains(err.Error(), "exit code 3") || !strings.Contains(err.Error(), "standard error") {
		t.Errorf("the failure doesn't say how it ended: %v", err)
	}
	mustExchange(t, link, "ok-2") // a backend that had answered is started at once
	for range 2 {
		_, err = exchange(t, link, "die-2", 30*time.Second)
		wantClass(t, err, ahp.FailExit)
	}
	began := time.Now()
	_, err = exchange(t, link, "ok-3", 10*time.Second)
	wantClass(t, err, ahp.FailExit)
	if time.Since(began) > 5*time.Second || !strings.Contains(err.Error(), "started again in") {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
	stderr.wantStarts(t, 3)
	_, err = exchange(t, link, "half-1", time.Second)
	wantClass(t, err, ahp.FailExit)
}

func TestBackoffEnds(t *testing.T) {
	link, stderr := start(t, "", ahp.LifecyclePersistent, transport.StdioOptions{Backoff: 20 * time.Millisecond})
	for range 3 {
		_, err := exchange(t, link, "die-1", 30*time.Second)
		wantClass(t, err, ahp.FailExit)
	}
	mustExchange(t, link, "ok-1")
	stderr.wantStarts(t, 4)
}

// TestSpoiltStreamIsReplaced holds that after a message which was written in part
// the next one goes to a new process.
func TestSpoiltStreamIsReplaced(t *testing.T) {
	link, stderr := start(t, "deaf", ahp.LifecyclePersistent, transport.StdioOptions{Backoff: time.Millisecond, Grace: time.Millisecond})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	stuck, stop := context.WithCancel(ctx)
	big := []byte(`{"x":"` + strings.Repeat("x", 1<<20) + `"}`)
	go func() {
		stderr.wait(t, "started", 1)
		stop()
	}()
	if err := link.Notify(stuck, big); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	if err := link.Notify(ctx, []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	stderr.wait(t, "started", 2)
}

func TestManyCallers(t *testing.T) {
	link, stderr := start(t, "", ahp.LifecyclePersistent, transport.StdioOptions{})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 10 {
				id := fmt.Sprintf("ok-%d-%d", i, j)
				if out, err := exchange(t, link, id, time.Minute); err != nil || out+"\n" != reply(id) {
					t.Errorf("%s: %q, %v", id, out, err)
				}
				if err := link.Notify(t.Context(), []byte(`{"method":"x"}`)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	stderr.wantStarts(t, 1)
}

func TestCloseFailsPending(t *testing.T) {
	for _, lifecycle := range []string{ahp.LifecyclePersistent, ahp.LifecyclePerEvent} {
		link, stderr := start(t, "", lifecycle, transport.StdioOptions{})
		done := make(chan error, 1)
		mode := "silent-1"
		if lifecycle == ahp.LifecyclePerEvent {
			link.Close()
			link, stderr = start(t, "deaf", lifecycle, transport.StdioOptions{})
		}
		go func() {
			_, err := link.Exchange(context.Background(), request(mode))
			done <- err
		}()
		stderr.wait(t, "started", 1)
		link.Close()
		wantClass(t, <-done, ahp.FailShutdown)
		link.Close()
		_, err := exchange(t, link, "ok-1", time.Second)
		wantClass(t, err, ahp.FailShutdown)
		wantClass(t, link.Notify(t.Context(), []byte(`{}`)), ahp.FailShutdown)
	}
}

func TestCancelIsNoFailure(t *testing.T) {
	for _, lifecycle := range []string{ahp.LifecyclePersistent, ahp.LifecyclePerEvent} {
		mode := map[string]string{ahp.LifecyclePersistent: "", ahp.LifecyclePerEvent: "deaf"}[lifecycle]
		link, stderr := start(t, mode, lifecycle, transport.StdioOptions{})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			stderr.wait(t, "started", 1)
			cancel()
		}()
		_, err := link.Exchange(ctx, request("silent-1"))
		if !errors.Is(err, context.Canceled) || ahp.AsFailure(err) != nil {
			t.Errorf("%s: %v", lifecycle, err)
		}
		if _, err = link.Exchange(ctx, request("ok-1")); !errors.Is(err, context.Canceled) {
			t.Errorf("%s, cancelled before: %v", lifecycle, err)
		}
	}
}

func TestPerEvent(t *testing.T) {
	link, stderr := start(t, "", ahp.LifecyclePerEvent, transport.StdioOptions{})
	mustExchange(t, link, "ok-1")
	mustExchange(t, link, "ok-2")
	if err := link.Notify(t.Context(), []byte(`{"jsonrpc":"2.0","method":"hooks/observe"}`)); err != nil {
		t.Error(err)
	}
	wantClass(t, link.Notify(t.Context(), request("die-1")), ahp.FailExit)
	_, err := exchange(t, link, "silent-1", 30*time.Second)
	wantClass(t, err, ahp.FailMalformed)
	_, err = exchange(t, link, "twice-1", 30*time.Second)
	wantClass(t, err, ahp.FailMalformed)
	stderr.wantStarts(t, 6)
}

func TestSmallEnvironment(t *testing.T) {
	t.Setenv("AHP_TEST_SECRET", "do-not-pass-on")
	link, stderr := start(t, "", ahp.LifecyclePerEvent, transport.StdioOptions{Env: []string{"AHP_TEST_EXTRA=yes"}})
	mustExchange(t, link, "ok-1")
	env := stderr.all[0]
	if strings.Contains(env, "do-not-pass-on") || !strings.Contains(env, "AHP_TEST_EXTRA=yes") || !strings.Contains(env, "PATH=") {
		t.Errorf("environment %s", env)
	}
}

func TestUnusable(t *testing.T) {
	bad := []ahp.TransportConfig{{Type: "http", URL: "https://x.example/"}, {Type: "stdio"}, {Type: "stdio", Command: "x", Lifecycle: "sometimes"}}
	for _, cfg := range bad {
		if _, err := transport.Stdio(cfg, transport.StdioOptions{}); err == nil {
			t.Errorf("%+v was accepted", cfg)
		}
	}
	for _, lifecycle := range []string{ahp.LifecyclePersistent, ahp.LifecyclePerEvent} {
		link, err := transport.Stdio(ahp.TransportConfig{Type: "stdio", Command: filepath.Join(t.TempDir(), "missing"), Lifecycle: lifecycle}, transport.StdioOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer link.Close()
		for range 2 {
			_, err = exchange(t, link, "ok-1", 30*time.Second)
			wantClass(t, err, ahp.FailLaunch)
		}
		wantClass(t, link.Notify(t.Context(), make([]byte, ahp.MaxMessageBytes+1)), ahp.FailMalformed)
		data, err := os.ReadFile(filepath.Join(require.Shared(t), "fixtures", "ahp", "stdio", "intercept-request-multiline.invalid.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := link.Exchange(t.Context(), data); err == nil || ahp.AsFailure(err) != nil {
			t.Errorf("a message of many lines: %v", err)
		}
	}
	link, _ := start(t, "", ahp.LifecyclePersistent, transport.StdioOptions{})
	if _, err := link.Exchange(t.Context(), []byte(`{"method":"x"}`)); err == nil || ahp.AsFailure(err) != nil {
		t.Errorf("a request without an id: %v", err)
	}
}

func TestRecord(t *testing.T) {
	var got []string
	link := transport.Record(transport.InProcess(func(_ context.Context, msg []byte) ([]byte, error) {
		if string(msg) == "bad" {
			return nil, &ahp.Failure{Class: ahp.FailConnect}
		}
		return []byte("reply to " + string(msg)), nil
	}), func(m transport.Traffic) {
		got = append(got, fmt.Sprintf("%s %v %s %v", m.Direction, m.Notification, m.Message, m.Err))
	})
	defer link.Close()
	link.Exchange(t.Context(), []byte("one"))
	link.Exchange(t.Context(), []byte("bad"))
	link.Notify(t.Context(), []byte("note"))
	link.Notify(t.Context(), []byte("bad"))
	want := []string{
		"to_backend false one <nil>", "from_backend false reply to one <nil>",
		"to_backend false bad <nil>", "from_backend false  ahp: connect",
		"to_backend true note <nil>", "to_backend true bad <nil>", "from_backend true  ahp: connect",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

// TestExitTellsWhy has a backend say why it ends: what is told begins at a line, as the
// place stands there, and is bounded.
func TestExitTellsWhy(t *testing.T) {
	const place = "rules.json:1:12: "
	long := place + strings.Repeat("x", 200)
	for said, want := range map[string]string{
		"":                               "",
		"\n \n":                          "",
		"first\n" + long + "\n":          strconv.Quote("first\n" + long),
		long + "1\n" + long + "2\n":      strconv.Quote(long + "2"),
		"first\n" + long + long + "\n":   strconv.Quote((long + long)[:400] + "…"),
		strings.Repeat("y", 9000) + "\n": strconv.Quote(strings.Repeat("y", 400) + "…"),
	} {
		for _, lifecycle := range []string{ahp.LifecyclePersistent, ahp.LifecyclePerEvent} {
			link, err := transport.Stdio(sh(t, lifecycle, `printf %s "$1" >&2; exit 2`, said), transport.StdioOptions{})
			if err != nil {
				t.Fatal(err)
			}
			_, err = exchange(t, link, "e", 30*time.Second)
			wantClass(t, err, ahp.FailExit)
			if _, told, is := strings.Cut(err.Error(), "; its standard error ends with "); told != want || is != (want != "") {
				t.Errorf("%s, %.40q: %v, want %s", lifecycle, said, err, want)
			}
			if err := link.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
