// Package ownfile opens files, and makes folders, that are to be this account's alone.
//
// It guarantees that what belongs to another account, or what others can read or write,
// is refused with an error that says what to do; that a file is regular and is no
// symbolic link; and that a pipe in place of it is not waited for.
//
// Do not assume that the folders above are safe, or that a folder is the same one when
// something in it is opened later.
package ownfile

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// Open opens the file at path with flag, as os.OpenFile takes it. One that it makes has
// mode 0600.
func Open(path string, flag int) (*os.File, error) {
	f, err := os.OpenFile(path, flag|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	if err := check(path, f); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func check(path string, f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s: found %s, expected a regular file", path, info.Mode().Type())
	}
	return checkOwner(path, info, "0600")
}

// MakeFolder makes dir and the folders above it with mode 0700, if they aren't there, and
// refuses what CheckFolder does.
func MakeFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return CheckFolder(dir)
}

// CheckFolder refuses what isn't a folder of this account alone. A symbolic link to one
// is no folder.
func CheckFolder(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s: found %s, expected a folder", dir, info.Mode().Type())
	}
	return checkOwner(dir, info, "0700")
}

func checkOwner(path string, info fs.FileInfo, mode string) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
		return fmt.Errorf("%s: found no owner on this system, expected one", path)
	case int(st.Uid) != os.Geteuid():
		return fmt.Errorf("%s: found it owned by account %d, expected account %d: move it away", path, st.Uid, os.Geteuid())
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s: found mode %04o, expected %s: chmod %[3]s %[1]s once you have looked at it", path, info.Mode().Perm(), mode)
	}
	return nil
}
