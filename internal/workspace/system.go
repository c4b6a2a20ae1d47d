package workspace

import (
	"io/fs"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// modeBits pairs the bits of a mode beyond the permissions: the system's and Go's.
var modeBits = [...]struct {
	bit  uint32
	mode fs.FileMode
}{{unix.S_ISUID, fs.ModeSetuid}, {unix.S_ISGID, fs.ModeSetgid}, {unix.S_ISVTX, fs.ModeSticky}}

// infoOf turns what the system says into an Info.
func infoOf(st *unix.Stat_t) Info {
	sec, nsec := st.Mtim.Unix()
	i := Info{
		Size: st.Size, ModTime: time.Unix(sec, nsec), Mode: fs.FileMode(st.Mode & 0o777),
		Links: uint64(st.Nlink), Dev: uint64(st.Dev), Ino: st.Ino, uid: st.Uid, gid: st.Gid,
	}
	for _, b := range modeBits {
		if uint32(st.Mode)&b.bit != 0 {
			i.Mode |= b.mode
		}
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		i.Kind, i.What = Regular, "file"
	case unix.S_IFDIR:
		i.Kind, i.What = Directory, "directory"
	case unix.S_IFLNK:
		i.Kind, i.What = Other, "symbolic link"
	case unix.S_IFIFO:
		i.Kind, i.What = Other, "named pipe"
	case unix.S_IFSOCK:
		i.Kind, i.What = Other, "socket"
	case unix.S_IFCHR:
		i.Kind, i.What = Other, "character device"
	case unix.S_IFBLK:
		i.Kind, i.What = Other, "block device"
	default:
		i.Kind, i.What = Other, "special file"
	}
	return i
}

// modeBits returns the mode as chmod takes it.
func (i Info) modeBits() uint32 {
	m := uint32(i.Mode.Perm())
	for _, b := range modeBits {
		if i.Mode&b.mode != 0 {
			m |= b.bit
		}
	}
	return m
}

func sortByName(list []fs.DirEntry) {
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
}

// openDirectory opens the absolute path of a directory without following a link.
func openDirectory(path string) (int, error) {
	root, err := unix.Open("/", openPath|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	rel := strings.Trim(path, "/")
	if rel == "" {
		return root, nil
	}
	defer unix.Close(root)
	return openBeneath(root, rel, openPath|unix.O_DIRECTORY, 0)
}

// openByComponents opens rel below dir, one component after the other.
func openByComponents(dir int, rel string, flags int, mode uint32) (int, error) {
	at := dir
	release := func() {
		if at != dir {
			unix.Close(at)
		}
	}
	for {
		name, rest, more := strings.Cut(rel, "/")
		if name == ".." {
			release()
			return -1, unix.EXDEV
		}
		f, m := flags, mode
		if more {
			f, m = openPath|unix.O_DIRECTORY, 0
		}
		next, err := retry(func() (int, error) {
			return unix.Openat(at, name, f|unix.O_NOFOLLOW|unix.O_CLOEXEC, m)
		})
		release()
		if err != nil {
			return -1, err
		}
		if !more {
			return next, nil
		}
		at, rel = next, rest
	}
}

// retry repeats a call that a signal interrupted.
func retry(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if err != unix.EINTR {
			return n, err
		}
	}
}
