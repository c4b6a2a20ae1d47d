package selfprotect

import (
	"maps"
	"os"
	"slices"
	"strings"
)

const (
	// patchStart is how the form of patches begins that apply_patch takes.
	patchStart = "*** Begin Patch"
	// maxPatch bounds a patch that is read from a file, in bytes.
	maxPatch = 1 << 20
)

// patchTool judges a tool that is given a patch, whatever member holds it.
func (j *judgement) patchTool(input map[string]any) {
	dirs := j.dirs(input)
	for _, m := range slices.Sorted(maps.Keys(input)) {
		switch v := input[m].(type) {
		case string:
			if strings.Contains(v, patchStart) && oneOf(m, commandMembers) {
				j.run(v, j.dirs(input))
			}
			if strings.Contains(v, "\n") {
				j.patch(v, dirs)
			} else {
				j.names(v, dirs, m, 1)
			}
		case []any:
			for _, each := range v {
				if text, is := each.(string); is && strings.Contains(text, "\n") {
					j.patch(text, dirs)
				}
			}
			j.names(v, dirs, m, 1)
		default:
			j.names(v, dirs, m, 1)
		}
	}
}

// patch judges the files that a patch names in its headers.
func (j *judgement) patch(text string, dirs []string) {
	own := strings.Contains(text, patchStart)
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSuffix(line, "\r")
		if own {
			line = strings.TrimSpace(line) // as apply_patch reads its headers
		}
		for _, head := range []string{"*** Add File:", "*** Delete File:", "*** Move to:", "*** Update File:", "+++ ", "--- ", "rename from ", "rename to ", "copy to ", "Index: "} {
			if name, is := strings.CutPrefix(line, head); is {
				name, _, _ = strings.Cut(name, "\t") // a diff has the time behind it
				j.patched(strings.Trim(strings.TrimSpace(name), `"`), dirs)
			}
		}
		if names, is := strings.CutPrefix(line, "diff --git "); is {
			for name := range strings.FieldsSeq(names) {
				j.patched(strings.Trim(name, `"`), dirs)
			}
		}
	}
}

// patched judges one file of a patch, of whose name tools strip components.
func (j *judgement) patched(name string, dirs []string) {
	if name == "" || name == "/dev/null" {
		return
	}
	for _, dir := range dirs {
		if m := j.at(dir, escapePattern(name)); m.relation == direct {
			j.deny(m.place)
			return
		}
	}
	if _, plain, has := strings.Cut(name, "/"); has && (strings.HasPrefix(name, "a/") || strings.HasPrefix(name, "b/")) {
		j.patched(plain, dirs)
	}
}

// patchFile judges a patch in a file, as far as it is there already.
func (j *judgement) patchFile(name string, dirs []string) {
	if name == "" || name == "-" || isPattern(name) {
		return
	}
	for _, dir := range dirs {
		file := j.join(dir, name)
		info, err := os.Stat(file)
		if err != nil || !info.Mode().IsRegular() || info.Size() > maxPatch {
			continue
		}
		if data, err := os.ReadFile(file); err == nil {
			j.patch(string(data), dirs)
		}
	}
}
