package transport

import (
	"bytes"
	"slices"
	"testing"
)

// FuzzSplitter holds that the lines don't depend on how the text is cut.
func FuzzSplitter(f *testing.F) {
	f.Add([]byte("{}\n{\"a\":1}\n\nhalf"), []byte{1, 2, 3})
	f.Add([]byte("\n\n"), []byte{})
	f.Add([]byte("no end"), []byte{0, 200})
	f.Fuzz(func(t *testing.T, text, cuts []byte) {
		var got [][]byte
		var s splitter
		rest := bytes.Clone(text)
		keep := func(line []byte) error {
			got = append(got, bytes.Clone(line))
			return nil
		}
		for _, c := range cuts {
			n := min(int(c), len(rest))
			if err := s.feed(bytes.Clone(rest[:n]), keep); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := s.feed(bytes.Clone(rest), keep); err != nil {
			t.Fatal(err)
		}
		want := bytes.Split(text, []byte("\n"))
		if !slices.EqualFunc(got, want[:len(want)-1], bytes.Equal) || !bytes.Equal(s.held, want[len(want)-1]) {
			t.Fatalf("got %q and %q of %q", got, s.held, text)
		}
	})
}
