package rules

import (
	"fmt"
	"maps"
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
	// maxCommands bounds the bytes of all the commands of one call that are judged; a
	// call that has more is asked about. It keeps a call from taking so long that a
	// harness waits no longer.
	maxCommands = 256 << 10
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
	// guess says that the tools are what the call's own seems to be.
	guess bool
	// dirs are the directories beside the event's that a path may start in, as written,
	// "" for one that can't be told. Those of a command are the reader's.
	dirs []string
}

// reader collects the subjects of one call.
type reader struct {
	input    map[string]any
	subjects []subject
	// commandBytes counts the texts of the subjects that are commands.
	commandBytes int
	dirs         []string
	// inPatch are the indexes of the subjects that are files of a patch, and moves
	// the directories that commands go to before they apply one.
	inPatch []int
	moves   []string
	// unread says what of the call couldn't be read.
	unread []string
}

// read returns what a call names: its subjects, the directories that its members
// want a command to run in ("" for one that can't be told), and what of it can't be
// judged. guess is whether it matters what a tool that isn't in the table writes.
func read(t *ahp.Tool, guess bool) (subjects []subject, dirs, unread []string) {
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
	r.placePatches()
	if len(r.subjects) == 0 { // rules without a pattern still hold
		var tools []string
		for _, n := range natives {
			tools = append(tools, n.Tool)
		}
		r.subjects = []subject{{tools: tools, kind: policy.SubjectNone}}
	}
	if natives == nil && guess {
		r.likely()
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
	if kind == policy.SubjectCommand {
		if r.commandBytes += len(text); r.commandBytes > maxCommands {
			r.miss("its commands have more than %d bytes", maxCommands)
			return
		}
	}
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
		r.texts(r.input, n.Tool, 0)
		return
	default:
		return
	}
	if len(r.subjects) == before && !n.Optional && len(r.unread) == 0 {
		r.miss("it names no %s that can be read", n.Kind)
	}
}

// texts reads a tool that other agents or skills are called with: every text in its
// input, for some hosts call several at once.
func (r *reader) texts(v any, tool string, depth int) {
	switch v := v.(type) {
	case string:
		r.add(policy.SubjectText, v, tool)
	case []any:
		if depth >= maxInside {
			r.miss("its input is too deep to be read")
			return
		}
		for _, each := range v {
			r.texts(each, tool, depth+1)
		}
	case map[string]any:
		if depth >= maxInside {
			r.miss("its input is too deep to be read")
			return
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			r.texts(v[name], tool, depth+1)
		}
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
	flat := strings.ToLower(strings.ReplaceAll(strings.ReplaceAll(name, "_", ""), "-", ""))
	return flat != "" && strings.Contains(" "+names+" ", " "+flat+" ")
}

// commands reads a tool that runs commands.
func (r *reader) commands(n policy.Native) {
	before := len(r.subjects)
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
	r.around(before, n)
	r.directories("cwd workdir workingdir workingdirectory dirpath directory dir")
}

// directories notes the directories that members of these names want.
func (r *reader) directories(names string) {
	for _, name := range r.members(names) {
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
		r.patchIn(v, v)
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
		quoted[i] = quote(s)
		r.patchIn(s, strings.Join(textsIn(words), " "))
	}
	if len(words) == 0 {
		r.miss("its command is empty")
		return
	}
	r.add(policy.SubjectCommand, strings.Join(quoted, " "), tools...)
}

// quote returns a word as the shell takes it literally.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// listIn returns the list that a text holds as JSON, or nil: some hosts turn every
// value into a string.
func listIn(s string) []any {
	var list []any
	if !strings.HasPrefix(strings.TrimSpace(s), "[") || strictjson.Unmarshal([]byte(s), &list, strictjson.Options{}) != nil {
		return nil
	}
	return list
}
