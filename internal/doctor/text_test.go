package doctor

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/hosts"
	"github.com/abhed/abhed/internal/hostconf"
)

func TestText(t *testing.T) {
	t.Parallel()
	r := &Report{Findings: []Finding{
		{Level: OK, Check: "state", What: "fine", Where: "/s"},
		{Host: "codex", Scope: "user", Level: Wrong, Check: "switch", What: "off", Where: "/f:1", Do: "remove it"},
		{Host: "codex", Level: Note, Check: "version", What: "unknown"},
		{Host: "codex", Scope: "user", Level: OK, Check: "canary", What: "sent"},
	}}
	want := "codex, user scope\n  wrong   switch: off\n          at /f:1\n          to do: remove it\ncodex\n  note    version: unknown\n1 wrong, 0 warnings, 1 note.\n"
	if diff := cmp.Diff(want, r.Text(false)); diff != "" {
		t.Error(diff)
	}
	want = "this machine\n  ok      state: fine\n          at /s\n" + strings.Replace(want, "codex\n", "  ok      canary: sent\ncodex\n", 1)
	if diff := cmp.Diff(want, r.Text(true)); diff != "" {
		t.Error(diff)
	}
	r.Findings = r.Findings[:1]
	if got := r.Text(false); got != "Nothing is wrong; 1 check.\n" {
		t.Errorf("%q", got)
	}
}

// TestClean: what is shown carries no secret and nothing that a terminal obeys.
func TestClean(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(w.path("project/.claude/settings.json"), `{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"x \u001b[31m --password hunter2hunter2 `+"\u202e"+`"}]}]}}`)
	w.install("claude-code", hostconf.User)
	text := w.run().Text(true)
	if !strings.Contains(text, "other-hook") || strings.Contains(text, "hunter2") || strings.ContainsAny(text, "\x1b\u202e") {
		t.Errorf("%q", text)
	}
}

// TestI017: an event that the adapter doesn't know can't be registered for, and a call
// whose payload lacks what tells the tool is an unknown shape, and no silent pass.
func TestI017(t *testing.T) {
	t.Parallel()
	for _, h := range hostconf.All() {
		dialect := hosts.Lookup(h.Name)
		for _, target := range h.Targets {
			for _, e := range target.Events {
				if dialect.Row(e.Name) == nil {
					t.Errorf("%s: AHP registers for %s, which its adapter doesn't know", h.Name, e.Name)
				}
			}
			for _, native := range gates(h.Name, target) {
				var o object
				if err := json.Unmarshal(payload(h.Name, native, "ahp_canary_deny", "canary-1", "/x"), &o); err != nil {
					t.Fatal(err)
				}
				if n := without(o, "ahp_canary_deny"); n == 0 {
					t.Fatalf("%s: nothing names the tool", h.Name)
				}
				data, err := json.Marshal(o)
				if err != nil {
					t.Fatal(err)
				}
				if e, err := hosts.Read(dialect, adapter.Input{Data: data, Native: native}); err == nil {
					t.Errorf("%s %s: a call of no tool was read: %+v", h.Name, native, e.AHP.Tool)
				}
			}
		}
	}
}

// without removes every member with a value, and returns how many those were.
func without(o object, value string) (n int) {
	for k, v := range o {
		if v == value {
			delete(o, k)
			n++
		} else if inner, is := v.(object); is {
			n += without(inner, value)
		}
	}
	return n
}
