package conformance_test

import (
	"fmt"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/conformance"
	"github.com/abhed/abhed/ahp/conformance/brokenbackend"
)

// childArgument marks a run of the test binary as a backend.
const childArgument = "conformance-backend"

// token is what the backends over HTTP want.
const token = "s3cret-bearer-token"

func TestMain(m *testing.M) {
	if code, is := harnessChild(os.Args); is {
		os.Exit(code)
	}
	if len(os.Args) == 3 && os.Args[1] == childArgument {
		mutation, ok := brokenbackend.Find(os.Args[2])
		if !ok && os.Args[2] != "none" {
			fmt.Fprintf(os.Stderr, "no mutation for %q\n", os.Args[2])
			os.Exit(2)
		}
		brokenbackend.Main(mutation)
	}
	if len(os.Args) == 3 && os.Args[1] == hostileArgument {
		hostile()[os.Args[2]]()
		os.Exit(0)
	}
	if raceEnabled {
		var err error
		if doubleDir, err = os.MkdirTemp("", "ahp-conformance-"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if doubleDir != "" {
			os.RemoveAll(doubleDir)
		}
		os.Exit(code)
	}))
}

// target returns the backend with the mutation for a check ("none" for none) as
// the binding has it.
func target(t *testing.T, check string, binding conformance.Binding) conformance.Target {
	t.Helper()
	if binding == conformance.HTTP {
		mutation, _ := brokenbackend.Find(check)
		s := httptest.NewServer(brokenbackend.Handler(mutation, token))
		t.Cleanup(s.Close)
		return conformance.Target{URL: s.URL, Token: token}
	}
	return conformance.Target{Command: []string{programs(t), childArgument, check}, PerEvent: binding == conformance.StdioPerEvent}
}

// options are those of a run against the small backends: their bound is lower, and
// so is everything that takes time.
func options() conformance.Options {
	return conformance.Options{
		DenyInput: ahp.Raw(brokenbackend.DenyInput), MaxBytes: brokenbackend.MaxBytes, LargeBytes: 300_000, Sequence: 150,
		Timeout: 4 * time.Second, Grace: 3 * time.Second,
	}
}

func run(t *testing.T, check string, binding conformance.Binding, opts conformance.Options) *conformance.Report {
	t.Helper()
	r, err := conformance.Backend(t.Context(), target(t, check, binding), opts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func bindings() []conformance.Binding {
	return []conformance.Binding{conformance.StdioPersistent, conformance.StdioPerEvent, conformance.HTTP}
}
