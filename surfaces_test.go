package abhed_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed"
	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/app"
	"github.com/abhed/abhed/internal/model/modeltest"
	"github.com/abhed/abhed/internal/require"
)

// surface is one way to run a prompt.
type surface struct {
	name string
	// of is the package whose coverage it is (see TestEverySurfaceIsCovered).
	of string
	// run runs the prompt on the stage and returns what came of it.
	run func(t *testing.T, s *stage) ending
}

// ending is what a surface said of a run.
type ending struct {
	answer, reason, record string
	// refused says why nothing was run, code with which exit code, where there is one.
	refused string
	code    int
	// complaints are what the surface said of answers to questions.
	complaints []string
	// open is the question that was answered last.
	open asked
}

// surfaces lists every one that there is.
func surfaces() []surface {
	return []surface{
		{"headless", "internal/app", headless},
		{"rpc", "internal/rpcmode", overRPC},
		{"embedded", ".", embedded},
	}
}

// stage is a home, a workspace and a model server for one run.
type stage struct {
	t      *testing.T
	base   string
	home   string
	dir    string
	server *modeltest.Server
	prompt string
	// players are the extensions that the test's own binary plays (see player).
	players []string
	// tools and hooks are compiled in, where the surface can have any.
	tools []abhed.Tool
	hooks []abhed.Hook
	// ran holds what the tools were called with.
	ran []string
	// person answers about calls; nil is nobody.
	person func(q asked) said
}

// newStage sets up what every surface finds; settings is the user's settings file, in
// which BASE is the folder that home and ws lie in.
func newStage(t *testing.T, prompt, settings string, turns []modeltest.Turn) *stage {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{t: t, base: base, home: filepath.Join(base, "home"), dir: filepath.Join(base, "ws"), prompt: prompt}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s.server = modeltest.Start(modeltest.Options{Turns: turns})
	t.Cleanup(s.server.Close)
	s.put("home/.config/abhed/config.json", strings.ReplaceAll(settings, "BASE", base))
	return s
}

// put writes a file below the stage's folder.
func (s *stage) put(name, content string) {
	s.t.Helper()
	file := filepath.Join(s.base, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) environ() []string {
	return []string{"HOME=" + s.home, "PATH=" + os.Getenv("PATH"), "ABHED_BASE_URL=" + s.server.URL, "ABHED_MODEL=test", "ABHED_API_KEY=key-for-tests"}
}

func (s *stage) system(in io.Reader, out, errs io.Writer) app.System {
	return app.System{
		Stdin: in, Stdout: out, Stderr: errs, Environ: s.environ(), Version: abhed.Version,
		Retry: agent.Retry{Attempts: 3, Base: time.Millisecond, Cap: time.Second},
	}
}

// sent returns what the model was sent, a line for each message of each request.
func (s *stage) sent() []string {
	var out []string
	for i, r := range s.server.Requests() {
		for _, m := range r.Messages {
			line := fmt.Sprintf("[%d] %s ", i+1, m.Role)
			if m.ToolCallID != nil {
				line += *m.ToolCallID + " "
			}
			line += m.Text()
			for _, c := range m.ToolCalls {
				line += fmt.Sprintf(" %s%s", c.Function.Name, c.Function.Arguments)
			}
			out = append(out, strings.ReplaceAll(line, s.base, "BASE"))
		}
	}
	return out
}

// volatile matches what differs from run to run: ids, times and hashes.
var volatile = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{40,64}|ws-[0-9a-f]{12}|[^"]*/abhed-[0-9]+|127\.0\.0\.1:[0-9]+|tool process [0-9]+`)

// recorded returns the record in a form in which two runs can be compared. Signatures
// are left out: when they are made depends on time. What extensions logged, who answer
// at the same time, and their deaths and ends come sorted at the end.
func (s *stage) recorded(file string) []string {
	s.t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		s.t.Fatal(err)
	}
	var out, logged []string
	for line := range bytes.Lines(data) {
		var e struct {
			Type, Actor, Trust string
			Payload            map[string]any
		}
		if err := json.Unmarshal(line, &e); err != nil {
			s.t.Fatal(err)
		}
		if e.Type == "head.signed" {
			continue
		}
		dropVolatile(e.Payload)
		b, err := json.Marshal(e.Payload)
		if err != nil {
			s.t.Fatal(err)
		}
		text := strings.ReplaceAll(string(b), s.base, "BASE")
		text = strings.Join([]string{e.Type, e.Actor, e.Trust, volatile.ReplaceAllString(text, "#")}, " ")
		if e.Type == "extension.logged" || e.Type == "extension.changed" && e.Payload["state"] != "started" {
			logged = append(logged, text)
		} else {
			out = append(out, text)
		}
	}
	slices.Sort(logged)
	return append(out, logged...)
}

// dropVolatile takes away what is measured, the numbers of processes and files, and the
// estimates of requests,
// which hold paths of different lengths.
func dropVolatile(m map[string]any) {
	for _, name := range []string{"ms", "latency_ms", "pid", "tool_pid", "duration_ms", "retry_ms", "input", "before_tokens", "after_tokens", "dev", "ino"} {
		delete(m, name)
	}
	for _, v := range m {
		switch v := v.(type) {
		case map[string]any:
			dropVolatile(v)
		case []any:
			for _, x := range v {
				if x, ok := x.(map[string]any); ok {
					dropVolatile(x)
				}
			}
		}
	}
}

// sameEverywhere runs one scenario on every surface. What each makes of it, what the
// model was sent and what the record has must be the same, and check must hold.
func sameEverywhere(t *testing.T, set func(t *testing.T) *stage, check func(t *testing.T, s *stage, e ending, record []string)) {
	t.Helper()
	sameOn(t, surfaces(), set, check)
}

// sameOn is sameEverywhere for some surfaces.
func sameOn(t *testing.T, on []surface, set func(t *testing.T) *stage, check func(t *testing.T, s *stage, e ending, record []string)) {
	t.Helper()
	var first, firstSent, firstHeard []string
	var was ending
	for i, on := range on {
		ok := t.Run(on.name, func(t *testing.T) {
			s := set(t)
			e := on.run(t, s)
			if e.refused != "" {
				t.Fatalf("the start was refused: %s", e.refused)
			}
			record, sent := s.recorded(e.record), s.sent()
			if v := s.server.Violations(); len(v) > 0 {
				t.Errorf("the server refuses: %s", strings.Join(v, "\n"))
			}
			check(t, s, e, record)
			if i == 0 {
				was, first, firstSent, firstHeard = e, record, sent, s.allHeard()
				return
			}
			if e.answer != was.answer || e.reason != was.reason {
				t.Errorf("answer %q (%s), and on %s %q (%s)", e.answer, e.reason, surfaces()[0].name, was.answer, was.reason)
			}
			compare(t, "the record", first, record)
			compare(t, "what the model was sent", firstSent, sent)
			compare(t, "what extensions heard", firstHeard, s.allHeard())
		})
		if !ok {
			return
		}
	}
}

// compare reports the first line in which two texts differ.
func compare(t *testing.T, what string, want, got []string) {
	t.Helper()
	for i := range max(len(want), len(got)) {
		a, b := "(nothing)", "(nothing)"
		if i < len(want) {
			a = want[i]
		}
		if i < len(got) {
			b = got[i]
		}
		if a != b {
			t.Errorf("%s differs at %d:\n%s\n%s", what, i+1, a, b)
			return
		}
	}
}

const oneExtension = `{"permissions":{"mode":"accept-edits"},"sandbox":{"min_tier":"none"},"extensions":[{"name":"x","command":"bash","args":["BASE/home/x.sh"],"events":["EVENT"]}]}`

// TestRedaction has an extension take a key out of a result: the model reads
// [redacted], on every surface.
func TestRedaction(t *testing.T) {
	require.Path(t, "jq")
	require.Path(t, "bash")
	sameEverywhere(t, func(t *testing.T) *stage {
		s := newStage(t, "look", strings.ReplaceAll(oneExtension, "EVENT", "tool_result"), []modeltest.Turn{
			{Calls: []modeltest.Call{{ID: "c1", Name: "read", Args: `{"path":"key.txt"}`}}}, {Text: "done"},
		})
		s.put("ws/key.txt", "the key is AKIAABCDEFGHIJKLMNOP\n")
		s.put("home/x.sh", `while IFS= read -r line; do
  if [[ $(jq -r '.event' <<<"$line") == "tool_result" ]]; then
    jq -c '{content: (.content | gsub("AKIA[A-Z0-9]{16}"; "[redacted]"))}' <<<"$line"
  else
    echo '{}'
  fi
done`)
		return s
	}, func(t *testing.T, s *stage, e ending, record []string) {
		all := strings.Join(s.sent(), "\n")
		if e.reason != "completed" || strings.Contains(all, "AKIA") || !strings.Contains(all, "[2] tool ") || !strings.Contains(all, "the key is [redacted]") {
			t.Errorf("%+v, the model was sent\n%s", e, all)
		}
		if text := strings.Join(record, "\n"); strings.Contains(text, "AKIA") {
			t.Error("the record has the key")
		}
	})
}
