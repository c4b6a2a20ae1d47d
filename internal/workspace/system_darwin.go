package workspace

import "golang.org/x/sys/unix"

// openPath opens a directory for nothing but what is below it.
const openPath = unix.O_RDONLY

// openBeneath opens rel, a clean relative path, below the directory, following no
// symbolic link.
func openBeneath(dir int, rel string, flags int, mode uint32) (int, error) {
	if rel == "" {
		rel = "."
	}
	return openByComponents(dir, rel, flags, mode)
}

// pseudoFile reports whether an open file is made up by the kernel. There is no
// such file system here.
func pseudoFile(int) bool { return false }

// renameNew gives a file its name unless that name is taken.
func renameNew(dir int, from, to string) error { return linkNew(dir, from, to) }

// copyAttributes reports whether the extended attributes of from could be kept: here
// only if there are none, so that a file which has some is written in place.
func copyAttributes(from, _ int) bool {
	n, err := unix.Flistxattr(from, nil)
	return err != nil || n == 0
}
