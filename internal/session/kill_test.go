package session

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abhed/abhed/internal/event"
)

// TestKill kills a writer 200 times, at any moment, and holds that no event that
// it had acknowledged is lost and that the next writer goes on.
func TestKill(t *testing.T) {
	rounds := 200
	if testing.Short() || raceDetector { // the race detector sees nothing of another process
		rounds = 40
	}
	const perSession, workers = 10, 2
	var wg sync.WaitGroup
	var mu sync.Mutex
	kills, acks, repairs := 0, 0, 0
	for w := range workers {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(7, uint64(w)))
			for range rounds / workers / perSession {
				k, a, rep := killSession(t, r, perSession)
				mu.Lock()
				kills, acks, repairs = kills+k, acks+a, repairs+rep
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	t.Logf("%d kills, %d acknowledged events, %d repairs", kills, acks, repairs)
	if kills != rounds || acks < rounds {
		t.Errorf("%d kills and %d acknowledged events: the test tested too little", kills, acks)
	}
}

// killSession starts one session, kills its writer n times and verifies it.
func killSession(t *testing.T, r *rand.Rand, n int) (kills, acks, repairs int) {
	dir := t.TempDir()
	id := ""
	acked := map[int64]string{}
	path := ""
	for range n {
		got, err := runAndKill(dir, &id, 1+r.IntN(25), time.Duration(r.IntN(3000))*time.Microsecond, acked)
		if err != nil {
			t.Error(err)
			return
		}
		kills, acks = kills+1, acks+got
		if path == "" {
			st, err := OpenStore(dir, Options{})
			if err != nil {
				t.Error(err)
				return
			}
			if path, err = st.Find(id); err != nil {
				t.Error(err)
				return
			}
		}
		repairs = checkAcked(t, path, acked)
	}
	st, err := OpenStore(dir, Options{})
	if err != nil {
		t.Error(err)
		return
	}
	s, _, info, err := st.Resume(id, ResumeOptions{})
	if err != nil {
		t.Error(err)
		return
	}
	if _, err := s.AppendDurable(draft(info.Resumed(*started()))); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if rep, err := Verify(path, st.Key().Public()); err != nil || !rep.OK || rep.UnsignedTail != 0 {
		t.Errorf("%v %+v", err, rep)
	}
	return kills, acks, repairs
}

// checkAcked fails if an acknowledged event is not in the record, and returns the
// number of repairs that the record tells of.
func checkAcked(t *testing.T, path string, acked map[int64]string) (repairs int) {
	have := map[int64]string{}
	problems, err := Read(path, func(e event.Event) error {
		have[e.Seq] = e.Hash
		if _, ok := e.Payload.(*event.RecordRepaired); ok {
			repairs++
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	for seq, hash := range acked {
		if have[seq] != hash {
			t.Errorf("event %d was acknowledged and is lost (%v)", seq, problems)
		}
	}
	return repairs
}

// runAndKill runs a writer, kills it a while after its nth acknowledgement, and
// adds all it acknowledged to acked.
func runAndKill(dir string, id *string, n int, after time.Duration, acked map[int64]string) (int, error) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "ABHED_TEST_WRITER="+dir, "ABHED_TEST_SESSION="+*id)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	count := 0
	lines := bufio.NewReader(stdout)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrClosed) {
				return count, err
			}
			break
		}
		var seq int64
		var hash string
		if _, err := fmt.Sscanf(line, "ack %d %s", &seq, &hash); err == nil {
			acked[seq] = hash
			if count++; count == n {
				time.AfterFunc(after, func() { cmd.Process.Kill() })
			}
			continue
		}
		if _, err := fmt.Sscanf(line, "session %s", id); err != nil {
			return count, fmt.Errorf("the writer said %q", line)
		}
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Exited() {
		return count, fmt.Errorf("the writer ended by itself: %w", err)
	}
	return count, nil
}

// TestLockHasOneHolder takes and releases a lock from many sides; each release
// removes the lock's file under the feet of who just opened it.
func TestLockHasOneHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	var holders, taken, refused atomic.Int64
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			// So many times each, however often it is held by another meanwhile: how
			// often that is depends on the scheduler.
			for mine := 0; mine < 25 && ctx.Err() == nil; {
				l, err := acquire(path)
				var le *LockedError
				if errors.As(err, &le) {
					refused.Add(1)
					runtime.Gosched()
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				mine++
				taken.Add(1)
				if n := holders.Add(1); n != 1 {
					t.Errorf("%d holders at once", n)
				}
				runtime.Gosched()
				holders.Add(-1)
				if err := l.release(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if taken.Load() != 8*25 || refused.Load() == 0 {
		t.Errorf("taken %d times, refused %d times: want %d, and at least one refusal", taken.Load(), refused.Load(), 8*25)
	}
}

// TestOneWriter opens a session that this process has, and one that another process
// has (I217): both are refused, and the owner is named.
func TestOneWriter(t *testing.T) {
	st := newStore(t, Options{})
	s := create(t, st)
	mustAppend(t, s, started())
	var le *LockedError
	if _, _, _, err := st.Resume(s.ID(), ResumeOptions{}); !errors.As(err, &le) || le.PID != os.Getpid() {
		t.Fatalf("a second opening in this process: %v", err)
	}
	// Another process has it.
	cmd := exec.Command(os.Args[0])
	dir := t.TempDir()
	cmd.Env = append(os.Environ(), "ABHED_TEST_WRITER="+dir, "ABHED_TEST_SESSION=")
	stdin, _ := cmd.StdinPipe()
	stdout, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stdout)
	line, err := lines.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var id string
	if _, err := fmt.Sscanf(line, "session %s", &id); err != nil {
		t.Fatal(err)
	}
	other, err := OpenStore(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := other.Resume(id, ResumeOptions{}); !errors.As(err, &le) || le.PID != cmd.Process.Pid {
		t.Errorf("opening what another process has: %v", err)
	}
	stdin.Close()
	io.Copy(io.Discard, lines)
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	r, _, _, err := other.Resume(id, ResumeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if rep, err := Verify(r.Path(), other.Key().Public()); err != nil || !rep.OK {
		t.Errorf("%v %+v", err, rep)
	}
}
