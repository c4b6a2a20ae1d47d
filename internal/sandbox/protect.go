package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxLinks bounds how many links a protected path may lead through.
const maxLinks = 16

// protect makes paths inside the roots read-only.
//
// A mount point can't be renamed or removed, but a folder above it can, with the
// mount in it, and then a new folder takes its name. So every folder between the
// root and the protected path becomes a mount point too: itself, writable.
func (l *layout) protect(paths []string) error {
	paths = slices.Clone(paths)
	slices.Sort(paths) // a folder before what is in it
	for _, path := range paths {
		if !filepath.IsAbs(path) {
			return &PolicyError{"protected path", path, "the path must be absolute"}
		}
		if l.tmpDir != "" && within(filepath.Clean(path), l.tmpDir) {
			return &PolicyError{"protected path", path, "it lies in the temporary folder, which has two names"}
		}
		if err := l.protectOne(path, 0); err != nil {
			return err
		}
	}
	return nil
}

func (l *layout) protectOne(path string, links int) error {
	if links > maxLinks {
		return &PolicyError{"protected path", path, "too many symbolic links"}
	}
	asFolder := strings.HasSuffix(path, "/")
	clean := filepath.Clean(path)
	for _, root := range l.roots {
		if within(root, clean) {
			l.readOnly(root)
		}
	}
	root, rest := l.rootOf(clean)
	switch {
	case root == "":
		return nil // read-only with the rest of the system
	case len(rest) == 0:
		l.readOnly(root)
	}
	cur := root
	for i, name := range rest {
		if l.isReadOnly(cur) {
			return nil
		}
		next, last := filepath.Join(cur, name), i == len(rest)-1
		info, err := os.Lstat(next)
		switch {
		case os.IsNotExist(err):
			l.occupy(next, asFolder || !last)
			return nil
		case err != nil:
			return &PolicyError{"protected path", path, err.Error()}
		case info.Mode()&fs.ModeSymlink != 0:
			return l.protectLink(path, cur, next, filepath.Join(rest[i+1:]...), links)
		case last || !info.IsDir():
			l.readOnly(next)
			return nil
		}
		l.pin(next)
		cur = next
	}
	return nil
}

// rootOf returns the outermost root that path lies in, and the components below
// it. Links in the part above the root don't matter, since the command can't
// change them; those below are for the walk to see.
func (l *layout) rootOf(path string) (root string, rest []string) {
	for dir, below := path, []string(nil); ; dir = filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil && slices.Contains(l.roots, real) {
			root, rest = real, slices.Clone(below)
		}
		if dir == "/" {
			return root, rest
		}
		below = slices.Insert(below, 0, filepath.Base(dir))
	}
}

// protectLink holds a link that a protected path leads through. Nothing can be
// mounted on a link, so the folder that it is in becomes read-only.
func (l *layout) protectLink(path, dir, link, rest string, links int) error {
	if slices.Contains(l.roots, dir) {
		return &PolicyError{"protected path", path,
			"it leads through the link " + link + " directly inside a root, which can't be held; replace the link by what it points to"}
	}
	target, err := os.Readlink(link)
	if err != nil {
		return &PolicyError{"protected path", path, err.Error()}
	}
	if !filepath.IsAbs(target) {
		target = filepath.Join(dir, target)
	}
	l.readOnly(dir)
	return l.protectOne(filepath.Join(target, rest), links+1)
}

const readOnlyMark = "ro:"

func (l *layout) isReadOnly(path string) bool { return l.held[readOnlyMark+path] }

func (l *layout) readOnly(path string) {
	if !l.isReadOnly(path) {
		l.add("--ro-bind", path, path)
		l.meant = append(l.meant, meant{path: path})
		l.held[path], l.held[readOnlyMark+path] = true, true
	}
}

// pin makes a folder a mount point, so that it can't be moved.
func (l *layout) pin(path string) {
	if !l.held[path] {
		l.add("--bind", path, path)
		l.meant = append(l.meant, meant{path: path})
		l.held[path] = true
	}
}

// pinAbove pins every folder between a root and a path in it, which holds no link.
func (l *layout) pinAbove(path string) {
	root, rest := l.rootOf(path)
	if root == "" {
		return
	}
	for _, name := range rest[:max(len(rest)-1, 0)] {
		if l.isReadOnly(root) {
			return
		}
		root = filepath.Join(root, name)
		l.pin(root)
	}
}

// occupy takes the place of something that doesn't exist, so that it can't be made.
func (l *layout) occupy(path string, folder bool) {
	if l.held[path] {
		return
	}
	if folder {
		l.add("--perms", "0555", "--tmpfs", path, "--remount-ro", path)
	} else {
		l.add("--ro-bind", "/dev/null", path)
	}
	l.meant = append(l.meant, meant{path, true})
	l.held[path], l.held[readOnlyMark+path] = true, true
}
