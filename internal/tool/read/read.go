// Package read is the tool that shows files and folders to the model.
//
// It guarantees that what it shows of a file is bounded, numbered and says what was
// left out, that bytes which aren't text are never shown as if they were, that an image
// is given as one only if its head and its end are those of an image, and that every
// file it showed is known to the Tracker afterwards.
//
// Do not assume that the text is harmless: it is whatever the file holds.
package read

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/tool"
	"github.com/abhed/abhed/internal/workspace"
)

// Options changes the bounds of the tool. The zero value is the usual.
type Options struct {
	// MaxLines is how many lines are shown without a limit; zero means 2000.
	MaxLines int
	// MaxBytes bounds the shown text; zero means 64 KiB.
	MaxBytes int
	// MaxLine is where one line is cut, in bytes; zero means 2000.
	MaxLine int
	// MaxEntries is how many entries of a folder are shown; zero means 500.
	MaxEntries int
	// Images says that the model takes images; without it they are only named.
	Images bool
}

// Tool is the read tool. Make it with New.
type Tool struct {
	tracker *workspace.Tracker
	o       Options
}

var _ tool.Tool = (*Tool)(nil)

// New returns the tool; what it reads is known to tracker.
func New(tracker *workspace.Tracker, o Options) *Tool {
	for _, d := range []struct {
		field *int
		value int
	}{{&o.MaxLines, 2000}, {&o.MaxBytes, 64 << 10}, {&o.MaxLine, 2000}, {&o.MaxEntries, 500}} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	return &Tool{tracker, o}
}

type args struct {
	Path   string `json:"path"`
	Offset int    `json:"offset"`
	Limit  int    `json:"limit"`
}

const schema = `{
  "type": "object",
  "properties": {
    "path": {"type": "string", "minLength": 1, "description": "The file or folder: absolute, or relative to the working directory."},
    "offset": {"type": "integer", "minimum": 1, "maximum": 1000000000, "description": "The first line to show, from 1. Leave it out to start at the top."},
    "limit": {"type": "integer", "minimum": 1, "maximum": 1000000000, "description": "How many lines to show at most."}
  },
  "required": ["path"],
  "additionalProperties": false
}`

// Spec returns the tool's description for the model.
func (t *Tool) Spec() tool.Spec {
	images := ""
	if t.o.Images {
		images = " An image (PNG, JPEG, GIF, WebP) is shown as one."
	}
	return tool.Spec{
		Name: "read", Version: "1", Fixed: true, Schema: []byte(schema),
		Description: fmt.Sprintf("Show a text file with line numbers, or list a folder. Up to %d lines are shown at a time; the answer says where to go on. "+
			"Each line is its number, a tab, and the text; the number and the tab are not part of the file.%s Read a file before you overwrite it.", t.o.MaxLines, images),
	}
}

// Declare says that the call is about its path and changes nothing.
func (t *Tool) Declare(raw []byte) policy.Declaration {
	a, _ := tool.Decode[args](raw) // the schema has been checked
	return policy.Declaration{Kind: policy.SubjectPath, Subject: a.Path}
}

// Run shows the file or folder at the granted place.
func (t *Tool) Run(ctx context.Context, g tool.Grant) (tool.Result, error) {
	a, place, err := tool.Granted[args](g)
	if err != nil {
		return tool.Result{}, err
	}
	info, err := workspace.Stat(place)
	if err != nil {
		return tool.Fail(err.Error()), nil
	}
	switch {
	case info.Kind == workspace.Missing:
		return tool.Fail(missing(place, a.Path)), nil
	case info.Kind == workspace.Directory:
		return t.list(place, a.Path), nil
	case info.Kind == workspace.Regular && info.Size > workspace.MaxFile:
		return t.part(ctx, place, a), nil
	}
	s, err := workspace.Read(place)
	if err != nil {
		return tool.Fail(err.Error()), nil
	}
	text, err := workspace.Decode(s.Data)
	if kind := imageType(s.Data); kind != "" && (err != nil || text.Encoding == workspace.EightBit) {
		res := t.image(a.Path, kind, s.Data)
		if !res.IsError {
			t.tracker.Saw(place.Path, s)
		}
		return res, nil
	}
	if err != nil {
		return tool.Fail(fmt.Sprintf("%s is not a text file: %v (%d bytes, %s). Use a program that knows the format.",
			a.Path, err, len(s.Data), http.DetectContentType(s.Data))), nil
	}
	t.tracker.Saw(place.Path, s)
	return t.show(a, text), nil
}

func missing(place policy.Place, path string) string {
	msg := fmt.Sprintf("There is no file %s.", path)
	if near := workspace.Suggest(place); len(near) > 0 {
		msg += " In its folder there is: " + tool.Name(strings.Join(near, ", ")) + "."
	}
	return msg
}

func (t *Tool) list(place policy.Place, path string) tool.Result {
	entries, more, err := workspace.List(place, t.o.MaxEntries)
	if err != nil {
		return tool.Fail(err.Error())
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s is a folder with %d entries:\n", path, len(entries)+more)
	for _, e := range entries {
		switch e.Info.Kind {
		case workspace.Directory:
			fmt.Fprintf(&b, "%s/\n", tool.Name(e.Name))
		case workspace.Regular:
			fmt.Fprintf(&b, "%s\t%d bytes\n", tool.Name(e.Name), e.Info.Size)
		default:
			fmt.Fprintf(&b, "%s\t%s\n", tool.Name(e.Name), e.Info.What)
		}
	}
	if more > 0 {
		fmt.Fprintf(&b, "(and %d more; use glob to find what you look for)\n", more)
	}
	return tool.OK(b.String())
}

// show shows lines of a whole file.
func (t *Tool) show(a args, text workspace.Text) tool.Result {
	notes := notesOn(text)
	if text.Body == "" {
		return tool.OK(fmt.Sprintf("(%s is empty: 0 bytes of text%s)", a.Path, notes))
	}
	total := strings.Count(text.Body, "\n")
	if !strings.HasSuffix(text.Body, "\n") {
		total++
	}
	w := newWindow(t.o, a)
	if w.first > total {
		return tool.Fail(fmt.Sprintf("%s has %d lines; offset %d is past its end.", a.Path, total, w.first))
	}
	for line := range strings.Lines(text.Body) {
		if !w.add(line) {
			break
		}
	}
	return tool.OK(w.end(a.Path, total, notes))
}

// notesOn says what the shown text doesn't show.
func notesOn(text workspace.Text) string {
	var notes []string
	if text.Encoding != workspace.UTF8 {
		notes = append(notes, text.Encoding.String())
	}
	if text.Encoding == workspace.EightBit {
		notes = append(notes, `bytes that are not UTF-8 are shown as \xNN`)
	}
	switch e := workspace.EndingsOf(text.Body); {
	case e.Mixed():
		notes = append(notes, fmt.Sprintf("mixed line endings: %d LF, %d CRLF", e.LF, e.CRLF))
	case e.CRLF > 0:
		notes = append(notes, "CRLF line endings")
	}
	if text.Body != "" && !strings.HasSuffix(text.Body, "\n") {
		notes = append(notes, "no newline at the end")
	}
	if len(notes) == 0 {
		return ""
	}
	return "; " + strings.Join(notes, "; ")
}
