package transport_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/transport"
)

// shell returns a transport to a backend that is a shell script. It is closed at
// the end of the test.
func shell(t *testing.T, script string, opts transport.StdioOptions) transport.Transport {
	t.Helper()
	link, err := transport.Stdio(ahp.TransportConfig{Type: "stdio", Command: "/bin/sh", Args: []string{"-c", script}, Lifecycle: ahp.LifecyclePersistent}, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { link.Close() })
	return link
}

// TestDescendantKeepsThePipe holds that the end of the process is noticed even
// where something that it left behind keeps both pipes open.
func TestDescendantKeepsThePipe(t *testing.T) {
	link := shell(t, `exec 3<&0; sleep 3600 <&3 & read line; exit 7`, transport.StdioOptions{})
	began := time.Now()
	_, err := exchange(t, link, "x-1", 30*time.Second)
	wantClass(t, err, ahp.FailExit)
	if time.Since(began) > 10*time.Second || !strings.Contains(err.Error(), "exit code 7") {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
}

// TestLastWordsCount holds that a reply which the process wrote before it ended is
// taken, although the pipe stays open.
func TestLastWordsCount(t *testing.T) {
	link := shell(t, `sleep 3600 <&0 & read line; echo '{"id":"x-1"}'; exit 0`, transport.StdioOptions{})
	out, err := exchange(t, link, "x-1", 30*time.Second)
	if err != nil || out != `{"id":"x-1"}` {
		t.Errorf("%q, %v", out, err)
	}
}

// TestClosedOutputOfALivingProcess holds that a backend that closes its output is
// ended and replaced, though it ignores signals.
func TestClosedOutputOfALivingProcess(t *testing.T) {
	link := shell(t, `trap '' TERM; read line; exec 1>&-; while :; do sleep 1; done`, transport.StdioOptions{Grace: 50 * time.Millisecond})
	began := time.Now()
	_, err := exchange(t, link, "x-1", 30*time.Second)
	wantClass(t, err, ahp.FailExit)
	if time.Since(began) > 10*time.Second {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
}

// TestEscapedMemberName holds that a reply is recognised however its member names
// are spelled.
func TestEscapedMemberName(t *testing.T) {
	link := shell(t, `n=0; while read line; do n=$((n+1)); printf '{"\\u0069d":"x-%d"}\n' $n; done`, transport.StdioOptions{})
	for i := 1; i <= 20; i++ { // more than unusable lines are suffered
		id := fmt.Sprintf("x-%d", i)
		if out, err := exchange(t, link, id, 30*time.Second); err != nil || !strings.Contains(out, id) {
			t.Fatalf("%s: %q, %v", id, out, err)
		}
	}
}

// TestLateReplyToAnotherContent holds that the late reply to one subscription's
// request isn't taken for the reply to another's, which has the same id.
func TestLateReplyToAnotherContent(t *testing.T) {
	link, _ := start(t, "", ahp.LifecyclePersistent, transport.StdioOptions{})
	mustExchange(t, link, "ok-0") // it runs
	ctx, cancel := context.WithTimeout(t.Context(), short)
	defer cancel()
	// The reply to the first comes together with that to the second: they are told
	// apart by their order.
	_, err := link.Exchange(ctx, []byte(`{"jsonrpc":"2.0","id":"count-1","params":1}`))
	wantClass(t, err, ahp.FailDeadline)
	out, err := link.Exchange(t.Context(), []byte(`{"jsonrpc":"2.0","id":"count-1","params":2}`))
	var got struct{ N int }
	if err != nil || json.Unmarshal(out, &got) != nil || got.N != 2 {
		t.Fatalf("%s, %v", out, err)
	}
	// A repeat of the same message may take either.
	out, err = link.Exchange(t.Context(), []byte(`{"jsonrpc":"2.0","id":"count-1","params":2}`))
	if err != nil || json.Unmarshal(out, &got) != nil || got.N != 3 {
		t.Fatalf("%s, %v", out, err)
	}
	mustExchange(t, link, "ok-1")
}

// TestSecondReplyToARetry holds that the second reply to a request that was
// repeated is dropped even when another request is out by then.
func TestSecondReplyToARetry(t *testing.T) {
	link, _ := start(t, "", ahp.LifecyclePersistent, transport.StdioOptions{})
	mustExchange(t, link, "ok-0")                // it runs
	_, err := exchange(t, link, "once-1", short) // unanswered
	wantClass(t, err, ahp.FailDeadline)
	mustExchange(t, link, "once-1")
	mustExchange(t, link, "after-once") // preceded by the other reply
}

func TestCloseWakesWhoWaitsForAStart(t *testing.T) {
	link, _ := start(t, "", ahp.LifecyclePersistent, transport.StdioOptions{Backoff: time.Hour})
	for range 2 {
		exchange(t, link, "die-1", 5*time.Second)
	}
	done := make(chan error, 2)
	for range 2 { // one waits for the start, one for the other
		go func() {
			_, err := link.Exchange(context.Background(), request("ok-1"))
			done <- err
		}()
	}
	time.Sleep(20 * time.Millisecond)
	link.Close()
	for range 2 {
		select {
		case err := <-done:
			wantClass(t, err, ahp.FailShutdown)
		case <-time.After(10 * time.Second):
			t.Fatal("still waiting after Close")
		}
	}
}

// TestInProcessPanic holds that a handler that panics, or leaves its goroutine,
// fails its call and nothing else.
func TestInProcessPanic(t *testing.T) {
	link := transport.InProcess(func(_ context.Context, msg []byte) ([]byte, error) { panic(string(msg)) })
	defer link.Close()
	_, err := link.Exchange(t.Context(), []byte("boom"))
	if f := ahp.AsFailure(err); f == nil || !strings.Contains(err.Error(), "boom") || strings.Contains(err.Error(), "goroutine") {
		t.Errorf("got %v", err)
	}
}

// TestRepliesDoNotShareMemory holds that a caller may append to a reply.
func TestRepliesDoNotShareMemory(t *testing.T) {
	link := shell(t, `read line; printf '{"id":"x-1"}\n{"id":"x-2"}\n'; sleep 3600`, transport.StdioOptions{Grace: time.Millisecond})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	out, err := link.Exchange(ctx, request("x-1"))
	if err != nil || cap(out) != len(out) {
		t.Errorf("%d bytes of capacity %d, %v", len(out), cap(out), err)
	}
}

// TestWorkingDirectory holds where the process runs.
func TestWorkingDirectory(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ dir, cwd, want string }{
		{"", "", here}, {dir, "", dir}, {dir, "sub", filepath.Join(dir, "sub")}, {"/", filepath.Join(dir, "sub"), filepath.Join(dir, "sub")},
	} {
		cfg := ahp.TransportConfig{Type: "stdio", Command: "/bin/pwd", Args: []string{"-P"}, Lifecycle: ahp.LifecyclePerEvent, Cwd: tt.cwd}
		link, err := transport.Stdio(cfg, transport.StdioOptions{Dir: tt.dir})
		if err != nil {
			t.Fatal(err)
		}
		defer link.Close()
		want, err := filepath.EvalSymlinks(tt.want)
		if err != nil {
			t.Fatal(err)
		}
		if out, err := exchange(t, link, "x", 30*time.Second); err != nil || out != want {
			t.Errorf("cwd %q in %q: %q, %v", tt.cwd, tt.dir, out, err)
		}
	}
}

// TestDeadlineCountsWhileQueued holds that a request which waits for an earlier one
// to the same process is bounded by its own deadline.
func TestDeadlineCountsWhileQueued(t *testing.T) {
	link, stderr := start(t, "", ahp.LifecyclePersistent, transport.StdioOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() {
		_, err := link.Exchange(ctx, request("silent-1"))
		first <- err
	}()
	stderr.wait(t, "got", 1)
	_, err := exchange(t, link, "ok-1", short)
	wantClass(t, err, ahp.FailDeadline)
	if !strings.Contains(err.Error(), "earlier request") {
		t.Errorf("got %v", err)
	}
	cancel()
	<-first
	mustExchange(t, link, "ok-2")
	if stderr.count("got \"ok-1\"") != 0 {
		t.Error("the request that gave up was sent")
	}
}

// TestPieces holds that a reply may come in any number of writes, and end in a
// carriage return too.
func TestPieces(t *testing.T) {
	link := shell(t, `while read line; do for c in '{' '"id"' ':' '"x-1"' '}'; do printf "%s" "$c"; sleep 0.01; done; printf '\r\n'; done`, transport.StdioOptions{})
	if out, err := exchange(t, link, "x-1", 30*time.Second); err != nil || strings.TrimSpace(out) != `{"id":"x-1"}` {
		t.Errorf("%q, %v", out, err)
	}
}

// TestGarbageBehindAReply holds that what follows a reply on its line spoils that
// reply, and what follows without an end of line spoils the next.
func TestGarbageBehindAReply(t *testing.T) {
	link := shell(t, `read line; printf '{"id":"x-1"} and more\n'; read line; printf '{"id":"x-2"}\nand more'; read line; printf '{"id":"x-3"}\n'; read line`, transport.StdioOptions{})
	for i, want := range []string{`{"id":"x-1"} and more`, `{"id":"x-2"}`, `and more{"id":"x-3"}`} {
		out, err := exchange(t, link, fmt.Sprintf("x-%d", i+1), 30*time.Second)
		if err != nil || out != want {
			t.Errorf("%q, %v", out, err)
		}
	}
}
