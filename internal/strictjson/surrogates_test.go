package strictjson_test

import (
	"fmt"
	"testing"

	"github.com/abhed/abhed/internal/strictjson"
)

// TestLoneSurrogates: what it finds is what the door refuses, and no more.
func TestLoneSurrogates(t *testing.T) {
	for text, want := range map[string]string{
		`"\ud83d"`: "[1 d83d]", `"\uDE00x"`: "[1 de00]", `"\ud83d\ude00"`: "[]", `"\ud83d\ud83d\ude00"`: "[1 d83d]", `"\ude00\ud83d"`: "[1 de00 7 d83d]",
		`"\\ud83d"`: "[]", `"\\\ud83d"`: "[3 d83d]", `"\u0041"`: "[]", `"😀"`: "[]", `"\ud83d\n\ude00"`: "[1 d83d 9 de00]", `{"\udfff":"\ue000\ud7ff"}`: "[2 dfff]",
	} {
		found := []any{}
		strictjson.LoneSurrogates([]byte(text), func(at int, half rune) { found = append(found, at, fmt.Sprintf("%x", half)) })
		if got := fmt.Sprint(found); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
		if err := strictjson.Check([]byte(text), strictjson.Options{}); (err != nil) != (len(found) > 0) {
			t.Errorf("%s: the door says %v", text, err)
		}
	}
}
