package openai

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"
)

// escapeUnits writes UTF-16 units as the inside of a JSON string.
func escapeUnits(units []uint16) string {
	var b strings.Builder
	for _, u := range units {
		fmt.Fprintf(&b, `\u%04x`, u)
	}
	return b.String()
}

// TestTextSplitBetweenHalvesIsWhole cuts a text between any two UTF-16 units, as
// servers written in other languages do.
func TestTextSplitBetweenHalvesIsWhole(t *testing.T) {
	chars := rapid.SampledFrom([]rune{'a', '\\', '"', 'é', '北', 0x1f600, 0x10000, 0x10ffff, 0x10f7ff})
	rapid.Check(t, func(t *rapid.T) {
		want := string(rapid.SliceOfN(chars, 1, 20).Draw(t, "text"))
		units := utf16.Encode([]rune(want))
		var in []string
		for len(units) > 0 {
			n := rapid.IntRange(1, len(units)).Draw(t, "size")
			in = append(in, delta1(`{"content":"`+escapeUnits(units[:n])+`"}`))
			units = units[n:]
		}
		var got collect
		resp, err := streamBytes(t, strings.NewReader(frames(append(in, "[DONE]")...)), got.add)
		if err != nil {
			t.Fatal(err)
		}
		// A frame that holds a character of the marks' range beside a half can't be
		// joined, which must then be said.
		if resp.Message.Text() != want && !(strings.ContainsRune(want, 0x10ffff) && strings.Contains(resp.Note, "half characters")) {
			t.Fatalf("got %q, want %q (%s)", resp.Message.Text(), want, resp.Note)
		}
		if got.text.String() != resp.Message.Text() {
			t.Fatalf("streamed %q, text %q", got.text.String(), resp.Message.Text())
		}
	})
}
