package event

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/abhed/abhed/internal/strictjson"
)

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
