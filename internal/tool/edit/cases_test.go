package edit_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/abhed/abhed/internal/require"
	"github.com/abhed/abhed/internal/tool"
	"github.com/abhed/abhed/internal/tool/tooltest"
)

// TestCases has failures that other editors were seen to have, each with one beside it.
// For I100 see also TestBytesOutsideStay.
func TestCases(t *testing.T) {
	const mark = "\xEF\xBB\xBF"
	for _, tt := range []struct {
		id, before string
		old, new   string
		after      string // "" means that it is refused
		says       string
	}{
		{"I099", "a\r\nb\r\n", "b", "c", "a\r\nc\r\n", ""},
		{"I099, several lines", "a\r\nb\r\n", "b", "c\nd\ne", "a\r\nc\r\nd\r\ne\r\n", ""},
		{"I099, beside: no newline at the end", "a\r\nb", "b", "c\nd", "a\r\nc\r\nd", ""},
		{"I100", "p\nq\r\nr\ns\r\n", "r", "R", "p\nq\r\nR\ns\r\n", ""},
		{"I100, beside: returns alone", "p\rq\r\nr\n\rs", "r\n", "R\n", "p\rq\r\nR\n\rs", ""},
		{"I101", "x\r\ny\r\n", "x\ny", "z", "z\r\n", ""},
		{"I101, two places", "x\ny\n--\nx\r\ny\r\n", "x\ny", "z", "", "2 times"},
		{"I101, beside: the call with CRLF counts both too", "x\ny\n--\nx\r\ny\r\n", "x\r\ny", "z", "", "2 times"},
		{"I102", mark + "one\ntwo\n", "two", "2", mark + "one\n2\n", ""},
		{"I102, line 1", mark + "one\ntwo\n", "one\ntwo", "1", mark + "1\n", ""},
		{"I102, beside: in UTF-16", "\xFF\xFEo\x00\n\x00x\x00", "o\nx", "y", "\xFF\xFEy\x00", ""},
		{"I105", `c = "\u20AC"` + "\n", `\u20AC`, "EUR", `c = "EUR"` + "\n", ""},
		{"I105, the character", "c = \"\u20AC\"\n", `\u20AC`, "EUR", "", "not found"},
		{"I105, beside: a backslash and n", `printf("a\n")` + "\n", `a\n`, `b\n`, `printf("b\n")` + "\n", ""},
		{"I105, beside: a newline is none", "a\nb", `a\nb`, "x", "", "not found"},
		{"I106", "x\nlet\u00a0a = 1\n", "let a = 1", "b", "", "Line 2, column 4: the file has U+00A0 (no-break space)"},
		{"I106, beside: one without width", "let\u200b a = 1\n", "let a = 1", "b", "", "Line 1, column 4: the file has U+200B"},
	} {
		t.Run(tt.id, func(t *testing.T) {
			w := newWorld(t)
			w.put(tt.before)
			res := w.run(m{"old_string": tt.old, "new_string": tt.new})
			want := tt.after
			if want == "" {
				want = tt.before
			}
			if got := w.get(); got != want || res.IsError != (tt.after == "") || !strings.Contains(res.Content, tt.says) {
				t.Errorf("%q, want %q; %q (error %v)", got, want, res.Content, res.IsError)
			}
		})
	}
}

// TestLinks: I107. What has several names keeps them all.
func TestLinks(t *testing.T) {
	for _, tt := range []struct {
		id   string
		make func(dir string) error // has file, makes f
	}{
		{"I107, a link", func(d string) error { return os.Symlink("file", d+"/f") }},
		{"I107, two names", func(d string) error { return os.Link(d+"/file", d+"/f") }},
		{"I107, beside: a link to a link from another folder", func(d string) error {
			os.Mkdir(d+"/sub", 0o755)
			os.Symlink("../file", d+"/sub/l")
			return os.Symlink("sub/l", d+"/f")
		}},
	} {
		t.Run(tt.id, func(t *testing.T) {
			w := newWorld(t)
			file := filepath.Join(w.dir, "file")
			if err := os.WriteFile(file, []byte("old text\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(file, 0o751); err != nil {
				t.Fatal(err)
			}
			if err := tt.make(w.dir); err != nil {
				t.Fatal(err)
			}
			before, _ := os.Lstat(w.dir + "/f")
			if res := w.run(m{"old_string": "old", "new_string": "new"}); res.IsError {
				t.Fatal(res.Content)
			}
			data, err := os.ReadFile(file)
			after, _ := os.Lstat(w.dir + "/f")
			info, _ := os.Stat(file)
			if err != nil || string(data) != "new text\n" || w.get() != "new text\n" || info.Mode().Perm() != 0o751 || after.Mode().Type() != before.Mode().Type() {
				t.Errorf("file %q (%v), f %q, mode %v, f is %v and was %v", data, err, w.get(), info.Mode(), after.Mode(), before.Mode())
			}
			if st, ok := before.Sys().(*syscall.Stat_t); ok && st.Nlink > 1 && !os.SameFile(before, info) {
				t.Error("the two names are two files now")
			}
		})
	}
}

// TestTwoEditsAtOnce: I213, for edits of two calls that come together.
func TestTwoEditsAtOnce(t *testing.T) {
	w := newWorld(t)
	filler := strings.Repeat("a line that nobody edits\n", 200)
	for i := range 200 {
		w.put("first\n" + filler + "second\n")
		forms := filepath.Join(w.dir, "f")
		w.tracker.Forget(forms)
		changes := []m{{"old_string": "first", "new_string": "1st"}, {"old_string": "second", "new_string": "2nd"}}
		if i%2 == 1 { // beside: by a list and by one text
			changes[0] = m{"edits": []m{{"old_string": "first", "new_string": "x"}, {"old_string": "x", "new_string": "1st"}}}
		}
		results := make([]tool.Result, 2)
		var wg sync.WaitGroup
		for n, args := range changes {
			wg.Go(func() { results[n] = w.run(args) })
		}
		wg.Wait()
		want := "first\n" + filler + "second\n"
		for n, res := range results {
			switch {
			case !res.IsError && n == 0:
				want = strings.Replace(want, "first", "1st", 1)
			case !res.IsError:
				want = strings.Replace(want, "second", "2nd", 1)
			case !strings.Contains(res.Content, "changed on disk"):
				t.Fatalf("refused otherwise: %q", res.Content)
			}
		}
		if got := w.get(); got != want {
			t.Fatalf("run %d: the file has %d bytes, want %d: a change that was said to be made is not there, or the file is cut", i, len(got), len(want))
		}
	}
}

// TestBesideAnotherProcess: I214. While another process touches the file, every edit
// that says it is made is in it; once the other has changed it (beside), none is made.
func TestBesideAnotherProcess(t *testing.T) {
	require.Path(t, "sh")
	w := newWorld(t)
	var lines []string
	for i := range 60 {
		lines = append(lines, fmt.Sprintf("line-%d-", i))
	}
	w.put(strings.Join(lines, "\n"))
	other := exec.Command("sh", "-c", `echo on; while [ -e f ] && [ ! -e stop ]; do touch f; cat f >/dev/null; done`)
	other.Dir = w.dir
	out, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	out.Read(make([]byte, 3)) // it has begun
	made := 0
	for i := range lines {
		res := w.run(m{"old_string": lines[i], "new_string": lines[i] + "done"})
		if there := strings.Contains(w.get(), lines[i]+"done"); there == res.IsError {
			t.Errorf("%q (error %v), and the change is there: %v", res.Content, res.IsError, there)
		}
		if !res.IsError {
			made++
		}
	}
	os.WriteFile(w.dir+"/stop", nil, 0o644)
	other.Wait()
	if n := strings.Count(w.get(), "-done"); n != made || made == 0 {
		t.Errorf("%d of %d edits are there", n, made)
	}
	theirs := strings.Replace(w.get(), "-done", "-DONE", 1) // as many bytes
	change := exec.Command("sh", "-c", `cat >f`)
	change.Dir, change.Stdin = w.dir, strings.NewReader(theirs)
	if err := change.Run(); err != nil {
		t.Fatal(err)
	}
	if res := tooltest.Run(t.Context(), t, w.it, tooltest.Options{WorkDir: w.dir}, m{"path": "f", "old_string": "line-8-", "new_string": "x"}); !res.IsError || w.get() != theirs {
		t.Errorf("an edit of a file that has changed: %q", res.Content)
	}
}

// TestOutsideChange: I117, for an edit. Nothing watches files: what the file holds when
// it is to be edited decides, also if its size and time are as they were.
func TestOutsideChange(t *testing.T) {
	sh := require.Path(t, "sh")
	for _, tt := range []struct {
		id, script string
		changed    bool
	}{
		{"I117", `echo more >>f`, true},
		{"I117, beside: same size, time put back", `touch -r f stamp; printf 'one TWO' >f; touch -r stamp f`, true},
		{"I117, beside: another file under the name", `cp f g; echo more >>g; mv g f`, true},
		{"I117, beside: only touched", `touch -d '2001-01-01 00:00' f`, false},
	} {
		w := newWorld(t)
		w.put("zero two")
		if res := w.run(m{"old_string": "zero", "new_string": "one"}); res.IsError { // so that it is known
			t.Fatal(res.Content)
		}
		cmd := exec.Command(sh, "-c", tt.script)
		cmd.Dir = w.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		before := w.get()
		res := w.run(m{"old_string": "one", "new_string": "1"})
		if res.IsError != tt.changed || tt.changed && (w.get() != before || !strings.Contains(res.Content, "changed on disk since it was read")) {
			t.Errorf("%s: %+v, the file holds %q", tt.id, res, w.get())
		}
	}
}
