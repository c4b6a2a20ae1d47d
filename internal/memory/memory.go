package memory

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

const (
	maxText   = 64 << 10 // bytes of one instruction file
	maxFiles  = 200      // instruction files that one agent gets
	maxAgents = 1000     // agents that are remembered
	maxDepth  = 64       // folders between a root and a file
)

// names are the instruction files of a folder, in their order.
func names() []string { return []string{"AGENTS.md", "ABHED.md"} }

// Options are what the search may be given. The zero value is the usual.
type Options struct {
	// Denied, if set, says of an absolute path that it may not be read.
	Denied func(path string) bool
}

// File is one instruction file.
type File struct {
	// Path is where it was looked for, absolute; Real is where it lies, which differs if
	// a link leads there.
	Path, Real string
	// Text is its content, at most 64 KiB.
	Text string
	// Note says what was cut, or "".
	Note string
}

// Instructions gives out the instruction files of a session. Make it with New. It is
// safe for concurrent use.
type Instructions struct {
	roots []string
	o     Options

	mu    sync.Mutex // guards what follows
	given map[string]*share
}

// share is what one agent has got.
type share struct {
	files []File
	real  map[string]bool // places that were given, or that can't be
}

// New returns the instructions of a workspace. A root that can't be resolved has none.
func New(roots []string, o Options) *Instructions {
	in := &Instructions{o: o, given: map[string]*share{}}
	for _, root := range roots {
		if real, err := filepath.EvalSymlinks(root); err == nil && filepath.IsAbs(real) {
			in.roots = append(in.roots, real)
		}
	}
	return in
}

// Root returns the files of the roots that the agent hasn't got yet, per root AGENTS.md
// and then ABHED.md, and warnings on those that can't be used. agent is the id of the
// agent that will read them.
func (in *Instructions) Root(agent string) (files []File, warnings []string) {
	return in.collect(agent, in.roots, in.roots)
}

// Below returns the files of the folders between a root and an absolute path that the
// agent has touched, the outermost folder first, as far as the agent hasn't got them
// yet. The root's own are not among them: they are for Root. If path is a folder its
// own files are. Folders named .git and node_modules have none, since what lies there
// belongs to others.
func (in *Instructions) Below(agent, path string) (files []File, warnings []string) {
	real := resolve(path)
	root := ""
	for _, r := range in.roots {
		if inside(real, r) && len(r) > len(root) {
			root = r
		}
	}
	if root == "" || real == root {
		return nil, nil
	}
	dir := filepath.Dir(real)
	if info, err := os.Stat(real); err == nil && info.IsDir() {
		dir = real
	}
	var dirs []string
	for ; dir != root && inside(dir, root); dir = filepath.Dir(dir) {
		dirs = append(dirs, dir)
	}
	slices.Reverse(dirs)
	if i := slices.IndexFunc(dirs, func(d string) bool { return slices.Contains([]string{".git", "node_modules"}, filepath.Base(d)) }); i >= 0 {
		dirs = dirs[:i]
	}
	return in.collect(agent, dirs[:min(len(dirs), maxDepth)], []string{root})
}

// Given returns what an agent has got, in that order, as for putting it back when a
// conversation was made shorter.
func (in *Instructions) Given(agent string) []File {
	in.mu.Lock()
	defer in.mu.Unlock()
	if s := in.given[agent]; s != nil {
		return slices.Clone(s.files)
	}
	return nil
}

// resolve returns a path with the links of its deepest existing folder resolved.
func resolve(path string) string {
	path = filepath.Clean(path)
	rest := ""
	for dir := path; ; dir = filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		if dir == "/" || dir == "." {
			return path
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}

// collect reads the files of folders. Each lies in one of the roots.
func (in *Instructions) collect(agent string, dirs, roots []string) (files []File, warnings []string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	s := in.given[agent]
	if s == nil {
		if len(in.given) >= maxAgents {
			return nil, []string{fmt.Sprintf("no more instruction files are read: %d agents have got some", maxAgents)}
		}
		s = &share{real: map[string]bool{}}
		in.given[agent] = s
	}
	for _, dir := range dirs {
		root := roots[slices.IndexFunc(roots, func(r string) bool { return inside(dir, r) })]
		for _, name := range names() {
			f, warning := s.read(root, filepath.Join(dir, name), in.o.Denied)
			if warning != "" {
				warnings = append(warnings, warning)
			}
			if f.Path != "" {
				files = append(files, f)
			}
		}
	}
	s.files = append(s.files, files...)
	return files, warnings
}

// read returns one file if the agent hasn't got it. What can't be used is said once.
func (s *share) read(root, path string, d denied) (f File, warning string) {
	at, err := place(root, path, d)
	if _, missing := err.(absent); missing {
		return File{}, ""
	}
	key := at.Path
	if err != nil {
		key = path
	}
	if s.real[key] {
		return File{}, ""
	}
	if len(s.real) >= maxFiles {
		if s.real[""] {
			return File{}, ""
		}
		s.real[""] = true
		return File{}, fmt.Sprintf("%s and later instruction files are not read: %d were", path, maxFiles)
	}
	s.real[key] = true
	if err == nil {
		f = File{Path: path, Real: at.Path}
		f.Text, f.Note, err = text(at, maxText)
	}
	switch {
	case err != nil:
		return File{}, fmt.Sprintf("%s is not read: %v", path, err)
	case strings.TrimSpace(f.Text) == "":
		return File{}, ""
	}
	return f, ""
}
