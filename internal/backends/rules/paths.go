package rules

import (
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/abhed/abhed/internal/policy"
)

const (
	pathMembers = "path paths filepath filepaths file files filename filenames absolutepath targetfile targetfiles notebookpath dirpath " +
		"directorypath directory dir folder relativeworkspacepath targetdirectory rootpath source destination oldpath newpath previouspath " +
		"uri uris searchpath searchdirectory targetnotebook imagepath imagepaths absolutefilepath"
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
	if n.Tool == "glob" {
		r.patterns(r.subjects[before:], tools)
	}
	for _, s := range r.subjects[before:] {
		if n.Globs && strings.ContainsAny(s.text, "*?[{") {
			r.miss("%q may stand for any file", clipName(s.text))
		}
	}
}

// patterns adds what a search looks for where that says in which folder, from each of
// the paths that the search starts at.
func (r *reader) patterns(from []subject, tools []string) {
	for _, name := range r.members("pattern patterns globpattern") {
		list, is := r.input[name].([]any)
		if !is {
			list = []any{r.input[name]}
		}
		for _, p := range textsIn(list) {
			if !strings.Contains(p, "/") {
				continue
			}
			r.add(policy.SubjectPath, p, tools...)
			for _, s := range slices.Clone(from) {
				if !path.IsAbs(p) && s.text != "." {
					r.add(policy.SubjectPath, strings.TrimSuffix(s.text, "/")+"/"+p, tools...)
				}
			}
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
		if !oneOf(name, containers) {
			continue
		}
		switch v := v.(type) {
		case []any:
			r.objects(v, names, tools, depth)
		case map[string]any:
			r.objects([]any{v}, names, tools, depth)
		case string:
			r.objects(listIn("["+v+"]"), names, tools, depth)
		}
	}
}

func (r *reader) objects(list []any, names string, tools []string, depth int) {
	if depth >= maxInside {
		r.miss("its input is too deep to be read")
		return
	}
	for _, each := range list {
		switch each := each.(type) {
		case map[string]any:
			r.pathsIn(each, names, tools, depth+1)
		case []any:
			r.objects(each, names, tools, depth+1)
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
		v = plainFile(v)
		r.add(policy.SubjectPath, v, tools...)
		if plain := asHostsRead(v); plain != v && plain != "" {
			r.add(policy.SubjectPath, plain, tools...)
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

// plainFile returns the path of a file URL, and any other text as it is.
func plainFile(s string) string {
	const scheme = "file:"
	if len(s) <= len(scheme) || !strings.EqualFold(s[:len(scheme)], scheme) || s[len(scheme)] != '/' {
		return s
	}
	rest := s[len(scheme):]
	if at, has := strings.CutPrefix(rest, "//"); has {
		rest = strings.TrimPrefix(at, "localhost")
	}
	if plain, err := url.PathUnescape(rest); err == nil {
		rest = plain
	}
	return rest
}

// asHostsRead returns a path as some hosts read it: without white space around it,
// with a plain space for any other, and without the "@" of a mention.
func asHostsRead(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Zs, r) {
			return ' '
		}
		return r
	}, strings.TrimSpace(s))
	return strings.TrimSpace(strings.TrimPrefix(s, "@"))
}
