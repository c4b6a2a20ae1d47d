package hooklog_test

import (
	"errors"
	"fmt"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/hooklog"
	"github.com/abhed/abhed/internal/roletest"
)

// TestMain makes the test program a writer: ROLE DIR NAME COUNT MAXBYTES.
func TestMain(m *testing.M) { roletest.Main(m, writer) }

// writer appends and prints the id of each decision that is in the log.
func writer(role []string) int {
	count, _ := strconv.Atoi(role[3])
	maxBytes, _ := strconv.ParseInt(role[4], 10, 64)
	if role[0] == "limited" { // no file may grow beyond maxBytes
		signal.Ignore(syscall.SIGXFSZ)
		limit := syscall.Rlimit{Cur: uint64(maxBytes), Max: uint64(maxBytes)}
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			fmt.Println("!", err)
			return 1
		}
		maxBytes = 0
	}
	l, err := hooklog.Open(role[1], hooklog.Options{MaxBytes: maxBytes, Keep: 10000, LockWait: time.Minute})
	if err != nil {
		fmt.Println("!", err)
		return 1
	}
	for i := range count {
		e := &hooklog.Entry{ID: fmt.Sprintf("%s-%d", role[2], i), Session: role[2], Event: ahp.Raw(`{"text":"` + strings.Repeat("x", 100+i%1000) + `"}`)}
		if err := l.Append(e); err != nil {
			fmt.Println("!", err)
			return 1
		}
		fmt.Println(e.ID)
	}
	return 0 // without Close, as a process that ends does
}

// sound verifies a log and returns the ids in it.
func sound(t testing.TB, dir string) map[string]int {
	t.Helper()
	r, err := hooklog.Verify(dir, nil)
	if err != nil || !r.OK() {
		t.Fatalf("%+v, %v", r, err)
	}
	ids := map[string]int{}
	if err := hooklog.Read(dir, func(e *hooklog.Entry) error { ids[e.ID]++; return nil }); err != nil {
		t.Fatal(err)
	}
	return ids
}

// TestProcesses holds that what several processes append makes one chain, through many
// rotations, while others read and follow it.
func TestProcesses(t *testing.T) {
	const writers, each = 8, 100
	dir := t.TempDir() + "/log"
	followed := map[string]int{}
	done := make(chan error, 1)
	open(t, dir, hooklog.Options{})
	go func() {
		done <- hooklog.Follow(t.Context(), dir, func(e *hooklog.Entry) error {
			if followed[e.ID]++; len(followed) == writers*each {
				return errEnough
			}
			return nil
		})
	}()
	var all []*roletest.Process
	for w := range writers {
		all = append(all, roletest.Start(t, "writer", dir, fmt.Sprint("w", w), each, 16<<10))
	}
	for n := 0; all[0].Lines.Scan(); n++ {
		if n%10 != 0 {
			continue
		}
		if r, err := hooklog.Verify(dir, nil); err != nil || !r.OK() || r.Torn != 0 {
			t.Fatalf("while it is written: %+v, %v", r, err)
		}
	}
	for i, p := range all {
		for p.Lines.Scan() {
			if text := p.Lines.Text(); strings.HasPrefix(text, "!") {
				t.Errorf("writer %d: %s", i, text)
			}
		}
		if err := p.Cmd.Wait(); err != nil {
			t.Errorf("writer %d: %v", i, err)
		}
	}
	if ids := sound(t, dir); len(ids) != writers*each {
		t.Errorf("%d decisions", len(ids))
	}
	r, _ := hooklog.Verify(dir, nil)
	if r.Files < 20 || r.Missing {
		t.Errorf("%+v: too few files for this test", r)
	}
	select {
	case err := <-done:
		if !errors.Is(err, errEnough) {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("Follow has not told of everything")
	}
	for id, n := range followed {
		if n != 1 {
			t.Errorf("%s was told of %d times", id, n)
		}
	}
}

var errEnough = errors.New("enough")

// TestKilled holds that a kill loses nothing that was appended.
func TestKilled(t *testing.T) {
	dir := t.TempDir() + "/log"
	var told []string
	for round := range 12 {
		p := roletest.Start(t, "writer", dir, fmt.Sprint("r", round), 1<<20, 64<<10)
		for n := 0; n < 20*(round+1) && p.Lines.Scan(); n++ {
			told = append(told, p.Lines.Text())
		}
		if err := p.Cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for p.Lines.Scan() {
			told = append(told, p.Lines.Text())
		}
		_ = p.Cmd.Wait()
	}
	l := open(t, dir, hooklog.Options{Keep: 10000})
	if err := l.Append(&hooklog.Entry{ID: "last"}); err != nil {
		t.Fatal(err)
	}
	ids := sound(t, dir)
	for _, id := range append(told, "last") {
		if !strings.Contains(id, "-") && id != "last" {
			continue // cut off by the kill: the writer's own output
		}
		if ids[id] != 1 {
			t.Errorf("%s is %d times in the log", id, ids[id])
		}
	}
}

// TestFileSizeLimit holds that a line which can't be written whole is an error that
// names the file, and leaves no trace.
func TestFileSizeLimit(t *testing.T) {
	dir := t.TempDir() + "/log"
	p := roletest.Start(t, "limited", dir, "w", 1000, 10000)
	var n int
	var last string
	for p.Lines.Scan() {
		if last = p.Lines.Text(); !strings.HasPrefix(last, "!") {
			n++
		}
	}
	if !strings.Contains(last, hooklog.File+": write a line: ") || !strings.Contains(last, "too large") {
		t.Errorf("the error is %q", last)
	}
	if r, err := hooklog.Verify(dir, nil); err != nil || r.Torn != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if ids := sound(t, dir); n == 0 || len(ids) != n {
		t.Errorf("%d decisions, %d were told", len(ids), n)
	}
}
