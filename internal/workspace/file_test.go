package workspace

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

func mustRead(t *testing.T, path string) Snapshot {
	t.Helper()
	s, err := Read(place(t, path))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestReadRefusesWhatIsNoFile(t *testing.T) {
	dir := tree(t, t.TempDir(), "file: x", "sub/")
	if err := syscall.Mkfifo(dir+"/pipe", 0o644); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/dev/zero": "character device", "/proc/self/mem": "pseudo", "/proc/version": "pseudo",
		dir + "/pipe": "named pipe", dir + "/sub": "directory", dir + "/none": "no such file", "/": "directory",
	} {
		done := make(chan error, 1)
		go func() { _, err := Read(place(t, path)); done <- err }()
		select {
		case err := <-done:
			var file *FileError
			if !errors.As(err, &file) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), filepath.Base(path)) {
				t.Errorf("%s: %v, want %q in it", path, err, want)
			}
		case <-time.After(5 * time.Second):
			t.Fatalf("%s: reading it hangs", path)
		}
	}
	if s := mustRead(t, dir+"/file"); string(s.Data) != "x" || s.Info.Size != 1 || s.Info.Kind != Regular {
		t.Errorf("%+v", s)
	}
}

func TestTooLarge(t *testing.T) {
	path := t.TempDir() + "/big"
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	f.Truncate(MaxFile + 1)
	f.Close()
	if _, err := Read(place(t, path)); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("%v", err)
	}
}

// TestPlaceIsHeld changes the tree between judging and opening.
func TestPlaceIsHeld(t *testing.T) {
	for _, tt := range []struct {
		about, judged string
		change        func(dir string) error
	}{
		{"file became a link", "a/file", func(d string) error {
			os.Remove(d + "/a/file")
			return os.Symlink(d+"/secret", d+"/a/file")
		}},
		{"folder became a link", "a/file", func(d string) error {
			os.Rename(d+"/a", d+"/gone")
			return os.Symlink(d+"/other", d+"/a")
		}},
		{"folder was replaced", "a/file", func(d string) error {
			os.Rename(d+"/a", d+"/gone")
			return os.Rename(d+"/other", d+"/a")
		}},
		{"missing folder became a link", "a/new/deep/file", func(d string) error {
			return os.Symlink(d+"/other", d+"/a/new")
		}},
		{"missing file became a link", "a/new", func(d string) error {
			return os.Symlink(d+"/secret", d+"/a/new")
		}},
	} {
		t.Run(tt.about, func(t *testing.T) {
			dir := tree(t, t.TempDir(), "a/file: mine", "other/file: theirs", "other/deep/", "secret: hunter2")
			p := place(t, filepath.Join(dir, tt.judged))
			if err := tt.change(dir); err != nil {
				t.Fatal(err)
			}
			if s, err := Read(p); err == nil {
				t.Errorf("read %q", s.Data)
			}
			if _, err := Write(p, nil, []byte("evil")); err == nil {
				t.Error("written as new")
			}
			if _, err := Write(p, &Snapshot{}, []byte("evil")); err == nil {
				t.Error("replaced")
			}
			if content(t, dir+"/secret") != "hunter2" {
				t.Error("the file behind the link was written")
			}
			for _, name := range []string{"other/deep/file", "a/deep/file"} {
				if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
					t.Error(name, "was made")
				}
			}
		})
	}
}

func TestOpenByComponentsHoldsTheSame(t *testing.T) {
	dir := tree(t, t.TempDir(), "a/b/file: x", "link -> a", "a/link -> b", "flink -> a/b/file")
	fd, err := openDirectory(place(t, dir).Path)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	for rel, ok := range map[string]bool{"a/b/file": true, "a": true, ".": true, "link/b/file": false, "a/link/file": false,
		"flink": false, "a/../a": false, "none": false} {
		for name, open := range map[string]func(int, string, int, uint32) (int, error){"openat2": openBeneath, "components": openByComponents} {
			got, err := open(fd, rel, unix.O_RDONLY, 0)
			if err == nil {
				unix.Close(got)
			}
			if (err == nil) != ok && rel != "a/../a" || (rel == "a/../a" && name == "components" && err == nil) {
				t.Errorf("%s of %q: %v, want success %v", name, rel, err, ok)
			}
		}
	}
}

func TestWriteKeepsWhatTheFileWas(t *testing.T) {
	dir := tree(t, t.TempDir(), "sub/target: old", "l -> sub/target")
	target := dir + "/sub/target"
	if err := os.Chmod(target, 0o751|fs.ModeSetgid); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(target, 1234, 1235); err != nil {
			t.Fatal(err)
		}
		os.Chmod(target, 0o751|fs.ModeSetgid)
	}
	xattr := unix.Setxattr(target, "user.note", []byte("n"), 0) == nil
	old := mustRead(t, dir+"/l")
	s, err := Write(place(t, dir+"/l"), &old, []byte("new"))
	if err != nil {
		t.Fatal(err)
	}
	if content(t, target) != "new" || s.Info.Size != 3 {
		t.Errorf("content %q, %+v", content(t, target), s.Info)
	}
	if link, err := os.Readlink(dir + "/l"); err != nil || link != "sub/target" {
		t.Errorf("the link became %q, %v", link, err)
	}
	now := mustRead(t, target).Info
	if now.Mode != old.Info.Mode || now.uid != old.Info.uid || now.gid != old.Info.gid || now.Mode&fs.ModeSetgid == 0 {
		t.Errorf("was %v %d:%d, is %v %d:%d", old.Info.Mode, old.Info.uid, old.Info.gid, now.Mode, now.uid, now.gid)
	}
	if xattr {
		buf := make([]byte, 8)
		if n, err := unix.Getxattr(target, "user.note", buf); err != nil || string(buf[:n]) != "n" {
			t.Errorf("the extended attribute is gone: %v", err)
		}
	}
	noLeftovers(t, dir+"/sub", 1)
}

func noLeftovers(t *testing.T, dir string, want int) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil || len(list) != want {
		t.Errorf("%v in %s, want %d entries (%v)", list, dir, want, err)
	}
}

func TestWriteReplacesWholeFile(t *testing.T) {
	dir := tree(t, t.TempDir(), "f: old")
	before, err := os.Open(dir + "/f")
	if err != nil {
		t.Fatal(err)
	}
	defer before.Close()
	old := mustRead(t, dir+"/f")
	if _, err := Write(place(t, dir+"/f"), &old, []byte("newer")); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 10)
	if n, _ := before.Read(buf); string(buf[:n]) != "old" {
		t.Errorf("who had it open sees %q", buf[:n])
	}
}

func TestWriteKeepsHardLinks(t *testing.T) {
	dir := tree(t, t.TempDir(), "f: a longer old text")
	if err := os.Link(dir+"/f", dir+"/g"); err != nil {
		t.Fatal(err)
	}
	old := mustRead(t, dir+"/f")
	if _, err := Write(place(t, dir+"/f"), &old, []byte("new")); err != nil {
		t.Fatal(err)
	}
	if content(t, dir+"/g") != "new" {
		t.Errorf("the other name holds %q", content(t, dir+"/g"))
	}
}

func TestWriteMakesParentsAndNewFiles(t *testing.T) {
	dir := t.TempDir()
	p := place(t, dir+"/a/b/c")
	if _, err := Write(p, nil, []byte("x")); err != nil {
		t.Fatal(err)
	}
	mask := syscall.Umask(0)
	syscall.Umask(mask)
	if info, err := os.Stat(dir + "/a/b/c"); err != nil || info.Mode().Perm() != 0o666&^fs.FileMode(mask) {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if _, err := Write(p, nil, []byte("y")); err == nil || !strings.Contains(err.Error(), "read it first") {
		t.Errorf("an existing file was taken for new: %v", err)
	}
	if content(t, dir+"/a/b/c") != "x" {
		t.Error("the existing file was overwritten")
	}
	noLeftovers(t, dir+"/a/b", 1)
}

func TestWriteRefusesWhatChanged(t *testing.T) {
	dir := tree(t, t.TempDir(), "f: old")
	old := mustRead(t, dir+"/f")
	tree(t, dir, "f: theirs")
	if _, err := Write(place(t, dir+"/f"), &old, []byte("mine")); !errors.Is(err, errChanged) {
		t.Errorf("%v", err)
	}
	if content(t, dir+"/f") != "theirs" {
		t.Error("somebody else's change is lost")
	}
	os.Remove(dir + "/f")
	if _, err := Write(place(t, dir+"/f"), &old, []byte("mine")); err == nil {
		t.Error("a file that is gone was replaced")
	}
	noLeftovers(t, dir, 0)
}

func TestWriteToReadOnlyFile(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write every file")
	}
	dir := tree(t, t.TempDir(), "f: old")
	os.Chmod(dir+"/f", 0o444)
	old := mustRead(t, dir+"/f")
	if _, err := Write(place(t, dir+"/f"), &old, []byte("new")); err == nil || !strings.Contains(err.Error(), "-r--r--r--") {
		t.Errorf("%v", err)
	}
}

func TestOverwriteShortensAndLengthens(t *testing.T) {
	dir := tree(t, t.TempDir(), "f: old content")
	f, err := os.OpenFile(dir+"/f", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := overwrite(f, []byte("short")); err != nil || content(t, dir+"/f") != "short" {
		t.Errorf("%v, %q", err, content(t, dir+"/f"))
	}
	if err := overwrite(f, []byte("old content")); err != nil || content(t, dir+"/f") != "old content" {
		t.Errorf("%v, %q", err, content(t, dir+"/f"))
	}
}

func TestTracker(t *testing.T) {
	tr := NewTracker()
	a, b := NewSnapshot(Info{Size: 1}, []byte("a")), NewSnapshot(Info{Size: 1}, []byte("b"))
	var stale *StaleError
	if err := tr.Check("/f", a); !errors.As(err, &stale) || !stale.Never {
		t.Errorf("never read: %v", err)
	}
	tr.Saw("/f", a)
	touched := a
	touched.Info.ModTime = time.Now()
	if err := tr.Check("/f", touched); err != nil {
		t.Errorf("only touched: %v", err)
	}
	if err := tr.Check("/f", b); !errors.As(err, &stale) || stale.Never {
		t.Errorf("changed with the same size and time: %v", err)
	}
	tr.Forget("/f")
	if tr.Check("/f", a) == nil {
		t.Error("a forgotten file is current")
	}
}

func TestTrackerLock(t *testing.T) {
	tr := NewTracker()
	n := 0
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			unlock := tr.Lock("/f")
			defer unlock()
			n++
		})
	}
	wg.Wait()
	if n != 50 || len(tr.locks) != 0 {
		t.Errorf("n = %d, %d locks are left", n, len(tr.locks))
	}
}

func TestStatAndList(t *testing.T) {
	dir := tree(t, t.TempDir(), "b: xx", "a/", "c -> b")
	list, more, err := List(place(t, dir), 2)
	if err != nil || len(list) != 2 || more != 1 || list[0].Name != "a" || list[0].Info.Kind != Directory || list[1].Info.Size != 2 {
		t.Errorf("%+v, %d more, %v", list, more, err)
	}
	if i, err := Stat(place(t, dir+"/none/deep")); err != nil || i.Kind != Missing {
		t.Errorf("%+v, %v", i, err)
	}
	if _, _, err := List(place(t, dir+"/b"), 2); err == nil {
		t.Error("a file was listed")
	}
}

func TestDecode(t *testing.T) {
	for _, tt := range []struct {
		data string
		enc  Encoding
		body string
	}{
		{"", UTF8, ""}, {"a\r\nb", UTF8, "a\r\nb"}, {"\xEF\xBB\xBFone", UTF8BOM, "one"},
		{"\xFF\xFEa\x00\n\x00", UTF16LE, "a\n"}, {"\xFE\xFF\x00a\xD8\x3D\xDE\x00", UTF16BE, "a😀"}, {"caf\xe9", EightBit, "caf\xe9"},
	} {
		got, err := Decode([]byte(tt.data))
		if err != nil || got.Encoding != tt.enc || got.Body != tt.body {
			t.Errorf("%q: %+v, %v", tt.data, got, err)
		}
	}
	for _, data := range []string{"a\x00b", "\xFF\xFEa", "\xFF\xFE\x00\xD8", "\xFF\xFE\x00\x00", "\xFF\xFE\x00\x00a\x00\x00\x00", "PK\x03\x04\x00"} {
		if got, err := Decode([]byte(data)); !errors.Is(err, errBinary) {
			t.Errorf("%q: %+v, %v", data, got, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{"", "\xFF\xFEa\x00", "\xFE\xFF\xD8\x00", "\xEF\xBB\xBF", "x\xff", "\xEF\xBB\xBF\xEF\xBB\xBF"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		text, err := Decode(data)
		if err != nil {
			return
		}
		back, err := text.Encode(text.Body)
		if err != nil || !bytes.Equal(back, data) {
			t.Fatalf("%q became %q (%v)", data, back, err)
		}
	})
}

func TestEncodeRefusesLoss(t *testing.T) {
	for e := UTF8; e <= UTF16BE; e++ {
		if out, err := (Text{Encoding: e}).Encode("a\xff"); err == nil {
			t.Errorf("%v took a bad byte: %q", e, out)
		}
	}
}

func TestEndings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lf, crlf := rapid.IntRange(0, 5).Draw(t, "lf"), rapid.IntRange(0, 5).Draw(t, "crlf")
		e := EndingsOf(strings.Repeat("a\n", lf) + strings.Repeat("b\r\n", crlf) + "end\r")
		want := "\n"
		if crlf > lf {
			want = "\r\n"
		}
		if e.LF != lf || e.CRLF != crlf || e.Dominant() != want || e.Mixed() != (lf > 0 && crlf > 0) {
			t.Fatal(fmt.Sprintf("%+v for %d and %d", e, lf, crlf))
		}
	})
}
