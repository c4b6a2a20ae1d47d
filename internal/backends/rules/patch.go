package rules

import (
	"maps"
	"slices"
	"strings"

	"github.com/abhed/abhed/internal/policy"
)

// patchStart begins a patch in the form that apply_patch takes.
const patchStart = "*** Begin Patch"

// patch reads a tool that is given a patch. Whatever member holds it: every text of
// the input that looks like one counts.
func (r *reader) patch(n policy.Native) {
	before := len(r.subjects)
	r.pathsIn(r.input, pathMembers, []string{"write", n.Tool}, 0)
	for _, name := range slices.Sorted(maps.Keys(r.input)) {
		v := r.input[name]
		if list, is := v.([]any); is { // ["apply_patch", "*** Begin Patch…"]
			v = strings.Join(textsIn(list), "\n")
		}
		if text, is := v.(string); is && (strings.Contains(text, patchStart) || oneOf(name, "patch patchtext input command cmd diff")) {
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
	r.add(policy.SubjectPath, name, tools...)
	if _, plain, has := strings.Cut(name, "/"); diff && has && plain != "" && (strings.HasPrefix(name, "a/") || strings.HasPrefix(name, "b/")) {
		r.add(policy.SubjectPath, plain, tools...)
	}
}
