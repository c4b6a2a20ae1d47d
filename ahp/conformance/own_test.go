package conformance_test

import (
	"context"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/backend"
	"github.com/abhed/abhed/ahp/backend/httpbackend"
	"github.com/abhed/abhed/ahp/conformance"
)

// own is a backend of this repository that must conform.
type own struct {
	// args returns the command's arguments; dir is a folder of its own.
	args func(t *testing.T, dir string) []string
	// deny is an input that it denies, nil for none.
	deny ahp.Raw
	// events are those that it claims; nil means tool.before.
	events []ahp.EventType
	// observer tells that it decides about nothing.
	observer bool
	// http tells that it serves HTTP.
	http bool
}

func noArgs(*testing.T, string) []string { return nil }

// examples are those of examples/backends: one that is missing here fails the test.
func examples() map[string]own {
	return map[string]own{
		"deny-force-push": {args: noArgs, deny: ahp.Raw(`{"command":"git push --force"}`)},
		"ask":             {args: noArgs},
		"redact":          {args: noArgs, events: []ahp.EventType{ahp.ToolAfter}},
		"observe-to-file": {observer: true, args: func(_ *testing.T, dir string) []string { return []string{filepath.Join(dir, "events.jsonl")} }},
		"approval-service": {http: true, args: func(t *testing.T, _ string) []string {
			return []string{"-wait", "1ms", "-listen", freeAddress(t), "-people", freeAddress(t)}
		}},
	}
}

// TestOwnBackends runs the suite over every backend that the repository ships, as
// the programs that users build.
func TestOwnBackends(t *testing.T) {
	if raceEnabled {
		t.Skip("the programs are built without the race detector: the run without it has them")
	}
	bin := t.TempDir()
	build := exec.Command("go", "build", "-o", bin+string(filepath.Separator), "./examples/backends/...", "./cmd/ahp")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	commands, err := os.ReadDir(filepath.Join("..", "..", "examples", "backends"))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range commands {
		if entry.IsDir() && entry.Name() != "testdata" {
			t.Run(entry.Name(), func(t *testing.T) {
				o, known := examples()[entry.Name()]
				if !known {
					t.Fatal("this example isn't in the list of those that are checked: add it")
				}
				o.check(t, filepath.Join(bin, entry.Name()))
			})
		}
	}
	t.Run("rules", func(t *testing.T) {
		own{deny: ahp.Raw(`{"command":"git push origin main"}`), args: func(t *testing.T, dir string) []string {
			file := filepath.Join(dir, "rules.json")
			if err := os.WriteFile(file, []byte(`{"rules":{"deny":["bash(git push*)"],"ask":["bash(curl*)"]}}`), 0o600); err != nil {
				t.Fatal(err)
			}
			return []string{"backend", "rules", "--rules", file}
		}}.check(t, filepath.Join(bin, "ahp"))
	})
	t.Run("log", func(t *testing.T) {
		own{args: func(_ *testing.T, dir string) []string {
			return []string{"backend", "log", "--file", filepath.Join(dir, "log.jsonl")}
		}}.check(t, filepath.Join(bin, "ahp"))
	})
}

func (o own) check(t *testing.T, program string) {
	opts := conformance.Options{Events: o.events, ObserverOnly: o.observer, DenyInput: o.deny, Sequence: 100, Timeout: 20 * time.Second, Grace: 20 * time.Second}
	if o.http {
		o.checkHTTP(t, program, opts)
		return
	}
	for _, perEvent := range []bool{false, true} {
		// A lifecycle gets a folder of its own, as it would have in use.
		command := append([]string{program}, o.args(t, t.TempDir())...)
		r, err := conformance.Backend(t.Context(), conformance.Target{Command: command, PerEvent: perEvent}, opts)
		conforms(t, r, err)
	}
}

func (o own) checkHTTP(t *testing.T, program string, opts conformance.Options) {
	args := o.args(t, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "HARNESS_TOKEN="+token, "PERSON_TOKEN=another-token-of-a-person")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait() // after cancel has killed it
	defer cancel()
	var address string
	for i, a := range args {
		if a == "-listen" {
			address = args[i+1]
		}
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	r, err := conformance.Backend(t.Context(), conformance.Target{URL: "http://" + address, Token: token}, opts)
	conforms(t, r, err)
}

// freeAddress returns an address of this machine that nobody listens at.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// conforms holds that a run has no failure, no warning, and a claim.
func conforms(t *testing.T, r *conformance.Report, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for _, res := range r.Results {
		if res.Verdict != conformance.Pass && res.Verdict != conformance.NotApplicable {
			t.Errorf("%v: %s: %s: %s %v", r.Claim.Bindings, res.ID, res.Verdict, res.Reason, res.Proven())
		}
	}
	if !r.Claim.Holds {
		t.Errorf("%v: no claim: %+v", r.Claim.Bindings, r.Claim.Profiles)
	}
	if t.Failed() {
		t.Log(r.Stderr)
	}
}

// TestLibraryOverHTTP is the backend of package backend as a program of its users
// serves it, with the sizes of the protocol.
func TestLibraryOverHTTP(t *testing.T) {
	server := backend.New(backend.Func(func(context.Context, *ahp.Intercept) ([]ahp.Effect, error) { return nil, nil }),
		backend.Options{Manifest: ahptest.Manifest()})
	s := httptest.NewServer(httpbackend.Handler(server, httpbackend.Options{Token: token}))
	defer s.Close()
	r, err := conformance.Backend(t.Context(), conformance.Target{URL: s.URL, Token: token}, conformance.Options{Timeout: 20 * time.Second})
	conforms(t, r, err)
}
