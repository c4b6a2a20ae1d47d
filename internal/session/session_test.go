package session

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abhed/abhed/internal/event"
)

func TestPlacesAndModes(t *testing.T) {
	st := newStore(t, Options{})
	root := filepath.Join(t.TempDir(), "my\nproject")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(root, link); err != nil {
		t.Fatal(err)
	}
	a, err := st.Create(root, CreateOptions{ID: "first"})
	if err != nil {
		t.Fatal(err)
	}
	b, err := st.Create(link, CreateOptions{ID: "second"})
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, a, &event.Notice{Text: strings.Repeat("x", blobOver+1)})
	if filepath.Dir(a.Path()) != filepath.Dir(b.Path()) {
		t.Errorf("a link leads to another folder: %s, %s", a.Path(), b.Path())
	}
	if base := filepath.Base(filepath.Dir(a.Path())); !strings.HasPrefix(base, "my_project-") || len(base) != len("my_project-")+12 {
		t.Errorf("folder %q", base)
	}
	for path, want := range map[string]os.FileMode{
		a.Path(): 0o600, filepath.Dir(a.Path()): 0o700, filepath.Join(st.Dir(), "sessions"): 0o700, filepath.Join(st.Dir(), "key"): 0o600, blobDir(a.Path()): 0o700,
	} {
		if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != want {
			t.Errorf("%s: mode %v (%v), expected %v", path, fi.Mode(), err, want)
		}
	}
	if _, err := st.Create(root, CreateOptions{ID: "first"}); err == nil {
		t.Error("a second session of the same id was made")
	}
	for _, id := range []string{"../x", "a/b", "a b", strings.Repeat("x", 101), "."} {
		if _, err := st.Create(root, CreateOptions{ID: id}); err == nil {
			t.Errorf("id %q was taken", id)
		}
	}
	if err := errors.Join(a.Close(), b.Close(), b.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(b.Path()); err == nil {
		t.Error("a session without an event left a file")
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(a.Path()), "*.lock")); len(left) > 0 {
		t.Errorf("locks left behind: %v", left)
	}
	if _, err := a.Append(draft(&event.Notice{})); !errors.Is(err, ErrClosed) {
		t.Errorf("append after close: %v", err)
	}
	if err := a.Sign(); !errors.Is(err, ErrClosed) {
		t.Errorf("sign after close: %v", err)
	}
}

func TestCloseSignsAndSignIsIdempotent(t *testing.T) {
	st := newStore(t, Options{})
	s := create(t, st)
	mustAppend(t, s, started())
	if s.Head().Seq != 2 {
		t.Fatalf("the first event is not signed at once: head %+v", s.Head())
	}
	for range 2 {
		if err := s.Sign(); err != nil {
			t.Fatal(err)
		}
	}
	if s.Head().Seq != 2 {
		t.Fatalf("nothing new was signed again: head %+v", s.Head())
	}
	if _, err := s.Append(draft(&event.Notice{Text: "batched"})); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	rep, err := Verify(s.Path(), st.Key().Public())
	if err != nil || !rep.OK || rep.Events != 4 || rep.UnsignedTail != 0 || rep.SignedHead.Seq != 3 || rep.KeyID != st.Key().ID() || rep.Session != s.ID() {
		t.Fatalf("%v %+v", err, rep)
	}
}

func TestRefusedDraftHarmsNothing(t *testing.T) {
	s := create(t, newStore(t, Options{}))
	mustAppend(t, s, started())
	head := s.Head()
	var ee *event.EncodeError
	if _, err := s.AppendDurable(event.Draft{Payload: &event.Notice{}}); !errors.As(err, &ee) {
		t.Errorf("a draft without actor: %v", err)
	}
	if _, err := s.AppendDurable(draft(nil)); !errors.As(err, &ee) {
		t.Errorf("a draft without payload: %v", err)
	}
	if s.Head() != head {
		t.Error("a refused draft moved the head")
	}
	// What can't be recorded as it is, is recorded otherwise.
	e := mustAppend(t, s, &event.Decision{Original: event.Raw(`{"a":`), Reason: "bad \xff byte"})
	if d := e.Payload.(*event.Decision); string(d.Original) != `"{\"a\":"` || d.Reason != `bad \xff byte` {
		t.Errorf("recorded %s, %q", d.Original, d.Reason)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if rep, err := Verify(s.Path()); err != nil || !rep.OK {
		t.Errorf("%v %+v", err, rep)
	}
}

func TestGroupCommit(t *testing.T) {
	f := &faulty{room: -1}
	_, s := withFault(t, f)
	mustAppend(t, s, started())
	f.gate = make(chan struct{})
	before, writers := f.syncs, 16
	var wg sync.WaitGroup
	for range 1 + writers {
		wg.Go(func() {
			if _, err := s.AppendDurable(draft(&event.Notice{Text: "together"})); err != nil {
				t.Error(err)
			}
		})
	}
	for s.Head().Seq < int64(2+1+writers) { // all are in, the first of them is at the gate
		runtime.Gosched()
	}
	close(f.gate)
	wg.Wait()
	if n := f.syncs - before; n > 2 {
		t.Errorf("%d appends took %d syncs, expected 2", 1+writers, n)
	}
	f.gate = nil
}

func TestDurablePutsEarlierEventsOnDisk(t *testing.T) {
	st := newStore(t, Options{FlushEvery: time.Hour})
	s := create(t, st)
	mustAppend(t, s, started())
	for range 10 {
		if _, err := s.Append(draft(&event.Notice{Text: "batched"})); err != nil {
			t.Fatal(err)
		}
	}
	size := func() int { b, _ := os.ReadFile(s.Path()); return bytes.Count(b, []byte("\n")) }
	if size() != 2 {
		t.Fatalf("%d lines, expected the batch to wait", size())
	}
	mustAppend(t, s, &event.Notice{Text: "durable"})
	if size() != 13 {
		t.Errorf("%d lines, expected all 13", size())
	}
	// A large batch doesn't wait.
	for range 12 {
		if _, err := s.Append(draft(&event.Notice{Text: strings.Repeat("x", 30_000)})); err != nil {
			t.Fatal(err)
		}
	}
	if size() <= 13 {
		t.Error("360 kB stay in memory")
	}
}

func TestBatchIsWrittenInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := create(t, newStore(t, Options{FlushEvery: 100 * time.Millisecond}))
		mustAppend(t, s, started())
		lines := func() int { b, _ := os.ReadFile(s.Path()); return bytes.Count(b, []byte("\n")) }
		for round := range 3 {
			if _, err := s.Append(draft(&event.Notice{Text: "batched"})); err != nil {
				t.Fatal(err)
			}
			time.Sleep(99 * time.Millisecond)
			if got := lines(); got != 2+round {
				t.Fatalf("%d lines before the time, expected %d", got, 2+round)
			}
			time.Sleep(2 * time.Millisecond)
			synctest.Wait()
			if got := lines(); got != 3+round {
				t.Fatalf("%d lines after the time, expected %d", got, 3+round)
			}
		}
		if _, err := s.Append(draft(&event.Notice{Text: "last"})); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestSubscribersHearInOrderAndAfterTheDisk(t *testing.T) {
	f := &faulty{room: -1}
	_, s := withFault(t, f)
	mustAppend(t, s, started())
	var mu sync.Mutex
	var heard []int64
	cancel := s.Subscribe(func(e event.Event) {
		mu.Lock()
		heard = append(heard, e.Seq)
		mu.Unlock()
		if n, ok := e.Payload.(*event.Notice); ok && n.Text == "answer me" {
			if _, err := s.AppendDurable(draft(&event.Notice{Text: "an answer"})); err != nil {
				t.Error(err)
			}
		}
	})
	count := func() int { mu.Lock(); defer mu.Unlock(); return len(heard) }
	f.gate = make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := s.AppendDurable(draft(&event.Notice{Text: "answer me"})); err != nil {
			t.Error(err)
		}
	}()
	for s.Head().Seq < 3 {
		runtime.Gosched()
	}
	if _, err := s.Append(draft(&event.Notice{Text: "behind"})); err != nil {
		t.Fatal(err)
	}
	if n := count(); n != 0 {
		t.Errorf("%d events were told before the first was on disk", n)
	}
	close(f.gate)
	<-done
	if got := fmt.Sprint(heard); got != "[3 4 5]" {
		t.Errorf("heard %s", got)
	}
	cancel()
	mustAppend(t, s, &event.Notice{})
	if count() != 3 {
		t.Error("a cancelled subscription was called")
	}
}

func TestManyWritersOneOrder(t *testing.T) {
	st := newStore(t, Options{})
	s := create(t, st)
	var heard []int64
	s.Subscribe(func(e event.Event) { heard = append(heard, e.Seq) })
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 30 {
				add := s.Append
				if (i+g)%3 == 0 {
					add = s.AppendDurable
				}
				if _, err := add(draft(&event.Notice{Text: "x"})); err != nil {
					t.Error(err)
				}
				if i%10 == 9 {
					if err := s.Sign(); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for i, seq := range heard {
		if seq != int64(i+1) {
			t.Fatalf("event %d was told as number %d", seq, i+1)
		}
	}
	rep, err := Verify(s.Path(), st.Key().Public())
	if err != nil || !rep.OK || int(rep.Events) != len(heard) || rep.Events < 240 {
		t.Errorf("%v %+v; told of %d", err, rep, len(heard))
	}
}

// TestRepliesAndOutcomesAreInTheFileAtOnce holds what a kill of the process must not
// take back.
func TestRepliesAndOutcomesAreInTheFileAtOnce(t *testing.T) {
	s := create(t, newStore(t, Options{FlushEvery: time.Hour}))
	defer s.Close()
	for _, tt := range []struct {
		p      event.Payload
		atOnce bool
	}{
		{&event.UserMessage{Text: "first"}, true}, {&event.TurnStarted{Turn: 1}, false}, {&event.ModelResponded{Turn: 1}, true},
		{&event.ModelRequested{Turn: 1}, false}, {&event.ToolEnded{CallID: "c", Outcome: "ok"}, true},
	} {
		e, err := s.Append(event.Draft{Actor: event.ActorSystem, Trust: event.TrustHarness, Payload: tt.p})
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(s.Path())
		if err != nil || strings.Contains(string(data), e.Hash) != tt.atOnce {
			t.Errorf("%s: %v, in the file %t", tt.p.Type(), err, !tt.atOnce)
		}
	}
}
