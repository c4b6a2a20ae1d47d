// Package write is the tool that makes a file or gives it wholly new content.
//
// It guarantees that an existing file is overwritten only if the agent has read it,
// whole or in part, and it hasn't changed since. The file is replaced whole or not at
// all, and keeps its mode, its owner and what links to it.
package write

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/tool"
	"github.com/abhed/abhed/internal/workspace"
)

// Tool is the write tool. Make it with New.
type Tool struct {
	tracker *workspace.Tracker
}

var _ tool.Tool = (*Tool)(nil)

// New returns the tool. tracker says which files the agent knows.
func New(tracker *workspace.Tracker) *Tool { return &Tool{tracker} }

type args struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

const schema = `{
  "type": "object",
  "properties": {
    "path": {"type": "string", "minLength": 1, "description": "The file: absolute, or relative to the working directory. Missing folders are made."},
    "content": {"type": "string", "description": "The whole new content, written exactly as given."}
  },
  "required": ["path", "content"],
  "additionalProperties": false
}`

// Spec returns the tool's description for the model.
func (t *Tool) Spec() tool.Spec {
	return tool.Spec{
		Name: "write", Version: "1", Fixed: true, Schema: []byte(schema), ContentMembers: []string{"content"},
		Description: "Make a new file, or replace the whole content of an existing one, which must have been read before. To change a part of a file use edit.",
	}
}

// Declare says that the call is about its path and changes it.
func (t *Tool) Declare(raw []byte) policy.Declaration {
	a, _ := tool.Decode[args](raw) // the schema has been checked
	return policy.Declaration{Kind: policy.SubjectPath, Subject: a.Path, Mutates: true}
}

// Run writes the file at the granted place.
func (t *Tool) Run(_ context.Context, g tool.Grant) (tool.Result, error) {
	a, place, err := tool.Granted[args](g)
	if err != nil {
		return tool.Result{}, err
	}
	if strings.HasSuffix(a.Path, "/") {
		return tool.Fail(fmt.Sprintf("%s ends in a slash, so it names a folder; give the path of a file.", a.Path)), nil
	}
	defer t.tracker.Lock(place.Path)()
	info, err := workspace.Stat(place)
	if err != nil {
		return tool.Fail(err.Error()), nil
	}
	switch info.Kind {
	case workspace.Missing:
		return t.create(place, a), nil
	case workspace.Regular:
		return t.replace(place, a), nil
	}
	return tool.Fail(fmt.Sprintf("%s is a %s, not a file.", a.Path, info.What)), nil
}

func (t *Tool) create(place policy.Place, a args) tool.Result {
	s, err := workspace.Write(place, nil, []byte(a.Content))
	if err != nil {
		return tool.Fail(err.Error())
	}
	t.tracker.Saw(place.Path, s)
	res := tool.OK(fmt.Sprintf("Created %s: %s.", a.Path, size(s.Data)))
	res.Changes = []tool.FileChange{{Path: place.Path, Created: true, After: s.Data}}
	return res
}

func (t *Tool) replace(place policy.Place, a args) tool.Result {
	old, err := workspace.Read(place)
	if err != nil {
		return tool.Fail(err.Error())
	}
	if err := t.tracker.Check(place.Path, old); err != nil {
		return tool.Fail(fmt.Sprintf("Nothing was written: %v.", err))
	}
	data, note, err := encode(old.Data, a.Content)
	if err != nil {
		return tool.Fail(fmt.Sprintf("Nothing was written to %s: %v.", a.Path, err))
	}
	if bytes.Equal(data, old.Data) {
		return tool.OK(fmt.Sprintf("%s already has exactly this content; nothing was changed.", a.Path))
	}
	s, err := workspace.Write(place, &old, data)
	if err != nil {
		return tool.Fail(err.Error())
	}
	t.tracker.Saw(place.Path, s)
	res := tool.OK(fmt.Sprintf("Replaced %s: %s, before %s.%s", a.Path, size(data), size(old.Data), note))
	res.Changes = []tool.FileChange{{Path: place.Path, Before: old.Data, After: s.Data}}
	return res
}

// encode returns the content as bytes in the encoding that the file has, since the
// model was shown it decoded. note says what else differs from before.
func encode(old []byte, content string) (data []byte, note string, err error) {
	text, err := workspace.Decode(old)
	if err != nil || text.Encoding == workspace.EightBit {
		return []byte(content), "", nil // bytes of no known encoding give way to UTF-8
	}
	data, err = text.Encode(strings.TrimPrefix(content, "\uFEFF"))
	if text.Encoding == workspace.UTF8 {
		data, err = []byte(content), nil
	} else {
		note = fmt.Sprintf(" It is kept as %v.", text.Encoding)
	}
	was, is := workspace.EndingsOf(text.Body), workspace.EndingsOf(content)
	if was.CRLF > 0 && is.CRLF == 0 && is.LF > 0 {
		note += " Its lines ended in CRLF and now end in LF."
	}
	return data, note, err
}

func size(data []byte) string {
	lines := bytes.Count(data, []byte{'\n'})
	if len(data) > 0 && data[len(data)-1] != '\n' {
		lines++
	}
	return fmt.Sprintf("%d lines, %d bytes", lines, len(data))
}
