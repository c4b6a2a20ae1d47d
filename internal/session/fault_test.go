package session

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/abhed/abhed/internal/event"
)

// faulty is a file that counts, can be made to wait, and fails when told to.
type faulty struct {
	file
	mu     sync.Mutex
	room   int // bytes that still fit; negative is no limit
	syncs  int
	failIn int // the Datasync call that fails; 0 is none
	gate   chan struct{}
}

func (f *faulty) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.room >= 0 && len(b) > f.room {
		n, _ := f.file.Write(b[:f.room])
		f.room = 0
		return n, syscall.ENOSPC
	}
	if f.room >= 0 {
		f.room -= len(b)
	}
	return f.file.Write(b)
}

func (f *faulty) Datasync() error {
	if f.gate != nil {
		<-f.gate
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.syncs++; f.syncs == f.failIn {
		return syscall.EIO
	}
	return f.file.Datasync()
}

func withFault(t *testing.T, f *faulty) (*Store, *Session) {
	t.Helper()
	st := newStore(t, Options{open: func(path string, flag int) (file, error) {
		real, err := openFile(path, flag)
		f.file = real
		return f, err
	}})
	return st, create(t, st)
}

func TestFullDiskEndsTheSession(t *testing.T) {
	for room := 3000; room < 3000+700; room += 37 {
		st, s := withFault(t, &faulty{room: room})
		var told []event.Event
		s.Subscribe(func(e event.Event) { told = append(told, e) })
		var acked []event.Event
		var failed error
		for range 20 {
			e, err := s.AppendDurable(draft(&event.Notice{Text: strings.Repeat("x", 100)}))
			if err != nil {
				failed = err
				break
			}
			acked = append(acked, e)
		}
		var fe *FailedError
		if !errors.As(failed, &fe) || !errors.Is(failed, syscall.ENOSPC) || fe.Path != s.Path() {
			t.Fatalf("room %d: error %v", room, failed)
		}
		for name, err := range map[string]error{"Append": second(s.Append(draft(&event.Notice{}))), "Sign": s.Sign(), "Close": s.Close()} {
			if !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("%s after the failure: %v", name, err)
			}
		}
		checkHolds(t, s.Path(), acked)
		checkHolds(t, s.Path(), told)
		// With room again the session goes on.
		again, err := OpenStore(st.Dir(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		r, _, info, err := again.Resume(s.ID(), ResumeOptions{})
		if err != nil {
			t.Fatalf("room %d: %v", room, err)
		}
		mustAppend(t, r, info.Resumed(*started()))
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if rep, err := Verify(s.Path(), st.Key().Public()); err != nil || !rep.OK {
			t.Fatalf("room %d: %v %+v", room, err, rep)
		}
	}
}

func second[A any](_ A, err error) error { return err }

// checkHolds fails unless the record has every one of the events.
func checkHolds(t testing.TB, path string, want []event.Event) {
	t.Helper()
	have := map[int64]string{}
	if _, err := Read(path, func(e event.Event) error { have[e.Seq] = e.Hash; return nil }); err != nil {
		t.Fatal(err)
	}
	for _, e := range want {
		if have[e.Seq] != e.Hash {
			t.Errorf("event %d (%s) is lost; the record has %q there", e.Seq, e.Hash, have[e.Seq])
		}
	}
}

func TestFailedSyncIsNoAcknowledgement(t *testing.T) {
	_, s := withFault(t, &faulty{room: -1, failIn: 3})
	var told []int64
	s.Subscribe(func(e event.Event) { told = append(told, e.Seq) })
	for i := range 5 {
		_, err := s.AppendDurable(draft(&event.Notice{}))
		if (err != nil) != (i >= 2) {
			t.Fatalf("append %d: %v", i+1, err)
		}
	}
	if fmt.Sprint(told) != "[1 2 3]" {
		t.Errorf("subscribers were told of %v", told)
	}
}

func TestUnwritableBlobEndsTheSession(t *testing.T) {
	s := create(t, newStore(t, Options{}))
	mustAppend(t, s, started())
	if err := os.WriteFile(blobDir(s.Path()), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var fe *FailedError
	if _, err := s.AppendDurable(draft(&event.Notice{Text: strings.Repeat("x", blobOver+1)})); !errors.As(err, &fe) {
		t.Fatalf("error %v", err)
	}
	if _, err := s.Append(draft(&event.Notice{})); !errors.As(err, &fe) {
		t.Errorf("a later append: %v", err)
	}
}

// TestRealFileReachesTheDisk asks for errors that only the system can give, so
// that a sync that does nothing is seen.
func TestRealFileReachesTheDisk(t *testing.T) {
	f, err := openFile(filepath.Join(t.TempDir(), "f"), os.O_CREATE|os.O_WRONLY)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Datasync(); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Datasync(); err == nil {
		t.Error("a closed file was put on disk")
	}
	device, err := openFile(os.DevNull, os.O_WRONLY)
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	if err := device.Datasync(); err == nil {
		t.Error("what has no disk was put on disk")
	}
	st := newStore(t, Options{})
	for _, dir := range []string{filepath.Join(t.TempDir(), "none"), os.DevNull} {
		if err := st.syncDir(dir); err == nil || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s as a folder was put on disk: %v", dir, err)
		}
	}
}

// TestEachDurableAppendSyncs counts what the sessions ask of their files.
func TestEachDurableAppendSyncs(t *testing.T) {
	f := &faulty{room: -1}
	_, s := withFault(t, f)
	step := func(what string, syncs int, do func() error) {
		t.Helper()
		before := f.syncs
		if err := do(); err != nil {
			t.Fatal(err)
		}
		if n := f.syncs - before; n != syncs {
			t.Errorf("%s: %d syncs, expected %d", what, n, syncs)
		}
	}
	notice := draft(&event.Notice{Text: "x"})
	step("the first event", 1, func() error { return second(s.Append(draft(started()))) })
	step("a batched event", 0, func() error { return second(s.Append(notice)) })
	step("a durable event", 1, func() error { return second(s.AppendDurable(notice)) })
	step("a signature", 1, s.Sign)
	step("nothing new", 0, s.Sign)
	step("a batched event", 0, func() error { return second(s.Append(notice)) })
	step("the end", 1, s.Close)
}

// TestNewRecordIsInItsFolderOnDisk moves the folder away between the making of the
// record and its sync: a record whose name could be lost isn't handed out.
func TestNewRecordIsInItsFolderOnDisk(t *testing.T) {
	st := newStore(t, Options{open: func(path string, flag int) (file, error) {
		f, err := openFile(path, flag)
		if err != nil {
			return nil, err
		}
		return f, os.Rename(filepath.Dir(path), filepath.Dir(path)+".away")
	}})
	if _, err := st.Create(t.TempDir(), CreateOptions{}); err == nil || !strings.Contains(err.Error(), "can't be put on disk") {
		t.Errorf("error %v", err)
	}
}
