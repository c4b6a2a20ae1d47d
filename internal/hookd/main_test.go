package hookd_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/backend"
	"github.com/abhed/abhed/internal/hookd"
	"github.com/abhed/abhed/internal/hooklog"
)

// TestMain makes the test binary a backend when it is started as one: a registration
// names it with the arguments "backend MODE FILE".
func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[1] == "backend" {
		serve(os.Args[2], os.Args[3])
	}
	goleak.VerifyTestMain(m)
}

// serve is a backend that behaves as mode says, and writes a line to file for each
// event that it is told of; with "rules" it judges by the rules in file.
func serve(mode, file string) {
	if mode == "rules" {
		serveRules(file)
	}
	b := &scripted{mode: mode, file: file}
	if mode == "garbage" {
		fmt.Println("this is no answer")
	}
	backend.Main(b, backend.Options{})
}

type scripted struct{ mode, file string }

func (b *scripted) note(e *ahp.Event, how string) {
	f, err := os.OpenFile(b.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	fmt.Fprintln(f, how, e.Type, b.mode)
	if b.mode == "show native" {
		fmt.Fprintf(f, "native %s\n", e.Native)
	}
}

func (b *scripted) Observe(_ context.Context, e *ahp.Event) { b.note(e, "observed") }

func (b *scripted) Intercept(ctx context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
	b.note(q.Event, "asked")
	if q.Event.Tool == nil {
		return nil, nil
	}
	switch b.mode {
	case "deny":
		return []ahp.Effect{&ahp.Deny{Reason: "not in this house", Extensions: ahp.Extensions{hookd.DenialExtension: ahp.Raw(`{"retryable":true,"accepted":"ask the owner"}`)}}}, nil
	case "ask":
		return []ahp.Effect{&ahp.Ask{}}, nil
	case "rewrite":
		return []ahp.Effect{&ahp.Modify{Target: ahp.TargetInput, Operation: ahp.OpMerge, Value: ahp.Raw(`{"command":"echo safe"}`)}}, nil
	case "notice":
		return []ahp.Effect{&ahp.Notice{Text: "seen"}}, nil
	case "stop":
		return []ahp.Effect{&ahp.Flow{Operation: ahp.FlowStop, Reason: "enough"}}, nil
	case "crash":
		os.Exit(9)
	case "hang", "hang once":
		<-ctx.Done()
	}
	return nil, nil
}

// world is a home folder with a judge.
type world struct {
	t     testing.TB
	home  string
	notes string
	judge *hookd.Judge
}

func newWorld(t testing.TB, o hookd.Options) *world {
	t.Helper()
	w := &world{t: t, home: t.TempDir()}
	w.notes = filepath.Join(w.home, "notes")
	o.Home, o.Managed = w.home, filepath.Join(w.home, "managed.json")
	j, err := hookd.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	w.judge = j
	return w
}

// hook is one backend of a registration.
type hook struct {
	mode   string
	events string // a JSON list; "" is tool.before
	policy string // "" observes
	ms     int
}

func (w *world) document(hooks ...hook) string {
	var list []string
	for i, h := range hooks {
		if h.events == "" {
			h.events = `["tool.before"]`
		}
		sub := fmt.Sprintf(`{"events":%s,"mode":"observe","content":{"default":"body"}}`, h.events)
		if h.policy != "" {
			sub = fmt.Sprintf(`{"events":%s,"mode":"intercept","timeoutMs":%d,"failurePolicy":%q,"content":{"default":"body"}}`, h.events, max(h.ms, 1)+9_000*boolInt(h.ms == 0), h.policy)
		}
		list = append(list, fmt.Sprintf(`{"id":"com.example.b%d","transport":{"type":"stdio","lifecycle":"persistent","command":%q,"args":["backend",%q,%q]},"subscriptions":[%s]}`, i, exe(w.t), h.mode, w.notes, sub))
	}
	return `{"protocolVersion":"draft","hooks":[` + strings.Join(list, ",") + `]}`
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func exe(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// register writes the user's registration.
func (w *world) register(document string) {
	w.t.Helper()
	write(w.t, filepath.Join(w.home, ".config", "ahp", "registration.json"), document)
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// bash is the native event of a shell call of Claude Code.
func bash(session, id, dir, command string) []byte {
	b, err := json.Marshal(map[string]any{"session_id": session, "cwd": dir, "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": map[string]string{"command": command}, "tool_use_id": id})
	if err != nil {
		panic(err)
	}
	return b
}

func (w *world) do(c hookd.Call) hookd.Answer {
	w.t.Helper()
	if c.Host == "" {
		c.Host = "claude-code"
	}
	if c.Limit == 0 {
		c.Limit = 40 * time.Second
	}
	a, err := w.judge.Do(context.Background(), &c)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// log returns the decisions so far.
func (w *world) log() (out []hooklog.Entry) {
	w.t.Helper()
	err := hooklog.Read(hooklog.LogDir(w.judge.StateDir()), func(e *hooklog.Entry) error {
		out = append(out, *e)
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// last returns the newest decision.
func (w *world) last() hooklog.Entry {
	w.t.Helper()
	all := w.log()
	if len(all) == 0 {
		w.t.Fatal("nothing is in the log")
	}
	return all[len(all)-1]
}

// noted returns what the backends have written down.
func (w *world) noted() string {
	b, _ := os.ReadFile(w.notes)
	return string(b)
}

// until waits for a condition with a deadline.
func until(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within 20 s", what)
		}
	}
}

// said returns the words of an answer: the reason of a refusal as Claude Code reads it,
// or what was printed.
func said(a hookd.Answer) string {
	var document struct {
		Output struct {
			Reason string `json:"permissionDecisionReason"`
		} `json:"hookSpecificOutput"`
	}
	if a.Code == hookd.ExitDeny && json.Unmarshal(a.Stdout, &document) == nil && document.Output.Reason != "" {
		return document.Output.Reason
	}
	return string(a.Stdout) + string(a.Stderr)
}
