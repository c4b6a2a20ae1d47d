package selfprotect

import (
	"io"
	"os"
	"path"
	"strings"
	"syscall"
)

// maxEntries is how many names of a folder are read before its protected ones are
// looked for one by one.
const maxEntries = 256

// entries tells which names lie in a folder: has reports of each whether it does.
func (j *judgement) entries(dir string) (has func(name string) bool) {
	f, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY, 0) // a pipe of that name would be waited for
	if err != nil {
		if os.IsNotExist(err) {
			return func(string) bool { return false }
		}
		return func(name string) bool { return j.look.exists(dir + "/" + name) }
	}
	defer f.Close()
	names, err := f.Readdirnames(maxEntries)
	switch {
	case err != nil && err != io.EOF, len(names) == maxEntries:
		return func(name string) bool { return j.look.exists(dir + "/" + name) }
	}
	set := make(map[string]bool, len(names))
	for _, n := range names {
		set[j.set.folded(n)] = true
	}
	return func(name string) bool { return set[name] }
}

// kept calls do for every existing place whose name lies directly in a folder, as
// long as it returns false, and reports whether it returned true.
func (j *judgement) kept(dir string, do func(p *Place, full string) bool) bool {
	has := j.entries(dir)
	for first, list := range j.set.firsts() {
		if !has(first) && !strings.Contains(first, "*") {
			continue
		}
		for _, p := range list {
			if full := j.present(dir, p.Path); full != "" && do(p, full) {
				return true
			}
		}
	}
	if !j.rootedIn(dir) {
		return false
	}
	for name, p := range j.set.rooted {
		if has(name) && do(p, dir+"/"+name) {
			return true
		}
	}
	return false
}

// beneath returns an existing place beneath a folder, or nil: what an operation on
// the whole tree would hit. keep tells which count.
func (j *judgement) beneath(dir string, keep func(p string) bool) *Place {
	dir = strings.TrimSuffix(j.look.real(dir), "/")
	if dir != "" && !j.look.exists(dir) {
		return nil
	}
	prefix := dir + "/"
	for _, p := range j.set.absolute {
		if strings.HasPrefix(p.Path, prefix) && j.look.exists(p.Path) && keep(p.Path) {
			return p
		}
	}
	var hit *Place
	note := func(p *Place, full string) bool {
		if strings.HasPrefix(full, prefix) && keep(full) {
			hit = p
		}
		return hit != nil
	}
	if dir != "" && j.kept(dir, note) {
		return hit
	}
	for _, base := range append([]string{j.set.home}, j.roots...) {
		if base != "" && base != dir && (strings.HasPrefix(base+"/", prefix) || strings.HasPrefix(prefix, base+"/") && !j.plainBelow(base, dir)) && j.kept(base, note) {
			return hit
		}
	}
	return hit
}

// plainBelow reports whether a folder beneath a base lies where no place of the base
// does.
func (j *judgement) plainBelow(base, dir string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(dir, base+"/"), "/")
	return j.set.firsts()[j.set.folded(first)] == nil
}

// present returns a file of that name beneath base, or "".
func (j *judgement) present(base, rel string) string {
	at := base
	for part := range strings.SplitSeq(rel, "/") {
		if strings.Contains(part, "*") {
			list, err := os.ReadDir(at)
			for _, e := range list {
				if is, bad := path.Match(part, e.Name()); err == nil && bad == nil && is {
					return at + "/" + e.Name()
				}
			}
			return ""
		}
		if at += "/" + part; !j.look.exists(at) {
			return ""
		}
	}
	return at
}

func anything(string) bool { return true }
