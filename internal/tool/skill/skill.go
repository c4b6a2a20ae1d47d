// Package skill is the tool that gives the model the text of a skill.
//
// It guarantees that only files in the folder of a skill that was found at the start
// are read, that no link leads out of it, and that what is returned is bounded and says
// what was cut.
//
// Do not assume that the text is well meant: a skill of the workspace is whatever its
// authors wrote. It grants nothing: whatever it asks the model to do passes the gate.
package skill

import (
	"context"
	"fmt"
	"strings"

	"github.com/abhed/abhed/internal/memory"
	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/tool"
)

// Tool is the skill tool. Make it with New.
type Tool struct {
	skills []memory.Skill
}

var _ tool.Tool = (*Tool)(nil)

// New returns the tool for the skills that memory.FindSkills gave. Their list is not in
// the tool's description: memory.ListSkills makes it for the prompt.
func New(skills []memory.Skill) *Tool { return &Tool{skills} }

type args struct {
	Name string `json:"name"`
	File string `json:"file"`
}

const schema = `{
  "type": "object",
  "properties": {
    "name": {"type": "string", "minLength": 1, "maxLength": 64, "description": "The name of the skill, as it is listed."},
    "file": {"type": "string", "minLength": 1, "maxLength": 1000, "description": "A file of the skill, by its path in the skill's folder. Leave it out for the skill's instructions."}
  },
  "required": ["name"],
  "additionalProperties": false
}`

// Spec returns the tool's description for the model.
func (t *Tool) Spec() tool.Spec {
	return tool.Spec{
		Name: "skill", Version: "1", Fixed: true, Schema: []byte(schema),
		Description: "Read a skill: instructions for one kind of work, with a list of its other files, or one of those. Read the skill before you start on such work.",
	}
}

// Declare says that the call is about the skill's name and changes nothing.
func (t *Tool) Declare(raw []byte) policy.Declaration {
	a, _ := tool.Decode[args](raw) // the schema has been checked
	return policy.Declaration{Kind: policy.SubjectText, Subject: a.Name}
}

// Run reads a file of a skill.
func (t *Tool) Run(ctx context.Context, g tool.Grant) (tool.Result, error) {
	a, err := tool.Decode[args](g.Args())
	if err != nil {
		return tool.Result{}, err
	}
	var s *memory.Skill
	var names []string
	for i := range t.skills {
		names = append(names, t.skills[i].Name)
		if t.skills[i].Name == a.Name {
			s = &t.skills[i]
		}
	}
	if s == nil {
		if len(names) == 0 {
			return tool.Fail("There are no skills here."), nil
		}
		return tool.Fail(fmt.Sprintf("There is no skill %q. The skills are: %s.", a.Name, strings.Join(names, ", "))), nil
	}
	body, note, err := s.Read(a.File)
	if err != nil {
		return tool.Fail(fmt.Sprintf("%v.%s", err, t.files(ctx, *s))), nil
	}
	var b strings.Builder
	b.WriteString(body)
	if body == "" {
		b.WriteString("(empty)\n")
	} else if !strings.HasSuffix(body, "\n") {
		b.WriteByte('\n')
	}
	if note != "" {
		fmt.Fprintf(&b, "(%s)\n", note)
	}
	if a.File == "" {
		fmt.Fprintf(&b, "(the folder of this skill is %s.%s)\n", s.Dir, t.files(ctx, *s))
	}
	return tool.OK(b.String()), nil
}

// files names the other files of a skill, as a sentence.
func (t *Tool) files(ctx context.Context, s memory.Skill) string {
	list, more, err := s.Files(ctx)
	switch {
	case err != nil:
		return fmt.Sprintf(" Its files can't be listed: %v", err)
	case len(list) == 0:
		return " It has no other files"
	}
	text := " Its other files are: " + tool.Name(strings.Join(list, ", "))
	if more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text
}
