package rules

import (
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/abhed/abhed/internal/policy"
)

// maxMoves bounds how often a command's change of directory is followed.
const maxMoves = 8

// Where a patch begins and ends, in the form that apply_patch takes.
const (
	patchStart = "*** Begin Patch"
	patchEnd   = "*** End Patch"
)

// patch reads a tool that is given a patch. Whatever member holds it: every text of
// the input that looks like one counts.
func (r *reader) patch(n policy.Native) {
	before := len(r.subjects)
	r.directories("cwd workdir workingdir workingdirectory")
	r.pathsIn(r.input, pathMembers, []string{"write", n.Tool}, 0)
	for _, name := range slices.Sorted(maps.Keys(r.input)) {
		v := r.input[name]
		if list, is := v.([]any); is { // ["apply_patch", "*** Begin Patch…"]
			v = strings.Join(textsIn(list), "\n")
		}
		if text, is := v.(string); is && (strings.Contains(text, patchStart) || oneOf(name, "patch patchtext input command cmd diff")) {
			r.moves = append(r.moves, moves(text)...)
			r.patchText(text)
		}
	}
	if len(r.subjects) == before {
		r.miss("no file is named in its patch")
	}
}

// patchText adds the files that a patch, or a command with a patch in it, names. A
// file that is added, removed or moved is written; one that is updated is edited.
func (r *reader) patchText(text string) {
	diff := !strings.Contains(text, patchStart)
	for line := range strings.SplitSeq(text, "\n") {
		if !diff {
			line = strings.TrimSpace(line) // as apply_patch reads its headers
		}
		for _, h := range headers(diff) {
			if name, is := strings.CutPrefix(line, h.head); is {
				name, _, _ = strings.Cut(name, "\t") // a diff has the time behind it
				r.patched(strings.TrimSpace(name), h.tools, diff)
			}
		}
	}
}

// header is how a line of a patch starts that names a file, and what is done to it.
type header struct {
	head  string
	tools []string
}

func headers(diff bool) []header {
	writes, edits := []string{"write", "edit"}, []string{"edit"}
	if diff {
		return []header{{"+++ ", writes}, {"--- ", writes}, {"rename from ", writes}, {"rename to ", writes}, {"copy from ", edits}, {"copy to ", writes}}
	}
	return []header{{"*** Add File:", writes}, {"*** Delete File:", writes}, {"*** Move to:", writes}, {"*** Update File:", edits}}
}

// patched adds one file of a patch. In a diff its name may have a prefix, which
// tools strip.
func (r *reader) patched(name string, tools []string, diff bool) {
	if name == "" || name == "/dev/null" {
		return
	}
	name = strings.Trim(name, `"`)
	r.file(name, tools)
	if _, plain, has := strings.Cut(name, "/"); diff && has && plain != "" && (strings.HasPrefix(name, "a/") || strings.HasPrefix(name, "b/")) {
		r.file(plain, tools)
	}
}

// file adds one file of a patch, which starts where the patch is applied.
func (r *reader) file(name string, tools []string) {
	r.inPatch = append(r.inPatch, len(r.subjects))
	r.add(policy.SubjectPath, name, tools...)
}

// patchIn adds the files of a patch in a command, of which text is a word or all.
func (r *reader) patchIn(text, command string) {
	if strings.Contains(text, patchStart) {
		r.moves = append(r.moves, moves(command)...)
		r.patchText(text)
	}
}

// placePatches tells where the files of patches may start: where the call's members
// say, and where its commands go from there.
func (r *reader) placePatches() {
	dirs := slices.Clone(r.dirs)
	for _, m := range r.moves {
		if path.IsAbs(m) || strings.HasPrefix(m, "~") || m == "" {
			dirs = append(dirs, m)
			continue
		}
		dirs = append(dirs, m)
		for _, d := range r.dirs {
			if d != "" {
				d += "/" + m
			}
			dirs = append(dirs, d)
		}
	}
	for _, i := range r.inPatch {
		if i < len(r.subjects) {
			r.subjects[i].dirs = dirs
		}
	}
}

// moves returns the directories that a command goes to beside its patches, one
// after the other, as written: "" for one that can't be told.
func moves(command string) []string {
	var out, words []string
	for inside := false; command != ""; inside = !inside {
		mark := patchStart
		if inside {
			mark = patchEnd
		}
		part, rest, _ := strings.Cut(command, mark)
		if command = rest; !inside {
			words = append(words, strings.FieldsFunc(part, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(";&|(){}<>", r) })...)
		}
	}
	at, lost := "", false
	for i, w := range words {
		switch w = strings.Trim(w, "\"'\\"); {
		case w == "cd", w == "pushd":
			to := ""
			if i+1 < len(words) {
				to = plainWord(words[i+1])
			}
			if lost = lost || to == "" || len(out) == maxMoves; lost {
				break
			}
			if at != "" && !path.IsAbs(to) && !strings.HasPrefix(to, "~") {
				to = at + "/" + to
			}
			at = to
			out = append(out, at)
		case w == "popd", w == "chdir", w == "eval", w == "source", strings.HasPrefix(w, "-C"), strings.HasPrefix(w, "--chdir"):
			lost = true
		}
	}
	if lost {
		out = append(out, "")
	}
	return out
}

// plainWord returns a word of a command without its quotes, or "" where it may mean
// anything else than it says.
func plainWord(w string) string {
	if n := len(w); n > 1 && w[0] == w[n-1] && (w[0] == '"' || w[0] == '\'') {
		w = w[1 : n-1]
	}
	if strings.HasPrefix(w, "-") || strings.ContainsAny(w, "$`*?[\\\"'") {
		return ""
	}
	return w
}
