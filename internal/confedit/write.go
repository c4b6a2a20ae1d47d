package confedit

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// ErrChanged says that a file is not any more what the edit was made from.
var ErrChanged = errors.New("the file was changed by someone else meanwhile; run the command again")

// State is a file as it was read.
type State struct {
	// Path is the file itself: a link that leads to it has been followed.
	Path string
	// Exists tells that it is there.
	Exists bool
	Data   []byte
	Mode   fs.FileMode
}

// Read reads a regular file, following links. A file that is not there gives a State
// without Exists, and a dangling link one with the path it leads to.
func Read(path string) (State, error) {
	target, err := follow(path)
	if err != nil {
		return State{}, err
	}
	s := State{Path: target, Mode: 0o600}
	f, err := os.OpenFile(target, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return s, err
	}
	if !info.Mode().IsRegular() {
		return s, fmt.Errorf("%s: found %s, expected a regular file", target, info.Mode().Type())
	}
	if info.Size() > maxBytes {
		return s, &Error{Name: target, Msg: fmt.Sprintf("%d bytes, more than the %d that are edited", info.Size(), maxBytes)}
	}
	var b bytes.Buffer
	if _, err := b.ReadFrom(&limited{f, maxBytes + 1}); err != nil {
		return s, err
	}
	s.Exists, s.Data, s.Mode = true, b.Bytes(), info.Mode().Perm()
	return s, nil
}

// limited reads at most n bytes.
type limited struct {
	f *os.File
	n int
}

func (l *limited) Read(p []byte) (int, error) {
	if l.n <= 0 {
		return 0, fmt.Errorf("%s: more than %d bytes", l.f.Name(), maxBytes)
	}
	n, err := l.f.Read(p[:min(len(p), l.n)])
	l.n -= n
	return n, err
}

// follow resolves the links of a path whose last element may be missing.
func follow(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	for range 40 {
		info, err := os.Lstat(path)
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			// The folder's own links don't matter to a rename inside it.
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return "", err
			}
			return path, nil
		}
		to, err := os.Readlink(path)
		if err != nil {
			return "", err
		}
		if !filepath.IsAbs(to) {
			// The folder may itself be reached by a link, which ".." must not cross.
			dir, err := filepath.EvalSymlinks(filepath.Dir(path))
			if err != nil {
				return "", err
			}
			to = filepath.Join(dir, to)
		}
		path = to
	}
	return "", fmt.Errorf("%s: more than 40 links", path)
}

// Write replaces the file that was read as s: a reader sees the old bytes or the new
// ones, and they are on disk when Write returns. Mode and owner stay; s.Mode is that
// of a new file. It is ErrChanged if the file isn't what s says.
func Write(s State, data []byte) (err error) {
	now, err := Read(s.Path)
	if err != nil {
		return err
	}
	if now.Exists != s.Exists || !bytes.Equal(now.Data, s.Data) {
		return fmt.Errorf("%s: %w", s.Path, ErrChanged)
	}
	f, err := os.CreateTemp(filepath.Dir(s.Path), ".ahp-*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	if _, err = f.Write(data); err != nil {
		return err
	}
	if s.Exists {
		if err = keepOwner(f, s.Path); err != nil {
			return err
		}
	}
	if err = f.Chmod(s.Mode); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), s.Path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(s.Path))
}

// Delete removes the file that was read as s, if it is still that.
func Delete(s State) error {
	now, err := Read(s.Path)
	if err != nil {
		return err
	}
	if !now.Exists {
		return nil
	}
	if !bytes.Equal(now.Data, s.Data) {
		return fmt.Errorf("%s: %w", s.Path, ErrChanged)
	}
	if err := os.Remove(s.Path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(s.Path))
}

func keepOwner(f *os.File, path string) error {
	old, err := os.Stat(path)
	if err != nil {
		return err
	}
	made, err := f.Stat()
	if err != nil {
		return err
	}
	was, _ := old.Sys().(*syscall.Stat_t)
	is, _ := made.Sys().(*syscall.Stat_t)
	if was == nil || is == nil || was.Uid == is.Uid && was.Gid == is.Gid {
		return nil
	}
	if err := f.Chown(int(was.Uid), int(was.Gid)); err != nil {
		return fmt.Errorf("%s belongs to user %d and group %d, which a new file can't be given to; run the command as its owner: %w", path, was.Uid, was.Gid, err)
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
