package ownfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/abhed/abhed/internal/ownfile"
)

// wants checks that err says what is wrong with path, or that there is none for "".
func wants(t *testing.T, err error, path, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("refused: %v", err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path)):
		t.Errorf("got %v, expected %q and %s", err, want, path)
	}
}

// others reports whether a file can be given to another account, which only root can.
func others(t *testing.T) bool {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Log("only root can give a file away, so this is not tried")
	}
	return os.Geteuid() == 0
}

func TestOpen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do   func(path string) error
		want string
	}{
		"own":           {func(string) error { return nil }, ""},
		"read-only":     {func(p string) error { return os.Chmod(p, 0o400) }, ""},
		"group's":       {func(p string) error { return os.Chmod(p, 0o640) }, "found mode 0640, expected 0600: chmod 0600"},
		"all can write": {func(p string) error { return os.Chmod(p, 0o602) }, "found mode 0602"},
		"link":          {func(p string) error { return errors.Join(os.Rename(p, p+"2"), os.Symlink(p+"2", p)) }, "too many levels"},
		"dead link":     {func(p string) error { return errors.Join(os.Remove(p), os.Symlink(p+"2", p)) }, "too many levels"},
		"pipe":          {func(p string) error { return errors.Join(os.Remove(p), syscall.Mkfifo(p, 0o600)) }, "expected a regular file"},
		"folder":        {func(p string) error { return errors.Join(os.Remove(p), os.Mkdir(p, 0o700)) }, "expected a regular file"},
		"gone":          {os.Remove, "no such file"},
		"others'":       {func(p string) error { return os.Chown(p, 1234, 1234) }, "found it owned by account 1234, expected account 0: move it away"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "others'" && !others(t) {
				return
			}
			path := filepath.Join(t.TempDir(), "f")
			if err := errors.Join(os.WriteFile(path, []byte("x"), 0o600), c.do(path)); err != nil {
				t.Fatal(err)
			}
			f, err := ownfile.Open(path, os.O_RDONLY)
			if wants(t, err, path, c.want); err == nil {
				f.Close()
			}
		})
	}
}

func TestOpenMakes(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	f, err := ownfile.Open(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if info, err := os.Lstat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("made %v, %v", info.Mode(), err)
	}
	dead := path + "-link"
	if err := os.Symlink(path+"2", dead); err != nil {
		t.Fatal(err)
	}
	_, err = ownfile.Open(dead, os.O_RDWR|os.O_CREATE)
	wants(t, err, dead, "too many levels")
	if _, err := os.Lstat(path + "2"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what the link leads to was made: %v", err)
	}
}

func TestFolders(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do   func(dir string) error
		want string
	}{
		"own":     {func(string) error { return nil }, ""},
		"group's": {func(d string) error { return os.Chmod(d, 0o750) }, "found mode 0750, expected 0700: chmod 0700"},
		"link":    {func(d string) error { return errors.Join(os.Rename(d, d+"2"), os.Symlink(d+"2", d)) }, "expected a folder"},
		"others'": {func(d string) error { return os.Chown(d, 1234, 1234) }, "found it owned by account 1234, expected account 0"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "others'" && !others(t) {
				return
			}
			dir := filepath.Join(t.TempDir(), "above", "dir")
			if err := ownfile.CheckFolder(dir); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a folder that isn't there: %v", err)
			}
			if err := errors.Join(ownfile.MakeFolder(dir), c.do(dir)); err != nil {
				t.Fatal(err)
			}
			wants(t, ownfile.CheckFolder(dir), dir, c.want)
			wants(t, ownfile.MakeFolder(dir), dir, c.want)
		})
	}
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wants(t, ownfile.CheckFolder(file), file, "expected a folder")
}
