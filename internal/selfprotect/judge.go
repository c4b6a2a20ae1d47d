package selfprotect

import (
	"context"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/strictjson"
)

const (
	// maxTexts bounds the texts of one input that are looked at as paths; what is
	// beyond is only searched for protected names.
	maxTexts = 2048
	// maxInside bounds how deep an input is looked through.
	maxInside = 12
	// maxBudget bounds the work on one call, in comparisons of a path with all that is
	// protected: some tenths of a second. What is left of a command that takes more
	// is only searched for protected names.
	maxBudget = 1 << 16
)

// judgement is one call being judged.
type judgement struct {
	ctx  context.Context
	set  *Set
	look look
	// cwd is the session's working directory, or anyText.
	cwd       string
	roots     []string
	linkBases []string
	// dotglob says that "*" matches a leading dot.
	dotglob bool
	texts   int
	// budget is what may still be spent on looking, in comparisons of a path.
	budget int
	found  *finding
}

func newJudgement(ctx context.Context, s *Set, e *ahp.Event) *judgement {
	j := &judgement{ctx: ctx, set: s, cwd: anyText, budget: maxBudget}
	if e.Session == nil {
		return j
	}
	for _, r := range append(slices.Clone(e.Session.WorkspaceRoots), e.Session.Cwd) {
		if r = path.Clean(r); path.IsAbs(r) && !slices.Contains(j.roots, r) && len(j.roots) < 16 {
			j.roots = append(j.roots, r)
		}
	}
	if path.IsAbs(e.Session.Cwd) {
		j.cwd = path.Clean(e.Session.Cwd)
	}
	return j
}

// deny notes why the call is denied; the first reason stays.
func (j *judgement) deny(p *Place) {
	if j.found == nil && p != nil {
		j.found = &finding{place: p}
	}
}

func (j *judgement) forbid(act string) {
	if j.found == nil {
		j.found = &finding{act: act}
	}
}

// done reports whether nothing more needs to be looked at.
func (j *judgement) done() bool { return j.found != nil || j.budget < 0 || j.ctx.Err() != nil }

// tool judges a call.
func (j *judgement) tool(t *ahp.Tool) {
	var input map[string]any
	if err := strictjson.Unmarshal(t.Input, &input, strictjson.Options{MaxBytes: ahp.MaxMessageBytes, MaxDepth: ahp.MaxDepth}); err != nil {
		j.deny(j.set.mention(string(t.Input), true))
		return
	}
	var natives []policy.Native
	if t.Origin == ahp.OriginNative {
		natives = policy.LookupNative(t.Name)
	}
	for _, n := range natives {
		switch {
		case n.Patch:
			j.patchTool(input)
		case n.Kind == policy.SubjectCommand:
			j.commands(input, n.Foreign)
		case n.Tool == "write", n.Tool == "edit":
			if verb, _ := input["command"].(string); !n.Verbs || verb != "view" {
				j.names(input, j.dirs(input), "", 0)
			}
		}
	}
	if natives == nil {
		j.other(t, input)
	}
}

// other judges a tool that isn't in the table of package policy, or an MCP server's.
func (j *judgement) other(t *ahp.Tool, input map[string]any) {
	name := t.Name
	if t.MCP != nil {
		name = t.MCP.ToolName
	}
	if j.anyOf(input, commandMembers) {
		j.commands(input, false)
	}
	if readsByName(name) {
		return
	}
	for _, m := range slices.Sorted(maps.Keys(input)) {
		if text, is := input[m].(string); is && oneOf(m, codeMembers) {
			j.code(text)
		}
	}
	j.names(input, j.dirs(input), "", 0)
}

// The names of members, in lower case and without "_" and "-".
const (
	commandMembers = "command cmd commands cmds commandline shellcommand"
	codeMembers    = "code script expression source javascript python sql program function"
	directories    = "cwd workdir workingdir workingdirectory dirpath directory dir root"
	// contents hold what is written, not where.
	contents = "content contents text filetext newstring oldstring newstr oldstr newtext oldtext inserttext codeedit codecontent newsource " +
		"instructions instruction explanation description prompt message body title summary query search replace replacement diff snippet " +
		"replacementcontent targetcontent thought comment todos reason pattern regex note notes"
)

// oneOf reports whether a member's name is among names.
func oneOf(member, names string) bool {
	for name := range strings.SplitSeq(names, " ") {
		if sameMember(member, name) {
			return true
		}
	}
	return false
}

// sameMember compares a member's name with one in lower case, without "_" and "-".
func sameMember(member, name string) bool {
	k := 0
	for i := range len(member) {
		c := member[i]
		switch {
		case c == '_' || c == '-':
			continue
		case c >= 'A' && c <= 'Z':
			c |= 0x20
		}
		if k == len(name) || name[k] != c {
			return false
		}
		k++
	}
	return k == len(name) && k > 0
}

func (j *judgement) anyOf(input map[string]any, names string) bool {
	for m := range input {
		if oneOf(m, names) {
			return true
		}
	}
	return false
}

// readsByName reports whether a tool that nobody knows says by its name that it
// only reads.
func readsByName(name string) bool {
	reads := false
	for _, verb := range wordsOf(name) {
		switch verb {
		case "write", "edit", "create", "delete", "remove", "rm", "move", "mv", "rename", "put", "set", "update", "patch", "append", "replace", "insert",
			"copy", "cp", "save", "exec", "execute", "run", "apply", "upload", "link", "symlink", "chmod", "truncate", "touch", "modify", "add", "overwrite", "sync", "restore", "install", "download", "store":
			return false
		case "read", "get", "list", "ls", "search", "grep", "glob", "find", "view", "show", "stat", "cat", "head", "tail", "tree", "fetch", "query", "describe", "count", "inspect", "lookup", "diff", "directory", "info", "navigate", "screenshot":
			reads = true
		}
	}
	return reads
}

// wordsOf splits a name at "_", "-" and where capitals begin, in lower case.
func wordsOf(name string) []string {
	var b strings.Builder
	for i, r := range name {
		if i > 0 && r >= 'A' && r <= 'Z' {
			b.WriteByte(' ')
		}
		if r == '_' || r == '-' || r == '.' || r == '/' || r == ':' {
			r = ' '
		}
		b.WriteRune(r)
	}
	return strings.Fields(strings.ToLower(b.String()))
}

// dirs returns the directories that relative paths of an input may start in.
func (j *judgement) dirs(input map[string]any) []string {
	out := []string{j.cwd}
	for _, r := range j.roots {
		if !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	for _, m := range slices.Sorted(maps.Keys(input)) {
		if !oneOf(m, directories) || len(out) > 16 {
			continue
		}
		dir, is := input[m].(string)
		if !is {
			continue
		}
		out = append(out, j.join(j.cwd, plainFile(dir)))
	}
	return out
}

// join returns dir as seen from another, or what is unknown of it.
func (j *judgement) join(from, dir string) string {
	switch {
	case dir == "~" || strings.HasPrefix(dir, "~/"):
		return path.Clean(j.homeText() + dir[1:])
	case path.IsAbs(dir), strings.HasPrefix(dir, anyText):
		return path.Clean(dir)
	}
	return path.Clean(from + "/" + dir)
}

// names judges every text of an input that may be a path which the tool changes.
func (j *judgement) names(v any, dirs []string, member string, depth int) {
	if j.done() {
		return
	}
	switch v := v.(type) {
	case string:
		if strings.Contains(v, patchStart) {
			j.patch(v, dirs)
		}
		if member == "" || !oneOf(member, contents) {
			j.name(v, dirs)
		}
	case []any:
		if depth > maxInside {
			return
		}
		for _, each := range v {
			j.names(each, dirs, member, depth+1)
		}
	case map[string]any:
		if depth > maxInside {
			return
		}
		for _, m := range slices.Sorted(maps.Keys(v)) {
			if !oneOf(m, commandMembers) || depth > 0 {
				j.names(v[m], dirs, m, depth+1)
			}
			if strings.Contains(m, "/") { // an object whose members are files
				j.name(m, dirs)
			}
		}
	}
}

// name judges one text as a path that is changed.
func (j *judgement) name(text string, dirs []string) {
	if text == "" || len(text) > maxPath {
		return
	}
	if strings.HasPrefix(text, "[") || strings.HasPrefix(text, "{") { // a value that a host turned into a text
		var inner any
		if strictjson.Unmarshal([]byte(text), &inner, strictjson.Options{}) == nil && j.texts < maxTexts {
			j.texts++
			j.names(inner, dirs, "", 1)
		}
	}
	if j.texts++; j.texts > maxTexts {
		j.deny(j.set.mention(text, false))
		return
	}
	trimmed := strings.TrimSpace(text)
	for _, form := range []string{text, trimmed, strings.TrimPrefix(trimmed, "@")} {
		form = escapePattern(plainFile(form))
		if strings.ContainsRune(form, '\n') || strings.Contains(form, "://") {
			continue
		}
		for _, dir := range dirs {
			m := j.at(dir, strings.ReplaceAll(form, `\`, "/"))
			if m.relation == direct || m.relation == around && !strings.Contains(form, " ") {
				if m.relation == around && slices.Contains(dirs, j.join(j.cwd, form)) {
					continue // the directory that the tool works in
				}
				j.deny(m.place)
				return
			}
		}
		if form == text {
			break
		}
	}
}

// escapePattern makes the characters of a pattern that stand in a plain path
// harmless: they are compared with no name that is protected.
func escapePattern(s string) string {
	return strings.NewReplacer("*", "\x03", "?", "\x03", "[", "\x03", "(", "\x03", "\x01", "\x03").Replace(s)
}

// plainFile returns the path of a file URL, and any other text as it is.
func plainFile(s string) string {
	const scheme = "file:"
	if len(s) <= len(scheme) || !strings.EqualFold(s[:len(scheme)], scheme) {
		return s
	}
	rest := s[len(scheme):]
	if at, has := strings.CutPrefix(rest, "//"); has {
		if i := strings.IndexByte(at, '/'); i >= 0 { // whatever host
			rest = at[i:]
		}
	}
	if plain, err := url.PathUnescape(rest); err == nil {
		rest = plain
	}
	return rest
}
