package sse

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

type got struct {
	Name, Data   string
	Unterminated bool
}

func readAll(r io.Reader, o Options) ([]got, error) {
	var out []got
	rd := NewReader(r, o)
	for {
		ev, err := rd.Next()
		if err != nil {
			return out, err
		}
		out = append(out, got{ev.Name, string(ev.Data), ev.Unterminated})
	}
}

func TestEvents(t *testing.T) {
	cases := []struct {
		name, in string
		want     []got
	}{
		{"plain", "data: a\n\ndata: b\n\n", []got{{"", "a", false}, {"", "b", false}}},
		{"crlf", "data: a\r\n\r\ndata: b\r\n\r\n", []got{{"", "a", false}, {"", "b", false}}},
		{"cr", "data: a\r\rdata: b\r\r", []got{{"", "a", false}, {"", "b", false}}},
		{"mixed ends", "data: a\r\n\ndata: b\r\r\ndata: c\n\r\n", []got{{"", "a", false}, {"", "b", false}, {"", "c", false}}},
		{"no space", "event:error\ndata:{}\n\n", []got{{"error", "{}", false}}},
		{"I136 one space is eaten, one kept", "data:  x\n\n", []got{{"", " x", false}}},
		{"comments", ": ping\n\n:\n\ndata: a\n: inside\ndata: b\n\n", []got{{"", "a\nb", false}}},
		{"bare data", "data:\n\ndata\n\n", []got{{"", "", false}, {"", "", false}}},
		{"name without data", "event: ping\n\ndata: a\n\n", []got{{"", "a", false}}},
		{"unknown fields", "id: 4\nretry: 9\nfoo: bar\nnonsense\ndata: a\n\n", []got{{"", "a", false}}},
		{"byte order mark", "\xef\xbb\xbfdata: a\n\n", []got{{"", "a", false}}},
		{"byte order mark later", "data: a\n\n\xef\xbb\xbfdata: b\n\n", []got{{"", "a", false}}},
		{"no last blank line", "data: a\n\ndata: b\n", []got{{"", "a", false}, {"", "b", true}}},
		{"cut in a line", "data: a\n\ndata: {\"x", []got{{"", "a", false}, {"", "{\"x", true}}},
		{"cut in a field name", "data: a\n\ndat", []got{{"", "a", false}}},
		{"many blank lines", "\n\n\r\n\rdata: a\n\n\n\n", []got{{"", "a", false}}},
		{"bytes that are no text", "data: \xff\x00\xfe\n\n", []got{{"", "\xff\x00\xfe", false}}},
		{"nothing", "", nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(c.in), iotest.OneByteReader(strings.NewReader(c.in)), iotest.DataErrReader(strings.NewReader(c.in))} {
				out, err := readAll(r, Options{})
				if err != io.EOF {
					t.Errorf("ended with %v, want EOF", err)
				}
				if d := cmp.Diff(c.want, out); d != "" {
					t.Error(d)
				}
			}
		})
	}
}

// stepReader gives one chunk a Read and fails the test when asked for more than
// was laid out.
type stepReader struct {
	chunks []string
	fail   func()
}

func (s *stepReader) Read(p []byte) (int, error) {
	if len(s.chunks) == 0 {
		s.fail()
		return 0, io.ErrClosedPipe
	}
	n := copy(p, s.chunks[0])
	s.chunks = s.chunks[1:]
	return n, nil
}

func TestEventIsReturnedWithoutWaitingForMore(t *testing.T) {
	for _, in := range []string{"data: a\n\n", "data: a\r\n\r", "data: a\r\r", "data: a\r\n\r\n"} {
		r := NewReader(&stepReader{[]string{in}, func() { t.Errorf("%q: read past the end of the event", in) }}, Options{})
		if ev, err := r.Next(); err != nil || string(ev.Data) != "a" {
			t.Errorf("%q: %q %v", in, ev.Data, err)
		}
	}
}

func TestOffset(t *testing.T) {
	r := NewReader(strings.NewReader(": ping\n\ndata: a\n\nevent: x\ndata: b\n\n"), Options{})
	for _, want := range []int64{8, 17} {
		if ev, err := r.Next(); err != nil || ev.Offset != want {
			t.Errorf("offset %d (%v), want %d", ev.Offset, err, want)
		}
	}
}

func TestSourceFailure(t *testing.T) {
	broken := errors.New("reset")
	out, err := readAll(io.MultiReader(strings.NewReader("data: a\n\ndata: b"), iotest.ErrReader(broken)), Options{})
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if d := cmp.Diff([]got{{"", "a", false}, {"", "b", true}}, out); d != "" {
		t.Error(d)
	}
	if _, err := readAll(&stuck{}, Options{}); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("a source without progress: %v", err)
	}
}

type stuck struct{}

func (*stuck) Read([]byte) (int, error) { return 0, nil }

func TestBound(t *testing.T) {
	for name, in := range map[string]string{
		"line":   "data: " + strings.Repeat("x", 200) + "\n\n",
		"event":  strings.Repeat("data: xxxxxxxxxxxxxxxxxxxx\n", 10) + "\n",
		"no end": strings.Repeat("x", 500),
	} {
		rd := NewReader(strings.NewReader(in), Options{MaxEvent: 100})
		for range 2 {
			if _, err := rd.Next(); !errors.Is(err, ErrTooLong) {
				t.Errorf("%s: %v, want ErrTooLong", name, err)
			}
		}
	}
	long := strings.Repeat("x", 300_000)
	if out, err := readAll(strings.NewReader("data: "+long+"\n\n"), Options{}); err != io.EOF || len(out) != 1 || out[0].Data != long {
		t.Errorf("an event of 300 kB did not pass: %v", err)
	}
}

// chunked reads the pieces one by one.
func chunked(data []byte, cuts []int) io.Reader {
	var rs []io.Reader
	prev := 0
	for _, c := range cuts {
		if c > prev && c < len(data) {
			rs = append(rs, bytes.NewReader(data[prev:c]))
			prev = c
		}
	}
	return io.MultiReader(append(rs, bytes.NewReader(data[prev:]))...)
}

func TestAnySplitGivesTheSameEvents(t *testing.T) {
	piece := rapid.SampledFrom([]string{"data: ", "data:", "event: e", ": c", "\n", "\r", "\r\n", "\n\n", "北", "😀", "x", "\xef\xbb\xbf", "id: 1"})
	rapid.Check(t, func(t *rapid.T) {
		in := []byte(strings.Join(rapid.SliceOfN(piece, 0, 40).Draw(t, "pieces"), ""))
		want, _ := readAll(bytes.NewReader(in), Options{})
		var cuts []int
		for i := range in {
			if rapid.Bool().Draw(t, "cut") {
				cuts = append(cuts, i)
			}
		}
		out, err := readAll(chunked(in, cuts), Options{})
		if d := cmp.Diff(want, out); d != "" || err != io.EOF {
			t.Fatalf("%q cut at %v: %v\n%s", in, cuts, err, d)
		}
	})
}

func FuzzReader(f *testing.F) {
	f.Add([]byte("data: a\r\n\r\nevent:x\rdata:{}\n\n"), 3)
	f.Add([]byte("\xef\xbb\xbfdata: \xff\n"), 1)
	f.Fuzz(func(t *testing.T, in []byte, at int) {
		want, err := readAll(bytes.NewReader(in), Options{MaxEvent: 1 << 10})
		if err != io.EOF && !errors.Is(err, ErrTooLong) {
			t.Fatalf("ended with %v", err)
		}
		if errors.Is(err, ErrTooLong) {
			return // where a bound strikes may depend on the reads
		}
		out, _ := readAll(chunked(in, []int{at}), Options{MaxEvent: 1 << 10})
		if d := cmp.Diff(want, out); d != "" {
			t.Fatal(d)
		}
	})
}
