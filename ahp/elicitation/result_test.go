package elicitation_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/elicitation"
	"github.com/abhed/abhed/internal/strictjson"
)

func request(t testing.TB, text string) *elicitation.Request {
	t.Helper()
	q, err := elicitation.ParseRequest([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func TestResultShapes(t *testing.T) {
	form := request(t, formOf(`{"type":"string"}`))
	needy := request(t, `{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}}`)
	url := request(t, `{"mode":"url","message":"m","url":"https://a.example/","elicitationId":"e"}`)
	for _, tt := range []struct {
		name, text string
		q          *elicitation.Request
		want       string
	}{
		{"accept", `{"action":"accept","content":{"a":"x"}}`, form, "ok"},
		{"accept without content", `{"action":"accept"}`, form, "ok"},
		{"accept without what is required", `{"action":"accept"}`, needy, ""},
		{"accept with nothing of what is required", `{"action":"accept","content":{}}`, needy, "/content"},
		{"an answer nobody asked for", `{"action":"accept","content":{"b":[],"c":1.5,"d":true}}`, form, "ok"},
		{"nested object", `{"action":"accept","content":{"b":{}}}`, form, "/content/b"},
		{"null", `{"action":"accept","content":{"b":null}}`, form, "/content/b"},
		{"list of numbers", `{"action":"accept","content":{"b":["x",1]}}`, form, "/content/b/1"},
		{"content is a list", `{"action":"accept","content":[]}`, form, "/content"},
		{"decline", `{"action":"decline"}`, needy, "ok"},
		{"cancel", `{"action":"cancel","_meta":{"x":{}}}`, needy, "ok"},
		{"decline with content", `{"action":"decline","content":{}}`, form, "/content"},
		{"decline with content, nothing known", `{"action":"decline","content":{}}`, nil, "/content"},
		{"url accept", `{"action":"accept"}`, url, "ok"},
		{"url accept with content", `{"action":"accept","content":{}}`, url, "/content"},
		{"nothing known", `{"action":"accept","content":{"a":1}}`, nil, "ok"},
		{"unknown action", `{"action":"agree"}`, form, "/action"},
		{"no action", `{"content":{}}`, form, ""},
		{"meta is text", `{"action":"cancel","_meta":""}`, form, "/_meta"},
		{"members that MCP doesn't name", `{"action":"cancel","later":[{}]}`, form, "ok"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := elicitation.ParseResult([]byte(tt.text), tt.q)
			wantPointer(t, err, tt.want, ahp.KindShape)
		})
	}
}

func wantPointer(t *testing.T, err error, want string, kind ahp.Kind) {
	t.Helper()
	if want == "ok" {
		if err != nil {
			t.Errorf("refused: %v", err)
		}
		return
	}
	var e *ahp.Error
	if !errors.As(err, &e) || e.Pointer != want || e.Kind != kind {
		t.Errorf("got %v, want %v at %q", err, kind, want)
	}
}

// TestAnswers holds each keyword of each shape of a field.
func TestAnswers(t *testing.T) {
	const (
		choice  = `{"type":"string","enum":["a","b"]}`
		titled  = `{"type":"string","oneOf":[{"const":"a","title":"A"}]}`
		several = `{"type":"array","items":{"type":"string","enum":["a","b"]},"minItems":1,"maxItems":2}`
		anyOf   = `{"type":"array","items":{"anyOf":[{"const":"a","title":"A"}]}}`
		whole   = `{"type":"integer","minimum":-2,"maximum":10}`
	)
	for _, tt := range []struct {
		property, answer string
		ok               bool
	}{
		{`{"type":"string"}`, `""`, true},
		{`{"type":"string"}`, `1`, false},
		{`{"type":"string","minLength":2}`, `"é"`, false},
		{`{"type":"string","minLength":2}`, `"é😀"`, true},
		{`{"type":"string","maxLength":2}`, `"é😀"`, true},
		{`{"type":"string","maxLength":1}`, `"e\u0301"`, false},
		{`{"type":"string","format":"date"}`, `"2026-02-30"`, false},
		{`{"type":"number"}`, `-0.5e-3`, true},
		{`{"type":"number"}`, `"1"`, false},
		{`{"type":"number","minimum":0.1}`, `0.1000`, true},
		{`{"type":"number","minimum":0.1}`, `0.09999999999999999999999`, false},
		{`{"type":"number","minimum":-1}`, `-1.0000000000000000000000001`, false},
		{`{"type":"number","maximum":9007199254740993}`, `9007199254740993`, true},
		{`{"type":"number","maximum":9007199254740992}`, `9007199254740993`, false},
		{`{"type":"number","maximum":0}`, `-0`, true},
		{`{"type":"number","minimum":0}`, `-0.0`, true},
		{`{"type":"number"}`, `1e9999999`, false},
		{whole, `1e1`, true},
		{whole, `10.0`, true},
		{whole, `1.1e1`, false},
		{whole, `-2`, true},
		{whole, `-3`, false},
		{whole, `0.5`, false},
		{`{"type":"boolean"}`, `false`, true},
		{`{"type":"boolean"}`, `"false"`, false},
		{choice, `"b"`, true},
		{choice, `"c"`, false},
		{choice, `["a"]`, false},
		{titled, `"a"`, true},
		{titled, `"A"`, false},
		{several, `["a","b"]`, true},
		{several, `["a","a"]`, true},
		{several, `[]`, false},
		{several, `["a","b","a"]`, false},
		{several, `["c"]`, false},
		{several, `"a"`, false},
		{anyOf, `["a"]`, true},
		{anyOf, `["A"]`, false},
	} {
		t.Run(tt.property+tt.answer, func(t *testing.T) {
			want := "ok"
			if !tt.ok {
				want = "/content/a"
			}
			_, err := elicitation.ParseResult([]byte(`{"action":"accept","content":{"a":`+tt.answer+`}}`), request(t, formOf(tt.property)))
			var e *ahp.Error
			if errors.As(err, &e) && !tt.ok && strings.HasPrefix(e.Pointer, want+"/") {
				return // an item of the answer
			}
			wantPointer(t, err, want, ahp.KindShape)
		})
	}
}

func TestFormats(t *testing.T) {
	for _, tt := range []struct {
		format  elicitation.Format
		good    []string
		notGood []string
	}{
		{elicitation.FormatEmail,
			[]string{"a@b", "a.b+c@example.com", `"a b\"c"@example.com`, "a@[127.0.0.1]", "a@[IPv6:::1]", "a@[tag:x]", "!#$%&'*+-/=?^_`{|}~@x1-y.z", "a@1.2", `""@x`},
			[]string{"", "a", "@b", "a@", ".a@b", "a.@b", "a..b@c", "a b@c", "a@-b", "a@b-", "a@b..c", "a@b.", "a@[127.0.0]", "a@[]", "a@[::1]", "a@[IPv6:1.2.3.4]", "a@[IPv6:fe80::1%eth0]", `"a"b@c`, `"a"b"@c`, `"\"@c`, "é@b", "a@é",
				"a@b\n", strings.Repeat("a", 65) + "@b", "a@" + strings.Repeat("a", 64), "a@" + strings.Repeat("a.", 128) + "a", "a@[tag:]", "a@[x"}},
		{elicitation.FormatURI,
			[]string{"https://example.com/a?b#c", "urn:a:b", "mailto:a@b", "x:"},
			[]string{"", "/a", "a", "https://exa mple/", "https://[::g]/", "http://a/%zz", "1a:b", "https://a\n"}},
		{elicitation.FormatDate,
			[]string{"2026-02-28", "2024-02-29", "0000-01-01"},
			[]string{"", "2026-02-29", "2026-2-28", "20260228", "2026-13-01", "2026-00-01", "2026-01-32", "2026-01-01Z", "2026-01-01T00:00:00Z", "２026-01-01"}},
		{elicitation.FormatDateTime,
			[]string{"2026-01-01T00:00:00Z", "2026-01-01t00:00:00.123z", "2026-01-01T23:59:60Z", "2026-01-01T00:00:00+23:59"},
			[]string{"", "2026-01-01", "2026-01-01 00:00:00Z", "2026-01-01T00:00:00", "2026-01-01T24:00:00Z", "2026-01-01T00:00:00.Z", "2026-01-01T00:00:00+24:00", "2026-01-01T12:00:60Z"}},
		{"", []string{"", "x"}, nil},
		{"ipv4", nil, []string{"127.0.0.1"}},
	} {
		for _, s := range tt.good {
			if !tt.format.Matches(s) {
				t.Errorf("%s refuses %q", tt.format, s)
			}
		}
		for _, s := range tt.notGood {
			if tt.format.Matches(s) {
				t.Errorf("%s takes %q", tt.format, s)
			}
		}
	}
}

func TestEdit(t *testing.T) {
	form := request(t, `{"message":"m","requestedSchema":{"type":"object","required":["a"],"properties":{"a":{"type":"string","maxLength":3}}}}`)
	const text = `{"action":"accept","_meta":{"k":[1]},"content":{"a":"old","b":true},"later":1}`
	for _, tt := range []struct {
		name, text string
		op         ahp.Operation
		value      string
		q          *elicitation.Request
		want       string // the edited text, or the pointer of the fault
		kind       ahp.Kind
	}{
		{"merge", text, ahp.OpMerge, `{"a":"new","c":["x"]}`, form, `{"action":"accept","_meta":{"k":[1]},"later":1,"content":{"a":"new","b":true,"c":["x"]}}`, 0},
		{"replace drops", text, ahp.OpReplace, `{"a":"new"}`, form, `{"action":"accept","_meta":{"k":[1]},"later":1,"content":{"a":"new"}}`, 0},
		{"merge of nothing", text, ahp.OpMerge, `{}`, form, text, 0},
		{"no form is known", text, ahp.OpReplace, `{}`, nil, `{"action":"accept","_meta":{"k":[1]},"later":1,"content":{}}`, 0},
		{"a list", text, ahp.OpMerge, `[]`, form, "", ahp.KindCapability},
		{"a text", text, ahp.OpReplace, `"x"`, form, "", ahp.KindCapability},
		{"a null in it", text, ahp.OpMerge, `{"b":null}`, form, "/b", ahp.KindCapability},
		{"an object in it", text, ahp.OpMerge, `{"b":{}}`, nil, "/b", ahp.KindCapability},
		{"beyond the form", text, ahp.OpMerge, `{"a":"long"}`, form, "/content/a", ahp.KindApplication},
		{"without what is required", text, ahp.OpReplace, `{}`, form, "/content", ahp.KindApplication},
		{"declined", `{"action":"decline"}`, ahp.OpMerge, `{}`, form, "", ahp.KindCapability},
		{"cancelled", `{"action":"cancel"}`, ahp.OpReplace, `{"a":"x"}`, nil, "", ahp.KindCapability},
		{"accepted without an answer", `{"action":"accept"}`, ahp.OpReplace, `{"a":"x"}`, nil, "", ahp.KindCapability},
		{"a url", `{"action":"accept"}`, ahp.OpReplace, `{"a":"x"}`, &elicitation.Request{Mode: elicitation.ModeURL}, "", ahp.KindCapability},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := elicitation.Edit([]byte(tt.text), tt.op, ahp.Raw(tt.value), tt.q)
			if tt.kind != 0 {
				wantPointer(t, err, tt.want, tt.kind)
				return
			}
			if err != nil || !strictjson.Equal(got, []byte(tt.want)) {
				t.Errorf("got %s, %v\nwant %s", got, err, tt.want)
			}
		})
	}
}
