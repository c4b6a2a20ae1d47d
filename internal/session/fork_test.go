package session

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/abhed/abhed/internal/event"
)

// forked is a fork and what it brought.
type forked struct {
	*Session
	state *State
	info  ResumeInfo
}

// fork forks at event at, goes on as the program does, and closes and verifies both
// records: the origin must not have changed.
func fork(t *testing.T, st *Store, id string, at int64, o ResumeOptions) (forked, error) {
	t.Helper()
	path, err := st.Find(id)
	if err != nil {
		t.Fatal(err)
	}
	before := read(t, path)
	s, state, info, err := st.Fork(id, at, t.TempDir(), o)
	if now := read(t, path); !bytes.Equal(now, before) {
		t.Error("the fork changed its origin")
	}
	if err != nil {
		return forked{}, err
	}
	if s.ID() == id || s.Path() == path {
		t.Error("the fork is its origin")
	}
	mustAppend(t, s, info.Resumed(*started()))
	mustAppend(t, s, &event.UserMessage{Text: "another way"})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	rep, err := Verify(s.Path(), st.Key().Public())
	if err != nil || !rep.OK || rep.UnsignedTail != 0 || rep.Session != s.ID() {
		t.Errorf("the fork at %d: %v %+v", at, err, rep)
	}
	return forked{s, state, info}, nil
}

// eventsOf returns the events of a record.
func eventsOf(t *testing.T, path string) []event.Event {
	t.Helper()
	var out []event.Event
	if _, err := Read(path, func(e event.Event) error { out = append(out, e); return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

// stateAt folds a record up to event at.
func stateAt(t *testing.T, path string, at int64) *State {
	t.Helper()
	var f Fold
	for _, e := range eventsOf(t, path) {
		if e.Seq <= at {
			f.Apply(e)
		}
	}
	return f.State()
}

// TestForkAtEveryEvent forks a session at each of its events, in the middle of calls
// too: the fork is what the session was then, and a later resume of it comes to the
// same, with every call answered.
func TestForkAtEveryEvent(t *testing.T) {
	st := newStore(t, Options{})
	path := record(t, st)
	id := idOf(path)
	all := eventsOf(t, path)
	cut := 0
	for at := int64(0); at <= int64(len(all)); at++ {
		f, err := fork(t, st, id, at, ResumeOptions{})
		if err != nil {
			t.Fatalf("at %d: %v", at, err)
		}
		last := at
		if at == 0 { // the end
			last = int64(len(all))
		}
		then := stateAt(t, path, last)
		if d := cmp.Diff(then, f.state); d != "" {
			t.Errorf("at %d: the fork is not what the session was: %s", at, d)
		}
		if !slices.Equal(f.info.Interrupted, then.Interrupted) {
			t.Errorf("at %d: interrupted %v, then it was %v", at, f.info.Interrupted, then.Interrupted)
		}
		if len(then.Interrupted) > 0 {
			cut++
		}
		copied := eventsOf(t, f.Path())
		origin := slices.IndexFunc(copied, func(e event.Event) bool { _, is := e.Payload.(*event.SessionForked); return is })
		if origin < 0 {
			t.Fatalf("at %d: the fork doesn't say where it comes from", at)
		}
		if p := copied[origin].Payload.(*event.SessionForked); p.From != id || p.At != last {
			t.Errorf("at %d: it says %+v", at, p)
		}
		if got, w := kinds(copied[:origin]), kinds(all[:last]); got != w {
			t.Errorf("at %d: the fork holds %s, want %s", at, got, w)
		}
		for _, e := range copied {
			if e.SessionID != f.ID() {
				t.Errorf("at %d: event %d is one of session %s", at, e.Seq, e.SessionID)
			}
		}
		s, state, _, err := st.Resume(f.ID(), ResumeOptions{})
		if err != nil {
			t.Fatalf("at %d: the fork can't be resumed: %v", at, err)
		}
		if got, w := show(state.Messages), show(f.state.Messages)+"user: another way\n"; got != w {
			t.Errorf("at %d: resumed, the fork is\n%s, want\n%s", at, got, w)
		}
		s.Close()
	}
	if cut < 3 {
		t.Errorf("only %d forks were in the middle of calls", cut)
	}
}

// kinds lists the types of events, without those that speak of one file, with who
// said them and a short form of what.
func kinds(events []event.Event) string {
	var b strings.Builder
	for _, e := range events {
		switch e.Payload.(type) {
		case *event.HeadSigned, *event.RecordRepaired:
			continue
		}
		fmt.Fprintf(&b, "%T %s %s\n", e.Payload, e.Actor, e.Trust)
	}
	return b.String()
}

// TestForkWhereThereIsNothing holds which forks are refused, and that none leaves
// anything behind.
func TestForkWhereThereIsNothing(t *testing.T) {
	st := newStore(t, Options{})
	path := record(t, st)
	id := idOf(path)
	n := len(eventsOf(t, path))
	for _, at := range []int64{int64(n) + 1, 1 << 40, -1} {
		_, err := fork(t, st, id, at, ResumeOptions{})
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("has %d events; there is no event %d to fork at", n, at)) {
			t.Errorf("at %d: %v", at, err)
		}
	}
	var missing *NotFoundError
	if _, _, _, err := st.Fork("nobody", 0, t.TempDir(), ResumeOptions{}); !errors.As(err, &missing) {
		t.Errorf("a session that there isn't: %v", err)
	}
	if _, _, _, err := st.Fork(id, 0, filepath.Join(t.TempDir(), "gone"), ResumeOptions{}); err == nil || !strings.Contains(err.Error(), "can't be resolved") {
		t.Errorf("a workspace that there isn't: %v", err)
	}
	only(t, st, id)
}

// only fails unless the store has exactly these sessions.
func only(t *testing.T, st *Store, ids ...string) {
	t.Helper()
	infos, err := st.List()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, i := range infos {
		got = append(got, i.ID)
	}
	slices.Sort(got)
	slices.Sort(ids)
	if !slices.Equal(got, ids) {
		t.Errorf("the store has %v, want %v", got, ids)
	}
}

// TestForkOfAFork holds that each fork names its own origin, in its own numbers.
func TestForkOfAFork(t *testing.T) {
	st := newStore(t, Options{})
	path := record(t, st)
	first, err := fork(t, st, idOf(path), 6, ResumeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n := int64(len(eventsOf(t, first.Path())))
	second, err := fork(t, st, first.ID(), 0, ResumeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var from []event.SessionForked
	for _, e := range eventsOf(t, second.Path()) {
		if p, is := e.Payload.(*event.SessionForked); is {
			from = append(from, *p)
		}
	}
	if d := cmp.Diff([]event.SessionForked{{From: idOf(path), At: 6}, {From: first.ID(), At: n}}, from); d != "" {
		t.Errorf("it comes from %s", d)
	}
	if got, w := show(second.state.Messages), show(first.state.Messages)+"user: another way\n"; got != w {
		t.Errorf("the fork of the fork is\n%s, want\n%s", got, w)
	}
}

// TestForkOfAnOpenSession forks what is being written, with a text that lies beside
// the file.
func TestForkOfAnOpenSession(t *testing.T) {
	st := newStore(t, Options{})
	s := create(t, st)
	mustAppend(t, s, started())
	long := strings.Repeat("long ", 20_000)
	if _, err := s.AppendDurable(event.Draft{Actor: event.ActorUser, Trust: event.TrustOperator, Payload: &event.UserMessage{Text: long}}); err != nil {
		t.Fatal(err)
	}
	f, err := fork(t, st, s.ID(), 0, ResumeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	said := eventsOf(t, f.Path())[2]
	if f.state.Messages[0].Text() != long || said.Payload.(*event.UserMessage).Text != long {
		t.Error("the long text is lost")
	}
	if said.Actor != event.ActorUser || said.Trust != event.TrustOperator || f.state.First != f.state.Messages[0] {
		t.Errorf("who said it is lost: %s, %s", said.Actor, said.Trust)
	}
	mustAppend(t, s, &event.UserMessage{Text: "the origin goes on"})
	if err := os.RemoveAll(blobDir(s.Path())); err != nil {
		t.Fatal(err)
	}
	if rep, err := Verify(f.Path(), st.Key().Public()); err != nil || !rep.OK {
		t.Errorf("the fork needs its origin's files: %v %+v", err, rep)
	}
}

// TestForkOfABrokenRecord holds that a record that wouldn't be resumed isn't forked
// either, and that of one that is accepted only what is chained goes into the fork.
func TestForkOfABrokenRecord(t *testing.T) {
	st := newStore(t, Options{})
	path := record(t, st)
	l := lines(read(t, path))
	content := bytes.Join(replaced(l, 4, bytes.Replace(l[4], []byte("let me see"), []byte("let me lie"), 1)), nil)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	id := idOf(path)
	var re *RefusedError
	for _, at := range []int64{0, 3, 7} { // before and behind the fault
		if _, err := fork(t, st, id, at, ResumeOptions{}); !errors.As(err, &re) || len(re.Broken) == 0 {
			t.Errorf("at %d: %v", at, err)
		}
	}
	only(t, st, id)
	if _, err := fork(t, st, id, 7, ResumeOptions{AcceptBroken: true}); err == nil || !strings.Contains(err.Error(), "has 4 events") {
		t.Errorf("behind the fault: %v", err)
	}
	for _, at := range []int64{0, 3} {
		f, err := fork(t, st, id, at, ResumeOptions{AcceptBroken: true})
		if err != nil {
			t.Fatal(err)
		}
		if text := show(f.state.Messages); strings.Contains(text, "let me") || !strings.HasPrefix(text, "user: line") || f.info.AcceptedBroken == "" {
			t.Errorf("at %d: %s, accepted %q", at, text, f.info.AcceptedBroken)
		}
		events := eventsOf(t, f.Path())
		resumed := events[slices.IndexFunc(events, func(e event.Event) bool { _, is := e.Payload.(*event.SessionResumed); return is })].Payload.(*event.SessionResumed)
		if resumed.AcceptedBroken == "" {
			t.Errorf("at %d: the fork doesn't record what was accepted", at)
		}
	}
}

// TestForkOfAStrangersRecord holds that a record that this installation didn't sign
// is forked only where that is accepted.
func TestForkOfAStrangersRecord(t *testing.T) {
	path, st := record(t, newStore(t, Options{})), newStore(t, Options{})
	var re *RefusedError
	if _, _, _, err := st.Fork(path, 0, t.TempDir(), ResumeOptions{}); !errors.As(err, &re) || !re.Unsigned {
		t.Errorf("%v", err)
	}
	s, _, info, err := st.Fork(path, 0, t.TempDir(), ResumeOptions{AcceptUnsigned: true})
	if err != nil || !info.AcceptedUnsigned {
		t.Fatalf("%v %+v", err, info)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if rep, err := Verify(s.Path(), st.Key().Public()); err != nil || !rep.OK {
		t.Errorf("%v %+v", err, rep)
	}
}

// TestFailedForkLeavesNothing lets the disk be full while the events are copied.
func TestFailedForkLeavesNothing(t *testing.T) {
	full := false
	st := newStore(t, Options{open: func(path string, flag int) (file, error) {
		f, err := openFile(path, flag)
		if full {
			return &faulty{file: f, room: 2000}, err
		}
		return f, err
	}})
	path := record(t, st) // with a blob
	full = true
	var failed *FailedError
	root := t.TempDir()
	if _, _, _, err := st.Fork(idOf(path), 0, root, ResumeOptions{}); !errors.As(err, &failed) || !strings.Contains(err.Error(), "can't be forked") {
		t.Errorf("%v", err)
	}
	only(t, st, idOf(path))
	dir, err := st.workspaceDir(root)
	if err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%v %v is left", err, left)
	}
}
