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
	"pgregory.net/rapid"

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

func TestBlobs(t *testing.T) {
	long, longer := strings.Repeat("é", 20), strings.Repeat("\n", 33)
	stored := map[string]string{}
	enc := Encoder{BlobOver: 32}
	dec := Decoder{Blob: func(sum string, size int64) (string, error) {
		s, ok := stored[sum]
		if !ok || int64(len(s)) != size {
			return "", errors.New("no such blob")
		}
		return s, nil
	}}
	for _, p := range []Payload{
		&Notice{Text: long},
		&ToolEnded{Content: longer, Injected: []string{"short", long}},
		&Decision{Original: Raw(`{"content":"` + long + `","z":["` + long + `"]}`), Final: Raw(`"` + long + `"`)},
		&Decision{Original: Raw(`{"$blob":{"sha256":"` + testHash + `","size":9}}`), Final: Raw(`{"a":{"$$blob":1,"$a":2,"$blob":3},"x$blob":4}`)},
	} {
		l, err := enc.Append([]byte("before"), ptr(sample(p)))
		if err != nil {
			t.Fatal(err)
		}
		line := strings.TrimPrefix(string(l.Bytes), "before")
		for _, b := range l.Blobs {
			stored[b.SHA256] = b.Text
		}
		if strings.Contains(line, long) {
			t.Errorf("the long text is in the line: %s", line)
		}
		if c, err := strictjson.Canonical([]byte(line)); err != nil || string(c) != line {
			t.Errorf("not canonical (%v): %s", err, line)
		}
		e, err := dec.Decode([]byte(line))
		if err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if d := cmp.Diff(p, e.Payload); d != "" {
			t.Error(d)
		}
	}
	for _, body := range []string{
		`{"$blob":{"sha256":"zz","size":1}}`, `{"$blob":{"sha256":"` + testHash + `"},"x":1}`, `{"a":1,"$blob":{"sha256":"` + testHash + `","size":1}}`,
		`{"$blob":3}`, `{"$blob":{"sha256":"` + testHash + `","size":1,"path":"/etc"}}`, `{"$blob":{"sha256":"` + testHash + `","size":-1}}`,
	} {
		line := strings.Replace(string(mustEncode(t, sample(&Notice{Level: "info"}))), `"info"`, body, 1)
		var pe *PayloadError
		if _, err := dec.Decode([]byte(line)); !errors.As(err, &pe) {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestCheckSeesAllText(t *testing.T) {
	for name, p := range map[string]Payload{
		"string":          &Notice{Text: "a SECRET b"},
		"list":            &ToolEnded{Injected: []string{"", "SECRET"}},
		"pointer":         &ModelResponded{Message: Message{Parts: []Part{TextPart("SECRET")}}},
		"raw string":      &Decision{Original: Raw(`{"a":["SECRET"]}`)},
		"raw name":        &Decision{Original: Raw(`{"SECRET":1}`)},
		"raw escaped":     &Decision{Original: Raw(`{"a":"\u0053ECRET"}`)},
		"raw with escape": &Decision{Original: Raw(`{"a":"no\nthing","b":"SE\"CRET"}`)},
		"unknown":         &Unknown{Kind: "k", Body: Raw(`{"a":"SECRET"}`)},
		"long text":       &Notice{Text: strings.Repeat("x", 100) + "SECRET"},
	} {
		enc := Encoder{BlobOver: 50, Check: func(s string) bool { return !strings.Contains(s, "SECRET") && !strings.Contains(s, `SE"CRET`) }}
		if _, err := enc.Append(nil, ptr(sample(p))); !errors.Is(err, ErrUnclean) {
			t.Errorf("%s: %v", name, err)
		}
		enc.Check = func(string) bool { return true }
		if _, err := enc.Append(nil, ptr(sample(p))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMapStrings(t *testing.T) {
	p := filled(&SessionResumed{}).(*SessionResumed)
	before := mustEncode(t, sample(p))
	n := 0
	got := MapStrings(p, func(s string) string { n++; return "<" + s + ">" }).(*SessionResumed)
	if got.Version != "<"+p.Version+">" || got.Skipped[1] != "<"+p.Skipped[1]+">" || got.UnsignedTail != p.UnsignedTail || n < 10 {
		t.Errorf("mapped %d: %+v", n, got)
	}
	if after := mustEncode(t, sample(p)); string(after) != string(before) {
		t.Error("the payload itself was changed")
	}
	swap := func(s string) string { return strings.ReplaceAll(strings.ToValidUTF8(s, "?"), "12345678", "[x]") }
	for in, want := range map[string]string{
		`{"12345678":1,"b":["12345678",12345678,5,"\u00312345678"]}`: `{"[x]":1,"b":["[x]","[x]",5,"[x]"]}`,
		`{"12345678":1,"[x]":2}`:                                     `"{\"[x]\":1,\"[x]\":2}"`,
		`{"a":`:                                                      `"{\"a\":"`,
		"\"\xff\"":                                                   `"\"?\""`,
		`{"b":1,"a":1.0}`:                                            `{"a":1.0,"b":1}`,
	} {
		d := MapStrings(&Decision{Original: Raw(in)}, swap).(*Decision)
		if string(d.Original) != want {
			t.Errorf("%s\n got %s\nwant %s", in, d.Original, want)
		}
	}
	for in, want := range map[string]string{`{"k":"12345678"}`: `{"k":"[x]"}`, `{"12345678":1,"[x]":2}`: `{"text":"{\"[x]\":1,\"[x]\":2}"}`} {
		u := MapStrings(&Unknown{Kind: "k", Body: Raw(in)}, swap).(*Unknown)
		if u.Kind != "k" || string(u.Body) != want {
			t.Errorf("%s: %s", in, u.Body)
		}
	}
}

// TestQuickCanonicalIsRight compares the quick test and the string writer with
// the library.
func TestQuickCanonicalIsRight(t *testing.T) {
	accepted := 0
	rapid.Check(t, func(t *rapid.T) {
		text := drawJSON(t, 3)
		c, err := strictjson.Canonical([]byte(text))
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
		want, err := strictjson.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(appendString(nil, s)); got != string(want) || !IsCanonical([]byte(got)) {
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

func FuzzCanonical(f *testing.F) {
	for _, s := range []string{`{"a":1,"b":"\u001f"}`, `[1e5,-0,"\n"]`, `{"a":{},"a":1}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if !IsCanonical(text) {
			return
		}
		if c, err := strictjson.Canonical(text); err != nil || string(c) != string(text) {
			t.Fatalf("taken for canonical: %q; the library says %q, %v", text, c, err)
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

// decision is of the size that a real one has.
func decision() *Decision {
	args := Raw(`{"command":"go test ./internal/...","description":"run the tests of the internal packages","timeout_ms":60000}`)
	return &Decision{
		Turn: 3, CallID: "call_9f2c1a", Tool: "bash", ToolVersion: "1", AgentID: "main", Original: args, OriginalHash: testHash, Final: args, FinalHash: testHash,
		Outcome: "run", Verdict: "allow", Step: "rules", By: "allow rule", RulesHash: testHash, RulesOriginal: Raw(`{"file":"config.json","line":12,"rule":"bash(go test*)","step":"allow","verdict":"allow"}`),
		RulesFinal: Raw(`{"file":"config.json","line":12,"rule":"bash(go test*)","step":"allow","verdict":"allow"}`), WorkDir: "/home/user/project", Roots: []string{"/home/user/project"},
		Mode: "default", SubjectKind: "command", Subject: "go test ./internal/...", Mutates: true, MS: 1,
		Asked: []Asked{{Kind: "extension", Name: "guard", Version: testHash, Step: "tool_call", Round: 1, Answer: "none", MS: 1}},
	}
}

func BenchmarkAppendDecision(b *testing.B) {
	e := sample(decision())
	var enc Encoder
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		l, err := enc.Append(buf[:0], &e)
		if err != nil {
			b.Fatal(err)
		}
		buf = l.Bytes
	}
	b.SetBytes(int64(len(buf)))
}

func BenchmarkDecodeDecision(b *testing.B) {
	line := mustEncode(b, sample(decision()))
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decode(line); err != nil {
			b.Fatal(err)
		}
	}
}

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
