// Package backends holds the tests of the example backends: each is built and asked
// through a harness, and the commands of the README run as they stand there.
package backends

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/ahp/transport"
	"github.com/abhed/abhed/ahp/transport/httptransport"
	"github.com/abhed/abhed/internal/require"
)

// built holds the examples as programs.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "examples")
	if err != nil {
		return "", err
	}
	out, err := exec.Command("go", "build", "-o", dir+"/", "./...").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, out)
	}
	return dir, err
})

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, _ := built(); dir != "" {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

// build returns the folder of the built examples.
func build(t *testing.T) string {
	t.Helper()
	dir, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// open returns a harness with one backend.
func open(t *testing.T, b ahp.Backend, lookup func(string) (string, bool)) *harness.Harness {
	t.Helper()
	b.ID = "example.test"
	h, err := harness.New(&ahp.Registration{ProtocolVersion: ahp.Version, Hooks: []ahp.Backend{b}}, harness.Options{
		Manifest: ahptest.Manifest(),
		Open: func(b *ahp.Backend) (transport.Transport, error) {
			if b.Transport.Type == ahp.TransportHTTP {
				return httptransport.New(b, httptransport.Options{LookupEnv: lookup})
			}
			return transport.Stdio(b.Transport, transport.StdioOptions{})
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

func dispatch(t *testing.T, h *harness.Harness, e *ahp.Event, drop ...ahp.EffectType) *harness.Outcome {
	t.Helper()
	out, err := h.Dispatch(t.Context(), e, ahptest.Without(ahptest.FullCapabilities(e.Type), drop...), nil, harness.DispatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// command is an event of a call that runs a command.
func command(id, text string) *ahp.Event {
	return ahptest.ToolBefore(id, fmt.Sprintf(`{"command":%q}`, text))
}

// TestStdioExamples asks each example through a harness, as a process that stays and
// as one for each event.
func TestStdioExamples(t *testing.T) {
	dir := build(t)
	key := "AKIAABCDEFGHIJKLMNOP"
	for _, lifecycle := range []string{ahp.LifecyclePersistent, ahp.LifecyclePerEvent} {
		at := func(name, event string) *harness.Harness {
			return open(t, ahp.Backend{
				Transport:     ahp.TransportConfig{Type: ahp.TransportStdio, Command: filepath.Join(dir, name), Lifecycle: lifecycle},
				Subscriptions: []ahp.Subscription{ahptest.Intercept(ahp.FailClosed, 20*time.Second, event)},
			}, nil)
		}
		h := at("deny-force-push", "tool.before")
		for text, denied := range map[string]bool{"git push --force": true, "git push -uf origin": true, "git push origin +main": true, "git push": false, "git -C x push --force-with-lease": true, "ls -f": false} {
			if d := dispatch(t, h, command(text, text)).Denial(); (d != nil) != denied || d != nil && d.Synthetic {
				t.Errorf("%s: %q: %+v", lifecycle, text, d)
			}
		}
		if d := dispatch(t, h, ahptest.ToolBefore("argv", `{"command":["git","push","\u002d-force"]}`)).Denial(); d == nil || d.Synthetic {
			t.Errorf("%s: a list of words: %+v", lifecycle, d)
		}
		h = at("redact", "tool.after")
		out := dispatch(t, h, ahptest.ToolAfter("a", "id "+key))
		if text := *out.Event.Items.Messages[0].Parts[0].Text; text != "id [credential removed]" {
			t.Errorf("%s: %q", lifecycle, text)
		}
		if out := dispatch(t, h, ahptest.ToolAfter("b", "harmless")); out.Changed || out.Denial() != nil {
			t.Errorf("%s: %+v", lifecycle, out)
		}
		if d := dispatch(t, h, ahptest.ToolAfter("c", key), ahp.EffectModify).Denial(); d == nil || !d.Synthetic {
			t.Errorf("%s: where edits aren't taken: %+v", lifecycle, d)
		}
		h = at("ask", "tool.before")
		for text, want := range map[string]ahp.Permission{"curl x": ahp.PermissionAsk, "ls": ahp.PermissionNone} {
			if got := dispatch(t, h, command(text, text)).Permission; got != want {
				t.Errorf("%s: %q: %s", lifecycle, text, got)
			}
		}
		if d := dispatch(t, h, command("headless", "curl x"), ahp.EffectAsk).Denial(); d == nil || d.Synthetic {
			t.Errorf("%s: nobody to ask: %+v", lifecycle, d)
		}
	}
}

func TestObserveToFile(t *testing.T) {
	dir := build(t)
	file := filepath.Join(t.TempDir(), "events.jsonl")
	h := open(t, ahp.Backend{
		Transport:     ahp.TransportConfig{Type: ahp.TransportStdio, Command: filepath.Join(dir, "observe-to-file"), Args: []string{file}, Lifecycle: ahp.LifecyclePerEvent},
		Subscriptions: []ahp.Subscription{ahptest.Observe("tool.*")},
	}, nil)
	for _, id := range []string{"one", "two"} {
		d, err := h.Observe(t.Context(), command(id, "ls"))
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(file)
	if err != nil || bytes.Count(data, []byte("\n")) != 2 || !bytes.Contains(data, []byte(`"id":"two"`)) {
		t.Errorf("%s, %v", data, err)
	}
}

// service is a running approval-service.
type service struct{ harness, people string }

const personToken = "person-0123456789"

// approvals starts the service and returns it with a harness.
func approvals(t *testing.T, limit time.Duration, args ...string) (service, *harness.Harness) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, filepath.Join(build(t), "approval-service"), append([]string{"-listen", "127.0.0.1:0", "-people", "127.0.0.1:0"}, args...)...)
	cmd.Env = append(os.Environ(), "HARNESS_TOKEN=harness-0123456789", "PERSON_TOKEN="+personToken)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var s service
	if _, err := fmt.Fscanf(stderr, "harness %s\npeople %s\n", &s.harness, &s.people); err != nil {
		t.Fatal(err)
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		io.Copy(io.Discard, stderr)
	}()
	t.Cleanup(func() {
		cancel()
		<-drained
		cmd.Wait()
	})
	h := open(t, ahp.Backend{
		Transport:      ahp.TransportConfig{Type: ahp.TransportHTTP, URL: s.harness},
		Authentication: &ahp.Authentication{Type: "bearer", TokenEnv: "HARNESS_TOKEN"},
		Subscriptions:  []ahp.Subscription{ahptest.Intercept(ahp.FailClosed, limit, "tool.before")},
	}, func(string) (string, bool) { return "harness-0123456789", true })
	return s, h
}

// person sends what a person sends, with the given token and further headers as
// pairs.
func (s service) person(t *testing.T, method, path, token string, form url.Values, header ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.people+path, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(header); i += 2 {
		if r.Header.Set(header[i], header[i+1]); header[i] == "Host" {
			r.Host = header[i+1]
		}
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body)
}

// asks dispatches in the background.
func asks(t *testing.T, h *harness.Harness, e *ahp.Event) <-chan *harness.Outcome {
	done := make(chan *harness.Outcome, 1)
	go func() {
		out, err := h.Dispatch(context.Background(), e, ahptest.FullCapabilities(ahp.ToolBefore), nil, harness.DispatchOptions{})
		if err != nil {
			t.Error(err)
		}
		done <- out
	}()
	return done
}

func TestApprovalService(t *testing.T) {
	s, h := approvals(t, 30*time.Second)
	decide := func(id, verdict string) url.Values {
		return url.Values{"id": {id}, "verdict": {verdict}, "reason": {"not today"}}
	}
	for _, verdict := range []string{"approve", "refuse"} {
		done := asks(t, h, command(verdict, "make <b>\u202e"))
		_, text := s.person(t, "GET", "pending?wait=1", personToken, nil)
		id, rest, _ := strings.Cut(text, "\t")
		if rest != "bash\t{\"command\":\"make <b>\\u202e\"}\n" {
			t.Errorf("pending: %q", text)
		}
		for name, tt := range map[string]struct {
			code int
			call func() (int, string)
		}{
			"without the token": {401, func() (int, string) {
				return s.person(t, "POST", "decide", "harness-0123456789", decide(id, "approve"))
			}},
			"from another site": {403, func() (int, string) {
				return s.person(t, "POST", "decide", personToken, decide(id, "approve"), "Sec-Fetch-Site", "cross-site")
			}},
			"under another name": {403, func() (int, string) {
				return s.person(t, "POST", "decide", personToken, decide(id, "approve"), "Host", "evil.example")
			}},
			"about another call":    {410, func() (int, string) { return s.person(t, "POST", "decide", personToken, decide("x"+id, "approve")) }},
			"with another verdict":  {400, func() (int, string) { return s.person(t, "POST", "decide", personToken, decide(id, "yes")) }},
			"the page without auth": {401, func() (int, string) { return s.person(t, "GET", "", "", nil) }},
		} {
			if code, body := tt.call(); code != tt.code {
				t.Errorf("%s: %d %s", name, code, body)
			}
		}
		if _, page := s.person(t, "GET", "", personToken, nil); !strings.Contains(page, "1 waiting") || !strings.Contains(page, `make &lt;b&gt;\u202e`) || !strings.Contains(page, id) {
			t.Errorf("the page: %s", page)
		}
		if code, _ := s.person(t, "POST", "decide", personToken, decide(id, verdict)); code != 200 {
			t.Errorf("decide: %d", code)
		}
		out := <-done
		switch d := out.Denial(); {
		case verdict == "approve" && (d != nil || out.Permission != ahp.PermissionNone):
			t.Errorf("approved: %s, %+v", out.Permission, d)
		case verdict == "refuse" && (d == nil || d.Reason != "A person refused this: not today"):
			t.Errorf("refused: %+v", d)
		}
		if code, _ := s.person(t, "POST", "decide", personToken, decide(id, "approve")); code != 410 {
			t.Errorf("a second decision: %d", code)
		}
	}
}

// TestApprovalServiceDeadlines holds that a call that nobody decides about is denied
// in time, by the service or by the harness's policy, and waits no longer.
func TestApprovalServiceDeadlines(t *testing.T) {
	s, h := approvals(t, 30*time.Second, "-wait", "50ms")
	if d := dispatch(t, h, command("e", "make")).Denial(); d == nil || d.Synthetic || !strings.Contains(d.Reason, "Nobody decided") {
		t.Errorf("%+v", d)
	}
	if _, text := s.person(t, "GET", "pending", personToken, nil); text != "" {
		t.Errorf("still pending: %q", text)
	}
	_, h = approvals(t, 200*time.Millisecond)
	if d := dispatch(t, h, command("late", "make")).Denial(); d == nil || !d.Synthetic {
		t.Errorf("%+v", d)
	}
}

func TestApprovalServiceRefusesWeakTokens(t *testing.T) {
	cmd := exec.Command(filepath.Join(build(t), "approval-service"), "-listen", "127.0.0.1:0", "-people", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), "HARNESS_TOKEN=same-0123456789abc", "PERSON_TOKEN=same-0123456789abc")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "two different tokens") {
		t.Errorf("%v: %s", err, out)
	}
}

// TestShortExample holds that the shortest backend stays one of 15 lines.
func TestShortExample(t *testing.T) {
	data, err := os.ReadFile("deny-force-push/main.go")
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for line := range strings.Lines(string(data)) {
		if s := strings.TrimSpace(line); s != "" && !strings.HasPrefix(s, "//") {
			lines++
		}
	}
	if lines > 15 {
		t.Errorf("%d lines", lines)
	}
}

// TestReadme runs the commands of the README in one shell and looks for each line of
// the blocks that follow them, in order. Its registration is valid.
func TestReadme(t *testing.T) {
	sh := require.Path(t, "sh")
	require.Path(t, "curl")
	data, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	script.WriteString("set -eu\n")
	var want []string
	named := map[string]bool{}
	for _, block := range regexp.MustCompile("(?s)```(\\w+)\n(.*?)```").FindAllStringSubmatch(string(data), -1) {
		switch block[1] {
		case "sh":
			script.WriteString(block[2])
		case "text":
			want = append(want, strings.Split(strings.TrimSuffix(block[2], "\n"), "\n")...)
		case "json":
			if _, err := ahp.DecodeRegistration([]byte(block[2])); err != nil {
				t.Error(err)
			}
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, sh)
	cmd.Dir = require.Root(t)
	cmd.Env = append(os.Environ(), "BIN="+t.TempDir())
	cmd.Stdin = strings.NewReader(script.String())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, &stderr)
	}
	rest := string(out)
	for _, line := range want {
		_, after, found := strings.Cut(rest, line)
		if !found {
			t.Fatalf("no %q in what follows:\n%s", line, rest)
		}
		rest = after
	}
	folders, _ := filepath.Glob("*/main.go")
	for _, f := range folders {
		name := filepath.Dir(f)
		if named[name] = strings.Contains(string(data), "\n## "+name+"\n"); !named[name] {
			t.Errorf("the README says nothing of %s", name)
		}
	}
	if len(named) != 5 {
		t.Errorf("%d examples", len(named))
	}
}
