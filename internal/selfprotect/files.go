package selfprotect

import (
	"path"
	"strings"
)

// copies judges a program that copies, moves or links files to its last operand.
func (s *shell) copies(c *command) {
	rest := operands(c.args)
	dest, has := option(c.args, "-t", "--target-directory")
	switch {
	case has:
		if i := indexOf(rest, dest); i >= 0 {
			rest = append(rest[:i:i], rest[i+1:]...)
		}
	case len(rest) == 0:
		return
	case len(rest) == 1 && c.name == "ln":
		dest = "."
	default:
		dest, rest = rest[len(rest)-1], rest[:len(rest)-1]
	}
	moves := c.name == "mv" || c.name == "gmv" || flag(c.args, "", "remove-source-files")
	links := c.name == "ln" || c.name == "cp" && flag(c.args, "ls", "link", "symbolic-link")
	if moves || links {
		s.changes(rest)
	}
	if moves {
		s.trees(rest, anything)
	}
	if m := s.touches(dest); m.relation == direct || m.relation == around && links {
		s.deny(m.place)
		return
	}
	whole := moves || c.name == "rsync" || c.name == "ditto" || flag(c.args, "rRa", "recursive", "archive")
	for _, src := range rest {
		if flag(c.args, "T", "no-target-directory") && c.name != "rsync" {
			src += "/." // dest is the copy, not the folder of it
		}
		s.lands(src, dest, whole, c.name == "rsync" || c.name == "ditto")
	}
	if c.name == "rsync" && flag(c.args, "", "delete", "delete-after", "delete-before", "delete-during", "delete-excluded") {
		s.changes([]string{dest})
	}
}

func indexOf(list []string, s string) int {
	for i, each := range list {
		if each == s {
			return i
		}
	}
	return -1
}

// lands judges where a file or a tree comes to lie that is copied into a folder.
func (s *shell) lands(src, dest string, whole, slash bool) {
	name := path.Base(src)
	inside := name == "." || name == ".." || slash && strings.HasSuffix(src, "/")
	target := strings.TrimSuffix(dest, "/") + "/" + name
	if inside || !slash && whole && !s.there(dest) { // what isn't there yet becomes the copy
		target = dest
	}
	m := s.touches(target)
	if m.relation == direct && !inside {
		s.deny(m.place)
		return
	}
	if isPattern(name) { // whatever lies there
		if m := s.touches(strings.TrimSuffix(dest, "/") + "/" + name); m.relation != apart {
			s.overlay(path.Dir(src), dest)
		}
		return
	}
	if !whole {
		return
	}
	s.overlay(src, target)
}

// there reports whether something is, or may be, at a path.
func (s *shell) there(p string) bool {
	for _, dir := range s.cwds {
		if full := s.join(dir, p); isPattern(full) || s.look.exists(s.look.real(full)) {
			return true
		}
	}
	return strings.HasSuffix(p, "/")
}

// overlay judges a tree that is laid over another one: whether it brings a file
// that is protected there.
func (s *shell) overlay(src, target string) {
	for _, dir := range s.cwds {
		from, to := s.join(dir, src), s.join(dir, target)
		if isPattern(from) || isPattern(to) || !s.look.exists(from) {
			if m := s.at(dir, target); m.relation != apart { // nobody knows what it brings
				s.deny(m.place)
			}
			continue
		}
		real := s.look.real(to)
		s.kept(from, func(p *Place, full string) bool {
			rest := strings.TrimPrefix(full, from)
			if landing := path.Clean(real + rest); s.literal(landing).relation == direct && s.counts(real, landing) {
				s.deny(p)
			}
			return s.done()
		})
		// Names that begin within the target: ".claude" itself, laid over by what is in it.
		parts := s.judgement.set.split(real)
		for i := range parts {
			n := s.judgement.set.anywhere
			for _, name := range parts[i:] {
				if n = n.child(name); n == nil {
					break
				}
			}
			if n != nil && n != s.judgement.set.anywhere && s.counts("/"+strings.Join(parts[:i], "/"), real) {
				s.deny(s.brings(n, from, 0))
			}
		}
	}
}

// counts reports whether a tree that is copied to a folder makes hooks count there:
// they do in a home or a project, or where there were some. Elsewhere a copy of what
// a host reads is a copy.
func (s *shell) counts(folder, landing string) bool {
	folder = path.Clean(folder)
	home := s.judgement.set.home
	return folder == home || home != "" && folder == s.look.real(home) || s.rootedIn(folder) || s.look.exists(landing)
}

// brings returns a place of a tree of names that lies in a folder.
func (s *shell) brings(n *node, dir string, depth int) *Place {
	if n.place != nil {
		return n.place
	}
	for _, e := range n.next {
		if full := s.present(dir, e.name); full != "" {
			if p := s.brings(e.to, full, depth+1); p != nil {
				return p
			}
		}
	}
	return nil
}

// unpacks judges a program that unpacks an archive, whose content isn't known.
func (s *shell) unpacks(c *command) {
	args := c.args
	dir := "."
	var members []string
	switch c.name {
	case "unzip":
		if flag(args, "lptvZ") {
			return
		}
		if d, has := option(args, "-d"); has {
			dir = d
		}
		members = operands(args)
	case "7z", "7za":
		if len(args) == 0 || args[0] != "x" && args[0] != "e" {
			s.changes(args[min(len(args), 1):])
			return
		}
		if d, has := option(args, "-o"); has {
			dir = d
		}
	case "cpio", "pax":
		if !flag(args, "ir", "extract") {
			return
		}
		if d, has := option(args, "-D", "--directory"); has {
			dir = d
		}
	default:
		var extracts bool
		if extracts, members = s.tar(args); !extracts {
			return
		}
		if d, has := option(args, "-C", "--directory", "--cd"); has {
			dir = d
		}
	}
	for _, m := range members {
		if !path.IsAbs(m) && !strings.HasPrefix(m, "~") {
			m = strings.TrimSuffix(dir, "/") + "/" + m
		}
		s.named(m)
	}
	for _, from := range s.cwds {
		if m := s.at(from, dir); m.relation != apart {
			s.deny(m.place)
		}
		to := s.look.real(s.join(from, dir))
		if home := s.judgement.set.home; to == "/" || to == "/etc" || home != "" && (to == home || to == s.look.real(home)) {
			s.deny(s.judgement.set.anywhere.some)
		}
	}
}

// tar reads the arguments of tar: whether it extracts, and what of. What it makes is
// judged here.
func (s *shell) tar(args []string) (extracts bool, members []string) {
	mode := ""
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		mode = args[0]
	}
	for _, a := range args {
		switch {
		case a == "--extract", a == "--get":
			mode += "x"
		case a == "--create":
			mode += "c"
		case len(a) > 1 && a[0] == '-' && a[1] != '-':
			mode += a[1:]
		}
	}
	file, _ := option(args, "-f", "--file")
	rest := operands(args)
	if strings.Contains(mode, "x") {
		return true, rest
	}
	if strings.ContainsAny(mode, "cruA") {
		if file != "" {
			s.named(file)
		}
		for i, a := range args { // tar -czf FILE, tar czf FILE
			if i+1 < len(args) && !strings.HasPrefix(a, "--") && strings.HasSuffix(a, "f") && (i == 0 || strings.HasPrefix(a, "-")) {
				s.named(args[i+1])
			}
		}
		if flag(args, "", "remove-files") {
			s.changes(rest)
			s.trees(rest, anything)
		}
	}
	return false, nil
}

// downloads judges a program that writes what it fetches.
func (s *shell) downloads(c *command) {
	s.changes(c.args)
	dir, _ := option(c.args, "--output-dir", "-P", "--directory-prefix", "-d")
	if c.name == "curl" {
		dir, _ = option(c.args, "--output-dir")
		if !flag(c.args, "O", "remote-name", "remote-name-all") {
			return
		}
	}
	if dir == "" {
		dir = "."
	}
	for _, a := range operands(c.args) {
		_, rest, is := strings.Cut(a, "://")
		if !is {
			rest = a
		}
		rest, _, _ = strings.Cut(rest, "?")
		s.named(strings.TrimSuffix(dir, "/") + "/" + path.Base(rest))
	}
}

// patches judges a program that applies a patch, which it reads or which lies in a
// file.
func (s *shell) patches(c *command, args []string) {
	s.changes(args)
	dirs := s.cwds
	for _, name := range []string{"-d", "--directory"} {
		if d, has := option(args, name); has {
			for _, from := range s.cwds {
				dirs = union(dirs, []string{s.join(from, d)})
			}
		}
	}
	s.executes = true // the patch may be written by this very command
	files := operands(args)
	if in, has := option(args, "-i", "--input"); has {
		files = append(files, in)
	}
	for _, f := range files {
		s.patchFile(f, dirs)
	}
	if name, is := strings.CutPrefix(c.stdin, fileMark); is {
		s.patchFile(name, dirs)
	} else {
		s.patch(c.stdin, dirs)
	}
}
