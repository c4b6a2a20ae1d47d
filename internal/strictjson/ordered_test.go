package strictjson

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestOrderedIsRight compares it with the library. That it does anything at all is for
// the test below.
func TestOrderedIsRight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawUnordered(t, 3)
		got := ordered([]byte(text))
		if got == nil {
			return
		}
		want, err := canonicalize([]byte(text))
		if err != nil || string(got) != string(want) {
			t.Fatalf("%s: found %s, the library says %s, %v", text, got, want, err)
		}
	})
}

// drawUnordered draws an object whose members stand in any order, one of them twice now
// and then, with values of drawJSON.
func drawUnordered(t *rapid.T, depth int) string {
	names := []string{"b", "a", "c", "ab", "B", "", "z1", "z10"}
	if rapid.IntRange(0, 9).Draw(t, "odd") == 1 {
		names = append(names, "a\\n", "é")
	}
	names = rapid.Permutation(names).Draw(t, "order")
	if rapid.IntRange(0, 4).Draw(t, "twice") == 1 {
		names[1] = names[0]
	}
	var items []string
	for i := range rapid.SampledFrom([]int{2, 3, 5, 1, 0}).Draw(t, "n") {
		value := `"v"`
		switch k := rapid.IntRange(0, 5).Draw(t, "kind"); {
		case k == 5:
			value = drawJSON(t, 2)
		case k < 3 && depth > 0:
			value = drawUnordered(t, depth-1)
		case k == 3 && depth > 0:
			value = "[" + drawUnordered(t, depth-1) + "," + drawUnordered(t, depth-1) + "]"
		}
		items = append(items, `"`+names[i]+`":`+value)
	}
	return "{" + strings.Join(items, ",") + rapid.SampledFrom([]string{"}", "}", "}", "}", ",}", "", "}}", "} "}).Draw(t, "end")
}

// TestOrdered holds that deep nesting is left to the library, and that an object of many
// members is put in order.
func TestOrdered(t *testing.T) {
	deep := strings.Repeat(`{"b":1,"a":`, maxQuick+2) + "1" + strings.Repeat("}", maxQuick+2)
	if got := ordered([]byte(deep)); got != nil {
		t.Errorf("found %.60s", got)
	}
	var many []string
	for c := 'Z'; c >= 'A'; c-- {
		many = append(many, `"`+string(c)+`":{"b":[],"a":{}}`)
	}
	text := []byte("{" + strings.Join(many, ",") + "}")
	if got, err := canonicalize(text); err != nil || string(got) != string(ordered(text)) {
		t.Errorf("found %s, expected %s, %v", ordered(text), got, err)
	}
}
