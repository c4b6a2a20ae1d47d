package hooklog

import (
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/strictjson"
)

// TestLineIsTheEncoding holds that an entry is written as its tags say, each of its
// members included, or left to the general way.
func TestLineIsTheEncoding(t *testing.T) {
	quick := 0
	rapid.Check(t, func(t *rapid.T) {
		var e Entry
		fill(t, reflect.ValueOf(&e).Elem())
		got := e.canonicalText()
		text, err := strictjson.Marshal(&e)
		if err == nil {
			text, err = strictjson.Canonical(text)
		}
		switch {
		case err != nil && got != nil:
			t.Fatalf("%+v: found %s, expected %v", e, got, err)
		case got != nil && string(got) != string(text):
			t.Fatalf("found\n%s\nexpected\n%s", got, text)
		case got != nil:
			quick++
		}
	})
	if quick == 0 {
		t.Error("no entry was written in the quick way")
	}
}

// fill sets each field to nothing or to something, whatever fields there are.
func fill(t *rapid.T, v reflect.Value) {
	if v.Type() == reflect.TypeFor[ahp.Raw]() {
		values := []string{``, `{}`, `{ }`, `null`, `""`, `[]`, `{"b":1,"a":[1.50,"é"]}`, `{"a":1}`, `{"a":1},"host":"x"`, `{"a":1}{`, `{"a":1,"a":2}`, "\"\xff\"", `"<&>\u0041"`}
		if s := rapid.SampledFrom(values).Draw(t, "raw"); s != "" || rapid.Bool().Draw(t, "empty") {
			v.Set(reflect.ValueOf(ahp.Raw(s)))
		}
		return
	}
	if rapid.IntRange(0, 3).Draw(t, "no") == 0 {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(rapid.SampledFrom([]string{"x", "a \"b\"\n\u2028<é\x01", strings.Repeat("long ", 40), "x", "\x7f", "😀", "x", "a/b"}).Draw(t, "text"))
		if rapid.IntRange(0, 200).Draw(t, "odd") == 0 {
			v.SetString("\xff")
		}
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.Int64().Draw(t, "number"))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), rapid.IntRange(0, 2).Draw(t, "length"), 2))
		for i := range v.Len() {
			fill(t, v.Index(i))
		}
	default:
		t.Fatalf("a field of type %v, of which this test knows nothing", v.Type())
	}
}
