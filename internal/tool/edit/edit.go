// Package edit is the tool that replaces exact text in a file.
//
// It guarantees that either all edits of a call are made or none, that every byte
// outside the replaced text stays as it is (byte-order mark, line endings, missing
// last newline and encoding included), and that text is compared as it is given:
// only LF and CRLF count as equal. A file that changed on disk since the agent read
// it is not touched.
package edit

import (
	"context"
	"fmt"
	"strings"

	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/tool"
	"github.com/abhed/abhed/internal/workspace"
)

// Tool is the edit tool. Make it with New.
type Tool struct {
	tracker *workspace.Tracker
}

var _ tool.Tool = (*Tool)(nil)

// New returns the tool. tracker says what the agent has read.
func New(tracker *workspace.Tracker) *Tool { return &Tool{tracker} }

type args struct {
	Path string `json:"path"`
	change
	Edits []change `json:"edits"`
}

type change struct {
	Old        *string `json:"old_string"`
	New        *string `json:"new_string"`
	ReplaceAll bool    `json:"replace_all"`
}

const schema = `{
  "type": "object",
  "properties": {
    "path": {"type": "string", "minLength": 1, "description": "The file: absolute, or relative to the working directory."},
    "old_string": {"type": "string", "minLength": 1, "description": "The text to replace, exactly as it is in the file, without line numbers. It must occur once, unless replace_all is set; add lines around it to make it unique."},
    "new_string": {"type": "string", "description": "The text to put in its place. Line endings follow the file's."},
    "replace_all": {"type": "boolean", "description": "Replace every occurrence. Default false."},
    "edits": {
      "type": "array", "minItems": 1, "maxItems": 500,
      "description": "Several replacements instead of old_string and new_string, made one after the other: all of them or none.",
      "items": {
        "type": "object",
        "properties": {
          "old_string": {"type": "string", "minLength": 1, "description": "As above."},
          "new_string": {"type": "string", "description": "As above."},
          "replace_all": {"type": "boolean", "description": "As above."}
        },
        "required": ["old_string", "new_string"],
        "additionalProperties": false
      }
    }
  },
  "required": ["path"],
  "additionalProperties": false
}`

// Spec returns the tool's description for the model.
func (t *Tool) Spec() tool.Spec {
	return tool.Spec{
		Name: "edit", Version: "1", Fixed: true, Schema: []byte(schema), ContentMembers: []string{"old_string", "new_string", "edits"},
		Description: "Replace exact text in a file: give old_string and new_string, or a list of edits. Nothing is changed unless every old_string is found. To make a new file use write.",
	}
}

// Declare says that the call is about its path and changes it.
func (t *Tool) Declare(raw []byte) policy.Declaration {
	a, _ := tool.Decode[args](raw) // the schema has been checked
	return policy.Declaration{Kind: policy.SubjectPath, Subject: a.Path, Mutates: true}
}

// Run edits the file at the granted place.
func (t *Tool) Run(_ context.Context, g tool.Grant) (tool.Result, error) {
	a, place, err := tool.Granted[args](g)
	if err != nil {
		return tool.Result{}, err
	}
	changes, problem := a.changes()
	if problem != "" {
		return tool.Fail(problem), nil
	}
	defer t.tracker.Lock(place.Path)()
	return t.edit(place, a.Path, changes), nil
}

// changes returns the edits of the call, or what is wrong with them.
func (a args) changes() ([]change, string) {
	single := a.Old != nil || a.New != nil
	switch {
	case single && a.Edits != nil:
		return nil, "Give either old_string and new_string, or edits, not both."
	case a.Edits != nil:
		return a.Edits, ""
	case a.Old == nil || a.New == nil:
		return nil, "Give old_string and new_string, or a list of edits."
	}
	return []change{a.change}, ""
}

func (t *Tool) edit(place policy.Place, path string, changes []change) tool.Result {
	info, err := workspace.Stat(place)
	if err != nil {
		return tool.Fail(err.Error())
	}
	if info.Kind == workspace.Missing {
		return tool.Fail(fmt.Sprintf("There is no file %s. Use write to make it.%s", path, suggestion(place)))
	}
	old, err := workspace.Read(place)
	if err != nil {
		return tool.Fail(err.Error())
	}
	// A file never read may be edited: whoever quotes it exactly knows it.
	if err := t.tracker.Check(place.Path, old); err != nil {
		if stale, ok := err.(*workspace.StaleError); !ok || !stale.Never {
			return tool.Fail(fmt.Sprintf("Nothing was changed: %v.", err))
		}
	}
	text, err := workspace.Decode(old.Data)
	if err != nil {
		return tool.Fail(fmt.Sprintf("%s can't be edited as text: %v.", path, err))
	}
	body, count := text.Body, 0
	for i, c := range changes {
		next, n, problem := c.apply(text.Encoding, body)
		if problem != "" {
			return tool.Fail(fmt.Sprintf("Nothing was changed in %s: %s%s", path, which(i, len(changes)), problem))
		}
		body, count = next, count+n
	}
	if body == text.Body {
		return tool.Fail(fmt.Sprintf("Nothing was changed in %s: together the edits leave it as it is.", path))
	}
	data, err := text.Encode(body)
	if err != nil {
		return tool.Fail(fmt.Sprintf("Nothing was changed in %s: %v.", path, err))
	}
	s, err := workspace.Write(place, &old, data)
	if err != nil {
		return tool.Fail(err.Error())
	}
	t.tracker.Saw(place.Path, s)
	places := "1 place"
	if count != 1 {
		places = fmt.Sprintf("%d places", count)
	}
	res := tool.OK(fmt.Sprintf("Edited %s in %s. It now reads:\n%s", path, places, excerpt(text.Body, body)))
	res.Changes = []tool.FileChange{{Path: place.Path, Before: old.Data, After: s.Data}}
	return res
}

func suggestion(place policy.Place) string {
	if near := workspace.Suggest(place); len(near) > 0 {
		return " In its folder there is: " + tool.Name(strings.Join(near, ", ")) + "."
	}
	return ""
}

func which(i, of int) string {
	if of == 1 {
		return ""
	}
	return fmt.Sprintf("edit %d of %d: ", i+1, of)
}

// excerpt shows the lines of the new text that differ from the old, with two lines
// around them. It looks at the texts as they are: a list of their lines would take up
// far more room than they do.
func excerpt(old, body string) string {
	start, end := differing(old, body)
	from, to := start, end
	for range 2 {
		if from > 0 {
			from = strings.LastIndexByte(body[:from-1], '\n') + 1
		}
		to = lineEnd(body, to)
	}
	number := 1 + strings.Count(body[:from], "\n")
	last := number + strings.Count(body[from:to], "\n")
	if to > from && body[to-1] == '\n' {
		last--
	}
	var b strings.Builder
	shown := 0
	for line := range strings.Lines(body[from:to]) {
		if shown == 40 {
			fmt.Fprintf(&b, "(and %d more lines up to line %d)\n", last-number+1, last)
			break
		}
		fmt.Fprintf(&b, "%d\t%s\n", number, clip(strings.TrimRight(line, "\r\n"), 300))
		number, shown = number+1, shown+1
	}
	return b.String()
}

// differing returns where in body the lines begin and end that differ from old.
func differing(old, body string) (start, end int) {
	for start < len(old) && start < len(body) && old[start] == body[start] {
		start++
	}
	if start < len(old) || start < len(body) {
		start = strings.LastIndexByte(body[:start], '\n') + 1
	}
	same := 0
	for same < len(old)-start && same < len(body)-start && old[len(old)-1-same] == body[len(body)-1-same] {
		same++
	}
	for same > 0 { // down to what is whole lines of both
		o, n := len(old)-same, len(body)-same
		if (o == start || old[o-1] == '\n') && (n == start || body[n-1] == '\n') {
			break
		}
		same = len(body) - lineEnd(body, n)
	}
	return start, len(body) - same
}

// lineEnd returns where the line at a position ends, its newline included.
func lineEnd(s string, pos int) int {
	if i := strings.IndexByte(s[pos:], '\n'); i >= 0 {
		return pos + i + 1
	}
	return len(s)
}

// clip cuts a line for showing.
func clip(s string, limit int) string {
	s = tool.Clean(s)
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
}
