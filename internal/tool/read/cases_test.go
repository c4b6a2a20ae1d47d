package read_test

import (
	"context"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/abhed/abhed/internal/tool"
	"github.com/abhed/abhed/internal/tool/read"
	"github.com/abhed/abhed/internal/tool/tooltest"
	"github.com/abhed/abhed/internal/workspace"
)

// TestSpecialFiles: I111. What is no file is refused at once; what is empty says so.
func TestSpecialFiles(t *testing.T) {
	dir := t.TempDir()
	file(t, dir, "empty", "")
	file(t, dir, "marked", "\xEF\xBB\xBF") // beside: nothing but a mark
	file(t, dir, "two", "a\nb")
	if err := unix.Mkfifo(dir+"/pipe", 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", dir+"/s")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, tt := range []struct {
		args  m
		fails bool
		want  string
	}{
		{m{"path": "/dev/zero"}, true, "character device"}, {m{"path": "/proc/self/mem"}, true, "pseudo file system"},
		{m{"path": "empty"}, false, "is empty: 0 bytes"}, {m{"path": "two", "offset": 3}, true, "two has 2 lines; offset 3 is past its end"},
		{m{"path": "pipe"}, true, "named pipe"}, {m{"path": "s"}, true, "socket"}, {m{"path": "/dev/tty"}, true, "character device"}, // beside
		{m{"path": "marked"}, false, "is empty: 0 bytes of text; UTF-8 with byte-order mark"}, {m{"path": "empty", "offset": 5}, false, "is empty"},
	} {
		begin := time.Now()
		if res := run(t, dir, tt.args); res.IsError != tt.fails || !strings.Contains(res.Content, tt.want) || time.Since(begin) > 3*time.Second {
			t.Errorf("%v after %v: %q (error %v), want %q", tt.args, time.Since(begin), res.Content, res.IsError, tt.want)
		}
	}
}

// TestNotText: I112. What is no text is refused with type and size, whatever its name.
func TestNotText(t *testing.T) {
	dir := t.TempDir()
	zip := "PK\x03\x04\x14\x00\x00\x00\x08\x00"
	for name, tt := range map[string]struct {
		content string
		fails   bool
		want    []string
	}{
		"archive": {zip, true, []string{"10 bytes", "application/zip"}}, "picture.txt": {"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", true, []string{"16 bytes", "image/png"}},
		"utf16le.txt": {"\xFF\xFEh\x00\xe9\x00\n\x00", false, []string{"1\thé\n", "UTF-16LE"}},
		"utf16be.txt": {"\xFE\xFF\x00h\x00\xe9\x00\n", false, []string{"1\thé\n", "UTF-16BE"}}, // beside
		"unmarked":    {"h\x00i\x00", true, []string{"NUL byte at offset 1", "4 bytes"}},
		"page.html":   {"\x1f\x8b\x08\x00\x00\x00", true, []string{"6 bytes", "gzip"}},
		"utf32":       {"\xFF\xFE\x00\x00h\x00\x00\x00", true, []string{"UTF-32", "8 bytes"}},
	} {
		file(t, dir, name, tt.content)
		res := run(t, dir, m{"path": name})
		for _, want := range tt.want {
			if res.IsError != tt.fails || !strings.Contains(res.Content, want) || strings.IndexByte(res.Content, 0) >= 0 {
				t.Errorf("%s: %q (error %v), want %q", name, res.Content, res.IsError, want)
			}
		}
	}
}

// TestLongLines: I129, for a file. One line of 1.5 MB is cut with a mark and costs little,
// also in a file that is too large to be held (beside), and reading ends with the context.
func TestLongLines(t *testing.T) {
	dir := t.TempDir()
	file(t, dir, "long", strings.Repeat("x", 1_500_000)+"\nnext\n")
	big, err := os.Create(dir + "/big")
	if err != nil {
		t.Fatal(err)
	}
	chunk := strings.Repeat("y", 1<<20)
	for range workspace.MaxFile>>20 + 1 {
		big.WriteString(chunk)
	}
	big.WriteString("\nnext\n")
	big.Close()
	for name, more := range map[string]string{"long": "…(1498000 more bytes in this line)", "big": "more bytes in this line)"} {
		begin, before := time.Now(), cpu(t)
		res := run(t, dir, m{"path": name, "limit": 2})
		if took := cpu(t) - before; name == "long" && took > allowed {
			t.Errorf("%s: %v of CPU time", name, took)
		}
		if res.IsError || len(res.Content) > 3000 || !strings.Contains(res.Content, more) || !strings.Contains(res.Content, "\n2\tnext\n") || time.Since(begin) > 10*time.Second {
			t.Errorf("%s: %d bytes after %v: …%q", name, len(res.Content), time.Since(begin), res.Content[max(0, len(res.Content)-200):])
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var res tool.Result
	if res = tooltest.Run(ctx, t, read.New(workspace.NewTracker(), read.Options{}), tooltest.Options{WorkDir: dir}, m{"path": "big"}); !res.IsError {
		t.Errorf("read after the interrupt: %.100q", res.Content)
	}
}

// cpu returns the CPU time of this process.
func cpu(t *testing.T) time.Duration {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
