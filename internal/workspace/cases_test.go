package workspace

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestWrittenMeansThere: I214. What the file holds under its name decides whether a
// write has succeeded, also when another has written as many bytes into it.
func TestWrittenMeansThere(t *testing.T) {
	for about, change := range map[string]func(path string) error{
		"":                  func(string) error { return nil },
		"only touched":      func(p string) error { return os.Chtimes(p, time.Now(), time.Now().Add(time.Hour)) },
		"as many bytes":     func(p string) error { return os.WriteFile(p, []byte("OTHER"), 0o644) },
		"appended to":       func(p string) error { return os.WriteFile(p, []byte("writtenmore"), 0o644) },
		"replaced by equal": func(p string) error { return os.Rename(p+".new", p) },
		"removed":           os.Remove,
	} {
		dir := tree(t, t.TempDir(), "f: wrote", "f.new: wrote")
		path := filepath.Join(dir, "f")
		at := place(t, path)
		target, err := open("write", at)
		if err != nil {
			t.Fatal(err)
		}
		fd, err := openDirectory(at.Anchor)
		if err != nil {
			t.Fatal(err)
		}
		w := writer{target: target, dir: fd, name: "f", data: []byte("wrote"), written: mustRead(t, path).Info}
		if err := change(path); err != nil {
			t.Fatal(err)
		}
		_, err = w.there()
		if want := about == "" || about == "only touched"; (err == nil) != want {
			t.Errorf("%q: %v", about, err)
		}
		unix.Close(fd)
		target.close()
	}
}

// TestLoops: I116, with a pair of folders that link to each other.
func TestLoops(t *testing.T) {
	dir := tree(t, t.TempDir(), "a.go", "sub/b.go", "loop -> .", "a -> a", "sub/up -> ..", "x/f.go", "y/g.go", "x/y -> ../y", "y/x -> ../x", "dead -> none")
	got, stats := walk(t, dir, WalkOptions{})
	if strings.Join(got, " ") != "a.go sub/b.go x/f.go y/g.go" || stats.Unreadable != 0 || stats.Links != 6 {
		t.Errorf("%q, %+v", got, stats)
	}
}

// memoryDir returns an empty folder on a file system in memory, if there is one: to make
// many files on a busy disk takes minutes.
func memoryDir(t *testing.T) (dir string, inMemory bool) {
	dir, err := os.MkdirTemp("/dev/shm", "workspace-test-")
	if err != nil {
		return t.TempDir(), false
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir, true
}

// TestLargeTree walks 100,000 files (fewer where they would be made on a disk), of which
// an ignore file hides half, and stops in the midst of it.
func TestLargeTree(t *testing.T) {
	folders, each := 200, 500
	dir, inMemory := memoryDir(t)
	if !inMemory {
		folders = 20
	}
	all := int64(folders * each)
	for i := range folders {
		sub := fmt.Sprintf("%s/d%d", dir, i)
		if err := os.Mkdir(sub, 0o755); err != nil {
			t.Fatal(err)
		}
		fd, err := unix.Open(sub, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		for j := range each {
			f, err := unix.Openat(fd, fmt.Sprintf("f%d.%s", j, [...]string{"go", "o"}[j%2]), unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
			if err != nil {
				t.Fatal(err)
			}
			unix.Close(f)
		}
		unix.Close(fd)
	}
	tree(t, dir, ".gitignore: *.o\n")
	var seen atomic.Int64
	count := func(Found) error { seen.Add(1); return nil }
	stats, err := Walk(t.Context(), place(t, dir), WalkOptions{}, count)
	if err != nil || stats.Cut || seen.Load() != all/2 || int64(stats.Files) != all/2 {
		t.Errorf("%d files, %+v, %v", seen.Load(), stats, err)
	}
	seen.Store(0)
	if stats, err = Walk(t.Context(), place(t, dir), WalkOptions{NoIgnore: true, MaxFiles: int(all * 6 / 10)}, count); err != nil || !stats.Cut || seen.Load() != all*6/10 {
		t.Errorf("bounded: %d files, %+v, %v", seen.Load(), stats, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	seen.Store(0)
	_, err = Walk(ctx, place(t, dir), WalkOptions{}, func(Found) error {
		if seen.Add(1) == all/100 {
			cancel()
		}
		return nil
	})
	if err != context.Canceled || seen.Load() > all*4/10 {
		t.Errorf("after the interrupt %d files were visited, %v", seen.Load(), err)
	}
}
