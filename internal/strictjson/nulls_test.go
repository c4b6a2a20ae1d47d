package strictjson_test

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"github.com/abhed/abhed/internal/strictjson"
)

// places has a member for every kind of place that a null may meet.
type places struct {
	S   string               `json:"s"`
	B   bool                 `json:"b"`
	I   int8                 `json:"i"`
	U   uint                 `json:"u"`
	F   float64              `json:"f"`
	By  []byte               `json:"by"`
	L   []string             `json:"l"`
	LP  []*string            `json:"lp"`
	Ar  [2]int               `json:"ar"`
	M   map[string]int       `json:"m"`
	MA  map[string]any       `json:"ma"`
	P   *places              `json:"p"`
	PP  **int                `json:"pp"`
	LL  [][]map[string]*bool `json:"ll"`
	St  struct{ X named }    `json:"st"`
	A   any                  `json:"a"`
	R   jsontext.Value       `json:"r"`
	PR  *jsontext.Value      `json:"pr"`
	T   texted               `json:"t"`
	TP  *texted              `json:"tp"`
	Own owned                `json:"own"`
	embedded
	No    string `json:"-"`
	Plain int
}

// texted takes strings and nothing else; a null is the library's business.
type texted struct{ text string }

func (t *texted) UnmarshalText(b []byte) error {
	t.text = string(b)
	return nil
}

// owned decodes itself by the door, from strings with JSON inside.
type owned struct{ places *places }

func (o *owned) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	var inner string
	if err := strictjson.Unmarshal(data, &inner, strictjson.Options{}); err != nil {
		return err
	}
	o.places = &places{}
	return strictjson.Unmarshal([]byte(inner), o.places, strictjson.Options{})
}

// nullAt returns the pointer of the first null that has no place in t, by a walk
// over the decoded document.
func nullAt(v any, t reflect.Type, at string) (string, bool) {
	custom := t == reflect.TypeFor[texted]() || t == reflect.TypeFor[owned]() || t == reflect.TypeFor[jsontext.Value]()
	switch {
	case custom || t.Kind() == reflect.Interface:
		return "", false
	case t.Kind() == reflect.Pointer && v == nil:
		return "", false
	case t.Kind() == reflect.Pointer:
		return nullAt(v, t.Elem(), at)
	case v == nil:
		return at, true
	}
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			if where, bad := nullAt(e, t.Elem(), fmt.Sprintf("%s/%d", at, i)); bad {
				return where, true
			}
		}
	case members:
		for _, m := range v {
			elem := memberType(t, m.name)
			if elem == nil {
				continue
			}
			if where, bad := nullAt(m.value, elem, at+"/"+m.name); bad {
				return where, true
			}
		}
	}
	return "", false
}

func memberType(t reflect.Type, name string) reflect.Type {
	if t.Kind() == reflect.Map {
		return t.Elem()
	}
	for _, f := range reflect.VisibleFields(t) {
		if f.Tag.Get("json") == name && name != "-" || f.Tag.Get("json") == "" && f.IsExported() && f.Name == name {
			return f.Type
		}
	}
	return nil
}

// members is an object with its order.
type members []member

type member struct {
	name  string
	value any
}

func (m members) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	for i, e := range m {
		value, err := stdjson.Marshal(e.value)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%s%q:%s", map[bool]string{true: "{", false: ","}[i == 0], e.name, value)
	}
	if b.Len() == 0 {
		b.WriteByte('{')
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// document draws a value that suits t, with nulls anywhere.
func document(t *rapid.T, typ reflect.Type, depth int) any {
	switch {
	case rapid.IntRange(0, 7).Draw(t, "null") == 0:
		return nil
	case typ == nil || typ == reflect.TypeFor[jsontext.Value]() || typ.Kind() == reflect.Interface:
		return []any{nil, members{{"x", nil}}}
	case typ == reflect.TypeFor[texted](), typ == reflect.TypeFor[owned]():
		return `{"s":"null"}`
	}
	switch typ.Kind() {
	case reflect.String:
		return "null"
	case reflect.Bool:
		return true
	case reflect.Pointer:
		return document(t, typ.Elem(), depth)
	case reflect.Slice, reflect.Array:
		if typ.Elem().Kind() == reflect.Uint8 {
			return "AAAA"
		}
		n := 2
		if typ.Kind() == reflect.Slice {
			n = rapid.IntRange(0, 2).Draw(t, "n")
		}
		out := []any{}
		for range n {
			out = append(out, document(t, typ.Elem(), depth+1))
		}
		return out
	case reflect.Map:
		return members{{"k", document(t, typ.Elem(), depth+1)}}
	case reflect.Struct:
		return object(t, typ, depth)
	}
	return 1
}

func object(t *rapid.T, typ reflect.Type, depth int) any {
	out := members{}
	if depth > 3 {
		return out
	}
	names := []string{"X"}
	if typ == reflect.TypeFor[places]() {
		names = rapid.SliceOfNDistinct(rapid.SampledFrom(strings.Fields("s b i u f by l lp ar m ma p pp ll st a r pr t tp own e - No Plain S unknown")), 0, 4, rapid.ID[string]).Draw(t, "names")
	}
	for _, name := range names {
		out = append(out, member{name, document(t, memberType(typ, name), depth+1)})
	}
	return out
}

// TestNullsHaveAPlace holds that the door refuses exactly the nulls that a walk over
// the document finds no place for, and names the first of them.
func TestNullsHaveAPlace(t *testing.T) {
	refused := 0
	rapid.Check(t, func(t *rapid.T) {
		doc := document(t, reflect.TypeFor[places](), 0)
		data, err := stdjson.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		where, bad := nullAt(doc, reflect.TypeFor[places](), "")
		var v places
		err = strictjson.Unmarshal(data, &v, strictjson.Options{})
		var e *strictjson.Error
		switch {
		case !bad && err != nil:
			t.Fatalf("%s was refused: %v", data, err)
		case bad && !errors.As(err, &e):
			t.Fatalf("%s: %v, expected a null without a place at %s", data, err, where)
		case bad && (e.Pointer != where || !strings.HasPrefix(e.Msg, "found null, expected ") || !bytes.HasPrefix(data[e.Offset:], []byte("null"))):
			t.Fatalf("%s: %v, expected it at %s", data, err, where)
		}
		if bad {
			refused++
		}
	})
	if refused == 0 {
		t.Error("nothing was refused")
	}
}

// TestFaultsInsideCustomTypes holds that a type which decodes itself by the door keeps
// its own errors: the place is the one in the document.
func TestFaultsInsideCustomTypes(t *testing.T) {
	var v places
	var e *strictjson.Error
	err := strictjson.Unmarshal([]byte(`{"r":null,"own":"{\"p\":null,\"s\":null}"}`), &v, strictjson.Options{})
	if !errors.As(err, &e) || e.Pointer != "/own" || !strings.Contains(e.Msg, "found null, expected a string (at /s") {
		t.Errorf("got %v", err)
	}
}
