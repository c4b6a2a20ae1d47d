package strictjson

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestQuickCanonicalIsRight compares the quick test and the string writer with
// the library.
func TestQuickCanonicalIsRight(t *testing.T) {
	accepted := 0
	rapid.Check(t, func(t *rapid.T) {
		text := drawJSON(t, 3)
		c, err := canonicalize([]byte(text))
		if IsCanonical([]byte(text)) {
			accepted++
			if err != nil || string(c) != text {
				t.Fatalf("taken for canonical: %q; the library says %q, %v", text, c, err)
			}
		}
		if err == nil && strings.Count(text, `"`) == 0 && string(c) == text && !IsCanonical([]byte(text)) {
			t.Fatalf("canonical and not taken for it: %q", text)
		}
		s := rapid.String().Draw(t, "s")
		want, err := Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := AppendString(nil, s)
		if string(got) != string(want) || !IsCanonical(got) {
			t.Fatalf("string %q: got %s, the library writes %s", s, got, want)
		}
	})
	if accepted == 0 {
		t.Error("the quick test accepted nothing: the comparison says nothing")
	}
}

// drawJSON draws something that is nearly always JSON and often canonical.
func drawJSON(t *rapid.T, depth int) string {
	kind := rapid.IntRange(0, 8).Draw(t, "kind")
	if depth == 0 {
		kind %= 4
	}
	switch kind {
	case 0:
		return rapid.SampledFrom([]string{"null", "true", "false", "nul", "", " 1"}).Draw(t, "lit")
	case 1:
		return rapid.SampledFrom([]string{"0", "-0", "1.50", "1E5", "-1e-7", "01", "1.", "-", "12345678901234567890", "1e", ".5"}).Draw(t, "num")
	case 2, 3:
		return rapid.SampledFrom([]string{
			`""`, `"a"`, `"\n"`, `"\u000a"`, `"\u001f"`, `"\u001F"`, `"\u0000"`, `"é"`, `"\u00e9"`, `"\/"`, `"\""`, `"\\"`, "\"\xff\"", "\"\x01\"", `"\`, `"\ud800"`, `"\u0008"`, "\"\u2028\"", "\"\x7f\"",
		}).Draw(t, "str")
	case 4, 5:
		n := rapid.IntRange(0, 3).Draw(t, "n")
		var items []string
		for range n {
			items = append(items, drawJSON(t, depth-1))
		}
		return "[" + strings.Join(items, rapid.SampledFrom([]string{",", ",", ", ", ""}).Draw(t, "sep")) + "]"
	default:
		n := rapid.IntRange(0, 3).Draw(t, "n")
		var items []string
		names := []string{`"a"`, `"b"`, `"c"`}
		if rapid.Bool().Draw(t, "odd") {
			names = []string{`"b"`, `"é"`, `"\ud83d\ude00"`, `"a\n"`, `"a"`}
		}
		for i := range n {
			items = append(items, names[i]+":"+drawJSON(t, depth-1))
		}
		return "{" + strings.Join(items, ",") + "}"
	}
}

func FuzzCanonical(f *testing.F) {
	for _, s := range []string{`{"a":1,"b":"\u001f"}`, `[1e5,-0,"\n"]`, `{"a":{},"a":1}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if !IsCanonical(text) {
			return
		}
		if c, err := canonicalize(text); err != nil || string(c) != string(text) {
			t.Fatalf("taken for canonical: %q; the library says %q, %v", text, c, err)
		}
	})
}
