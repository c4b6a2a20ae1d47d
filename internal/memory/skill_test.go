package memory_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/abhed/abhed/internal/memory"
)

func skillText(name, description string) string {
	return "---\nname: " + name + "\ndescription: " + description + "\n---\n\n# How\n"
}

func describe(skills []memory.Skill) []string {
	var out []string
	for _, s := range skills {
		out = append(out, s.Name+": "+s.Description)
	}
	return out
}

func TestFindSkills(t *testing.T) {
	config, home, extra, root := folder(t), folder(t), folder(t), folder(t)
	put(t, config+"/skills/deploy/SKILL.md", skillText("deploy", "the person's"))
	put(t, home+"/.agents/skills/b/SKILL.md", skillText("b", "at home"))
	put(t, extra+"/c/SKILL.md", skillText("c", "extra"))
	put(t, root+"/.agents/skills/deploy/SKILL.md", skillText("deploy", "the repository's"))
	put(t, root+"/.agents/skills/d/SKILL.md", skillText("d", "the workspace's"))
	put(t, root+"/.abhed/skills/e/SKILL.md", "---\ndescription: named by its folder\n---\n")
	put(t, root+"/.abhed/skills/none/README.md", "no skill")
	put(t, root+"/.abhed/skills/file", "no folder")
	skills, warnings := memory.FindSkills(memory.SkillOptions{Config: config, Home: home, Extra: []string{extra, extra + "/none"}, Roots: []string{root}})
	same(t, "skills", describe(skills), []string{"deploy: the person's", "b: at home", "c: extra", "d: the workspace's", "e: named by its folder"})
	if len(warnings) != 1 || !strings.Contains(warnings[0], root+"/.agents/skills/deploy") || !strings.Contains(warnings[0], config+"/skills/deploy") {
		t.Errorf("%q doesn't name both of one name", warnings)
	}
	if skills[0].Workspace || !skills[3].Workspace {
		t.Error("where they come from is mixed up")
	}
	if got, want := memory.ListSkills(skills[:2]), "- deploy: the person's\n- b: at home\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestSkillsThatCannotBeUsed(t *testing.T) {
	root, outside := folder(t), folder(t)
	put(t, outside+"/s/SKILL.md", skillText("s", "outside"))
	at := root + "/.agents/skills/"
	for name, content := range map[string]string{
		"plain": "no front matter\n", "open": "---\nname: open\n", "line": "---\nname: line\nwhat\n---\n", "twice": "---\nname: a\nname: b\n---\n",
		"bad name": skillText("", "x"), "up": skillText("../up", "x"), "undescribed": "---\nname: undescribed\n---\n", "quote": skillText("quote", `"open`),
		"latin": skillText("latin", "caf\xe9"), "denied": skillText("denied", "x"),
	} {
		put(t, at+name+"/SKILL.md", content)
	}
	link(t, outside+"/s", at+"out")
	link(t, outside+"/s/SKILL.md", at+"out2/SKILL.md")
	link(t, "loop", at+"loop")
	skills, warnings := memory.FindSkills(memory.SkillOptions{Roots: []string{root}, Denied: func(p string) bool { return p == at+"denied/SKILL.md" }})
	if len(skills) != 0 {
		t.Errorf("found %q", describe(skills))
	}
	for _, want := range []string{"plain is not used: its first line", "open is not used: the line \"---\"", `line 3 "what"`, `line 3 gives "name"`, `the name "bad name"`, `the name "../up"`,
		"undescribed is not used: it has no description", "quote is not used: line 3: the quote", "latin is not used: SKILL.md: it is not valid UTF-8", "denied is not used: SKILL.md: a rule",
		"out is not used: it leads to", "out2 is not used: SKILL.md: it leads to", "loop is not used"} {
		if !slices.ContainsFunc(warnings, func(w string) bool { return strings.Contains(w, want) }) {
			t.Errorf("no warning says %q: %q", want, warnings)
		}
	}
	if len(warnings) != 13 {
		t.Errorf("%d warnings: %q", len(warnings), warnings)
	}
}

func TestPersonsSkillMayBeALink(t *testing.T) {
	config, elsewhere := folder(t), folder(t)
	put(t, elsewhere+"/s/SKILL.md", skillText("s", "kept elsewhere"))
	link(t, elsewhere+"/s", config+"/skills/s")
	skills, warnings := memory.FindSkills(memory.SkillOptions{Config: config})
	if len(skills) != 1 || skills[0].Dir != elsewhere+"/s" || len(warnings) != 0 {
		t.Errorf("%+v, %q", skills, warnings)
	}
}

func TestDescriptions(t *testing.T) {
	config := folder(t)
	for i, tt := range []struct{ yaml, want string }{
		{"description: plain: with colon # and a remark", "plain: with colon"},
		{`description: "quoted: \"x\" \\ y"`, `quoted: "x" \ y`},
		{"description: 'it''s'", "it's"},
		{"description: >-\n  folded\n  lines\n\n  here", "folded lines here"},
		{"description: |\n  kept\n  lines", "kept lines"},
		{"description: goes\n  on\nlicense: MIT", "goes on"},
		{"description: \"in\n  quotes\"", "in quotes"},
		{"allowed-tools:\n  - bash\nmetadata:\n  a: {b: [\"c]\ndescription: after others", "after others"},
		{"description: crlf\r\nname: crlf\r", "crlf"},
		{"description: a\u200bb\u202e\x07c", "a b c"},
		{"description: " + strings.Repeat("é", 600), strings.Repeat("é", 512)},
	} {
		dir := fmt.Sprintf("%s/%d", config, i)
		put(t, dir+"/skills/s/SKILL.md", "---\n"+tt.yaml+"\n---\nbody")
		skills, warnings := memory.FindSkills(memory.SkillOptions{Config: dir})
		if len(skills) != 1 || skills[0].Description != tt.want {
			t.Errorf("%q: %q %q, want %q", tt.yaml, describe(skills), warnings, tt.want)
		}
	}
}

func TestTooManySkills(t *testing.T) {
	config := folder(t)
	for i := range 203 {
		put(t, fmt.Sprintf("%s/skills/s%03d/SKILL.md", config, i), skillText(fmt.Sprintf("s%03d", i), "x"))
	}
	skills, warnings := memory.FindSkills(memory.SkillOptions{Config: config})
	if len(skills) != 200 || len(warnings) != 1 || !strings.Contains(warnings[0], "3 more skills") {
		t.Errorf("%d skills, %q", len(skills), warnings)
	}
}

func TestReadSkill(t *testing.T) {
	config, outside := folder(t), folder(t)
	dir := config + "/skills/s"
	put(t, dir+"/SKILL.md", skillText("s", "x"))
	put(t, dir+"/ref/a.md", "a")
	put(t, dir+"/run.sh", "#!/bin/sh\n")
	put(t, dir+"/.hidden", "h")
	put(t, dir+"/big.txt", strings.Repeat("x", 100<<10))
	put(t, dir+"/private", "p")
	put(t, outside+"/secret", "secret")
	link(t, outside+"/secret", dir+"/out")
	link(t, ".", dir+"/loop")
	link(t, "ref/a.md", dir+"/in")
	skills, _ := memory.FindSkills(memory.SkillOptions{Config: config, Denied: func(p string) bool { return p == dir+"/private" }})
	if len(skills) != 1 {
		t.Fatal("no skill")
	}
	s := skills[0]
	for _, tt := range []struct{ file, body, note, err string }{
		{"", "# How\n", "", ""}, {"SKILL.md", "# How\n", "", ""}, {"ref/a.md", "a", "", ""}, {"in", "a", "", ""}, {"loop/run.sh", "#!/bin/sh\n", "", ""},
		{"big.txt", strings.Repeat("x", 96<<10), "cut after 98304 of 102400 bytes", ""},
		{"out", "", "", "outside"}, {"../s/run.sh", "", "", "not named within"}, {"/etc/passwd", "", "", "not named within"},
		{"ref/../../s/run.sh", "", "", "not named within"}, {"private", "", "", "a rule denies"}, {"none", "", "", "no such file"}, {"ref", "", "", "directory"},
	} {
		body, note, err := s.Read(tt.file)
		if body != tt.body || note != tt.note || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%q: %.40q, %q, %v; want %.40q, %q, %q", tt.file, body, note, err, tt.body, tt.note, tt.err)
		}
	}
	list, more, err := s.Files(t.Context())
	same(t, "files", list, []string{"big.txt", "ref/a.md", "run.sh"})
	if more != 0 || err != nil {
		t.Errorf("%d more, %v", more, err)
	}
	for i := range 105 {
		put(t, fmt.Sprintf("%s/many/%d", dir, i), "")
	}
	if list, more, _ := s.Files(t.Context()); len(list) != 100 || more != 8 {
		t.Errorf("%d files and %d more", len(list), more)
	}
}

// TestAnyFrontMatter: whatever a SKILL.md holds, either it is used, with a name and a
// description that can be shown in one line, or one warning says why not.
func TestAnyFrontMatter(t *testing.T) {
	config := folder(t)
	path := config + "/skills/s/SKILL.md"
	put(t, path, "")
	piece := rapid.SampledFrom([]string{"---\n", "---", "name: ", "description: ", "x", "\n", "  ", "\"", "'", ">", "|", "\\", ":", "#", "é", "\x00", "\xff", "\u202e", "\r\n", "name: a\n", "description: b\n"})
	rapid.Check(t, func(t *rapid.T) {
		content := strings.Join(rapid.SliceOfN(piece, 0, 20).Draw(t, "pieces"), "")
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		skills, warnings := memory.FindSkills(memory.SkillOptions{Config: config})
		if len(skills)+len(warnings) != 1 {
			t.Fatalf("%q: %q and warnings %q", content, describe(skills), warnings)
		}
		for _, s := range skills {
			if s.Name == "" || s.Description == "" || !utf8.ValidString(s.Description) || strings.ContainsFunc(s.Description, unicode.IsControl) {
				t.Fatalf("%q: %q", content, describe(skills))
			}
		}
	})
}
