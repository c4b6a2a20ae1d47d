package skill_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/memory"
	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/tool"
	"github.com/abhed/abhed/internal/tool/skill"
	"github.com/abhed/abhed/internal/tool/tooltest"
)

type m = map[string]any

func made(t *testing.T) (it *skill.Tool, dir string) {
	t.Helper()
	config, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir = config + "/skills/release"
	for name, content := range map[string]string{
		"SKILL.md":    "---\nname: release\ndescription: how to release\n---\n\nRun steps.sh.",
		"steps.sh":    "#!/bin/sh\n",
		"docs/why.md": "because\x00",
		"big.md":      strings.Repeat("y", 100<<10),
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	skills, warnings := memory.FindSkills(memory.SkillOptions{Config: config})
	if len(warnings) > 0 {
		t.Fatal(warnings)
	}
	return skill.New(skills), dir
}

func run(t *testing.T, it tool.Tool, args m) tool.Result {
	t.Helper()
	return tooltest.Run(t.Context(), t, it, tooltest.Options{WorkDir: t.TempDir()}, args)
}

func TestReads(t *testing.T) {
	it, dir := made(t)
	res := run(t, it, m{"name": "release"})
	want := "Run steps.sh.\n(the folder of this skill is " + dir + ". Its other files are: big.md, docs/why.md, steps.sh)\n"
	if res.IsError || res.Content != want {
		t.Errorf("%q, want %q", res.Content, want)
	}
	if res := run(t, it, m{"name": "release", "file": "steps.sh"}); res.Content != "#!/bin/sh\n" {
		t.Errorf("%q", res.Content)
	}
	if res := run(t, it, m{"name": "release", "file": "big.md"}); len(res.Content) > 97<<10 || !strings.HasSuffix(res.Content, "\n(cut after 98304 of 102400 bytes)\n") {
		t.Errorf("%d bytes ending in %q", len(res.Content), res.Content[len(res.Content)-60:])
	}
}

func TestRefuses(t *testing.T) {
	it, _ := made(t)
	for _, tt := range []struct {
		args m
		want string
	}{
		{m{"name": "Release"}, "The skills are: release."},
		{m{"name": "release", "file": "../../x"}, "not named within the skill"},
		{m{"name": "release", "file": "none.md"}, "no such file. Its other files are: big.md"},
		{m{"name": "release", "file": "docs/why.md"}, "NUL byte"},
	} {
		if res := run(t, it, tt.args); !res.IsError || !strings.Contains(res.Content, tt.want) {
			t.Errorf("%v: %q (error %v), want %q", tt.args, res.Content, res.IsError, tt.want)
		}
	}
	if res := run(t, skill.New(nil), m{"name": "x"}); !res.IsError {
		t.Errorf("%q", res.Content)
	}
	if d := it.Declare([]byte(`{"name":"release","file":"x"}`)); d != (policy.Declaration{Kind: policy.SubjectText, Subject: "release"}) {
		t.Errorf("declares %+v", d)
	}
}
