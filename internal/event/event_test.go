package event

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/abhed/abhed/internal/strictjson"
)

// same compares what JSON can tell apart: a missing list is an empty one, no Raw
// value is null, and Raw values are equal as JSON.
var same = cmp.Options{
	cmp.FilterPath(func(p cmp.Path) bool { return p.Last().Type() != rawType }, cmpopts.EquateEmpty()),
	cmp.Comparer(func(a, b Raw) bool {
		return string(orNull(a)) == string(orNull(b)) || strictjson.Equal(orNull(a), orNull(b))
	}),
}

func orNull(r Raw) Raw {
	if len(r) == 0 {
		return Raw("null")
	}
	return r
}

var testHash = strings.Repeat("ab", 32)

func sample(p Payload) Event {
	return Event{
		ID: "0190a5b2-0000-7000-8000-000000000001", SessionID: "s-1", Seq: 7, Actor: ActorGate, Trust: TrustHarness,
		Time: time.Date(2026, 1, 2, 3, 4, 5, 60_000_000, time.UTC), Payload: p, Prev: testHash, Hash: testHash,
	}
}

// fill sets every member of v to something other than its zero value.
func fill(v reflect.Value, text func() string, n *int64) {
	*n++
	switch {
	case v.Type() == rawType:
		v.Set(reflect.ValueOf(Raw(fmt.Sprintf(`{"a":[1.50,"x%d",null],"b":{}}`, *n))))
		return
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), text, n)
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text())
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(*n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), text, n)
		fill(v.Index(1), text, n)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), text, n)
		}
	default:
		panic("a kind of field that fill doesn't know: " + v.Type().String())
	}
}

func filled(p Payload) Payload {
	var n int64
	fill(reflect.ValueOf(p).Elem(), func() string { return fmt.Sprintf("text %d \"\\\n\u2028é😀\x7f", n) }, &n)
	return p
}

// TestRoundTripOfEveryPayload holds that nothing is lost, and that the bytes are
// what a generic canonicaliser makes of the same struct.
func TestRoundTripOfEveryPayload(t *testing.T) {
	for _, typ := range Types() {
		for name, p := range map[string]Payload{"filled": filled(New(typ)), "zero": New(typ)} {
			t.Run(string(typ)+"/"+name, func(t *testing.T) {
				if p.Type() != typ {
					t.Fatalf("New(%s) makes a %s", typ, p.Type())
				}
				e := sample(p)
				line, err := Encode(e)
				if err != nil {
					t.Fatal(err)
				}
				if want := canonicalByLibrary(t, e); string(line) != want {
					t.Fatalf("not canonical:\n got %s\nwant %s", line, want)
				}
				back, err := Decode(line)
				if err != nil {
					t.Fatal(err)
				}
				// A missing list and an empty one are the same in JSON.
				if d := cmp.Diff(e, back, same); name == "filled" && d != "" {
					t.Fatal(d)
				}
				again, err := Encode(back)
				if err != nil || string(again) != string(line) {
					t.Fatalf("second encoding differs: %v\n%s\n%s", err, again, line)
				}
			})
		}
	}
}

// canonicalByLibrary builds the line by the JSON library alone.
func canonicalByLibrary(t testing.TB, e Event) string {
	t.Helper()
	body, err := strictjson.Marshal(e.Payload)
	if err != nil {
		t.Fatal(err)
	}
	all, err := strictjson.Marshal(map[string]any{
		"id": e.ID, "session_id": e.SessionID, "seq": e.Seq, "time": e.Time, "type": e.Payload.Type(), "actor": e.Actor,
		"trust": e.Trust, "payload": Raw(body), "prev": e.Prev, "hash": e.Hash,
	})
	if err != nil {
		t.Fatal(err)
	}
	c, err := strictjson.Canonical(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(c)
}

func TestEveryPayloadTypeIsInTheTable(t *testing.T) {
	seen := map[Type]bool{}
	for _, k := range kinds {
		if seen[k.typ] {
			t.Errorf("%s is twice in the table", k.typ)
		}
		seen[k.typ] = true
	}
	if New("no.such") != nil {
		t.Error("New makes a payload for a type that isn't in the table")
	}
}

func TestEmptyIsNotAbsent(t *testing.T) {
	var zero int64
	for _, p := range []Payload{
		&ModelResponded{Message: Message{Role: RoleAssistant, Parts: []Part{TextPart("")}}, Usage: &Usage{}},
		&ModelResponded{Message: Message{Parts: []Part{}}, Usage: &Usage{Input: &zero}},
		&Decision{Original: Raw(`{}`), Final: Raw(`""`), RulesFinal: Raw(`null`)},
	} {
		line, err := Encode(sample(p))
		if err != nil {
			t.Fatal(err)
		}
		back, err := Decode(line)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(p, back.Payload); d != "" {
			t.Errorf("%s\n%s", line, d)
		}
	}
}

func TestUnknownTypeIsKept(t *testing.T) {
	line := `{"actor":"system","hash":"` + testHash + `","id":"i","payload":{"$blob":1,"n":1.50,"z":[]},"prev":"","seq":1,"session_id":"s","time":"2026-01-02T03:04:05Z","trust":"harness","type":"from.the.future"}`
	e, err := Decode([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	u, ok := e.Payload.(*Unknown)
	if !ok || u.Kind != "from.the.future" || string(u.Body) != `{"$blob":1,"n":1.50,"z":[]}` {
		t.Fatalf("payload %#v", e.Payload)
	}
	back, err := Encode(e)
	if err != nil || string(back) != line {
		t.Fatalf("%v\n got %s\nwant %s", err, back, line)
	}
	if _, err := Encode(sample(&Unknown{Kind: TypeNotice, Body: Raw(`{}`)})); err == nil {
		t.Error("an Unknown that bears a known type was encoded")
	}
}

func TestDecodeRefuses(t *testing.T) {
	good := string(mustEncode(t, sample(&Notice{Level: "info", Text: "t"})))
	if _, err := Decode([]byte(good)); err != nil {
		t.Fatal(err)
	}
	swap := func(old, with string) string {
		s := strings.Replace(good, old, with, 1)
		if s == good {
			t.Fatalf("%q is not in %s", old, good)
		}
		return s
	}
	for name, c := range map[string]struct{ line, pointer, msg string }{
		"name in other case":    {swap(`"seq"`, `"Seq"`), "/seq", "expected an integer of 1 or more"},
		"repeated name":         {swap(`"seq":7`, `"seq":7,"seq":8`), "/seq", "twice"},
		"seq is zero":           {swap(`"seq":7`, `"seq":0`), "/seq", "found 0"},
		"seq is text":           {swap(`"seq":7`, `"seq":"7"`), "/seq", "expected an integer"},
		"seq is a fraction":     {swap(`"seq":7`, `"seq":7.5`), "/seq", ""},
		"no hash":               {swap(`"hash"`, `"hush"`), "/hash", "missing"},
		"hash in upper case":    {swap(testHash, strings.ToUpper(testHash)), "/hash", "lower-case"},
		"prev is short":         {swap(`"prev":"ab`, `"prev":"`), "/prev", "malformed"},
		"no payload":            {swap(`"payload"`, `"payl"`), "/payload", "missing"},
		"payload is a list":     {swap(`{"level":"info","text":"t"}`, `[]`), "/payload", "no object"},
		"payload member null":   {swap(`"info"`, `null`), "/payload/level", "found null"},
		"payload of wrong type": {swap(`"info"`, `{"a":1}`), "/payload/level", "expected a string"},
		"time is no time":       {swap(`2026-01-02T`, `2026-13-02T`), "/time", ""},
		"time is absent":        {swap(`"time"`, `"tame"`), "/time", "missing"},
		"type is empty":         {swap(`"notice"`, `""`), "/type", "missing or empty"},
		"bad UTF-8":             {swap(`"info"`, "\"\xff\""), "", ""},
		"cut":                   {good[:len(good)-3], "", "ends too early"},
		"two values":            {good + "{}", "", ""},
		"empty":                 {"", "", "empty input"},
		"blob where none load":  {swap(`"info"`, `{"$blob":{"sha256":"`+testHash+`","size":3}}`), "", "stored beside"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Decode([]byte(c.line))
			if err == nil {
				t.Fatalf("accepted: %s", c.line)
			}
			var je *strictjson.Error
			if errors.As(err, &je); je != nil && c.pointer != "" && je.Pointer != c.pointer {
				t.Errorf("pointer %q, expected %q (%v)", je.Pointer, c.pointer, err)
			}
			if !strings.Contains(err.Error(), c.msg) {
				t.Errorf("message %q, expected %q in it", err, c.msg)
			}
		})
	}
}

func TestBadPayloadLeavesTheEventUsable(t *testing.T) {
	line := strings.Replace(string(mustEncode(t, sample(&Notice{Level: "info", Text: "t"}))), `"info"`, `7`, 1)
	e, err := Decode([]byte(line))
	var pe *PayloadError
	if !errors.As(err, &pe) || pe.Type != TypeNotice {
		t.Fatalf("error %v", err)
	}
	var je *strictjson.Error
	if !errors.As(err, &je) || je.Offset < int64(strings.Index(line, `"payload"`)) {
		t.Errorf("offset is not within the line: %v", err)
	}
	if u, ok := e.Payload.(*Unknown); !ok || e.Seq != 7 || string(u.Body) != `{"level":7,"text":"t"}` {
		t.Errorf("event %+v", e)
	}
}

func TestEncodeRefuses(t *testing.T) {
	mod := func(f func(*Event)) Event {
		e := sample(&Notice{Text: "t"})
		f(&e)
		return e
	}
	for name, c := range map[string]struct {
		e       Event
		pointer string
		unclean bool
	}{
		"no payload":  {mod(func(e *Event) { e.Payload = nil }), "/payload", false},
		"nil payload": {mod(func(e *Event) { e.Payload = (*Notice)(nil) }), "/payload", false},
		"no actor":    {mod(func(e *Event) { e.Actor = "" }), "/actor", false},
		"no seq":      {mod(func(e *Event) { e.Seq = 0 }), "/seq", false},
		"bad prev":    {mod(func(e *Event) { e.Prev = "x" }), "/prev", false},
		"bad id":      {mod(func(e *Event) { e.ID = "\xff" }), "/id", false},
		"bad text":    {mod(func(e *Event) { e.Payload = &Notice{Text: "a\xffb"} }), "/payload/text", true},
		"bad list":    {mod(func(e *Event) { e.Payload = &ToolEnded{Injected: []string{"a", "\xc0"}} }), "/payload/injected/1", true},
		"bad raw":     {mod(func(e *Event) { e.Payload = &Decision{Original: Raw(`{"a":`)} }), "/payload/original", true},
		"double name": {mod(func(e *Event) { e.Payload = &Decision{Original: Raw(`{"a":1,"a":2}`)} }), "/payload/original", true},
		"deep raw": {mod(func(e *Event) {
			e.Payload = &Decision{Original: Raw(strings.Repeat("[", 200) + strings.Repeat("]", 200))}
		}), "/payload/original", true},
		"too long": {mod(func(e *Event) { e.Payload = &Notice{Text: strings.Repeat("x", MaxLine)} }), "", false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Encode(c.e)
			var ee *EncodeError
			if !errors.As(err, &ee) || ee.Pointer != c.pointer || errors.Is(err, ErrUnclean) != c.unclean {
				t.Fatalf("error %v", err)
			}
		})
	}
}

// TestDeepestRawIsReadable holds that what the door lets in as arguments can be
// recorded and read again.
func TestDeepestRawIsReadable(t *testing.T) {
	deep := Raw(strings.Repeat("[", 128) + strings.Repeat("]", 128))
	line := mustEncode(t, sample(&Decision{Original: deep, Final: deep}))
	e, err := Decode(line)
	if err != nil {
		t.Fatal(err)
	}
	if string(e.Payload.(*Decision).Original) != string(deep) {
		t.Error("another value came back")
	}
}

func FuzzDecode(f *testing.F) {
	for _, typ := range Types() {
		f.Add(mustEncode(f, sample(filled(New(typ)))))
	}
	f.Add([]byte(`{"actor":"a","hash":"` + testHash + `","id":"i","payload":{"$blob":{"sha256":"` + testHash + `","size":1}},"prev":"","seq":1,"session_id":"s","time":"2026-01-02T03:04:05Z","trust":"t","type":"notice"}`))
	d := Decoder{Blob: func(string, int64) (string, error) { return "blob", nil }}
	f.Fuzz(func(t *testing.T, line []byte) {
		e, err := d.Decode(line)
		if err != nil {
			return
		}
		again, err := Encode(e)
		if err != nil {
			t.Fatalf("decoded and not encodable: %v", err)
		}
		if c, err := strictjson.Canonical(again); err != nil || string(c) != string(again) {
			t.Fatalf("not canonical (%v): %s", err, again)
		}
		back, err := d.Decode(again)
		if err != nil {
			t.Fatalf("encoded and not decodable: %v: %s", err, again)
		}
		if d := cmp.Diff(e, back, same); d != "" {
			t.Fatal(d)
		}
	})
}

func mustEncode(t testing.TB, e Event) []byte {
	t.Helper()
	line, err := Encode(e)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

func ptr[T any](v T) *T { return &v }

// TestMadeValuesRoundTrip draws payloads with members left out at random.
func TestMadeValuesRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		p := filled(New(Types()[r.IntN(len(kinds))]))
		v := reflect.ValueOf(p).Elem()
		for i := range v.NumField() {
			if r.IntN(2) == 0 {
				v.Field(i).SetZero()
			}
		}
		e := sample(p)
		line := mustEncode(t, e)
		if want := canonicalByLibrary(t, e); string(line) != want {
			t.Fatalf("not canonical:\n got %s\nwant %s", line, want)
		}
		back, err := Decode(line)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(e, back, same); d != "" {
			t.Fatal(d)
		}
	}
}
