package bash

import (
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

func cleaned(pieces ...string) string {
	var b strings.Builder
	c := cleaner{emit: func(p []byte) { b.Write(p) }}
	for _, p := range pieces {
		c.write([]byte(p))
	}
	c.flush()
	return b.String()
}

func TestClean(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"plain é 😀\ttext\n", "plain é 😀\ttext\n"},
		{"\x1b[31mred\x1b[0m", "red"}, {"\x1b[?1003h\x1b[38;5;1mx", "x"}, {"\x1b(Bx\x1b=y\x1bMz", "xyz"},
		{"\x1b]0;title\x07x", "x"}, {"\x1b]52;c;QUJD\x1b\\x", "x"}, {"\x1bPq data \x1b\\x", "x"}, {"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"},
		{"a\rb\n", "b\n"}, {"a\r\nb\r\n", "a\nb\n"}, {"a\r\r\nb", "a\nb"}, {"10%\r20%\r30%", "30%"}, {"long\rx\n", "x\n"}, {"done\r", "done"},
		{"a\x1b[K\rb", "b"}, {"ab\bc", "ac"}, {"\b\bx", "x"}, {"a\n\bx", "a\nx"}, {"é\bx", "x"},
		{"\xff\xfe\x00ok", `\xff\xfe\x00ok`}, {"\xed\xa0\x80", `\xed\xa0\x80`}, {"a\xe2\x82", `a\xe2\x82`}, {"\xe2\x82A", `\xe2\x82A`}, {"\xc3\x1b[1mx", `\xc3x`},
		{"\x07\x7f\x01", `\x07\x7f\x01`}, {"\u009b31m", `\u009b31m`},
		{"x\x1b", `x\x1b`}, {"x\x1b[12", `x\x1b[12`}, {"x\x1b[1\ny", "x\\x1b[1\ny"}, {"\x1b]never ends\nmore", "\\x1b]never ends\nmore"},
	} {
		if got := cleaned(tt.in); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.in, got, tt.want)
		}
	}
	endless := "\x1b]" + strings.Repeat("x", 10_000) + "\nvisible\n"
	if got := cleaned(endless); !strings.Contains(got, "visible") {
		t.Error("a sequence without an end hides what follows")
	}
}

// TestCleanAnySplit: where the pieces are cut makes no difference, and the text is
// always fit to be shown.
func TestCleanAnySplit(t *testing.T) {
	piece := rapid.SampledFrom([]string{"a", "é", "😀", "\n", "\r", "\x1b", "[", "]", "\x07", "\\", "m", "\xff", "\xe2\x82", "\b", "\x00", "31", "\x1b[1m", "\u009b"})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(piece, 0, 30).Draw(t, "text"), "")
		cut := rapid.IntRange(0, len(text)).Draw(t, "cut")
		whole := cleaned(text)
		if split := cleaned(text[:cut], text[cut:]); split != whole {
			t.Fatalf("%q cut at %d: %q, whole %q", text, cut, split, whole)
		}
		bad := func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }
		if !utf8.ValidString(whole) || strings.ContainsFunc(whole, bad) {
			t.Fatalf("%q became %q", text, whole)
		}
	})
}

func FuzzClean(f *testing.F) {
	f.Add([]byte("a\x1b[31m\r\xff\x1b]0;x"), 3)
	f.Fuzz(func(t *testing.T, data []byte, cut int) {
		cut = max(0, min(cut, len(data)))
		whole := cleaned(string(data))
		if split := cleaned(string(data[:cut]), string(data[cut:])); split != whole || !utf8.ValidString(whole) {
			t.Fatalf("%q cut at %d: %q, whole %q", data, cut, split, whole)
		}
	})
}

func TestKeeper(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := keeper{headMax: 10, tailMax: 12}
		var all strings.Builder
		for _, p := range rapid.SliceOfN(rapid.StringMatching(`[a-zé😀]{0,30}`), 0, 8).Draw(t, "pieces") {
			all.WriteString(p)
			k.write([]byte(p))
		}
		text, _ := k.end()
		if !utf8.ValidString(text) {
			t.Fatalf("a character was cut: %q", text)
		}
		head, rest, cut := strings.Cut(text, "\n… (")
		if !cut {
			if text != all.String() {
				t.Fatalf("%q became %q", all.String(), text)
			}
			return
		}
		_, tail, _ := strings.Cut(rest, ") …\n")
		if !strings.HasPrefix(all.String(), head) || !strings.HasSuffix(all.String(), tail) || len(head) > 10 || len(tail) > 12 {
			t.Fatalf("%q became %q", all.String(), text)
		}
	})
}

func BenchmarkClean(b *testing.B) {
	text := []byte(strings.Repeat("an ordinary line of output, é and \x1b[31mcolour\x1b[0m\n", 1000))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		c := cleaner{emit: func([]byte) {}}
		c.write(text)
		c.flush()
	}
}

// TestLongLine: I129. One line of 1.5 MB costs little, whatever it is made of.
func TestLongLine(t *testing.T) {
	for name, unit := range map[string]string{"I129": "x", "beside: characters of several bytes": "é", "beside: bytes that are no text": "\xff", "beside: returns": "\r"} {
		begin := cpu(t)
		k := keeper{headMax: 16 << 10, tailMax: 16 << 10}
		c := cleaner{emit: k.write, over: k.overwritten}
		line := []byte(strings.Repeat(unit, 1_500_000/len(unit)))
		for len(line) > 0 {
			n := min(len(line), 64<<10)
			c.write(line[:n])
			line = line[n:]
		}
		c.flush()
		took := cpu(t) - begin
		if text, _ := k.end(); len(text) > 33<<10 || unit != "\r" && !strings.Contains(text, "bytes left out") || took > allowed {
			t.Errorf("%s: %d bytes after %v of CPU time", name, len(text), took)
		}
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
