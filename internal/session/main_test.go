package session

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/abhed/abhed/internal/event"
)

// TestMain runs this binary as a writer of a record where a test asks for one.
func TestMain(m *testing.M) {
	if dir := os.Getenv("ABHED_TEST_WRITER"); dir != "" {
		if err := writer(dir, os.Getenv("ABHED_TEST_SESSION")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// writer appends to a session, new or resumed, until it is killed or its stdin
// ends, and prints each event once it was acknowledged.
func writer(dir, id string) error {
	st, err := OpenStore(dir, Options{})
	if err != nil {
		return err
	}
	var s *Session
	if id == "" {
		if s, err = st.Create(dir, CreateOptions{}); err == nil {
			_, err = s.AppendDurable(draft(started()))
		}
	} else {
		var info ResumeInfo
		if s, _, info, err = st.Resume(id, ResumeOptions{}); err == nil {
			_, err = s.AppendDurable(draft(info.Resumed(*started())))
		}
	}
	if err != nil {
		return err
	}
	fmt.Println("session", s.ID())
	stop := make(chan struct{})
	go func() {
		bufio.NewReader(os.Stdin).ReadByte()
		close(stop)
	}()
	var wg sync.WaitGroup
	for g := range 2 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				size := 300 * (1 + i%7)
				if i%11 == 10 {
					size = blobOver + 1 + i
				}
				if _, err := s.Append(draft(&event.Notice{Text: "batched"})); err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
				e, err := s.AppendDurable(draft(&event.Notice{Level: fmt.Sprint(g), Text: strings.Repeat("x", size)}))
				if err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
				// One write a line, so that a kill can't cut an acknowledgement off
				// that was made.
				os.Stdout.WriteString(fmt.Sprintf("ack %d %s\n", e.Seq, e.Hash))
			}
		})
	}
	wg.Wait()
	return s.Close()
}

func draft(p event.Payload) event.Draft {
	return event.Draft{Actor: event.ActorSystem, Trust: event.TrustHarness, Payload: p}
}

func started() *event.SessionStarted {
	return &event.SessionStarted{Version: "0", Workspace: "/w", Roots: []string{"/w"}, Model: "m", Mode: "default", Tier: "none", System: "be good", Tools: []string{"bash"}}
}

func newStore(t testing.TB, o Options) *Store {
	t.Helper()
	st, err := OpenStore(t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func create(t testing.TB, st *Store) *Session {
	t.Helper()
	s, err := st.Create(t.TempDir(), CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func mustAppend(t testing.TB, s *Session, p event.Payload) event.Event {
	t.Helper()
	e, err := s.AppendDurable(draft(p))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// record writes a closed session that has a bit of everything, and returns its
// path.
func record(t testing.TB, st *Store) string {
	t.Helper()
	return recordOf(t, st, append(conversation(), &event.Notice{Level: "info", Text: strings.Repeat("long ", 20_000)})...)
}

func recordOf(t testing.TB, st *Store, payloads ...event.Payload) string {
	t.Helper()
	s := create(t, st)
	mustAppend(t, s, started())
	for _, p := range payloads {
		mustAppend(t, s, p)
	}
	if err := s.Sign(); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, s, &event.SessionEnded{Reason: "completed", Turns: 1})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return s.Path()
}

func conversation() []event.Payload {
	return []event.Payload{
		&event.UserMessage{Text: "line\u2028separator \x7f and \"quotes\""},
		&event.TurnStarted{Turn: 1},
		&event.ModelResponded{Turn: 1, Attempt: 1, Finish: "tool_calls", Message: event.Message{Role: event.RoleAssistant, Parts: []event.Part{
			event.TextPart("let me see"), {ToolCall: &event.ToolCall{ID: "c1", Name: "bash", Args: `{"command":"ls"}`}}, {ToolCall: &event.ToolCall{ID: "c2", Name: "read", Args: `{"a":"b`}},
		}}},
		&event.Decision{Turn: 1, CallID: "c1", Tool: "bash", Original: event.Raw(`{"command":"ls"}`), Final: event.Raw(`{"command":"ls"}`), Outcome: "run", Verdict: "allow", Step: "rules", Mode: "auto"},
		&event.ToolStarted{Turn: 1, CallID: "c1", Tool: "bash"},
		&event.ToolEnded{Turn: 1, CallID: "c2", Tool: "read", Outcome: "error", Content: "not JSON", IsError: true},
		&event.ToolEnded{Turn: 1, CallID: "c1", Tool: "bash", Outcome: "ok", Content: "a b c", WorkDir: "/w/sub", Injected: []string{"mind the gap"}},
		&event.TurnEnded{Turn: 1},
	}
}
