package selfprotect

import (
	"os"
	"path"
	"strings"
	"syscall"
	"time"
)

const (
	// maxPath bounds a path in bytes; what is longer names no file.
	maxPath = 4096
	// maxLinks bounds the links that are followed on one path.
	maxLinks = 40
	// linksFor is how long it is remembered where links among the protected names
	// lead. An agent can't change them, a person may.
	linksFor = 2 * time.Second
)

// linked is where the names of one base truly lie, where that is elsewhere.
type linked struct {
	until time.Time
	to    *node
}

// look is what was seen of the file system during one judgement.
type look struct {
	links map[string]string // "" for what is no link
	gone  map[string]bool
}

// link returns where a link leads, "" if p is none, and whether p is there.
func (l *look) link(p string) (target string, there bool) {
	if t, known := l.links[p]; known {
		return t, !l.gone[p]
	}
	if l.links == nil {
		l.links, l.gone = map[string]string{}, map[string]bool{}
	}
	info, err := os.Lstat(p)
	if err != nil {
		// What can't be looked at for another reason may be there.
		l.links[p], l.gone[p] = "", os.IsNotExist(err) || strings.HasSuffix(err.Error(), "not a directory")
		return "", !l.gone[p]
	}
	if info.Mode()&os.ModeSymlink != 0 {
		target, _ = os.Readlink(p)
	}
	l.links[p] = target
	return target, true
}

// real returns p, which is absolute and needn't be clean, with every link resolved
// before "..", as the kernel does it. What doesn't exist is kept as it is.
func (l *look) real(p string) string {
	at, rest, links := "", p, 0
	missing := false
	for rest != "" {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		switch name {
		case "", ".":
			continue
		case "..":
			at = at[:max(strings.LastIndexByte(at, '/'), 0)]
			continue
		}
		next := at + "/" + name
		if missing {
			at = next
			continue
		}
		target, there := l.link(next)
		missing = !there
		if target == "" {
			at = next
			continue
		}
		if links++; links > maxLinks {
			return path.Clean(next + "/" + rest)
		}
		if path.IsAbs(target) {
			at = ""
		}
		if rest = target + "/" + rest; len(rest) > 2*maxPath {
			return path.Clean(next)
		}
	}
	if at == "" {
		return "/"
	}
	return at
}

// mayExist is a quick look for what is almost never there, and isn't remembered then.
func mayExist(p string) bool {
	var st syscall.Stat_t
	err := syscall.Lstat(p, &st)
	return err != syscall.ENOENT && err != syscall.ENOTDIR
}

// exists reports whether something is at p, or may be.
func (l *look) exists(p string) bool {
	_, there := l.link(p)
	return there
}

// linksOf returns the true paths of the names that lie in base, where those are
// reached over links and so can't be told by their names.
func (j *judgement) linksOf(base string) *node {
	s := j.set
	s.mu.Lock()
	known, has := s.links[base]
	s.mu.Unlock()
	if has && time.Now().Before(known.until) {
		return known.to
	}
	to := &node{}
	add := func(at, rel string, p *Place) {
		first, _, _ := strings.Cut(rel, "/")
		if _, there := j.look.link(at + "/" + first); !there {
			return
		}
		named := at + "/" + rel
		real := j.look.real(named)
		if real == named {
			return // it is found by its name
		}
		parts := s.split(real)
		if s.suffix(parts).relation != direct && s.anchored.walk(parts, false).relation != direct {
			to.add(s.trimmed(real), p)
		}
	}
	if base == "/" {
		for _, p := range s.absolute {
			add("", p.Path[1:], p)
		}
	} else {
		last, is := "", false
		for _, p := range s.relative {
			first, _, _ := strings.Cut(p.Path, "/")
			if first != last { // those of a host stand together
				last, is = first, mayExist(base+"/"+first) // next to none is there
			}
			if is {
				add(base, p.Path, p)
			}
		}
		for name, p := range s.rooted {
			if !mayExist(base + "/" + name) {
				continue
			}
			if t, _ := j.look.link(base + "/" + name); t != "" {
				to.add(s.trimmed(j.look.real(base+"/"+name)), p)
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.links) > 64 {
		clear(s.links)
	}
	s.links[base] = linked{time.Now().Add(linksFor), to}
	return to
}

// suffix looks for a place's name at any position of a path.
func (s *Set) suffix(parts []string) match {
	var best match
	for i, name := range parts {
		if c := s.anywhere.child(name); c != nil {
			best.raise(s.anywhere.walk(parts[i:], false))
		}
	}
	return best
}

// literal matches a clean absolute path by its names alone.
func (j *judgement) literal(p string) match {
	s := j.set
	parts := s.split(p)
	best := s.suffix(parts)
	if best.relation == direct {
		return best
	}
	if m := s.anchored.walk(parts, false); m.relation == direct {
		return m
	}
	if place := s.rooted[parts[len(parts)-1]]; place != nil && j.rootedIn(path.Dir(p)) {
		return match{direct, place}
	}
	return best
}

// rootedIn reports whether a project's own files are read in dir: it is a root or
// the working directory, or above one.
func (j *judgement) rootedIn(dir string) bool {
	for _, r := range j.roots {
		if r == dir || dir == "/" || strings.HasPrefix(r, dir+"/") {
			return true
		}
	}
	return false
}

// pattern matches a path that holds unknown stretches or globs.
func (j *judgement) pattern(p string) match {
	s := j.set
	parts := collapsed(s.split(p))
	w := walker{dots: j.dotglob, steps: maxWalk}
	defer func() { j.budget -= (maxWalk - w.steps) / 64 }()
	var best match
	for i, name := range parts {
		if isPattern(name) && literals(name) == 0 {
			continue
		}
		best.raise(w.may(s.anywhere, parts[i:], likeness{}))
	}
	if best.relation == direct {
		return best
	}
	if !strings.Contains(parts[0], anyText) {
		if m := w.may(s.anchored, parts, likeness{sure: true, begun: true}); m.relation == direct && literals(p) > len(path.Dir(m.place.Path))+1 {
			return m
		}
	}
	last := parts[len(parts)-1]
	for name, place := range s.rooted {
		if dir := path.Dir(p); fits(last, name, j.dotglob) && !strings.Contains(last, anyText) && !isPattern(dir) && j.rootedIn(dir) && j.look.exists(dir+"/"+name) {
			return match{direct, place}
		}
	}
	return best
}

// collapsed returns parts with one unknown component for each run of them.
func collapsed(parts []string) []string {
	out := parts[:0:0]
	for i, p := range parts {
		if i > 0 && p == anyText && parts[i-1] == anyText {
			continue
		}
		out = append(out, p)
	}
	return out
}

// at matches a path as it is written, from one directory.
func (j *judgement) at(dir, p string) match {
	if j.budget--; j.budget < 0 {
		return match{}
	}
	if p == "~" || strings.HasPrefix(p, "~/") {
		p = j.homeText() + p[1:]
	} else if strings.HasPrefix(p, "~") { // another account's home
		_, rest, _ := strings.Cut(p, "/")
		p = anyText + "/" + rest
	}
	var best match
	if strings.HasPrefix(p, anyText) { // it may be absolute
		best = j.pattern(path.Clean("/" + p))
	}
	if !path.IsAbs(p) {
		p = dir + "/" + p
	}
	if len(p) > maxPath || best.relation == direct {
		return best
	}
	if isPattern(p) {
		best.raise(j.pattern(path.Clean("/" + p)))
		return best
	}
	clean := path.Clean(p)
	best.raise(j.literal(clean))
	if best.relation == direct || clean == "/" {
		return best
	}
	real := j.look.real(p)
	if real != clean {
		best.raise(j.literal(real))
	}
	parts := j.set.split(real)
	for _, base := range j.bases() {
		best.raise(j.linksOf(base).walk(parts, false))
	}
	return best
}

// bases are the folders whose links are followed.
func (j *judgement) bases() []string {
	if j.linkBases == nil {
		j.linkBases = append([]string{"/"}, j.roots...)
		if j.set.home != "" {
			j.linkBases = append(j.linkBases, j.set.home)
		}
	}
	return j.linkBases
}

func (j *judgement) homeText() string {
	if j.set.home == "" {
		return anyText
	}
	return j.set.home
}
