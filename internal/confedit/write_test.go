package confedit

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

func write(t *testing.T, path, data string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(data), 0o640); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) State {
	t.Helper()
	s, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestWriteKeepsModeOwnerAndLink(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "dot", "settings.json"), filepath.Join(dir, "home", "settings.json")
	write(t, file, "old")
	if err := os.Chmod(file, 0o604); err != nil {
		t.Fatal(err)
	}
	root := os.Getuid() == 0
	if root {
		if err := os.Chown(file, 1234, 2345); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../dot/settings.json", link); err != nil {
		t.Fatal(err)
	}
	if err := Write(read(t, link), []byte("new")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v, %v", info, err)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, file); string(got.Data) != "new" || info.Mode() != 0o604 {
		t.Errorf("%q, mode %v", got.Data, info.Mode())
	}
	if s := info.Sys().(*syscall.Stat_t); root && (s.Uid != 1234 || s.Gid != 2345) {
		t.Errorf("owner %d:%d", s.Uid, s.Gid)
	}
	onlyFile(t, filepath.Dir(file), "settings.json")
}

func onlyFile(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if !slices.Equal(got, names) {
		t.Errorf("%s holds %q, want %q", dir, got, names)
	}
}

func TestWriteRefusesWhatChanged(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a")
	write(t, file, "old")
	s := read(t, file)
	write(t, file, "theirs")
	if err := Write(s, []byte("ours")); !errors.Is(err, ErrChanged) {
		t.Errorf("%v, want %v", err, ErrChanged)
	}
	if err := Delete(s); !errors.Is(err, ErrChanged) {
		t.Errorf("Delete: %v, want %v", err, ErrChanged)
	}
	if got := read(t, file); string(got.Data) != "theirs" {
		t.Errorf("%q", got.Data)
	}
	missing := read(t, filepath.Join(dir, "b"))
	write(t, missing.Path, "theirs")
	if err := Write(missing, []byte("ours")); !errors.Is(err, ErrChanged) {
		t.Errorf("new file: %v, want %v", err, ErrChanged)
	}
	onlyFile(t, dir, "a", "b")
}

func TestReadPlaces(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink("nowhere", filepath.Join(dir, "dangling")); err != nil {
		t.Fatal(err)
	}
	if s := read(t, filepath.Join(dir, "dangling")); s.Exists || s.Path != filepath.Join(dir, "nowhere") {
		t.Errorf("%+v", s)
	}
	for name, link := range map[string]string{"loop": "loop", "folder": "."} {
		if err := os.Symlink(link, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if s, err := Read(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s: %+v", name, s)
		}
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := Read(pipe); err == nil {
		t.Errorf("pipe: %+v", s)
	}
	big := filepath.Join(dir, "big")
	if err := os.WriteFile(big, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(big, maxBytes+1); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(big); !errors.As(err, new(*Error)) {
		t.Errorf("big: %v", err)
	}
}
