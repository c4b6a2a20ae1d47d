package rpcmode

import (
	"bufio"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed/internal/event"
)

// TestSlowReaderLosesNothing: ten thousand events for a reader that is slow reach it
// in order, all before the answer, and the record says that the run waited.
func TestSlowReaderLosesNothing(t *testing.T) {
	const events = 10_000
	engine := &fakeEngine{}
	c := open(t, engine, Options{Buffer: 100})
	c.send(`{"method":"start"}`, `{"method":"prompt","id":1,"prompt":"events `+strconv.Itoa(events)+`"}`)
	// The run gets no further than what fits into the pipe and the buffer.
	stuck := waitForStuck(t, engine)
	if stuck > 2000 {
		t.Fatalf("the run went on to event %d although nobody read", stuck)
	}
	// While it waits, other requests are taken. (Their replies overtake the events.)
	c.send(`{"method":"interrupt","id":2}`)
	within(t, "the interrupt", engine.session(0).ended.Load)
	s := bufio.NewScanner(c.out)
	s.Buffer(nil, 1<<20)
	var seq, notices int64
	var answered, overtook bool
	for !answered && s.Scan() {
		r := decodeReply(t, s.Text())
		switch r.str("type") {
		case "event":
			e := r.event(t)
			if seq++; e.Seq != seq {
				t.Fatalf("event %d came where %d was expected", e.Seq, seq)
			}
			if n, is := e.Payload.(*event.Notice); is && n.Level == "info" {
				notices++
			}
			if e.Seq%1000 == 0 {
				time.Sleep(5 * time.Millisecond) // what makes the reader slow
			}
		case "interrupted":
			overtook = seq <= stuck-50 // of a hundred that were waiting
		case "answer":
			answered = true
		}
	}
	if !answered || notices != events || !overtook {
		t.Errorf("answered %v, %d of %d events before it, the interrupt's reply overtook %v", answered, notices, events, overtook)
	}
	notes := 0
	for i, e := range engine.session(0).events() {
		n, is := e.Payload.(*event.Notice)
		if is && strings.Contains(n.Text, "times the session waited for it") {
			notes++
			if n.Level != "warning" || strings.Contains(n.Text, ", 0s in all") {
				t.Errorf("event %d notes: %s: %s", i+1, n.Level, n.Text)
			}
		}
	}
	if notes == 0 || notes > 10 {
		t.Errorf("%d notes say that the session waited, want a few", notes)
	}
}

// within waits until is is true.
func within(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patient); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited too long for %s", what)
		}
	}
}

// waitForStuck returns the number of the event at which the session stands still.
func waitForStuck(t *testing.T, engine *fakeEngine) int64 {
	t.Helper()
	var last int64
	for still, deadline := 0, time.Now().Add(patient); still < 10; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the session doesn't come to a stand")
		}
		now := int64(0)
		engine.mu.Lock()
		if len(engine.sessions) > 0 {
			now = engine.sessions[0].start.Sink.(*sink).seq.Load()
		}
		engine.mu.Unlock()
		if now == last && now > 2 {
			still++
		} else {
			still = 0
		}
		last = now
	}
	return last
}

// TestFastReaderIsNotNoted: the record of a run that never waited has no note.
func TestFastReaderIsNotNoted(t *testing.T) {
	engine := &fakeEngine{}
	c := connect(t, engine, Options{})
	c.send(`{"method":"start"}`, `{"method":"prompt","id":1,"prompt":"events 5000"}`)
	c.replyTo("1", "answer")
	for _, e := range engine.session(0).events() {
		if n, is := e.Payload.(*event.Notice); is && n.Level == "warning" {
			t.Errorf("noted: %s", n.Text)
		}
	}
}

// TestBytesAreBounded: few but large lines wait for the reader too, but one line may
// have any size, and the end waits for nobody.
func TestBytesAreBounded(t *testing.T) {
	leaks(t)
	r, w := io.Pipe()
	o := newOutput(w, 100)
	go o.write()
	put := make(chan time.Duration, 100)
	large := make([]byte, maxWaiting/2)
	go func() {
		put <- o.inOrder(large) // is taken to be written
		for range 2 {
			put <- o.inOrder(large)
		}
		put <- o.inOrder([]byte("x"))
		put <- o.inOrder([]byte("x"))
	}()
	for range 3 {
		<-put
	}
	select {
	case <-put:
		t.Error("there was room for more than the bound")
	case <-time.After(50 * time.Millisecond):
	}
	o.release()
	if waited := <-put; waited <= 0 {
		t.Error("the wait was not counted")
	}
	if waited := <-put; waited != 0 {
		t.Errorf("after the end somebody waited for %s", waited)
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()
	if !o.finish(patient) {
		t.Error("not all was written")
	}
	r.Close()
}

// TestEventLargerThanALine: what is too large for a line of the record is sent in the
// record's own form, which keeps the long texts apart.
func TestEventLargerThanALine(t *testing.T) {
	e := event.Event{ID: "a", SessionID: "s", Seq: 1, Time: time.Unix(1, 0), Actor: event.ActorTool, Trust: event.TrustUntrusted, Hash: strings.Repeat("a", 64),
		Payload: &event.ToolEnded{CallID: "c", Tool: "bash", Outcome: "ok", Content: strings.Repeat("x", event.MaxLine)}}
	text := string(encodeEvent(e))
	if len(text) > 1<<20 || !strings.Contains(text, `"content":{"$blob":{"sha256":"`) || !strings.HasPrefix(text, `{"type":"event","event":{`) {
		t.Errorf("%d bytes: %.300s", len(text), text)
	}
	decodeReply(t, strings.TrimSuffix(text, "\n"))
	e.Payload = &event.Notice{Text: "\xff"}
	if text := string(encodeEvent(e)); !strings.HasPrefix(text, `{"type":"error","code":"failed"`) {
		t.Errorf("an event that can't be written: %s", text)
	}
}

// TestStuckReaderEndsAtLast: a reader that takes nothing can't hold up the end.
func TestStuckReaderEndsAtLast(t *testing.T) {
	engine := &fakeEngine{}
	c := open(t, engine, Options{Buffer: 10, Patience: 50 * time.Millisecond})
	c.send(`{"method":"start"}`, `{"method":"prompt","id":1,"prompt":"events 5000 100"}`)
	waitForStuck(t, engine)
	c.send(`{"method":"quit"}`)
	if err := c.end(); ExitCode(err) != 1 || !strings.Contains(err.Error(), "takes nothing") {
		t.Errorf("exit %d: %v", ExitCode(err), err)
	}
	if s := engine.session(0); !s.isClosed() || len(s.events()) < 5003 {
		t.Errorf("the session is closed: %v, with %d events", s.isClosed(), len(s.events()))
	}
}
