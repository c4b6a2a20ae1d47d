package write_test

import (
	"os"
	"path/filepath"
	"testing"
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
