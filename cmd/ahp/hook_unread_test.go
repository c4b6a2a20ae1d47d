package main

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/hookline"
	"github.com/abhed/abhed/internal/hooklog"
)

// problems returns what the log says of the calls that were answered by policy.
func (a *account) problems() (out []hooklog.Entry) {
	a.t.Helper()
	state, err := hooklog.StateDir(a.home)
	if err != nil {
		a.t.Fatal(err)
	}
	if err := hooklog.Read(hooklog.LogDir(state), func(e *hooklog.Entry) error {
		if e.Problem != "" {
			out = append(out, *e)
		}
		return nil
	}); err != nil {
		a.t.Fatal(err)
	}
	return out
}

// TestUnreadCallsAreLogged holds that what passes or is refused by policy before anybody
// could judge it is in the log: an agent can make a call too large, or hold one up.
func TestUnreadCallsAreLogged(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	a.daemon(a.ahp)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	call := func() io.Reader { return strings.NewReader(bashCall("s", "ls", 1)) }
	n := 0
	logged := func(want int, part string, h hookRun) {
		t.Helper()
		if got := a.hook(h); got.code != want {
			t.Errorf("%s: found %+v, expected exit %d", part, got, want)
		}
		n++
		all := a.problems()
		if len(all) != n {
			t.Fatalf("%s: the log has %d such decisions, expected %d: %+v", part, len(all), n, all)
		}
		decision := hooklog.Deny
		if want == hookline.ExitPass {
			decision = hooklog.Pass
		}
		if e := all[n-1]; e.Decision != decision || e.Host != "claude-code" || !strings.Contains(e.Problem, part) {
			t.Errorf("%s: in the log: %+v", part, e)
		}
	}
	for _, c := range []struct {
		policy string
		code   int
	}{{"deny", hookline.ExitDeny}, {"allow", hookline.ExitPass}} {
		args := []string{"--on-missing", c.policy, "--limit", "3000"}
		logged(c.code, "standard input didn't end", hookRun{stdin: r, args: args})
		logged(c.code, "--no-such-flag", hookRun{stdin: call(), args: append([]string{"--no-such-flag"}, args...)})
	}
	logged(hookline.ExitPass, "more than", hookRun{stdin: writeCall(hookline.MaxEvent), args: []string{"--on-missing", "allow"}})
}
