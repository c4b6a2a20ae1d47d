package app_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/app"
	"github.com/abhed/abhed/internal/require"
)

// TestChildrenRunInThePrintedTier: for every combination of flag, user's and project's
// settings, what "config show" prints bounds where the command really runs, and the
// record says that (I231). The tier is a lower bound: with bubblewrap the command is
// confined whatever it is, and without it runs where "none" may be and else not at all.
// The sibling is the network, which the flag of the tier says nothing of.
func TestChildrenRunInThePrintedTier(t *testing.T) {
	require.Path(t, "bwrap")
	bare := t.TempDir() // without bwrap
	for _, name := range []string{"sh", "readlink"} {
		if err := os.Symlink(require.Path(t, name), filepath.Join(bare, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{os.Getenv("PATH"), bare} {
		t.Setenv("PATH", path)
		for n := range 27 {
			tiers := []string{"", "none", "process"}
			flag, user, project := tiers[n%3], tiers[n/3%3], tiers[n/9]
			t.Run(fmt.Sprintf("confinable %t flag %q user %q project %q", path != bare, flag, user, project), func(t *testing.T) {
				bound, network := cmp.Or(flag, user, "process"), user == "none"
				if project == "process" { // it only makes it stricter
					bound, network = project, false
				}
				tier := "process"
				if path == bare {
					tier = bound
				}
				runsIn(t, flag, user, project, bound, tier, network, tier == "process" && path == bare)
			})
		}
	}
}

// runsIn holds what is printed, recorded and so for one combination.
func runsIn(t *testing.T, flag, user, project, bound, tier string, network, refused bool) {
	t.Helper()
	w := newWorld(t, bash("where", "readlink /proc/self/ns/pid; readlink /proc/self/ns/net"), done())
	w.opts.MinTier, w.opts.Mode, w.opts.TrustWorkspace = flag, "bypass", true
	for set, tier := range map[*func(string)]string{ptr(w.settings): user, ptr(w.project): project} {
		if tier != "" { // who wants the looser tier wants the network, too
			(*set)(fmt.Sprintf(`{"sandbox":{"min_tier":%q,"network":%t}}`, tier, tier == "none"))
		}
	}
	var out, errs safeBuffer
	if code := app.ConfigShow(w.opts.SettingsOptions, false, w.system(&out, &errs)); code != 0 {
		t.Fatalf("exit %d: %s", code, errs.String())
	}
	for _, line := range []string{fmt.Sprintf("sandbox.min_tier = %q  # ", bound), fmt.Sprintf("sandbox.network = %t  # ", network)} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("printed is\n%s, want %s", out.String(), line)
		}
	}
	r := w.run(t.Context())
	if refused {
		if r.code != 2 || !strings.Contains(r.err, "bwrap") || len(w.server.Requests()) > 0 {
			t.Errorf("exit %d, want a refusal: %s", r.code, r.err)
		}
		return
	}
	events := w.events(r)
	where := strings.Fields(outcome(events, "where"))
	if r.code != 0 || len(where) != 2 {
		t.Fatalf("exit %d, %q: %s", r.code, where, r.err)
	}
	network = network || tier == "none" // where nothing holds it back
	if s := started(events); s.Tier != tier || s.Network != network {
		t.Errorf("recorded are %s and network %t, want %s and %t", s.Tier, s.Network, tier, network)
	}
	if where[0] != namespace(t, "pid") != (tier == "process") || where[1] == namespace(t, "net") != network {
		t.Errorf("with tier %s and network %t the command ran in %q", tier, network, where)
	}
}

// namespace names one that the test itself is in.
func namespace(t *testing.T, kind string) string {
	t.Helper()
	link, err := os.Readlink("/proc/self/ns/" + kind)
	if err != nil {
		require.Missing(t, "/proc", err.Error())
	}
	return link
}
