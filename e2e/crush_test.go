package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/require"
	"github.com/abhed/abhed/internal/strictjson"
)

// crush is written from what was measured of a nightly build. It has not been run here:
// the program was not at hand, and its first run may show what it still needs.
func crush(s *stage) [][]string {
	config := object{
		"providers": object{"scripted": object{"type": "openai-compat", "base_url": s.url + "/v1", "api_key": "test-key",
			"models": []any{object{"id": "mock-model", "name": "Mock", "context_window": 200000, "default_max_tokens": 4096}}}},
		"models":  object{"large": object{"provider": "scripted", "model": "mock-model"}, "small": object{"provider": "scripted", "model": "mock-model"}},
		"options": object{"disable_metrics": true, "disable_provider_auto_update": true, "disable_default_providers": true},
	}
	if s.hook != "" { // without a matcher: with "*" it doesn't start
		config["hooks"] = object{"PreToolUse": []any{object{"command": s.hook, "timeout": 30}}}
	}
	s.write(s.home+"/.config/crush/crush.json", config)
	s.set(map[string]string{"CRUSH_DISABLE_METRICS": "1", "DO_NOT_TRACK": "1", "CRUSH_DISABLE_PROVIDER_AUTO_UPDATE": "1"})
	return [][]string{{filepath.Join(s.bin, "crush"), "run", "-q", prompt}} // it approves every call by itself
}

// TestCrushIsFound holds the part of crush's driver that needs no crush: the program and
// its version are those of CRUSH_DIR, and our own command adds to the configuration that
// the driver has written.
func TestCrushIsFound(t *testing.T) {
	list := agents()
	a := list[slices.IndexFunc(list, func(a agent) bool { return a.host == "crush" })]
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "crush"), []byte("#!/bin/sh\necho crush version v0.7.9\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CRUSH_DIR", dir)
	s := newStage(t, a)
	if got := s.version(); got != "0.7.9" {
		t.Errorf("version %q", got)
	}
	s.url, s.hook = "http://127.0.0.1:9", "exit 2"
	argv := crush(s)
	if got := strings.Join(argv[len(argv)-1], " "); got != dir+"/crush run -q "+prompt {
		t.Errorf("%q", got)
	}
	p, err := build(require.Root(t), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.install(p, cell{Deny, PolicyClosed}); err != nil {
		t.Fatal(err)
	}
	var config struct {
		Providers map[string]struct {
			URL string `json:"base_url"`
		} `json:"providers"`
		Hooks struct {
			PreToolUse []struct {
				Command string `json:"command"`
			} `json:"PreToolUse"`
		} `json:"hooks"`
	}
	text, err := os.ReadFile(s.home + "/.config/crush/crush.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := strictjson.Unmarshal(text, &config, strictjson.Options{}); err != nil {
		t.Fatal(err)
	}
	hooks := config.Hooks.PreToolUse
	if config.Providers["scripted"].URL != s.url+"/v1" || len(hooks) != 2 || hooks[0].Command != "exit 2" || !strings.Contains(hooks[1].Command, s.own()) {
		t.Errorf("%s", text)
	}
}
