package main

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model/modeltest"
)

// manyCalls are turns with a hundred calls each, so that their run has more than that
// many events.
func manyCalls(events int) []modeltest.Turn {
	var turns []modeltest.Turn
	for n := 0; n*3 < events; {
		var t modeltest.Turn
		for range 100 {
			n++
			t.Calls = append(t.Calls, modeltest.Call{ID: fmt.Sprintf("c%d", n), Name: "read", Args: fmt.Sprintf(`{"path":"f","offset":%d,"limit":1}`, n)})
		}
		turns = append(turns, t)
	}
	return append(turns, modeltest.Turn{Text: "all read"})
}

// inMemory returns a folder where a sync costs nothing, if the system has one.
func inMemory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "abhed-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// TestRPCSlowReader: ten thousand events of a real run reach a slow reader, each one,
// in order, before the answer; the run waits meanwhile, and the record says so.
func TestRPCSlowReader(t *testing.T) {
	t.Parallel()
	const events, buffer = 10_000, 50
	s := newStage(t, manyCalls(events)...)
	s.state = inMemory(t)
	s.put(s.in("f"), strings.Repeat("line\n", events))
	c := s.launch("--rpc-buffer", fmt.Sprint(buffer))
	c.send(`{"method":"start"}`, `{"method":"prompt","id":1,"prompt":"read it"}`)
	list, pauses := s.readSlowly(c)
	if len(list) < events || pauses < 6 {
		t.Errorf("%d events, %d pauses", len(list), pauses)
	}
	session := list[0].SessionID
	go c.read()
	c.send(`{"method":"quit"}`)
	if code := c.exit(); code != 0 {
		t.Errorf("exit %d: %s", code, c.errs)
	}
	list = append(list, c.events()...)
	record := s.recorded(session)
	if len(record) != len(list) {
		t.Errorf("%d events in the record, %d were said", len(record), len(list))
	}
	notes := 0
	for i, e := range record[:min(len(record), len(list))] {
		if e.ID != list[i].ID || e.Hash != list[i].Hash {
			t.Fatalf("event %d was said as %s, the record has %s", i+1, list[i].ID, e.ID)
		}
		if n, is := e.Payload.(*event.Notice); is && strings.Contains(n.Text, fmt.Sprintf("because %d events", buffer)) {
			notes++
		}
	}
	at := slices.IndexFunc(record, func(e event.Event) bool { return e.Payload.Type() == event.TypeRunEnded })
	if notes == 0 || notes > 100 || at < events {
		t.Errorf("%d notes of waiting in the record; the run ended at event %d", notes, at)
	}
	s.verified(session)
}

// readSlowly reads until the answer of the first prompt, with pauses in which the run
// has to wait, and returns the events and how many pauses it made.
func (s *stage) readSlowly(c *service) (list []event.Event, pauses int) {
	s.t.Helper()
	lines := bufio.NewReaderSize(c.out, 4096)
	for answered := false; !answered; {
		text, err := lines.ReadString('\n')
		if err != nil {
			s.t.Fatal(err)
		}
		l, err := decodeSpoken(strings.TrimSuffix(text, "\n"))
		if err != nil {
			s.t.Fatalf("%v: %s", err, text)
		}
		switch {
		case l.typ == "event":
			if list = append(list, l.event); l.event.Seq != int64(len(list)) {
				s.t.Fatalf("event %d came where %d was expected", l.event.Seq, len(list))
			}
			if len(list)%1500 == 0 {
				// Nobody reads until the run stands still.
				pauses++
				if ahead := s.standstill() - len(list); ahead > 1500 {
					s.t.Errorf("the record was %d events ahead of the reader", ahead)
				}
			}
		case l.id == "1":
			answered = true
			if l.typ != "answer" || l.member("answer") != "all read" {
				s.t.Errorf("%.300s", text)
			}
		}
	}
	return list, pauses
}

// standstill waits until the only record doesn't grow, and returns how many events it
// has.
func (s *stage) standstill() int {
	s.t.Helper()
	last := -1
	for deadline := time.Now().Add(patient); ; time.Sleep(250 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatal("the run does not come to a stand though nobody reads")
		}
		data, err := os.ReadFile(s.record("*"))
		if err != nil {
			s.t.Fatal(err)
		}
		n := strings.Count(string(data), "\n")
		if n == last {
			return n
		}
		last = n
	}
}

// TestRPCStuckReader: a reader that takes nothing any more doesn't keep the service
// from ending, with a record that is whole.
func TestRPCStuckReader(t *testing.T) {
	t.Parallel()
	s := newStage(t, manyCalls(3000)...)
	s.state = inMemory(t)
	s.put(s.in("f"), strings.Repeat("line\n", 3000))
	c := s.launch("--rpc-buffer", "10")
	c.send(`{"method":"start"}`, `{"method":"prompt","id":1,"prompt":"read it"}`)
	within(t, "the run to begin", func() bool { return len(s.server.Requests()) > 0 })
	s.standstill()
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	alarm := time.AfterFunc(patient, func() { _ = c.cmd.Process.Kill() })
	_ = c.cmd.Wait()
	if alarm.Stop(); c.cmd.ProcessState.ExitCode() != 143 {
		t.Errorf("exit %v: %s", c.cmd.ProcessState, c.errs)
	}
	record := s.recorded("*")
	if got := endings(t, record); got[1] != "shutdown" || got[2] != "shutdown" {
		t.Errorf("in the record: %q", got)
	}
	s.verified(record[0].SessionID)
}
