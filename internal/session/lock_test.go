package session

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestLockOfADeadProcess kills the writer of a session (I217): the lock that it left
// names it, and is taken over at once. The sibling cases are a lock's file that names
// a process that lives but doesn't hold it, as one does whose number was given again,
// and one that names none.
func TestLockOfADeadProcess(t *testing.T) {
	dir, id := t.TempDir(), ""
	if _, err := runAndKill(dir, &id, 3, 0, map[int64]string{}); err != nil {
		t.Fatal(err)
	}
	st, err := OpenStore(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	path, err := st.Find(id)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(read(t, lockPath(path)))))
	if err != nil || pid == os.Getpid() {
		t.Fatalf("the lock's file should name the dead process: %d, %v", pid, err)
	}
	for round, left := range []string{"", fmt.Sprintln(os.Getppid()), "", "nobody\n"} {
		if round > 0 {
			if err := os.WriteFile(lockPath(path), []byte(left), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s, _, info, err := st.Resume(id, ResumeOptions{})
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if got := string(read(t, lockPath(path))); got != fmt.Sprintln(os.Getpid()) {
			t.Errorf("round %d: the lock's file says %q", round, got)
		}
		var le *LockedError
		if _, _, _, err := st.Resume(id, ResumeOptions{}); !errors.As(err, &le) || le.PID != os.Getpid() || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
			t.Errorf("round %d: a second opening: %v", round, err)
		}
		mustAppend(t, s, info.Resumed(*started()))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(lockPath(path)); !os.IsNotExist(err) {
			t.Errorf("round %d: the lock's file is left: %v", round, err)
		}
	}
	if rep, err := Verify(path, st.Key().Public()); err != nil || !rep.OK {
		t.Errorf("%v %+v", err, rep)
	}
}
