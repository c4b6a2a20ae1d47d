package extension

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// frames feeds data in pieces and describes what came out.
func frames(pieces ...[]byte) []string {
	var f framer
	var out []string
	for _, p := range pieces {
		for len(p) > 0 {
			reply, rest, err := f.feed(p)
			if err != nil {
				return append(out, "error: "+err.class)
			}
			if reply == nil {
				break
			}
			out = append(out, string(reply))
			p = rest
		}
	}
	if f.partial() {
		out = append(out, "partial")
	}
	return out
}

func TestFramer(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, in string
		want     []string
	}{
		{"empty object", "{}\n", []string{"{}"}},
		{"two", "{}\n{\"a\":1}\n", []string{"{}", `{"a":1}`}},
		{"CR before LF", "{}\r\n", []string{"{}"}},
		{"CR alone", "{}\r{}\n", []string{"error: invalid"}},
		{"two CR", "{}\r\r\n", []string{"error: invalid"}},
		{"several lines", "{\"a\":\n  [1,\r\n 2]\n}\n", []string{"{\"a\":\n  [1,\r\n 2]\n}"}},
		{"braces in strings", `{"a":"}{\"}\\"}` + "\n", []string{`{"a":"}{\"}\\"}`}},
		{"not ended", "{}", []string{"partial"}},
		{"half", `{"a":"b`, []string{"partial"}},
		{"space before", " {}\n", []string{"error: invalid"}},
		{"empty line", "\n{}\n", []string{"error: invalid"}},
		{"space after", "{} \n", []string{"error: invalid"}},
		{"text after", "{}x\n", []string{"error: invalid"}},
		{"two on a line", "{}{}\n", []string{"error: invalid"}},
		{"list", "[]\n", []string{"error: invalid"}},
		{"string", "\"x\"\n", []string{"error: invalid"}},
		{"text", "hello\n", []string{"error: invalid"}},
		{"byte order mark", "\xef\xbb\xbf{}\n", []string{"error: invalid"}},
		{"garbage in a brace", "{hello\n", []string{"error: invalid"}},
		{"garbage in the second line", "{\"a\":1,\nhello\n", []string{"error: invalid"}},
		{"line end in a string", "{\"a\":\"b\n\"}\n", []string{"error: invalid"}},
		{"NUL in a string", "{\"a\":\"\x00\"}\n", []string{"error: invalid"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := frames([]byte(tt.in)); fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestFramerSize(t *testing.T) {
	t.Parallel()
	body := func(n int) []byte { return []byte(`{"a":"` + strings.Repeat("x", n-len(`{"a":""}`)) + `"}` + "\n") }
	if got := frames(body(maxReply)); len(got) != 1 || len(got[0]) != maxReply {
		t.Errorf("a reply of %d bytes: %d frames, want 1 whole", maxReply, len(got))
	}
	if got := frames(body(maxReply + 1)); fmt.Sprint(got) != "[error: too_large]" {
		t.Errorf("a reply of %d bytes: %.80q, want too_large", maxReply+1, got)
	}
	// Many line ends must not make the framer look at everything again and again.
	lines := append(append([]byte("{"), bytes.Repeat([]byte("\n"), 4<<20)...), "}\n"...)
	if got := frames(lines); len(got) != 1 || len(got[0]) != len(lines)-1 {
		t.Errorf("a reply of many lines: %d frames, want 1 whole", len(got))
	}
}

// FuzzFramer holds that any split of the bytes gives the same replies, and that
// what is given out is exactly the bytes before an LF.
func FuzzFramer(f *testing.F) {
	f.Add([]byte("{}\n{\"a\":\"\\\"}\"}\r\n{"), uint8(1), uint8(3))
	f.Add([]byte("{\"tools\":[{\"name\":\"x\",\n \"mutates\":false}]}\n"), uint8(7), uint8(2))
	f.Add([]byte("{]\n{} \n"), uint8(2), uint8(1))
	f.Fuzz(func(t *testing.T, data []byte, a, b uint8) {
		whole := frames(data)
		var pieces [][]byte
		rest := data
		for i := 0; len(rest) > 0; i++ {
			n := min(len(rest), 1+int([]uint8{a, b}[i%2]))
			pieces = append(pieces, rest[:n])
			rest = rest[n:]
		}
		if got := frames(pieces...); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", whole) {
			t.Fatalf("split: %q, whole: %q", got, whole)
		}
		at := 0
		for _, r := range whole {
			if strings.HasPrefix(r, "error: ") || r == "partial" {
				break
			}
			if !bytes.HasPrefix(data[at:], []byte(r)) {
				t.Fatalf("frame %q isn't what stands at byte %d", r, at)
			}
			at += len(r)
			at += bytes.IndexByte(data[at:], '\n') + 1
		}
	})
}
