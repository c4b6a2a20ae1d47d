package edit_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/tool"
	"github.com/abhed/abhed/internal/tool/edit"
	"github.com/abhed/abhed/internal/tool/tooltest"
	"github.com/abhed/abhed/internal/workspace"
)

type m = map[string]any

type world struct {
	testing.TB
	dir     string
	tracker *workspace.Tracker
	it      *edit.Tool
}

func newWorld(t testing.TB) *world {
	tracker := workspace.NewTracker()
	return &world{t, t.TempDir(), tracker, edit.New(tracker)}
}

func (w *world) put(content string) {
	w.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, "f"), []byte(content), 0o644); err != nil {
		w.Fatal(err)
	}
}

func (w *world) get() string {
	w.Helper()
	data, err := os.ReadFile(filepath.Join(w.dir, "f"))
	if err != nil {
		w.Fatal(err)
	}
	return string(data)
}

func (w *world) run(args m) tool.Result {
	w.Helper()
	args["path"] = "f"
	return tooltest.Run(w.Context(), w, w.it, tooltest.Options{WorkDir: w.dir}, args)
}

func TestEdits(t *testing.T) {
	for _, tt := range []struct {
		about, before string
		args          m
		after         string
	}{
		{"plain", "one\ntwo\n", m{"old_string": "two", "new_string": "2"}, "one\n2\n"},
		{"CRLF kept", "a\r\nb\r\n", m{"old_string": "b", "new_string": "c"}, "a\r\nc\r\n"},
		{"new lines get CRLF", "a\r\nb\r\n", m{"old_string": "b", "new_string": "c\nd"}, "a\r\nc\r\nd\r\n"},
		{"mixed endings kept", "p\nq\r\nr\ns\r\n", m{"old_string": "r", "new_string": "R"}, "p\nq\r\nR\ns\r\n"},
		{"mixed endings one by one", "p\nq\r\nr\ns", m{"old_string": "p\nq\nr", "new_string": "1\n2\n3\n4"}, "1\n2\r\n3\r\n4\ns"},
		{"LF text in a CRLF file", "x\r\ny\r\n", m{"old_string": "x\ny", "new_string": "z\nw"}, "z\r\nw\r\n"},
		{"CRLF text in a LF file", "x\ny\n", m{"old_string": "x\r\ny", "new_string": "z\r\nw"}, "z\nw\n"},
		{"line endings alone", "x\ny\n", m{"old_string": "x\n", "new_string": "x\r\n"}, "x\r\ny\n"},
		{"line deleted", "a\r\nb\r\nc", m{"old_string": "b\n", "new_string": ""}, "a\r\nc"},
		{"mark kept", "\xEF\xBB\xBFone\ntwo\n", m{"old_string": "one\ntwo", "new_string": "1"}, "\xEF\xBB\xBF1\n"},
		{"mark in the call", "\xEF\xBB\xBFone\n", m{"old_string": "\uFEFFone", "new_string": "\uFEFF1"}, "\xEF\xBB\xBF1\n"},
		{"no escapes are read", "x \\u20AC \u20AC\n", m{"old_string": `\u20AC`, "new_string": "EUR"}, "x EUR \u20AC\n"},
		{"missing last newline", "a\nb", m{"old_string": "b", "new_string": "c"}, "a\nc"},
		{"tabs", "\tif x {\n", m{"old_string": "\tif x", "new_string": "\tif y"}, "\tif y {\n"},
		{"all", "a b a\n", m{"old_string": "a", "new_string": "aa", "replace_all": true}, "aa b aa\n"},
		{"all, overlapping", "aaaa a", m{"old_string": "aa", "new_string": "b", "replace_all": true}, "bb a"},
		{"UTF-16", "\xFF\xFEa\x00b\x00", m{"old_string": "b", "new_string": "é"}, "\xFF\xFEa\x00\xe9\x00"},
		{"8-bit bytes stay", "caf\xe9 = 1\n", m{"old_string": "= 1", "new_string": "= 2"}, "caf\xe9 = 2\n"},
		{"list, one after the other", "a\nb\n", m{"edits": []m{{"old_string": "a", "new_string": "x\ny"}, {"old_string": "y\nb", "new_string": "z"}}}, "x\nz\n"},
	} {
		t.Run(tt.about, func(t *testing.T) {
			w := newWorld(t)
			w.put(tt.before)
			if res := w.run(tt.args); res.IsError {
				t.Errorf("refused: %s", res.Content)
			}
			if got := w.get(); got != tt.after {
				t.Errorf("%q, want %q", got, tt.after)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	for _, tt := range []struct {
		about, before string
		args          m
		want          []string
	}{
		{"not found", "alpha beta gamma\nsecond line\n", m{"old_string": "alpha beta delta", "new_string": "x"},
			[]string{"not found", "1\talpha beta gamma", "Line 1, column 12: the file has U+0067 (g) where old_string has U+0064 (d)"}},
		{"no-break space", "x\nlet a\u00a0= 1\n", m{"old_string": "a = 1", "new_string": "b"},
			[]string{"2\tlet a", "Line 2, column 6: the file has U+00A0 (no-break space) where old_string has U+0020 (space)"}},
		{"tabs for spaces", "func f() {\n\treturn 1\n}\n", m{"old_string": "func f() {\n    return 1\n}", "new_string": "x"},
			[]string{"nearest text is at line 1", "Line 2, column 1: the file has U+0009 (tab) where old_string has U+0020 (space)"}},
		{"typographic quote", "say ‘hi’ now\n", m{"old_string": "say 'hi'", "new_string": "x"},
			[]string{"column 5: the file has U+2018 (‘) where old_string has U+0027 (')"}},
		{"line numbers", "one\ntwo\n", m{"old_string": "1\tone\n2\ttwo", "new_string": "x"}, []string{"line numbers"}},
		{"nothing like it", "one\n", m{"old_string": "completely different", "new_string": "x"}, []string{"Nothing like it"}},
		{"escape is not the character", "a \u20AC b\n", m{"old_string": `\u20AC`, "new_string": "x"}, []string{"not found"}},
		{"several", "a\nb\na\n", m{"old_string": "a", "new_string": "x"}, []string{"2 times", "lines 1, 3", "replace_all"}},
		{"several that differ in endings only", "x\ny\nz\nx\r\ny\n", m{"old_string": "x\ny", "new_string": "q"}, []string{"2 times", "lines 1, 4"}},
		{"overlapping", "aaa", m{"old_string": "aa", "new_string": "x"}, []string{"2 times"}},
		{"same", "a", m{"old_string": "a", "new_string": "a"}, []string{"the same"}},
		{"second of two", "a\n", m{"edits": []m{{"old_string": "a", "new_string": "b"}, {"old_string": "nope", "new_string": "c"}}}, []string{"edit 2 of 2"}},
		{"there and back", "a\n", m{"edits": []m{{"old_string": "a", "new_string": "b"}, {"old_string": "b", "new_string": "a"}}}, []string{"leave it as it is"}},
		{"both forms", "a", m{"old_string": "a", "new_string": "b", "edits": []m{{"old_string": "a", "new_string": "b"}}}, []string{"not both"}},
		{"half a form", "a", m{"old_string": "a"}, []string{"Give old_string and new_string"}},
		{"binary", "a\x00b", m{"old_string": "a", "new_string": "b"}, []string{"NUL byte at offset 1"}},
		{"8-bit and not ASCII", "caf\xe9", m{"old_string": "caf", "new_string": "é"}, []string{"not UTF-8"}},
	} {
		t.Run(tt.about, func(t *testing.T) {
			w := newWorld(t)
			w.put(tt.before)
			res := w.run(tt.args)
			for _, want := range tt.want {
				if !res.IsError || !strings.Contains(res.Content, want) {
					t.Errorf("%q (error %v), want %q in it", res.Content, res.IsError, want)
				}
			}
			if got := w.get(); got != tt.before {
				t.Errorf("the file was changed to %q", got)
			}
		})
	}
}

// TestManyOccurrences: a text that is everywhere costs no more than one that is there
// often.
func TestManyOccurrences(t *testing.T) {
	w := newWorld(t)
	w.put(strings.Repeat("a", 20<<20))
	for _, tt := range []struct {
		args m
		want string
	}{
		{m{"old_string": "a", "new_string": "b"}, "occurs at least 10000 times, at lines 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 and 9990 more"},
		{m{"old_string": "a", "new_string": "b", "replace_all": true}, "occurs more than 1000000 times; use a program"},
	} {
		if res := w.run(tt.args); !res.IsError || !strings.Contains(res.Content, tt.want) {
			t.Errorf("%v: %.200q, want %q", tt.args, res.Content, tt.want)
		}
	}
	w.put(strings.Repeat("a\n", 9_999))
	if res := w.run(m{"old_string": "a", "new_string": "b"}); !strings.Contains(res.Content, "occurs 9999 times") {
		t.Errorf("%.200q", res.Content)
	}
	w.put(strings.Repeat("aa\r\n", 500_000))
	if res := w.run(m{"old_string": "a", "new_string": "b", "replace_all": true}); res.IsError || w.get() != strings.Repeat("bb\r\n", 500_000) {
		t.Errorf("as many as can be replaced: %.200q", res.Content)
	}
}

func TestStaleAndMissing(t *testing.T) {
	w := newWorld(t)
	if res := w.run(m{"old_string": "a", "new_string": "b"}); !res.IsError || !strings.Contains(res.Content, "Use write") {
		t.Errorf("%q", res.Content)
	}
	w.put("a b\n")
	if res := w.run(m{"old_string": "a", "new_string": "1"}); res.IsError {
		t.Fatal(res.Content)
	}
	if res := w.run(m{"old_string": "b", "new_string": "2"}); res.IsError {
		t.Fatalf("after an edit of its own: %s", res.Content)
	}
	w.put("1 2 theirs\n")
	if res := w.run(m{"old_string": "1", "new_string": "x"}); !res.IsError || !strings.Contains(res.Content, "changed on disk") {
		t.Errorf("%q", res.Content)
	}
	if w.get() != "1 2 theirs\n" {
		t.Error("the file was changed")
	}
}

func TestResultShowsTheChange(t *testing.T) {
	w := newWorld(t)
	w.put("1\n2\n3\n4\n5\n6\n7\n")
	want := "Edited f in 1 place. It now reads:\n2\t2\n3\t3\n4\tfour\n5\t5\n6\t6\n"
	if res := w.run(m{"old_string": "4", "new_string": "four"}); res.Content != want {
		t.Errorf("%q", res.Content)
	}
}

func TestParallelEditsLoseNothing(t *testing.T) {
	w := newWorld(t)
	var lines []string
	for i := range 20 {
		lines = append(lines, fmt.Sprintf("line-%d-", i))
	}
	w.put(strings.Join(lines, "\n"))
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			res := w.run(m{"old_string": lines[i], "new_string": lines[i] + "done"})
			if res.IsError {
				t.Error(res.Content)
			}
		})
	}
	wg.Wait()
	if n := strings.Count(w.get(), "-done"); n != 20 {
		t.Errorf("%d of 20 edits are there", n)
	}
}

// TestBytesOutsideStay: whatever the file, replacing a part of it that occurs once
// leaves every other byte alone.
func TestBytesOutsideStay(t *testing.T) {
	w := newWorld(t)
	forget := func() {
		forms, err := policy.Resolve(w.dir, "f", "")
		if err != nil {
			t.Fatal(err)
		}
		w.tracker.Forget(forms.Place.Path)
	}
	piece := rapid.SampledFrom([]string{"a", "b", "\n", "\r\n", "\r", "\t", "é", " ", "x"})
	rapid.Check(t, func(r *rapid.T) {
		part := func(name string) string {
			return strings.Join(rapid.SliceOfN(piece, 0, 12).Draw(r, name), "")
		}
		mark := rapid.SampledFrom([]string{"", "\xEF\xBB\xBF"}).Draw(r, "mark")
		before, inner, after := part("before"), part("inner"), part("after")
		old, new := "<<"+inner+">>", "["+part("new")+"]"
		if strings.HasSuffix(before, "\r") || strings.Contains(inner+new, "\r\r\n") || strings.Contains(inner+before+after, "<<") {
			return
		}
		w.put(mark + before + old + after)
		forget()
		given := old
		if rapid.Bool().Draw(r, "as LF") {
			given = strings.ReplaceAll(old, "\r\n", "\n")
		}
		if res := w.run(m{"old_string": given, "new_string": new}); res.IsError {
			r.Fatalf("%q in %q: %s", given, before+old+after, res.Content)
		}
		got := w.get()
		middle, ok := strings.CutPrefix(got, mark+before)
		middle, ok2 := strings.CutSuffix(middle, after)
		if !ok || !ok2 {
			r.Fatalf("%q became %q", mark+before+old+after, got)
		}
		lf := func(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }
		if lf(middle) != lf(new) {
			r.Fatalf("the new text %q became %q", new, middle)
		}
	})
}

func TestSchema(t *testing.T) {
	it := edit.New(workspace.NewTracker())
	for _, raw := range []string{`{}`, `{"path":"f","old_string":""}`, `{"path":"f","edits":[]}`, `{"path":"f","edits":[{"old_string":"a"}]}`,
		`{"path":"f","edits":[{"old_string":"a","new_string":"b","x":1}]}`, `{"path":"f","old_string":null}`, `{"path":"f","Old_string":"a"}`} {
		if tooltest.Check(t, it, raw) == nil {
			t.Errorf("%s was accepted", raw)
		}
	}
}

func BenchmarkNotFound(b *testing.B) {
	w := newWorld(b)
	var s strings.Builder
	for i := range 20000 {
		fmt.Fprintf(&s, "this is line number %d of a long file with some text in it\n", i)
	}
	w.put(s.String())
	for b.Loop() {
		if res := w.run(m{"old_string": "this is lime number 19999 of a long file", "new_string": "x"}); !res.IsError {
			b.Fatal(res.Content)
		}
	}
}
