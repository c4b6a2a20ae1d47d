// Package grep is the tool that searches in files.
//
// It guarantees that a pattern is RE2, so that no pattern and no file makes it run
// for ever; that ignored, hidden and binary files are left out unless asked for;
// that links are not followed; that the newest files come first; and that the
// answer is bounded and says what was left out.
//
// Do not assume that every match is listed: counts are exact, lists may be cut.
package grep

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/tool"
	"github.com/abhed/abhed/internal/workspace"
)

// Options changes the bounds of the tool. The zero value is the usual.
type Options struct {
	// Limit is how many matching lines (or files) are given without a limit; zero
	// means 100.
	Limit int
	// MaxBytes bounds the answer; zero means 48 KiB.
	MaxBytes int
	// MaxLine is where a line is cut, in bytes; zero means 400.
	MaxLine int
	// MaxFiles bounds the files that are searched; zero means a million.
	MaxFiles int
	// GlobalIgnore is the content of the user's own ignore file.
	GlobalIgnore string
	// Denied, if set, says what may not be read, by its absolute path; it is left out
	// silently, with all that is below it. It is called from several goroutines.
	Denied func(path string) bool
}

// Tool is the grep tool. Make it with New.
type Tool struct{ o Options }

var _ tool.Tool = (*Tool)(nil)

// New returns the tool.
func New(o Options) *Tool {
	o.Limit = cmp.Or(max(o.Limit, 0), 100)
	o.MaxBytes = cmp.Or(max(o.MaxBytes, 0), 48<<10)
	o.MaxLine = cmp.Or(max(o.MaxLine, 0), 400)
	return &Tool{o}
}

type args struct {
	Pattern    string `json:"pattern"`
	Path       string `json:"path"`
	Glob       string `json:"glob"`
	Output     string `json:"output"`
	IgnoreCase bool   `json:"ignore_case"`
	Multiline  bool   `json:"multiline"`
	Context    int    `json:"context"`
	Ignored    bool   `json:"include_ignored"`
	Limit      int    `json:"limit"`
}

const schema = `{
  "type": "object",
  "properties": {
    "pattern": {"type": "string", "minLength": 1, "description": "A regular expression in RE2 syntax: no look-around and no back-references. It is matched line by line."},
    "path": {"type": "string", "minLength": 1, "description": "The file or folder to search. Default: the working directory."},
    "glob": {"type": "string", "minLength": 1, "description": "Search only files whose path below the folder matches, as *.go or cmd/**."},
    "output": {"type": "string", "enum": ["content", "files", "count"], "description": "Matching lines (default), only the files, or how many lines match in each."},
    "ignore_case": {"type": "boolean", "description": "Take upper and lower case as equal. Default false."},
    "multiline": {"type": "boolean", "description": "Let a match cross lines; . matches a newline only after (?s). Default false."},
    "context": {"type": "integer", "minimum": 0, "maximum": 50, "description": "How many lines to show before and after each match."},
    "include_ignored": {"type": "boolean", "description": "Also search files that ignore files exclude, and hidden ones. Default false."},
    "limit": {"type": "integer", "minimum": 1, "maximum": 5000, "description": "How many matching lines, or files, to give at most."}
  },
  "required": ["pattern"],
  "additionalProperties": false
}`

// Spec returns the tool's description for the model.
func (t *Tool) Spec() tool.Spec {
	return tool.Spec{
		Name: "grep", Version: "1", Fixed: true, Schema: []byte(schema),
		Description: "Search in files by a regular expression; the newest files come first. Binary files, hidden files and what .gitignore excludes are left out. " +
			"In the answer number:line is a match and number-line is context.",
	}
}

// Declare says that the call is about its file or folder and changes nothing.
func (t *Tool) Declare(raw []byte) policy.Declaration {
	a, _ := tool.Decode[args](raw) // the schema has been checked
	return policy.Declaration{Kind: policy.SubjectPath, Subject: cmp.Or(a.Path, ".")}
}

// Run searches at or below the granted place.
func (t *Tool) Run(ctx context.Context, g tool.Grant) (tool.Result, error) {
	a, place, err := tool.Granted[args](g)
	if err != nil {
		return tool.Result{}, err
	}
	m, err := newMatcher(a)
	if err != nil {
		return tool.Fail(fmt.Sprintf("The pattern %q is not a regular expression of RE2: %v. Look-around and back-references don't exist there; a literal bracket or dot needs a backslash.", a.Pattern, err)), nil
	}
	s := &search{tool: t, args: a, matcher: m, place: place, workdir: g.Call().WorkDir, limit: cmp.Or(a.Limit, t.o.Limit)}
	if a.Glob != "" {
		glob, err := workspace.ParseGlob(a.Glob)
		if err != nil {
			return tool.Fail("glob: " + err.Error() + "."), nil
		}
		s.glob = &glob
	}
	err = s.run(ctx)
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return tool.Fail("The search was interrupted."), nil
	case err != nil:
		return tool.Fail(err.Error()), nil
	}
	return tool.OK(s.answer()), nil
}
