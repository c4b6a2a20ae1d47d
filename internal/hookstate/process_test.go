package hookstate_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/abhed/abhed/internal/hookstate"
	"github.com/abhed/abhed/internal/roletest"
)

func TestMain(m *testing.M) { roletest.Main(m, play) }

// play makes the test program another process: ROLE STATE NAME.
func play(role []string) int {
	s, err := hookstate.Open(role[1], hookstate.Options{LockWait: time.Minute, Wait: time.Minute})
	if err != nil {
		fmt.Println("!", err)
		return 1
	}
	x := s.Session("codex", "s")
	switch role[0] {
	case "once": // judges when a line comes, or with the end of input
		answer, again, err := x.Once("k", func() []byte {
			fmt.Println("judging")
			_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
			return []byte("by " + role[2])
		})
		fmt.Println(string(answer), again, err)
	case "calls":
		for range 25 {
			id, err := x.Before("k")
			if err != nil {
				fmt.Println("!", err)
				return 1
			}
			fmt.Println(id)
		}
	case "denied":
		for range 25 {
			n, err := x.Denied("k", "")
			if err != nil {
				fmt.Println("!", err)
				return 1
			}
			fmt.Println(n)
		}
	}
	return 0
}

// TestOnceInTwoProcesses holds that the second waits for the first's answer.
func TestOnceInTwoProcesses(t *testing.T) {
	state := t.TempDir()
	one := roletest.Start(t, "once", state, "one")
	if got := one.Next(t); got != "judging" {
		t.Fatal(got)
	}
	var others []*roletest.Process
	for i := range 3 {
		others = append(others, roletest.Start(t, "once", state, fmt.Sprint("other", i)))
	}
	// They would say that they judge if they did.
	said := make(chan string, len(others))
	for _, p := range others {
		go func() {
			p.Lines.Scan()
			said <- p.Lines.Text()
		}()
	}
	select {
	case got := <-said:
		t.Fatalf("another process did not wait: %s", got)
	case <-time.After(100 * time.Millisecond):
	}
	if _, err := io.WriteString(one.In, "go\n"); err != nil {
		t.Fatal(err)
	}
	if got := one.Next(t); got != "by one false <nil>" {
		t.Error(got)
	}
	for range others {
		if got := <-said; got != "by one true <nil>" {
			t.Error(got)
		}
	}
}

// TestOnceWhenTheFirstDies holds that the second judges then.
func TestOnceWhenTheFirstDies(t *testing.T) {
	state := t.TempDir()
	one := roletest.Start(t, "once", state, "one")
	if got := one.Next(t); got != "judging" {
		t.Fatal(got)
	}
	two := roletest.Start(t, "once", state, "two")
	if err := one.Cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = one.Cmd.Wait()
	if got := two.Next(t); got != "judging" {
		t.Fatal(got)
	}
	two.In.Close()
	if got := two.Next(t); got != "by two false <nil>" {
		t.Error(got)
	}
}

// TestProcesses holds that processes which use one session get no id and no count twice.
func TestProcesses(t *testing.T) {
	state := t.TempDir()
	for _, role := range []string{"calls", "denied"} {
		var mu sync.Mutex
		seen := map[string]int{}
		var wg sync.WaitGroup
		for i := range 4 {
			p := roletest.Start(t, role, state, fmt.Sprint(i))
			wg.Go(func() {
				for p.Lines.Scan() {
					mu.Lock()
					seen[p.Lines.Text()]++
					mu.Unlock()
				}
				if err := p.Cmd.Wait(); err != nil {
					t.Error(role, err)
				}
			})
		}
		wg.Wait()
		if len(seen) != 100 {
			t.Errorf("%s: %d different of 100", role, len(seen))
		}
		if role == "denied" && (seen["0"] != 1 || seen["99"] != 1) {
			t.Errorf("the counts are %v", seen)
		}
	}
}

// TestOnceInOneProcess holds the same for goroutines, as a service has them.
func TestOnceInOneProcess(t *testing.T) {
	s := store(t, hookstate.Options{})
	var judged, again int
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			answer, was, err := s.Session("codex", "s").Once("k", func() []byte {
				judged++
				return []byte("answer")
			})
			mu.Lock()
			defer mu.Unlock()
			if was {
				again++
			}
			if string(answer) != "answer" || err != nil {
				t.Errorf("%s, %v", answer, err)
			}
		})
	}
	wg.Wait()
	if judged != 1 || again != 19 {
		t.Errorf("judged %d times, %d got it again", judged, again)
	}
}

func TestOnceEnds(t *testing.T) {
	now := time.Unix(1000, 0)
	s := store(t, hookstate.Options{Window: 10 * time.Second, MaxAnswer: 100, Now: func() time.Time { return now }})
	x := s.Session("codex", "s")
	once := func(x *hookstate.Session, key, answer string) string {
		got, again, err := x.Once(key, func() []byte { return []byte(answer) })
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(string(got), " ", again)
	}
	for _, step := range []struct {
		x                  *hookstate.Session
		after              time.Duration
		key, answer, wants string
	}{
		{x, 0, "k", "one", "one false"},
		{x, 10 * time.Second, "k", "two", "one true"},
		{x, time.Second, "k", "three", "three false"},
		{x, -time.Minute, "k", "four", "four false"}, // the clock was put back
		{x, 0, "other", "five", "five false"},
		{s.Session("codex", "s2"), 0, "k", "six", "six false"},
		{s.Session("crush", "s"), 0, "k", "seven", "seven false"},
		{x, 0, "empty", "", " false"},
		{x, 0, "empty", "eight", " true"},
		{x, 0, "long", strings.Repeat("x", 101), strings.Repeat("x", 101) + " false"},
		{x, 0, "long", "nine", "nine false"},
	} {
		now = now.Add(step.after)
		if got := once(step.x, step.key, step.answer); got != step.wants {
			t.Errorf("got %s, want %s", got, step.wants)
		}
	}
	func() {
		defer func() { _ = recover() }()
		_, _, _ = x.Once("panics", func() []byte { panic("judge") })
	}()
	if got := once(x, "panics", "ten"); got != "ten false" {
		t.Error(got)
	}
	// One that judges too long is not waited for for ever.
	_, _, err := x.Once("slow", func() []byte {
		if _, _, err := x.OnceUntil(time.Now().Add(20*time.Millisecond), "slow", func() []byte { t.Error("judged twice"); return nil }); !errors.Is(err, hookstate.ErrBusy) {
			t.Errorf("while it is judged: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
