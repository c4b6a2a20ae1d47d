package transport_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/transport"
)

func ignored(link transport.Transport) int { return link.(interface{ Ignored() int }).Ignored() }

// TestStaleReplies holds that a reply which was handed over before is ignored and
// counted when it comes again, also while another request is pending (§16), but that
// a process which does nothing else is ended.
func TestStaleReplies(t *testing.T) {
	link := shell(t, `read l; printf '{"id":"x-1"}\n'; read l; printf '{"id":"x-1"}\n{"id":"x-1"}\n{"id":"x-2"}\n'; read l; while :; do printf '{"id":"x-2"}\n'; done`, transport.StdioOptions{Grace: time.Millisecond})
	for i, want := range []int{0, 2} {
		id := fmt.Sprintf("x-%d", i+1)
		out, err := exchange(t, link, id, 30*time.Second)
		if err != nil || out != fmt.Sprintf(`{"id":%q}`, id) {
			t.Fatalf("%s: %q, %v", id, out, err)
		}
		if n := ignored(link); n != want {
			t.Errorf("after %s: %d lines ignored, want %d", id, n, want)
		}
	}
	_, err := exchange(t, link, "x-3", 30*time.Second)
	wantClass(t, err, ahp.FailMalformed)
	if !strings.Contains(err.Error(), "was ended") {
		t.Errorf("got %v", err)
	}
}

// TestUnknownReplyFailsTheRequest holds that a reply to nothing that was ever asked
// fails the request that is pending (spec §29, stdio extra output), and that its own
// reply is then a late one.
func TestUnknownReplyFailsTheRequest(t *testing.T) {
	link := shell(t, `read l; printf '{"id":"other"}\n'; read l; printf '{"id":"x-1"}\n{"id":"x-2"}\n'; read l`, transport.StdioOptions{Grace: time.Millisecond})
	for i, want := range []string{`{"id":"other"}`, `{"id":"x-2"}`} {
		out, err := exchange(t, link, fmt.Sprintf("x-%d", i+1), 30*time.Second)
		if err != nil || out != want {
			t.Errorf("%q, %v; want %q", out, err, want)
		}
	}
	if n := ignored(link); n != 1 {
		t.Errorf("%d lines ignored", n)
	}
}

// TestGarbageIsNoGoodReply holds that a process which writes garbage and ends is
// started again after a pause that grows, as one that writes nothing is.
func TestGarbageIsNoGoodReply(t *testing.T) {
	link := shell(t, `read l; echo garbage`, transport.StdioOptions{Backoff: time.Hour})
	if out, err := exchange(t, link, "x-1", 30*time.Second); err != nil || out != "garbage" {
		t.Fatalf("%q, %v", out, err)
	}
	for end := time.Now().Add(20 * time.Second); ; { // until it is known to be dead
		_, err := exchange(t, link, "x-2", 5*time.Second)
		if err != nil && strings.Contains(err.Error(), "started again in") {
			wantClass(t, err, ahp.FailExit)
			return
		}
		if time.Now().After(end) {
			t.Fatalf("started at once: %v", err)
		}
	}
}

// TestJudgedProcessIsEnded holds that replies which whoever asked found invalid, eight
// in a row, end the process, and that a valid one starts the count anew.
func TestJudgedProcessIsEnded(t *testing.T) {
	link, stderr := start(t, "", ahp.LifecyclePersistent, transport.StdioOptions{})
	n := 0
	ask := func(valid bool) {
		n++
		mustExchange(t, link, fmt.Sprintf("ok-%d", n))
		link.(interface{ Judged(bool) }).Judged(valid)
	}
	for range 3 {
		for range 7 {
			ask(false)
		}
		ask(true)
	}
	stderr.wantStarts(t, 1)
	for range 8 {
		ask(false)
	}
	ask(true)
	stderr.wantStarts(t, 2)
}
