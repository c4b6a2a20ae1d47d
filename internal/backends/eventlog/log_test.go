package eventlog_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/backend"
	"github.com/abhed/abhed/internal/backends/eventlog"
	"github.com/abhed/abhed/internal/chain"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB, path string, opts eventlog.Options) *eventlog.Log {
	t.Helper()
	if opts.OnError == nil {
		opts.OnError = func(err error) { t.Error(err) }
	}
	l, err := eventlog.Open(path, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func ask(e *ahp.Event) *ahp.Intercept {
	return &ahp.Intercept{Event: e, Capabilities: *ahp.NewCapabilities(e.Type, ahp.EffectDeny)}
}

// sound verifies a log and returns its text.
func sound(t testing.TB, path string, lines int64) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := chain.Verify(bytes.NewReader(data), nil)
	if err != nil || !r.OK() || r.Lines != lines {
		t.Fatalf("%s: %d lines, want %d; %v, %v", filepath.Base(path), r.Lines, lines, r.Problems, err)
	}
	return string(data)
}

func TestLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l := open(t, path, eventlog.Options{})
	if effects, err := l.Intercept(t.Context(), ask(ahptest.ToolBefore("e1", `{"command":"ls"}`))); err != nil || len(effects) != 0 {
		t.Errorf("%v, %v", effects, err)
	}
	l.Observe(t.Context(), ahptest.ToolAfter("e2", "out"))
	text := sound(t, path, 2)
	for _, want := range []string{`"mode":"intercept"`, `"mode":"observe"`, `"id":"e1"`, `"command":"ls"`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %o", info.Mode().Perm())
	}
	l.Close()
	again := open(t, path, eventlog.Options{}) // as the next per_event process does
	again.Observe(t.Context(), ahptest.ToolAfter("e3", "out"))
	sound(t, path, 3)
	if m := again.Manifest(); len(m.Events) != 32 {
		t.Errorf("%d rows", len(m.Events))
	}
}

// TestSeveralProcesses holds that several writers make one chain.
func TestSeveralProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	var wg sync.WaitGroup
	for i := range 4 {
		l := open(t, path, eventlog.Options{}) // each has a descriptor of its own, as a process has
		wg.Go(func() {
			for j := range 25 {
				l.Observe(t.Context(), ahptest.ToolBefore(fmt.Sprintf("e%d-%d", i, j), `{}`))
			}
		})
	}
	wg.Wait()
	sound(t, path, 100)
}

// TestRotation holds that the log and what was put aside stay within the bound, and
// that each log names the head of the one before.
func TestRotation(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "log")
	one, two := open(t, path, eventlog.Options{MaxBytes: 8 << 10, Keep: 2}), open(t, path, eventlog.Options{MaxBytes: 8 << 10, Keep: 2})
	for i := range 100 {
		one.Observe(t.Context(), ahptest.ToolBefore(fmt.Sprint(i), `{}`))
		two.Observe(t.Context(), ahptest.ToolBefore(fmt.Sprint(i), `{}`))
	}
	files, _ := os.ReadDir(dir)
	if len(files) != 3 {
		t.Errorf("%d files", len(files))
	}
	var newer string
	for _, name := range []string{"log", "log.1", "log.2"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		r, err := chain.Verify(bytes.NewReader(data), nil)
		if err != nil || !r.OK() || len(data) > 8<<10 {
			t.Fatalf("%s: %d bytes, %v, %v", name, len(data), r.Problems, err)
		}
		if newer != "" && !strings.Contains(newer, `"continues":{"hash":"`+r.Head.Hash+`"`) {
			t.Errorf("what follows %s begins %.200s", name, newer)
		}
		newer = string(data)
	}
}

// TestHalfWrittenLine holds that a line which a crash cut short is removed and
// mentioned, and that anything else at the end of the file is refused.
func TestHalfWrittenLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	for _, before := range []int{0, 1, 3} {
		os.Remove(path)
		l := open(t, path, eventlog.Options{})
		for range before {
			l.Observe(t.Context(), ahptest.ToolAfter("e", strings.Repeat("x", 100<<10)))
		}
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		f.WriteString(`{"event":{"id":`)
		f.Close()
		l.Observe(t.Context(), ahptest.ToolAfter("e", "x"))
		if text := sound(t, path, int64(before)+1); !strings.Contains(text, `"cut":15`) {
			t.Error("the cut isn't mentioned")
		}
	}
	for _, end := range []string{"{}\n", "noise\n", `{"hash":"` + strings.Repeat("0", 64) + `","prev":"","seq":1}` + "\n"} {
		os.WriteFile(path, []byte(end), 0o600)
		if _, err := eventlog.Open(path, eventlog.Options{}); err == nil || !strings.Contains(err.Error(), "the last line") {
			t.Errorf("%q: %v", end, err)
		}
	}
	if _, err := eventlog.Open(t.TempDir(), eventlog.Options{}); err == nil {
		t.Error("a folder was opened")
	}
}

// TestUnwritable holds that an event which can't be written is answered so.
func TestUnwritable(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "log"), eventlog.Options{OnError: func(error) {}})
	l.Close()
	if _, err := l.Intercept(t.Context(), ask(ahptest.ToolBefore("e", `{}`))); !errors.Is(err, backend.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	var told error
	l = open(t, filepath.Join(t.TempDir(), "log"), eventlog.Options{OnError: func(err error) { told = err }})
	l.Close()
	if l.Observe(t.Context(), ahptest.ToolBefore("e", `{}`)); told == nil {
		t.Error("nobody was told")
	}
}

func TestLargeEvent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l := open(t, path, eventlog.Options{})
	l.Observe(t.Context(), ahptest.ToolAfter("e1", strings.Repeat("x", ahp.MaxMessageBytes-1200)))
	l.Observe(t.Context(), ahptest.ToolAfter("e2", "small"))
	if text := sound(t, path, 2); !strings.Contains(text, `"omitted":"the event has 16`) || len(text) > 8<<10 {
		t.Errorf("%d bytes", len(text))
	}
}

func TestScrubber(t *testing.T) {
	if _, err := eventlog.Scrubber([]string{"short"}); err == nil {
		t.Error("a short value was taken")
	}
	scrub, err := eventlog.Scrubber([]string{"my-own-value"})
	if err != nil {
		t.Fatal(err)
	}
	jwt := "eyJhbGciOiJIUzI1" + "NiJ9.eyJzdWIiOiIx" + "MjM0NTY3.abc"
	secrets := []string{"my-own-value", "ghp_" + strings.Repeat("a1", 12), jwt, "hunter22", "MIIEvQIBADAN", "swordfish"}
	input := fmt.Sprintf(`{"command":"curl -H 'Authorization: Bearer %s' https://bob:hunter22@h/ -d my-own-value","n":1.0,"env":"API_KEY=swordfish go","key":"-----BEGIN RSA PRIVATE KEY-----\nMIIEvQIBADAN","token":"swordfish","q":"%s","plain":"token of thanks"}`, jwt, secrets[1])
	path := filepath.Join(t.TempDir(), "log")
	open(t, path, eventlog.Options{Scrub: scrub}).Observe(t.Context(), ahptest.ToolBefore("e", input))
	text := sound(t, path, 1)
	for _, s := range secrets {
		if strings.Contains(text, s) {
			t.Errorf("%q is in %s", s, text)
		}
	}
	for _, kept := range []string{`"n":1.0`, "https://bob:[removed]@h/", "API_KEY=[removed] go", "token of thanks", `"token":"[removed]"`, "curl -H"} {
		if !strings.Contains(text, kept) {
			t.Errorf("no %q in %s", kept, text)
		}
	}
}

// TestScrubberFindsWhatIsWrapped holds that a credential is found under a name of the
// environment, behind an option, and in a text that is JSON within JSON.
func TestScrubberFindsWhatIsWrapped(t *testing.T) {
	scrub, err := eventlog.Scrubber(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range []string{
		`{"env":{"DB_PASSWORD":"marlin99"}}`, `{"env":{"AWS_SECRET_ACCESS_KEY":"marlin99"}}`, `{"githubToken":"marlin99"}`, `{"Set-Cookie":"marlin99"}`,
		`{"text":"{\"arguments\":\"{\\\"password\\\":\\\"marlin99\\\"}\"}"}`, `{"text":"{\"api_key\": \"marlin99\"}"}`,
		`{"command":"login --password marlin99 now"}`, `{"command":"login --api-key=marlin99"}`, `{"command":"login --token 'marlin99'"}`,
		`{"text":"password=sword\\fish9"}`,
	} {
		out, err := scrub([]byte(in))
		if err != nil || strings.Contains(string(out), "marl") || !strings.Contains(string(out), "[removed]") {
			t.Errorf("%s: %s, %v", in, out, err)
		}
	}
	for _, in := range []string{`{"inputTokens":"many"}`, `{"command":"login --password --token"}`, `{"text":"a token of thanks"}`, `{"path":"token.go"}`} {
		if out, err := scrub([]byte(in)); err != nil || string(out) != in {
			t.Errorf("%s: %s, %v", in, out, err)
		}
	}
}

func TestSignature(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "log")
	key, err := chain.LoadKey(filepath.Join(dir, "key"))
	if err != nil {
		t.Fatal(err)
	}
	l := open(t, path, eventlog.Options{Key: key})
	for i := range 3 {
		l.Observe(t.Context(), ahptest.ToolBefore(fmt.Sprint(i), `{}`))
	}
	r, err := eventlog.Verify(path, key.Public())
	if err != nil || !r.Signed || r.SignedSeq != 3 || r.Lines != 3 || len(r.Problems) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	other, _ := chain.LoadKey(filepath.Join(dir, "other"))
	if r, _ := eventlog.Verify(path, other.Public()); r.Signed || len(r.Problems) != 1 {
		t.Errorf("by another key: %+v", r)
	}
	data, _ := os.ReadFile(path)
	short := data[:bytes.LastIndexByte(data[:len(data)-1], '\n')+1]
	os.WriteFile(path, short, 0o600)
	if r, _ := eventlog.Verify(path, key.Public()); r.Signed || len(r.Problems) != 1 || !strings.Contains(r.Problems[0], "signed line 3") {
		t.Errorf("cut off: %+v", r)
	}
	os.WriteFile(path, bytes.Replace(data, []byte(`"id":"1"`), []byte(`"id":"9"`), 1), 0o600)
	if r, _ := eventlog.Verify(path, nil); len(r.Problems) == 0 {
		t.Error("a change wasn't found")
	}
	os.Remove(path + ".head")
	if r, _ := eventlog.Verify(path, key.Public()); r.Signed {
		t.Errorf("without a head: %+v", r)
	}
}
