package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/workspace"
)

const (
	maxSkills      = 200
	maxLooked      = 2000     // folders that are looked at for skills, per place
	maxDescription = 1 << 10  // bytes
	maxSkillFile   = 96 << 10 // bytes of one file of a skill
	maxListed      = 100      // files of a skill that are listed
	maxInSkill     = 5000     // files of a skill that are looked at
)

// skillFile is the file that makes a folder a skill.
const skillFile = "SKILL.md"

// SkillOptions say where skills are looked for. Missing folders have none.
type SkillOptions struct {
	// Config is the person's settings folder, whose folder "skills" is looked in; empty
	// means none.
	Config string
	// Home is the person's home, whose .agents/skills is looked in; empty means none.
	Home string
	// Extra are further folders of skills.
	Extra []string
	// Roots are the workspace's; .agents/skills and .abhed/skills in each are looked in.
	Roots []string
	// Denied, if set, says of an absolute path that it may not be read.
	Denied func(path string) bool
}

// Skill is a folder of instructions for one kind of work.
type Skill struct {
	// Name is what the model asks for; it is unique among the skills of a session.
	Name string
	// Description is one line of at most 1 KiB.
	Description string
	// Dir is the folder, with links resolved.
	Dir string
	// Workspace says that it came with the workspace, not from the person.
	Workspace bool

	denied denied
}

// FindSkills returns the skills in the order of their precedence, and warnings on what
// can't be used. The person's come first, then the extra ones, then the workspace's: of
// two of one name the first counts, so a repository can't put its own in the place of
// a person's.
func FindSkills(o SkillOptions) (skills []Skill, warnings []string) {
	f := finder{o: o, byName: map[string]string{}, seen: map[string]bool{}}
	if o.Config != "" {
		f.folder(filepath.Join(o.Config, "skills"), "")
	}
	if o.Home != "" {
		f.folder(filepath.Join(o.Home, ".agents", "skills"), "")
	}
	for _, dir := range o.Extra {
		f.folder(dir, "")
	}
	for _, root := range o.Roots {
		real, err := filepath.EvalSymlinks(root)
		if err != nil {
			continue
		}
		f.folder(filepath.Join(real, ".agents", "skills"), real)
		f.folder(filepath.Join(real, ".abhed", "skills"), real)
	}
	if f.over > 0 {
		f.warn("%d more skills were found than the %d that are listed", f.over, maxSkills)
	}
	return f.skills, f.warnings
}

type finder struct {
	o        SkillOptions
	skills   []Skill
	warnings []string
	byName   map[string]string // folder by name
	seen     map[string]bool   // folders
	over     int
}

func (f *finder) warn(format string, a ...any) {
	if len(f.warnings) < maxSkills {
		f.warnings = append(f.warnings, fmt.Sprintf(format, a...))
	}
}

// folder looks at every folder in dir. With a root none may lead out of it.
func (f *finder) folder(dir, root string) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		f.warn("skills in %s are not read: %v", dir, err)
		return
	}
	if len(entries) > maxLooked {
		f.warn("only the first %d of %d entries of %s are looked at", maxLooked, len(entries), dir)
		entries = entries[:maxLooked]
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			f.warn("the skill %s is not used: %v", path, err)
			continue
		}
		if info, err := os.Stat(real); err != nil || !info.IsDir() || f.seen[real] {
			continue
		}
		f.seen[real] = true
		if root != "" && !inside(real, root) {
			f.warn("the skill %s is not used: it leads to %s, which lies outside the workspace", path, real)
			continue
		}
		f.add(path, Skill{Dir: real, Workspace: root != "", denied: f.o.Denied})
	}
}

// validName reports whether a skill may be called so.
func validName(name string) bool {
	other := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-')
	}
	return name != "" && len(name) <= 64 && name[0] != '.' && name[0] != '-' && !strings.ContainsFunc(name, other)
}

// shown returns a text in one line without characters that can't be seen.
func shown(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cc, unicode.Cf) {
			return ' '
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

// add reads what the skill in a folder says of itself.
func (f *finder) add(path string, s Skill) {
	at, err := place(s.Dir, skillFile, s.denied)
	if _, missing := err.(absent); missing {
		return
	}
	body := ""
	if err == nil {
		body, _, err = text(at, maxSkillFile)
	}
	if err != nil {
		f.warn("the skill %s is not used: %s: %v", path, skillFile, err)
		return
	}
	head, _, err := frontMatter(body)
	s.Name = cmp.Or(head["name"], filepath.Base(path))
	s.Description = shown(head["description"])
	switch {
	case err != nil:
	case !validName(s.Name):
		err = fmt.Errorf("the name %q can't be used; take letters, digits, dots, dashes and underscores, at most 64", s.Name)
	case s.Description == "":
		err = errors.New("it has no description; add a line \"description: …\" between the two lines of dashes at its begin")
	case f.byName[s.Name] != "":
		err = fmt.Errorf("the name %q is taken by %s", s.Name, f.byName[s.Name])
	}
	if err != nil {
		f.warn("the skill %s is not used: %v", path, err)
		return
	}
	if len(s.Description) > maxDescription {
		f.warn("the description of the skill %s is cut after %d of %d bytes", path, maxDescription, len(s.Description))
		s.Description = string(wholeRunes([]byte(s.Description[:maxDescription])))
	}
	if len(f.skills) >= maxSkills {
		f.over++
		return
	}
	f.byName[s.Name] = path
	f.skills = append(f.skills, s)
}

// ListSkills returns the skills for the model, a line each; "" if there are none.
func ListSkills(skills []Skill) string {
	var b strings.Builder
	for _, s := range skills {
		fmt.Fprintf(&b, "- %s: %s\n", s.Name, s.Description)
	}
	return b.String()
}

// Read returns one text file of the skill, at most 96 KiB, without the lines at the
// begin of SKILL.md that only describe it. file is relative to its folder; empty means
// SKILL.md. note says what was cut, or "". The error says what is wrong for the model.
func (s Skill) Read(file string) (body, note string, err error) {
	main := file == "" || file == skillFile
	if file = cmp.Or(file, skillFile); !filepath.IsLocal(file) {
		return "", "", fmt.Errorf("the file %q is not named within the skill; give its path below the skill's folder", file)
	}
	at, err := place(s.Dir, file, s.denied)
	if err == nil {
		body, note, err = text(at, maxSkillFile)
	}
	if err != nil {
		return "", "", fmt.Errorf("%s of the skill %s can't be read: %w", file, s.Name, err)
	}
	if main {
		if _, rest, err := frontMatter(body); err == nil {
			body = rest
		}
	}
	return body, note, nil
}

// Files lists the files of the skill below its folder, in order, without SKILL.md and
// hidden ones, and how many more than 100 there are.
func (s Skill) Files(ctx context.Context) (list []string, more int, err error) {
	forms, err := policy.Resolve(s.Dir, s.Dir, "")
	if err != nil {
		return nil, 0, err
	}
	var mu sync.Mutex
	_, err = workspace.Walk(ctx, forms.Place, workspace.WalkOptions{
		NoIgnore: true, MaxFiles: maxInSkill,
		Skip: func(path string, _ bool) bool { return s.denied.has(path) },
	}, func(f workspace.Found) error {
		mu.Lock()
		defer mu.Unlock()
		if f.Rel != skillFile {
			list = append(list, f.Rel)
		}
		return nil
	})
	slices.Sort(list)
	if len(list) > maxListed {
		list, more = list[:maxListed], len(list)-maxListed
	}
	return list, more, err
}
