package install

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/abhed/abhed/ahp/adapter/hosts"
	"github.com/abhed/abhed/internal/confedit"
	"github.com/abhed/abhed/internal/hostconf"
)

// The hash was measured with Codex 0.171.0 for a hook with the matcher *.
func TestCodexHooks(t *testing.T) {
	t.Parallel()
	data := `{"hooks":{"PreToolUse":[{"matcher":"*","hooks":[{"type":"command","command":"echo é<>&"},{"type":"mcp_tool"},{"type":"command","command":"x","timeout":5,"async":true}]}],
		"UserPromptSubmit":[{"hooks":[]},{"hooks":[{"type":"command","command":"y"}]}]}}`
	got, err := CodexHooks("/h/hooks.json", []byte(data))
	if err != nil {
		t.Fatal(err)
	}
	sum := func(s string) string { return "sha256:" + hash([]byte(s)) }
	want := []CodexHook{
		{Event: "PreToolUse", Command: "echo é<>&", Key: "/h/hooks.json:pre_tool_use:0:0", Hash: sum(`{"event_name":"pre_tool_use","hooks":[{"async":false,"command":"echo é<>&","timeout":600,"type":"command"}],"matcher":"*"}`)},
		{Event: "PreToolUse", Command: "x", Key: "/h/hooks.json:pre_tool_use:0:2", Hash: sum(`{"event_name":"pre_tool_use","hooks":[{"async":true,"command":"x","timeout":5,"type":"command"}],"matcher":"*"}`)},
		{Event: "UserPromptSubmit", Command: "y", Key: "/h/hooks.json:user_prompt_submit:1:0", Hash: sum(`{"event_name":"user_prompt_submit","hooks":[{"async":false,"command":"y","timeout":600,"type":"command"}]}`)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// Trust is written with consent alone, covers every hook of ours, follows the line,
// and goes with it.
func TestCodexTrust(t *testing.T) {
	t.Parallel()
	for _, scope := range []hostconf.Scope{hostconf.User, hostconf.Project} {
		w := newWorld(t, scope)
		config := filepath.Join(w.o.Roots.Home, ".codex/config.toml")
		hooks := filepath.Join(w.o.Roots.Home, ".codex/hooks.json")
		if scope == hostconf.Project {
			hooks = filepath.Join(w.o.Roots.Project, ".codex/hooks.json")
		}
		theirs := "model = \"x\" # why\n[hooks.state.\"" + hooks + ":stop:0:0\"]\ntrusted_hash = \"theirs\"\n"
		w.write(t, config, theirs)
		w.write(t, hooks, `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"theirs"}]}]}}`)
		before := w.files(t)
		if p := w.install(t, "codex"); len(p.Remains) != 1 || read(t, config) != theirs {
			t.Errorf("%s: without consent: %q, %q", scope, p.Remains, read(t, config))
		}
		w.o.Trust = true
		for _, registration := range []string{"/opt/r.json", "/opt/other.json"} {
			w.o.Call.Registration = registration
			w.install(t, "codex")
			trusted(t, hooks, config)
		}
		if p := w.install(t, "codex"); p.Changes() {
			t.Errorf("%s: the second time\n%s", scope, p.Diff())
		}
		w.o.Trust = false
		w.uninstall(t, "codex")
		if diff := cmp.Diff(before, w.files(t)); diff != "" {
			t.Errorf("%s: (-before +after)\n%s", scope, diff)
		}
		// The same where others have changed the file since.
		w.o.Trust = true
		w.install(t, "codex")
		w.write(t, config, read(t, config)+"\n[new]\nk = 1\n")
		w.uninstall(t, "codex")
		if diff := cmp.Diff(theirs+"\n[new]\nk = 1\n", read(t, config)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", scope, diff)
		}
	}
}

// trusted checks that config.toml trusts the hooks of ours in hooks.json, and no more.
func trusted(t *testing.T, hooks, config string) {
	t.Helper()
	list, err := CodexHooks(hooks, []byte(read(t, hooks)))
	if err != nil {
		t.Fatal(err)
	}
	d, err := confedit.ParseTOML([]byte(read(t, config)), config)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{hooks + ":stop:0:0": "theirs"}
	for _, h := range list {
		if h.Line {
			want[h.Key] = h.Hash
		}
	}
	got := map[string]string{}
	for _, b := range d.Blocks("hooks", "state", "*") {
		got[b.Name[2]] = b.Values["trusted_hash"]
	}
	if diff := cmp.Diff(want, got); diff != "" || len(want) < 10 {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// A machine's hooks can't be switched off by a project only while this is pinned.
func TestCodexRequirements(t *testing.T) {
	t.Parallel()
	w := newWorld(t, hostconf.Managed)
	path := filepath.Join(w.o.Roots.Machine, "etc/codex/requirements.toml")
	w.write(t, path, "allow_managed_hooks_only = true\n\n[features]\nhooks = false\n")
	h, _ := hostconf.Lookup("codex")
	if _, err := Install(h, hosts.Lookup("codex"), w.o); !errors.As(err, new(*confedit.Error)) || !strings.Contains(err.Error(), "features.hooks is false, expected true") {
		t.Errorf("%v", err)
	}
	w.write(t, path, "allow_managed_hooks_only = true\n")
	w.install(t, "codex")
	if got := read(t, path); got != "allow_managed_hooks_only = true\n\n[features]\nhooks = true\n" {
		t.Errorf("%q", got)
	}
}
