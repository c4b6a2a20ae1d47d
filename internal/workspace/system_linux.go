package workspace

import (
	"errors"
	"strings"

	"golang.org/x/sys/unix"
)

// openPath opens a directory for nothing but what is below it.
const openPath = unix.O_PATH

// openBeneath opens rel, a clean relative path, below the directory, following no
// symbolic link.
func openBeneath(dir int, rel string, flags int, mode uint32) (int, error) {
	if rel == "" {
		rel = "."
	}
	how := unix.OpenHow{
		Flags: uint64(flags | unix.O_NOFOLLOW | unix.O_CLOEXEC), Mode: uint64(mode),
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	}
	fd, err := retry(func() (int, error) { return unix.Openat2(dir, rel, &how) })
	// An old kernel, or a filter that knows no openat2.
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		return openByComponents(dir, rel, flags, mode)
	}
	return fd, err
}

// pseudoFile reports whether an open file is made up by the kernel: its size means
// nothing, and reading it can block or never end.
func pseudoFile(fd int) bool {
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return false
	}
	switch int64(st.Type) {
	case unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC, unix.SECURITYFS_MAGIC, unix.CGROUP2_SUPER_MAGIC, unix.CGROUP_SUPER_MAGIC:
		return true
	}
	return false
}

// renameNew gives a file its name unless that name is taken.
func renameNew(dir int, from, to string) error {
	err := unix.Renameat2(dir, from, dir, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return linkNew(dir, from, to)
	}
	return err
}

// copyAttributes gives the file at fd to the extended attributes of from. It
// reports whether all that matter could be kept.
func copyAttributes(from, to int) bool {
	size, err := unix.Flistxattr(from, nil)
	if err != nil || size <= 0 {
		return err == nil || errors.Is(err, unix.ENOTSUP)
	}
	names := make([]byte, size)
	if size, err = unix.Flistxattr(from, names); err != nil {
		return false
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(names[:size]), "\x00"), "\x00") {
		n, err := unix.Fgetxattr(from, name, nil)
		if err != nil {
			return false
		}
		value := make([]byte, n)
		if n, err = unix.Fgetxattr(from, name, value); err != nil {
			return false
		}
		// A security label is usually given by the system, and may not be ours to set.
		if err := unix.Fsetxattr(to, name, value[:n], 0); err != nil && !strings.HasPrefix(name, "security.") {
			return false
		}
	}
	return true
}
