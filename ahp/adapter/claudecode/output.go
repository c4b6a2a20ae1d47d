package claudecode

import (
	"maps"
	"slices"
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/shape"
	"github.com/abhed/abhed/internal/strictjson"
)

// show returns the text of a result: what Bash printed, the texts of an MCP server, and
// anything else as it is.
func show(result ahp.Raw) (text string, failed bool) {
	o, err := adapter.ParseObject(result)
	if err == nil && o.Has("stdout") && o.Has("interrupted") {
		text = strings.Trim(o.Text("stdout")+"\n"+o.Text("stderr"), "\n")
		if o.Err() == nil {
			return text, false
		}
	}
	return shape.MCPContent(result)
}

// output is a replaced result in the tool's own form: the host drops another one without
// a word, and the model sees the original. Measured are Bash, whose object a string can't
// stand for, and the tools of MCP servers, for which it can.
func output(e *adapter.Event, text string) any {
	if e.AHP == nil || e.AHP.Tool == nil {
		return text
	}
	if e.AHP.Tool.Name == "Bash" {
		return struct {
			Stdout      string `json:"stdout"`
			Stderr      string `json:"stderr"`
			Interrupted bool   `json:"interrupted"`
			IsImage     bool   `json:"isImage"`
		}{Stdout: text}
	}
	form := ahp.Raw(e.Detail) // see remember
	if !form.IsObject() {
		return text
	}
	if edited := ahp.Raw(text); edited.IsObject() && strictjson.Check(edited, strictjson.Options{}) == nil {
		return edited // the form was shown, and came back edited
	}
	b := blanker{text: text, longest: longest(form, "")}
	return b.blank(form, "")
}

// remember keeps the form of a result for output: an object of one of the host's own
// tools.
func remember(e *adapter.Event, result ahp.Raw) {
	if e.AHP.Type == ahp.ToolAfter && e.AHP.Tool.Origin == ahp.OriginNative && e.AHP.Tool.Name != "Bash" && result.IsObject() {
		e.Detail = string(result)
	}
}

// blanker makes a result of the same form that says text alone: in the place of the
// longest string, with every other string empty but for those that name a kind.
type blanker struct {
	text    string
	longest int
	done    bool
}

func (b *blanker) blank(v ahp.Raw, name string) ahp.Raw {
	switch {
	case v.IsObject():
		members := members(v)
		var out []string
		for _, n := range slices.Sorted(maps.Keys(members)) {
			out = append(out, quote(n)+":"+string(b.blank(members[n], n)))
		}
		return ahp.Raw("{" + strings.Join(out, ",") + "}")
	case v[0] == '[':
		var out []string
		for _, item := range items(v) {
			out = append(out, string(b.blank(item, name)))
		}
		return ahp.Raw("[" + strings.Join(out, ",") + "]")
	case v[0] != '"' || isKind(name, adapter.Show(v)):
		return v
	case !b.done && len(adapter.Show(v)) == b.longest:
		b.done = true
		return ahp.Raw(quote(b.text))
	}
	return ahp.Raw(`""`)
}

// longest returns the length of the longest string that blank replaces.
func longest(v ahp.Raw, name string) int {
	n := 0
	switch {
	case v.IsObject():
		for inner, m := range members(v) {
			n = max(n, longest(m, inner))
		}
	case v[0] == '[':
		for _, item := range items(v) {
			n = max(n, longest(item, name))
		}
	case v[0] == '"' && !isKind(name, adapter.Show(v)):
		n = len(adapter.Show(v))
	}
	return n
}

// isKind reports whether a member names a kind or a state, of which there are few: an
// empty one wouldn't be of the tool's form.
func isKind(name, value string) bool {
	switch name {
	case "type", "status", "mode", "kind":
		return len(value) <= 32 && strings.Trim(value, "abcdefghijklmnopqrstuvwxyz_-") == ""
	}
	return false
}

func members(v ahp.Raw) (out map[string]ahp.Raw) {
	if strictjson.Unmarshal(v, &out, strictjson.Options{}) != nil {
		return nil
	}
	return out
}

func items(v ahp.Raw) (out []ahp.Raw) {
	if strictjson.Unmarshal(v, &out, strictjson.Options{}) != nil {
		return nil
	}
	return out
}

func quote(s string) string {
	b, ok := strictjson.AppendString(nil, s)
	if !ok {
		return `""`
	}
	return string(b)
}
