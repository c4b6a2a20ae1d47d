package workspace

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/abhed/abhed/internal/policy"
)

// errChanged is the cause when a file is not what the caller saw.
var errChanged = errors.New("the file changed")

// Write gives the file at place new content and returns it as it then is. old is
// the file that the caller saw, or nil if it saw none: if that is no longer so, the
// write is refused and nothing changes. Missing directories are made.
//
// A file is replaced by a complete new one with the same mode, owner and extended
// attributes. Where that can't be done (several hard links, a directory that can't
// be written, a mount point, an owner that can't be kept) it is overwritten in
// place; if that fails half-way, the old content is put back as far as possible.
func Write(place policy.Place, old *Snapshot, data []byte) (Snapshot, error) {
	t, err := open("write", place)
	if err != nil {
		return Snapshot{}, err
	}
	defer t.close()
	if t.rel == "." {
		return Snapshot{}, t.fail("it is a directory", nil)
	}
	dir, name, err := t.parent(true)
	if err != nil {
		return Snapshot{}, t.fail("", err)
	}
	defer unix.Close(dir)
	w := writer{target: t, dir: dir, name: name, data: data, old: old}
	if old == nil {
		err = w.create()
	} else {
		err = w.replace()
	}
	if err != nil {
		var known *FileError
		if errors.As(err, &known) {
			return Snapshot{}, err
		}
		return Snapshot{}, t.fail("", err)
	}
	info, err := w.there()
	if err != nil {
		return Snapshot{}, err
	}
	return NewSnapshot(info, data), nil
}

// there returns what the written file is, or an error if its bytes are not there under
// its name: success means that they are, not that calls returned.
func (w *writer) there() (Info, error) {
	info, err := statAt(w.dir, w.name)
	if err != nil {
		return Info{}, w.fail("", err)
	}
	same := info.Kind == Regular && info.Dev == w.written.Dev && info.Ino == w.written.Ino && info.Size == int64(len(w.data))
	if f, _, err := openRegular(w.dir, w.name); err == nil { // else the umask lets nobody read it
		defer f.Close()
		data, err := io.ReadAll(io.LimitReader(f, int64(len(w.data))+1))
		same = same && err == nil && bytes.Equal(data, w.data)
	}
	if !same {
		return Info{}, w.fail("it was written, but something else has changed it at the same time; look at it again", errChanged)
	}
	return info, nil
}

type writer struct {
	*target
	dir  int
	name string
	data []byte
	old  *Snapshot
	// written is the file that holds the data.
	written Info
}

// create makes a new file and leaves alone what has taken its name.
func (w *writer) create() error {
	temp, f, err := w.temporary(0o666) // less the umask
	if err != nil {
		return err
	}
	defer f.Close()
	defer unix.Unlinkat(w.dir, temp, 0)
	if err := w.fill(f); err != nil {
		return err
	}
	err = renameNew(w.dir, temp, w.name)
	switch {
	case errors.Is(err, unix.EEXIST):
		return w.fail("something with this name has appeared; read it first", err)
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.ENOTSUP): // no hard links there
		return w.createDirectly()
	}
	return err
}

func (w *writer) createDirectly() error {
	fd, err := unix.Openat(w.dir, w.name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o666)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), w.name)
	defer f.Close()
	if err := w.fill(f); err != nil {
		unix.Unlinkat(w.dir, w.name, 0)
		return err
	}
	return nil
}

// replace puts a new file in the place of the old one.
func (w *writer) replace() error {
	now, info, err := w.current()
	if err != nil {
		return err
	}
	defer now.Close()
	if err := unix.Faccessat(w.dir, w.name, unix.W_OK, unix.AT_EACCESS|unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return w.fail(fmt.Sprintf("its mode %v does not let it be written; change that first if it is meant to be", info.Mode), err)
	}
	if info.Links > 1 {
		return w.inPlace()
	}
	temp, f, err := w.temporary(0o600)
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.EROFS) {
		return w.inPlace()
	}
	if err != nil {
		return err
	}
	defer f.Close()
	defer unix.Unlinkat(w.dir, temp, 0) // does nothing once it is renamed
	if !w.sameRights(now, f, info) {
		return w.inPlace()
	}
	if err := w.fill(f); err != nil {
		return err
	}
	// The mode last: a change of owner and a write both clear its set-id bits.
	if err := unix.Fchmod(int(f.Fd()), info.modeBits()); err != nil {
		return err
	}
	if err := w.unchanged(); err != nil {
		return err
	}
	err = unix.Renameat(w.dir, temp, w.dir, w.name)
	if errors.Is(err, unix.EBUSY) { // a mount point
		return w.inPlace()
	}
	return err
}

// current opens the file that is there now and makes sure that it is the old one.
func (w *writer) current() (*os.File, Info, error) {
	f, info, err := openRegular(w.dir, w.name)
	if err != nil {
		return nil, Info{}, err
	}
	if !sameFile(info, w.old.Info) {
		f.Close()
		return nil, Info{}, w.changed()
	}
	return f, info, nil
}

// unchanged looks once more, so that the time in which a change of somebody else
// could be lost is as short as it can be.
func (w *writer) unchanged() error {
	info, err := statAt(w.dir, w.name)
	if err != nil {
		return err
	}
	if !sameFile(info, w.old.Info) {
		return w.changed()
	}
	return nil
}

func (w *writer) changed() error {
	return w.fail("it changed on disk in this very moment; read it again", errChanged)
}

func sameFile(a, b Info) bool {
	return a.Kind == b.Kind && a.Dev == b.Dev && a.Ino == b.Ino && a.Size == b.Size && a.ModTime.Equal(b.ModTime)
}

// sameRights gives the new file the owner and the attributes of the old one.
func (w *writer) sameRights(old, new *os.File, info Info) bool {
	var st unix.Stat_t
	fd := int(new.Fd())
	if err := unix.Fstat(fd, &st); err != nil {
		return false
	}
	if st.Uid != info.uid || st.Gid != info.gid {
		if err := unix.Fchown(fd, int(info.uid), int(info.gid)); err != nil {
			return false
		}
	}
	return copyAttributes(int(old.Fd()), fd)
}

// temporary makes a new file beside the target.
func (w *writer) temporary(mode uint32) (string, *os.File, error) {
	var id [6]byte
	rand.Read(id[:])
	name := ".abhed-" + hex.EncodeToString(id[:]) + ".tmp"
	fd, err := unix.Openat(w.dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, mode)
	if err != nil {
		return "", nil, err
	}
	return name, os.NewFile(uintptr(fd), name), nil
}

func (w *writer) fill(f *os.File) error {
	if _, err := f.Write(w.data); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return err
	}
	w.written = infoOf(&st)
	return nil
}

// inPlace overwrites the file that has the name.
func (w *writer) inPlace() error {
	fd, err := unix.Openat(w.dir, w.name, unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), w.name)
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if !sameFile(infoOf(&st), w.old.Info) {
		return w.changed()
	}
	err = overwrite(f, w.data)
	if err == nil {
		w.written = infoOf(&st)
		if bits := infoOf(&st).modeBits(); bits&0o7000 != 0 {
			unix.Fchmod(fd, bits) // as far as it is ours to set: the write has cleared them
		}
		return nil
	}
	if back := overwrite(f, w.old.Data); back != nil {
		return w.fail(fmt.Sprintf("%s; and the old content could not be put back: %v", inWords(err), back), err)
	}
	return err
}

func overwrite(f *os.File, data []byte) error {
	if _, err := f.WriteAt(data, 0); err != nil {
		return err
	}
	if err := f.Truncate(int64(len(data))); err != nil {
		return err
	}
	return f.Sync()
}

// linkNew gives a file a second name, which must be free, and takes the first away.
func linkNew(dir int, from, to string) error {
	if err := unix.Linkat(dir, from, dir, to, 0); err != nil {
		return err
	}
	return unix.Unlinkat(dir, from, 0)
}
