package rules

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/strictjson"
)

const (
	// maxSubjects bounds what is judged of one call; a call that names more is asked
	// about.
	maxSubjects = 128
	// maxInside bounds how deep a member's lists and objects are looked through.
	maxInside = 4
)

// subject is one thing that a call does something with.
type subject struct {
	// tools are Abhed's tools under which it is judged; none means that the call's
	// own name is the only one.
	tools []string
	kind  policy.SubjectKind
	text  string
}

// reader collects the subjects of one call.
type reader struct {
	input    map[string]any
	subjects []subject
	dirs     []string
	// unread says what of the call couldn't be read.
	unread []string
}

// read returns what a call names: its subjects, the directories that its members
// want a command to run in ("" for one that can't be told), and what of it can't be
// judged.
func read(t *ahp.Tool) (subjects []subject, dirs, unread []string) {
	r := &reader{}
	if err := strictjson.Unmarshal(t.Input, &r.input, strictjson.Options{MaxBytes: ahp.MaxMessageBytes, MaxDepth: ahp.MaxDepth}); err != nil {
		return nil, nil, []string{"its input can't be read"}
	}
	var natives []policy.Native
	if t.Origin == ahp.OriginNative {
		natives = policy.LookupNative(t.Name)
	}
	for _, n := range natives {
		r.native(n)
	}
	if natives == nil {
		r.other()
	}
	if len(r.subjects) == 0 { // rules without a pattern still hold
		var tools []string
		for _, n := range natives {
			tools = append(tools, n.Tool)
		}
		r.subjects = []subject{{tools: tools, kind: policy.SubjectNone}}
	}
	if len(r.subjects) > maxSubjects {
		r.subjects = r.subjects[:maxSubjects]
		r.miss("it names more than %d things", maxSubjects)
	}
	return r.subjects, r.dirs, r.unread
}

func (r *reader) miss(format string, args ...any) {
	if len(r.unread) < 8 {
		r.unread = append(r.unread, fmt.Sprintf(format, args...))
	}
}

func (r *reader) add(kind policy.SubjectKind, text string, tools ...string) {
	if len(r.subjects) <= maxSubjects {
		r.subjects = append(r.subjects, subject{tools: tools, kind: kind, text: text})
	}
}

// native reads a tool of the table.
func (r *reader) native(n policy.Native) {
	before := len(r.subjects)
	switch {
	case n.Patch:
		r.patch(n)
	case n.Kind == policy.SubjectCommand:
		r.commands(n)
	case n.Kind == policy.SubjectPath:
		r.paths(n)
	case n.Kind == policy.SubjectURL:
		r.urls(n)
	case n.Kind == policy.SubjectText:
		for _, name := range r.members("skill name agent subagenttype agenttype prompt message description task") {
			if s, is := r.input[name].(string); is {
				r.add(policy.SubjectText, s, n.Tool)
			}
		}
		return
	default:
		return
	}
	if len(r.subjects) == before && !n.Optional && len(r.unread) == 0 {
		r.miss("it names no %s that can be read", n.Kind)
	}
}

// other reads a tool that isn't in the table: its subject is the first string among
// command, path, file_path and url.
func (r *reader) other() {
	for _, m := range []struct {
		name string
		kind policy.SubjectKind
	}{{"command", policy.SubjectCommand}, {"path", policy.SubjectPath}, {"file_path", policy.SubjectPath}, {"url", policy.SubjectURL}} {
		switch v := r.input[m.name].(type) {
		case string:
			r.add(m.kind, v)
			return
		case []any:
			if m.kind == policy.SubjectCommand {
				r.argv(v)
				return
			}
		}
	}
}

// members returns the members of the input whose names, without "_" and "-" and in
// lower case, are among those given, sorted.
func (r *reader) members(names string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(r.input)) {
		if oneOf(name, names) && r.input[name] != nil {
			out = append(out, name)
		}
	}
	return out
}

func oneOf(name, names string) bool {
	flat := strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name))
	return flat != "" && strings.Contains(" "+names+" ", " "+flat+" ")
}

// commands reads a tool that runs commands.
func (r *reader) commands(n policy.Native) {
	names := "command cmd commands cmds commandline shellcommand"
	if n.Foreign {
		names += " script code chars input inputtext text"
	}
	for _, name := range r.members(names) {
		r.command(r.input[name], strings.HasSuffix(strings.ToLower(name), "s"), n)
	}
	if n.Foreign {
		for _, s := range r.subjects {
			if strings.TrimSpace(s.text) != "" {
				r.miss("what it runs isn't a command of the shell")
				break
			}
		}
	}
	for _, name := range r.members("cwd workdir workingdir workingdirectory dirpath directory dir") {
		dir, _ := r.input[name].(string) // what isn't a string is a directory that isn't known
		r.dirs = append(r.dirs, dir)
	}
}

// command reads one value that holds a command: a text, or a list that is one
// command's words, or, where the member's name is a plural, several commands.
func (r *reader) command(v any, plural bool, n policy.Native) {
	switch v := v.(type) {
	case string:
		if list := listIn(v); plural && list != nil {
			r.command(list, true, n)
			return
		}
		r.add(policy.SubjectCommand, v, n.Tool)
		if strings.Contains(v, patchStart) {
			r.patchText(v)
		}
	case []any:
		if !plural {
			r.argv(v, n.Tool)
			return
		}
		for _, each := range v {
			if m, is := each.(map[string]any); is {
				each = m["command"]
			}
			r.command(each, false, n)
		}
	default:
		r.miss("its command is neither a text nor a list of texts")
	}
}

// argv reads a command that is given as a list of words: no shell looks at them.
func (r *reader) argv(words []any, tools ...string) {
	quoted := make([]string, len(words))
	for i, w := range words {
		s, is := w.(string)
		if !is {
			r.miss("its command holds a word that isn't a text")
			return
		}
		quoted[i] = "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
		if strings.Contains(s, patchStart) {
			r.patchText(s)
		}
	}
	if len(words) == 0 {
		r.miss("its command is empty")
		return
	}
	r.add(policy.SubjectCommand, strings.Join(quoted, " "), tools...)
}

// listIn returns the list that a text holds as JSON, or nil: some hosts turn every
// value into a string.
func listIn(s string) []any {
	var list []any
	if !strings.HasPrefix(strings.TrimSpace(s), "[") || strictjson.Unmarshal([]byte(s), &list, strictjson.Options{}) != nil {
		return nil
	}
	return list
}

const (
	pathMembers = "path paths filepath filepaths file files filename filenames absolutepath targetfile targetfiles notebookpath dirpath " +
		"directorypath directory dir folder relativeworkspacepath targetdirectory rootpath source destination oldpath newpath previouspath " +
		"uri uris searchpath searchdirectory targetnotebook imagepath absolutefilepath"
	// containers are members that hold one object for each of several files.
	containers = "operations edits replacements changes files fileedits requests"
)

// paths reads a tool that reads or writes files.
func (r *reader) paths(n policy.Native) {
	tools := r.verbs(n)
	before := len(r.subjects)
	names := pathMembers
	if n.Globs {
		names += " include"
	}
	r.pathsIn(r.input, names, tools, 0)
	if len(r.subjects) == before && (n.Tool == "glob" || n.Tool == "grep") {
		r.add(policy.SubjectPath, ".", tools...) // a search starts in the working directory
	}
	for _, s := range r.subjects[before:] {
		if n.Globs && strings.ContainsAny(s.text, "*?[{") {
			r.miss("%q may stand for any file", clipName(s.text))
		}
	}
}

// verbs returns the tools under which a tool that works with files is judged.
func (r *reader) verbs(n policy.Native) []string {
	verb, has := r.input["command"].(string)
	switch {
	case n.Verbs && verb == "view":
		return []string{"read"}
	case n.Tool == "edit" && (n.Verbs || has), n.Tool == "write" && (n.Verbs || has):
		return []string{"write", "edit"}
	}
	return []string{n.Tool}
}

func (r *reader) pathsIn(object map[string]any, names string, tools []string, depth int) {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		v := object[name]
		if oneOf(name, names) {
			r.path(v, names, tools, depth)
			continue
		}
		if list, is := v.([]any); is && oneOf(name, containers) {
			r.objects(list, names, tools, depth)
		}
	}
}

func (r *reader) objects(list []any, names string, tools []string, depth int) {
	if depth >= maxInside {
		r.miss("its input is too deep to be read")
		return
	}
	for _, each := range list {
		if m, is := each.(map[string]any); is {
			r.pathsIn(m, names, tools, depth+1)
		}
	}
}

// path reads the value of a member that names files.
func (r *reader) path(v any, names string, tools []string, depth int) {
	switch v := v.(type) {
	case nil:
	case string:
		if list := listIn(v); list != nil {
			r.path(list, names, tools, depth+1)
		}
		if rest, is := strings.CutPrefix(v, "file://"); is {
			if plain, err := url.PathUnescape(rest); err == nil {
				rest = plain
			}
			v = strings.TrimPrefix(rest, "localhost")
		}
		r.add(policy.SubjectPath, v, tools...)
		if plain := strings.TrimSpace(v); plain != v && plain != "" {
			r.add(policy.SubjectPath, plain, tools...) // as some hosts read it
		}
	case []any:
		if depth >= maxInside {
			r.miss("its input is too deep to be read")
			return
		}
		for _, each := range v {
			if m, is := each.(map[string]any); is {
				r.pathsIn(m, names, tools, depth+1)
				continue
			}
			r.path(each, names, tools, depth+1)
		}
	default:
		r.miss("a path in it isn't a text")
	}
}

// urls reads a tool that fetches. Some have the URLs within a text.
func (r *reader) urls(n policy.Native) {
	var all []string
	for _, name := range r.members("url urls uri uris href links prompt") {
		switch v := r.input[name].(type) {
		case string:
			if oneOf(name, "prompt") {
				all = append(all, urlsIn(v)...)
				continue
			}
			if list := listIn(v); list != nil {
				all = append(all, textsIn(list)...)
				continue
			}
			all = append(all, v)
		case []any:
			texts := textsIn(v)
			if len(texts) < len(v) {
				r.miss("a URL in it isn't a text")
			}
			all = append(all, texts...)
		default:
			r.miss("a URL in it isn't a text")
		}
	}
	for _, s := range all {
		s = strings.TrimSpace(s)
		if head := len("file:"); len(s) > head && strings.EqualFold(s[:head], "file:") {
			r.path("file://"+strings.TrimPrefix(s[head:], "//"), "", []string{"read"}, 0)
		}
		if !strings.Contains(s, "://") {
			r.add(policy.SubjectURL, "https://"+s, n.Tool) // as hosts complete it
		}
		r.add(policy.SubjectURL, s, n.Tool)
	}
}

func textsIn(list []any) []string {
	var out []string
	for _, each := range list {
		if s, is := each.(string); is {
			out = append(out, s)
		}
	}
	return out
}

// urlsIn returns the URLs in a text, up to white space or what ends a sentence.
func urlsIn(text string) []string {
	var out []string
	for word := range strings.FieldsSeq(text) {
		lower := strings.ToLower(word)
		for _, scheme := range []string{"http://", "https://", "file://"} {
			if i := strings.Index(lower, scheme); i >= 0 {
				out = append(out, strings.TrimRight(word[i:], `.,;:!?)]}>"'`))
			}
		}
	}
	return out
}
