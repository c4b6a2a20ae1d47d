// Package workspace gives tools access to files at judged places.
//
// It guarantees:
//   - a place is opened from the root of the file system with no symbolic link
//     followed in any component, and only if its anchor is still the directory
//     that was judged (spec/gate.md §3, Paths);
//   - only regular files are read or written: never a device, a pipe, a socket or
//     a file of a pseudo file system like /proc, and opening never blocks;
//   - a file is replaced whole or not at all, keeping mode, owner and extended
//     attributes; a file with several names, which a replacement would part, is
//     written in place;
//   - decoding text is never lossy: what can't be given back byte by byte is said
//     to be no text;
//   - a walk follows no link, is bounded, and honours ignore files by git's rules.
//
// Do not assume that a file stays as it was read: compare by means of a Tracker.
// Nor that anything here judges: whoever has a Place has been allowed to use it.
package workspace

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/abhed/abhed/internal/policy"
)

// MaxFile is the size in bytes up to which files are read whole, edited and
// compared.
const MaxFile = 64 << 20

// Kind is what kind of thing a place holds.
type Kind uint8

const (
	// Missing means that there is nothing.
	Missing Kind = iota
	// Regular is an ordinary file.
	Regular
	// Directory is a directory.
	Directory
	// Other is a device, pipe, socket, link, or a file of a pseudo file system.
	Other
)

// Info is what a place holds, without its content.
type Info struct {
	Kind Kind
	// What names the kind for a reader: "directory", "character device" and so on.
	What string
	Size int64
	// ModTime is the time of the last change of the content.
	ModTime time.Time
	Mode    fs.FileMode
	Links   uint64
	Dev     uint64
	Ino     uint64
	uid     uint32
	gid     uint32
}

// FileError says why a file could not be used. Its text is made for the model: it
// says what to do next.
type FileError struct {
	// Op is what was tried: "read", "write", "list".
	Op string
	// Path is the place.
	Path string
	// Msg says what was wrong.
	Msg string
	// Err is the cause, or nil.
	Err error
}

// Error returns what was tried, where, and what was wrong.
func (e *FileError) Error() string {
	s := fmt.Sprintf("cannot %s %s: %s", e.Op, e.Path, e.Msg)
	if e.Err != nil && e.Msg == "" {
		s += e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *FileError) Unwrap() error { return e.Err }

// errMoved is the cause when a place is not the one that was judged.
var errMoved = errors.New("the folder is not the one that was judged")

// target is an opened anchor and the path below it.
type target struct {
	op    string
	place policy.Place
	dir   int    // descriptor of the anchor
	rel   string // path of the place below it; "." is the anchor itself
}

// open opens the anchor of place and compares it with what was judged.
func open(op string, place policy.Place) (*target, error) {
	t := &target{op: op, place: place, dir: -1}
	rel, ok := strings.CutPrefix(place.Path, strings.TrimSuffix(place.Anchor, "/"))
	if !ok || !strings.HasPrefix(rel, "/") && place.Path != place.Anchor {
		return nil, t.fail(fmt.Sprintf("the anchor %q does not contain it", place.Anchor), nil)
	}
	if t.rel = strings.TrimPrefix(rel, "/"); t.rel == "" {
		t.rel = "."
	}
	dir, err := openDirectory(place.Anchor)
	if err != nil {
		return nil, t.fail("", err)
	}
	t.dir = dir
	var st unix.Stat_t
	if err := unix.Fstat(dir, &st); err != nil {
		t.close()
		return nil, t.fail("", err)
	}
	if uint64(st.Dev) != place.Dev || st.Ino != place.Ino {
		t.close()
		return nil, t.fail(fmt.Sprintf("the folder %s was replaced after this call was judged; look at it again and repeat the call", place.Anchor), errMoved)
	}
	return t, nil
}

func (t *target) close() {
	if t.dir >= 0 {
		unix.Close(t.dir)
		t.dir = -1
	}
}

// fail returns a *FileError; without a message the cause is put in words.
func (t *target) fail(msg string, err error) error {
	if msg == "" {
		msg = inWords(err)
	}
	return &FileError{Op: t.op, Path: t.place.Path, Msg: msg, Err: err}
}

// inWords returns what an error of the system means here.
func inWords(err error) string {
	switch {
	case errors.Is(err, unix.ENOENT):
		return "there is no such file or folder"
	case errors.Is(err, unix.ELOOP):
		return "a symbolic link has taken the place of a folder since this call was judged; look at it again and repeat the call"
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return "permission denied by the system"
	case errors.Is(err, unix.ENOTDIR):
		return "a part of the path is not a folder"
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return "no space is left on the device"
	case errors.Is(err, unix.EROFS):
		return "the file system is read-only"
	case err == nil:
		return "unknown failure"
	}
	return err.Error()
}

// Stat returns what place holds; a missing file is no error but Kind Missing.
func Stat(place policy.Place) (Info, error) {
	t, err := open("look at", place)
	if err != nil {
		return Info{}, err
	}
	defer t.close()
	parent, name, err := t.parent(false)
	if errors.Is(err, unix.ENOENT) {
		return Info{}, nil
	}
	if err != nil {
		return Info{}, t.fail("", err)
	}
	defer unix.Close(parent)
	info, err := statAt(parent, name)
	if err != nil {
		return Info{}, t.fail("", err)
	}
	return info, nil
}

// parent opens the directory that holds the place and returns the last component.
// With make, missing directories are made.
func (t *target) parent(make bool) (int, string, error) {
	dir, name := ".", t.rel
	if i := strings.LastIndexByte(t.rel, '/'); i >= 0 {
		dir, name = t.rel[:i], t.rel[i+1:]
	}
	if make && dir != "." {
		if err := t.makeAll(dir); err != nil {
			return -1, "", err
		}
	}
	fd, err := openBeneath(t.dir, dir, openPath|unix.O_DIRECTORY, 0)
	return fd, name, err
}

// makeAll makes the missing directories of dir below the anchor.
func (t *target) makeAll(dir string) error {
	at := ""
	for name := range strings.SplitSeq(dir, "/") {
		parent, err := openBeneath(t.dir, at, openPath|unix.O_DIRECTORY, 0)
		if err != nil {
			return err
		}
		err = unix.Mkdirat(parent, name, 0o777)
		unix.Close(parent)
		if err != nil && err != unix.EEXIST {
			return err
		}
		at = strings.TrimPrefix(at+"/"+name, "/")
	}
	return nil
}

// statAt looks at name in a directory without following a link.
func statAt(dir int, name string) (Info, error) {
	var st unix.Stat_t
	err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if err == unix.ENOENT {
		return Info{}, nil
	}
	if err != nil {
		return Info{}, err
	}
	return infoOf(&st), nil
}

// openRegular opens name in dir for reading and checks that it is a regular file
// of a real file system.
func openRegular(dir int, name string) (*os.File, Info, error) {
	// Looked at before it is opened: opening a device can have effects.
	before, err := statAt(dir, name)
	if err != nil {
		return nil, Info{}, err
	}
	if err := mustBeRegular(before); err != nil {
		return nil, before, err
	}
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, before, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return nil, before, err
	}
	info := infoOf(&st)
	err = mustBeRegular(info)
	if err == nil && pseudoFile(fd) {
		info.Kind, info.What = Other, "file of a pseudo file system"
		err = mustBeRegular(info)
	}
	if err != nil {
		unix.Close(fd)
		return nil, info, err
	}
	return os.NewFile(uintptr(fd), name), info, nil
}

func mustBeRegular(i Info) error {
	switch i.Kind {
	case Regular:
		return nil
	case Missing:
		return unix.ENOENT
	}
	return &kindError{i.What}
}

// kindError says that something is no regular file.
type kindError struct{ what string }

func (e *kindError) Error() string {
	return "it is a " + e.what + ", not a regular file"
}

// Open opens the regular file at place for reading. The caller closes it.
func Open(place policy.Place) (*os.File, Info, error) {
	t, err := open("read", place)
	if err != nil {
		return nil, Info{}, err
	}
	defer t.close()
	parent, name, err := t.parent(false)
	if err != nil {
		return nil, Info{}, t.fail("", err)
	}
	defer unix.Close(parent)
	f, info, err := openRegular(parent, name)
	if err != nil {
		return nil, info, t.fail("", err)
	}
	return f, info, nil
}

// Read returns the whole content of the regular file at place, with what it was
// when it was read. A file of more than MaxFile bytes is refused.
func Read(place policy.Place) (Snapshot, error) {
	f, info, err := Open(place)
	if err != nil {
		return Snapshot{}, err
	}
	defer f.Close()
	if info.Size > MaxFile {
		return Snapshot{}, &FileError{Op: "read", Path: place.Path,
			Msg: fmt.Sprintf("it has %d bytes; at most %d can be handled whole", info.Size, MaxFile)}
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return Snapshot{}, &FileError{Op: "read", Path: place.Path, Msg: inWords(err), Err: err}
	}
	if len(data) > MaxFile {
		return Snapshot{}, &FileError{Op: "read", Path: place.Path, Msg: "it grows while it is read; it is too large to be handled whole"}
	}
	return NewSnapshot(info, data), nil
}

// Entry is one name in a directory.
type Entry struct {
	Name string
	Info Info
}

// List returns the entries of the directory at place in the order of their names,
// at most limit, and how many more there are.
func List(place policy.Place, limit int) (entries []Entry, more int, err error) {
	t, err := open("list", place)
	if err != nil {
		return nil, 0, err
	}
	defer t.close()
	fd, err := openBeneath(t.dir, t.rel, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, t.fail("", err)
	}
	f := os.NewFile(uintptr(fd), place.Path)
	defer f.Close()
	list, err := f.ReadDir(-1)
	if err != nil {
		return nil, 0, t.fail("", err)
	}
	sortByName(list)
	if len(list) > limit {
		list, more = list[:limit], len(list)-limit
	}
	for _, d := range list {
		info, err := statAt(fd, d.Name())
		if err == nil && info.Kind != Missing { // else it has just gone
			entries = append(entries, Entry{d.Name(), info})
		}
	}
	return entries, more, nil
}
