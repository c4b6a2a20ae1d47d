package write_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/abhed/abhed/internal/require"
	"github.com/abhed/abhed/internal/tool"
)

// TestVerbatim: I109. A new file gets exactly the bytes that were given, whatever the
// system and the repository's settings say of line endings.
func TestVerbatim(t *testing.T) {
	w := newWorld(t)
	w.put(".gitattributes", "* text eol=lf\n*.bat eol=crlf\n")
	w.put(".editorconfig", "root = true\n[*]\nend_of_line = lf\ninsert_final_newline = true\n[*.bat]\nend_of_line = crlf\n")
	for name, content := range map[string]string{
		"I109.txt": "a\nb\n", "I109-crlf.txt": "a\r\nb\r\n",
		"beside.bat": "a\nb\n", "beside-mixed.txt": "a\r\nb\nc\rd", "beside-no-newline.txt": "a",
	} {
		if res := w.write(name, content); res.IsError {
			t.Errorf("%s: %s", name, res.Content)
		}
		w.holds(name, content)
	}
}

// TestHardLinkStays: I107, for a file that is written whole.
func TestHardLinkStays(t *testing.T) {
	w := newWorld(t)
	w.put("f", "old")
	if err := os.Link(filepath.Join(w.dir, "f"), filepath.Join(w.dir, "g")); err != nil {
		t.Fatal(err)
	}
	w.read("g")
	if res := w.write("g", "new and longer"); res.IsError {
		t.Fatal(res.Content)
	}
	w.holds("f", "new and longer")
	w.holds("g", "new and longer")
}

// TestKeepsWhatTheFileWas: the new content has the old file's mode and owner, and comes
// in one step: who has the old file open still has all of it.
func TestKeepsWhatTheFileWas(t *testing.T) {
	w := newWorld(t)
	w.put("f", "old content")
	path := filepath.Join(w.dir, "f")
	owner := [2]int{os.Geteuid(), os.Getegid()}
	if owner[0] == 0 {
		owner = [2]int{1234, 1235}
		if err := os.Chown(path, owner[0], owner[1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(path, 0o751); err != nil {
		t.Fatal(err)
	}
	reader, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	w.read("f")
	if res := w.write("f", "new"); res.IsError {
		t.Fatal(res.Content)
	}
	w.holds("f", "new")
	old := make([]byte, 100)
	if n, _ := reader.Read(old); string(old[:n]) != "old content" {
		t.Errorf("who had the file open reads %q", old[:n])
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	st := info.Sys().(*syscall.Stat_t)
	if info.Mode().Perm() != 0o751 || int(st.Uid) != owner[0] || int(st.Gid) != owner[1] {
		t.Errorf("mode %v, owner %d:%d, want %v", info.Mode(), st.Uid, st.Gid, owner)
	}
	if list, err := os.ReadDir(w.dir); err != nil || len(list) != 1 {
		t.Errorf("left beside it: %v, %v", list, err)
	}
}

// TestOutsideChange: I117. Nothing watches files, so there is no limit of watches that
// could be reached: what a file holds when it is to be written decides. Siblings are
// changes that its time, its size, or either don't show, and one that is none.
func TestOutsideChange(t *testing.T) {
	sh := require.Path(t, "sh")
	for _, tt := range []struct {
		id, script string
		changed    bool
	}{
		{"I117", `printf 'theirs, longer' >f`, true},
		{"I117, beside: same size, time put back", `touch -r f stamp; printf THEIR >f; touch -r stamp f`, true},
		{"I117, beside: another file under the name", `printf other >g; mv g f`, true},
		{"I117, beside: away and back with other content", `rm f; printf again >f`, true},
		{"I117, beside: only touched", `touch -d '2001-01-01 00:00' f`, false},
		{"I117, beside: changed and changed back", `printf x >f; printf first >f`, false},
	} {
		t.Run(tt.id, func(t *testing.T) {
			w := newWorld(t)
			const files = 50 // far more than the watches of the case
			for i := range files {
				w.put(name(i), "first")
				w.read(name(i))
			}
			w.put("f", "first")
			w.read("f")
			cmd := exec.Command(sh, "-c", tt.script)
			cmd.Dir = w.dir
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			theirs, err := os.ReadFile(filepath.Join(w.dir, "f"))
			if err != nil {
				t.Fatal(err)
			}
			res := w.write("f", "mine")
			if res.IsError != tt.changed {
				t.Errorf("%+v", res)
			}
			if tt.changed {
				w.holds("f", string(theirs))
				refused(t, res)
			}
			w.put(name(files-1), "THEIR")
			if err := os.Chtimes(filepath.Join(w.dir, name(files-1)), time.Time{}, time.Unix(1, 0)); err != nil {
				t.Fatal(err)
			}
			refused(t, w.write(name(files-1), "mine"))
			if res := w.write(name(0), "mine"); res.IsError {
				t.Errorf("a file that nobody changed: %s", res.Content)
			}
		})
	}
}

func name(i int) string { return "f" + string(rune('A'+i/26)) + string(rune('A'+i%26)) }

func refused(t *testing.T, res tool.Result) {
	t.Helper()
	if !res.IsError || !strings.Contains(res.Content, "changed on disk since it was read; read it again") {
		t.Errorf("%+v", res)
	}
}
