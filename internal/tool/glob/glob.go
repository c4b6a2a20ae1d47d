// Package glob is the tool that finds files by a pattern of their paths.
//
// It guarantees that ignored and hidden files are left out unless asked for, that
// links are not followed, so that each file is found once, that the newest come
// first, and that the answer is bounded and says what was left out.
package glob

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/tool"
	"github.com/abhed/abhed/internal/workspace"
)

// Options changes the bounds of the tool. The zero value is the usual.
type Options struct {
	// Limit is how many paths are given without a limit; zero means 200.
	Limit int
	// MaxFiles bounds the files that are looked at; zero means a million.
	MaxFiles int
	// GlobalIgnore is the content of the user's own ignore file.
	GlobalIgnore string
	// Denied, if set, says what may not be read, by its absolute path; it is left out
	// silently, with all that is below it. It is called from several goroutines.
	Denied func(path string) bool
}

// Tool is the glob tool. Make it with New.
type Tool struct{ o Options }

var _ tool.Tool = (*Tool)(nil)

// New returns the tool.
func New(o Options) *Tool {
	if o.Limit <= 0 {
		o.Limit = 200
	}
	return &Tool{o}
}

type args struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
	Ignored bool   `json:"include_ignored"`
	Limit   int    `json:"limit"`
}

const schema = `{
  "type": "object",
  "properties": {
    "pattern": {"type": "string", "minLength": 1, "description": "The pattern: * and ? within a name, ** across folders, {a,b} for either. Without a slash it is compared with the name alone, in all folders."},
    "path": {"type": "string", "minLength": 1, "description": "The folder to look in. Default: the working directory."},
    "include_ignored": {"type": "boolean", "description": "Also find files that ignore files exclude, and hidden ones. Default false."},
    "limit": {"type": "integer", "minimum": 1, "maximum": 5000, "description": "How many paths to give at most."}
  },
  "required": ["pattern"],
  "additionalProperties": false
}`

// Spec returns the tool's description for the model.
func (t *Tool) Spec() tool.Spec {
	return tool.Spec{
		Name: "glob", Version: "1", Fixed: true, Schema: []byte(schema),
		Description: "Find files by name, newest first. Files that .gitignore excludes and hidden files are left out, unless the pattern names a hidden one. To search in files use grep.",
	}
}

// Declare says that the call is about its folder and changes nothing.
func (t *Tool) Declare(raw []byte) policy.Declaration {
	a, _ := tool.Decode[args](raw) // the schema has been checked
	return policy.Declaration{Kind: policy.SubjectPath, Subject: cmp.Or(a.Path, ".")}
}

type hit struct {
	rel string
	mod time.Time
}

// Run finds files below the granted place.
func (t *Tool) Run(ctx context.Context, g tool.Grant) (tool.Result, error) {
	a, place, err := tool.Granted[args](g)
	if err != nil {
		return tool.Result{}, err
	}
	pattern, err := workspace.ParseGlob(a.Pattern)
	if err != nil {
		return tool.Fail(err.Error() + "."), nil
	}
	info, err := workspace.Stat(place)
	if err != nil {
		return tool.Fail(err.Error()), nil
	}
	if info.Kind != workspace.Directory {
		return tool.Fail(fmt.Sprintf("%s is not a folder.", cmp.Or(a.Path, "."))), nil
	}
	hits, stats, err := t.find(ctx, place, pattern, a)
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return tool.Fail("The search was interrupted."), nil
	}
	if err != nil {
		return tool.Fail(err.Error()), nil
	}
	return tool.OK(t.answer(a, place.Path, g.Call().WorkDir, hits, stats)), nil
}

func (t *Tool) find(ctx context.Context, place policy.Place, pattern workspace.Glob, a args) ([]hit, workspace.WalkStats, error) {
	var mu sync.Mutex
	var hits []hit
	stats, err := workspace.Walk(ctx, place, workspace.WalkOptions{
		Hidden: a.Ignored || pattern.Hidden(), NoIgnore: a.Ignored, GlobalIgnore: t.o.GlobalIgnore, MaxFiles: t.o.MaxFiles,
		Skip: func(path string, dir bool) bool {
			if dir && !pattern.MayContain(strings.TrimPrefix(path, strings.TrimSuffix(place.Path, "/")+"/")) {
				return true
			}
			return t.o.Denied != nil && t.o.Denied(path)
		},
	}, func(f workspace.Found) error {
		if !pattern.Match(f.Rel) {
			return nil
		}
		info, err := f.Stat()
		if err != nil || info.Kind != workspace.Regular {
			return nil // it has just gone
		}
		mu.Lock()
		defer mu.Unlock()
		hits = append(hits, hit{f.Rel, info.ModTime})
		return nil
	})
	slices.SortFunc(hits, func(a, b hit) int {
		return cmp.Or(b.mod.Compare(a.mod), strings.Compare(a.rel, b.rel))
	})
	return hits, stats, err
}

func (t *Tool) answer(a args, top, workdir string, hits []hit, stats workspace.WalkStats) string {
	var b strings.Builder
	limit := cmp.Or(a.Limit, t.o.Limit)
	for _, h := range hits[:min(len(hits), limit)] {
		fmt.Fprintln(&b, tool.Name(workspace.Display(strings.TrimSuffix(top, "/")+"/"+h.rel, workdir)))
	}
	if len(hits) == 0 {
		fmt.Fprintf(&b, "(no file matches %s below %s; %d files were looked at", a.Pattern, cmp.Or(a.Path, "."), stats.Files)
		if !a.Ignored {
			b.WriteString("; ignored and hidden ones were not")
		}
		b.WriteString(")\n")
	}
	if more := len(hits) - limit; more > 0 {
		fmt.Fprintf(&b, "(and %d more, older ones; narrow the pattern or raise limit)\n", more)
	}
	if stats.Cut {
		fmt.Fprintf(&b, "(the search ended after %d files; there may be more: look in a smaller folder)\n", stats.Files)
	}
	if stats.Unreadable > 0 {
		fmt.Fprintf(&b, "(%d folders could not be read)\n", stats.Unreadable)
	}
	return b.String()
}
