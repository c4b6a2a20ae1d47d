package strictjson_test

import (
	stdjson "encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/abhed/abhed/internal/strictjson"
)

type named string

type doc struct {
	A named             `json:"a"`
	B *int              `json:"b"`
	C []doc             `json:"c"`
	N int               `json:"n"`
	M map[string]string `json:"m"`
	R jsontext.Value    `json:"r"`
	I any               `json:"i"`
	embedded
}

type embedded struct {
	E bool `json:"e"`
}

func TestDoor(t *testing.T) {
	deep := strings.Repeat("[", 129) + strings.Repeat("]", 129)
	tests := []struct {
		name, in string
		unknown  bool // reject unknown members
		pointer  string
		offset   int64
		msg      string // "" means accepted
	}{
		{name: "plain", in: `{"a":"x","n":1}`},
		{name: "white space around", in: " \r\n{\"a\":\"x\"}\n"},
		{name: "unknown member ignored", in: `{"zz":{"y":[1]}}`},
		{name: "unknown member refused", in: `{"zz":1}`, unknown: true, pointer: "/zz", offset: 1, msg: `unknown member "zz"`},
		{name: "name in other case", in: `{"A":"x"}`, unknown: true, pointer: "/A", offset: 1, msg: `unknown member "A"`},
		{name: "same name twice", in: `{"a":"x","a":"y"}`, pointer: "/a", offset: 9, msg: "the same member name twice in one object"},
		{name: "same name twice, escaped", in: `{"a":"x","\u0061":"y"}`, pointer: "/a", offset: 9, msg: "the same member name twice in one object"},
		{name: "same name twice in an ignored member", in: `{"zz":{"q":1,"q":2}}`, pointer: "/zz/q", offset: 13, msg: "the same member name twice in one object"},
		{name: "byte order mark", in: "\xef\xbb\xbf{}", msg: "the input starts with a byte order mark, which JSON doesn't allow"},
		{name: "empty", in: " ", offset: 1, msg: "empty input, expected a JSON value"},
		{name: "trailing value", in: `{} {}`, offset: 3, msg: "not valid JSON: invalid character '{' after top-level value"},
		{name: "cut", in: `{"a":"x"`, offset: 8, msg: "the JSON ends too early"},
		{name: "bad UTF-8", in: "{\"a\":\"\xff\"}", pointer: "/a", offset: 6, msg: "not valid JSON: invalid UTF-8"},
		{name: "lone surrogate", in: `{"a":"\ud800x"}`, pointer: "/a", offset: 6, msg: "not valid JSON: invalid surrogate pair `\\ud800x\"}` in string"},
		{name: "wrong type", in: `{"a":1}`, pointer: "/a", offset: 5, msg: "found a number, expected a string"},
		{name: "fraction for an integer", in: `{"n":1.5}`, pointer: "/n", offset: 5, msg: "found the number 1.5, expected an integer"},
		{name: "null for a string", in: `{"a":null}`, pointer: "/a", offset: 5, msg: "found null, expected a string"},
		{name: "null for a promoted field", in: `{"e":null}`, pointer: "/e", offset: 5, msg: "found null, expected a boolean"},
		{name: "null inside a list", in: `{"c":[{"n": null}]}`, pointer: "/c/0/n", offset: 12, msg: "found null, expected an integer"},
		{name: "null for a list", in: `{"c":null}`, pointer: "/c", offset: 5, msg: "found null, expected a list"},
		{name: "null in a map", in: `{"m":{"k":null}}`, pointer: "/m/k", offset: 10, msg: "found null, expected a string"},
		{name: "null where it may be", in: `{"b":null,"r":null,"i":null,"unknown":null}`},
		{name: "the word null in a string", in: `{"a":"null"}`},
		{name: "too deep", in: `{"r":` + deep + `}`, offset: 5 + 127, msg: "nested deeper than 128 levels"},
		{name: "brackets in a string are no depth", in: `{"a":"` + strings.Repeat(`[\"`, 200) + `"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var v doc
			err := strictjson.Unmarshal([]byte(tt.in), &v, strictjson.Options{RejectUnknown: tt.unknown})
			if tt.msg == "" {
				if err != nil {
					t.Fatalf("refused: %v", err)
				}
				return
			}
			var e *strictjson.Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v, want an *Error", err)
			}
			if e.Pointer != tt.pointer || e.Offset != tt.offset || e.Msg != tt.msg {
				t.Errorf("got %q at %q, byte %d\nwant %q at %q, byte %d", e.Msg, e.Pointer, e.Offset, tt.msg, tt.pointer, tt.offset)
			}
		})
	}
}

func TestSizeBound(t *testing.T) {
	if err := strictjson.Check([]byte(`"12345678"`), strictjson.Options{MaxBytes: 9}); err == nil {
		t.Error("10 bytes passed a limit of 9")
	}
	if err := strictjson.Check([]byte(`"1234567"`), strictjson.Options{MaxBytes: 9}); err != nil {
		t.Errorf("9 bytes refused by a limit of 9: %v", err)
	}
}

func TestCanonical(t *testing.T) {
	tests := []struct{ in, want string }{
		{`{ "b" : 1.0, "a" : [ 1e400 , -0 ] }`, `{"a":[1e400,-0],"b":1.0}`},
		{`"\u20ac\/\u000a"`, `"€/\n"`},
		// RFC 8785 orders names by UTF-16 code units: U+1F600 sorts before U+FB33.
		{"{\"\\ufb33\":1,\"\U0001f600\":2,\"\":3}", "{\"\":3,\"\U0001f600\":2,\"\ufb33\":1}"},
	}
	for _, tt := range tests {
		got, err := strictjson.Canonical([]byte(tt.in))
		if err != nil || string(got) != tt.want {
			t.Errorf("Canonical(%s) = %s, %v; want %s", tt.in, got, err, tt.want)
		}
	}
	if _, err := strictjson.Canonical([]byte(`{"a":1,"a":1}`)); err == nil {
		t.Error("a repeated name has a canonical form")
	}
}

func TestEqual(t *testing.T) {
	if !strictjson.Equal([]byte(`{"a":1,"b":"\u0041"}`), []byte(` {"b":"A","a":1}`)) {
		t.Error("order and escapes make a difference")
	}
	if strictjson.Equal([]byte(`1`), []byte(`1.0`)) {
		t.Error("1 and 1.0 are equal, though number literals stay as written")
	}
	if strictjson.Equal([]byte(`{`), []byte(`{`)) {
		t.Error("invalid JSON equals something")
	}
}

func TestLineColumn(t *testing.T) {
	data := []byte("ab\ncd\n")
	for _, tt := range []struct {
		off       int64
		line, col int
	}{{0, 1, 1}, {2, 1, 3}, {3, 2, 1}, {5, 2, 3}, {6, 3, 1}, {99, 3, 1}, {-1, 1, 1}} {
		if l, c := strictjson.LineColumn(data, tt.off); l != tt.line || c != tt.col {
			t.Errorf("byte %d is line %d column %d, want %d %d", tt.off, l, c, tt.line, tt.col)
		}
	}
}

// FuzzDoor holds that the door is at least as strict as the standard library, and
// that what it lets in means the same.
func FuzzDoor(f *testing.F) {
	for _, s := range []string{`{"a":"x"}`, `{"a":null}`, `[1,2.0,1e3]`, `"\ud83d\ude00"`, `{"a":1,"a":2}`, "\xef\xbb\xbf1"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var ours any
		err := strictjson.Unmarshal(data, &ours, strictjson.Options{})
		if (err == nil) != (strictjson.Check(data, strictjson.Options{}) == nil) {
			t.Fatalf("Check and Unmarshal disagree on %q: %v", data, err)
		}
		canon, cerr := strictjson.Canonical(data)
		if err != nil {
			if cerr == nil {
				t.Fatalf("refused JSON has a canonical form: %q", data)
			}
			return
		}
		var std any
		if serr := stdjson.Unmarshal(data, &std); serr != nil {
			if strings.Contains(serr.Error(), "cannot unmarshal number") {
				return // out of range for float64
			}
			t.Fatalf("the standard library refuses %q: %v", data, serr)
		}
		if !reflect.DeepEqual(ours, std) {
			t.Fatalf("%q means %v here and %v there", data, ours, std)
		}
		again, err := strictjson.Canonical(canon)
		if err != nil || string(again) != string(canon) {
			t.Fatalf("canonical form isn't stable: %s, then %s (%v)", canon, again, err)
		}
	})
}
