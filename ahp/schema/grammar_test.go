package schema_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/schema"
)

// slot is a member whose text has a grammar, in a message that is valid with
// sample there.
type slot struct {
	kind   string
	build  func(text string) any
	sample string
	// alphabet holds what texts are made of.
	alphabet []string
	// edges are texts at the edges of the grammar, right and wrong ones.
	edges []string
}

// ofEvent puts members into a plain tool.before.
func ofEvent(members map[string]any) any {
	e := map[string]any{"id": "e1", "source": "urn:x:h", "type": "tool.before", "time": "2026-01-02T03:04:05Z", "call": map[string]any{"id": "c"},
		"path": "native", "tool": map[string]any{"name": "n", "origin": "native", "input": map[string]any{}}}
	maps.Copy(e, members)
	return map[string]any{"jsonrpc": "2.0", "method": "hooks/observe", "params": map[string]any{"protocolVersion": "draft", "event": e}}
}

// ofBackend makes a registration of one backend over HTTP.
func ofBackend(url string, subscription map[string]any) any {
	s := map[string]any{"events": []any{"*"}, "mode": "observe", "content": map[string]any{"default": "body"}}
	maps.Copy(s, subscription)
	return map[string]any{"protocolVersion": "draft", "hooks": []any{map[string]any{"id": "com.example.a",
		"transport": map[string]any{"type": "http", "url": url}, "subscriptions": []any{s}}}}
}

func slots() map[string]slot {
	uri := []string{"http", "https", "urn", "a", "Z", "0", "://", ":", "/", "//", "?", "#", "@", "[", "]", "::", "::1", "1:2:3:4:5:6:7:8", "::ffff:1.2.3.4", "v1.a:b",
		"localhost", "127.0.0.1", "example.com", ":80", "%41", "%4", "%", "-", ".", "~", "!", " ", "ä", "\\", "\"", "\n", "1.2.3.400"}
	urls := []string{"http://a", "HTTPS://a:1/x?y#z", "http://", "http:///x", "http://@/", "http://u@h", "http://[::1]:8/", "http://[::1", "http://[fe80::1%25x]/", "ftp://a",
		"http://a:b", "http://a/%zz", "http:/a", "https://[v1.x]/", "http://[1:2:3:4:5:6:7::]/", "http://[1::2::3]/", "http://[::1.2.3.04]/", "http://a b", "http://a\n", ""}
	return map[string]slot{
		"source": {schema.ObserveNotification, func(s string) any { return ofEvent(map[string]any{"source": s}) }, "urn:x", uri,
			append([]string{"a:", "a:/", "a://", "a:///", "a:////x", "a:b:c", "1a:b", "a+b-c.d:e", "a:?#", "a:[", "a://[::]", "a://x@y@z", "a"}, urls...)},
		"time": {schema.ObserveNotification, func(s string) any { return ofEvent(map[string]any{"time": s}) }, "2026-01-02T03:04:05Z",
			[]string{"2026", "2024", "2000", "1900", "-", "02", "29", "30", "31", "T", "t", "23", ":", "59", "60", ".", "5", "Z", "z", "+", "01:00", "24:00"},
			[]string{"2024-02-29T00:00:00Z", "2023-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "2000-02-29T00:00:00Z", "2026-04-31T00:00:00Z", "2026-13-01T00:00:00Z",
				"2026-01-01T24:00:00Z", "2026-12-31T23:59:60Z", "2026-01-01 00:00:00Z", "2026-01-01T00:00:00", "2026-01-01T00:00:00.Z", "2026-01-01t00:00:00.123456789z",
				"2026-01-01T00:00:00+23:59", "2026-01-01T00:00:00-24:00", "20260101T000000Z", "2026-1-1T00:00:00Z", "2026-01-00T00:00:00Z", "0000-02-29T00:00:00Z"}},
		"mediaType": {schema.ObserveNotification, func(s string) any {
			return ofEvent(map[string]any{"items": []any{map[string]any{"id": "p", "kind": "attachment", "mediaType": s, "selection": "omit"}}})
		}, "image/png", []string{"text", "TEXT", "application", "/", "json", "JSON", "+", ";", " ", "vnd.x", "x", "\t"},
			[]string{"text/html", "Text/x", "text", "application/json", "application/JSON; charset=utf-8", "application/ld+json", "a/+json", "a/jsonx", "a/xjson", "a/json ", "a/ json", "/json", "a/b;c=json", "a/b/json", ""}},
		"selector": {schema.Registration, func(s string) any { return ofBackend("https://b", map[string]any{"events": []any{s}}) }, "tool.*",
			[]string{"tool", ".", "*", "session", "start", "before", "permission", "A", "1", "_"}, []string{"*", "tool.*", "tool.permission.*", ".*", "Tool.*", "tool", "tool.before", "tool.error", "nothing.*", "tool.*\n"}},
		"url": {schema.Registration, func(s string) any { return ofBackend(s, nil) }, "https://b", uri, urls},
		"endpoint": {schema.Registration, func(s string) any {
			return ofBackend("https://b", map[string]any{"upload": map[string]any{"endpoint": s, "timeoutMs": json.Number("1"), "maxBytes": json.Number("1")}})
		}, "https://b", uri, append([]string{"http://localhost", "http://LOCALHOST:1/x", "http://127.9.9.9/", "http://127.1/", "http://128.0.0.1/", "http://[::2]/", "http://localhost.x/", "http://127.0.0.1.x/"}, urls...)},
		"extension": {schema.ObserveNotification, func(s string) any { return ofEvent(map[string]any{"extensions": map[string]any{s: json.Number("1")}}) }, "com.a",
			[]string{"com", ".", "a", "1", "-", "_", "ä", " "}, []string{"a", "a.b", "a.1", "1.a", "a..b", "a.b.", ".a.b", "a.b-_9", "a.b\n"}},
		"currency": {schema.ObserveNotification, func(s string) any {
			return ofEvent(map[string]any{"type": "model.switch.before", "current": map[string]any{"id": "m", "provider": "p"}, "proposed": map[string]any{"id": "m", "provider": "p"},
				"reason": "r", "pricing": map[string]any{"currency": s}})
		}, "EUR", []string{"E", "U", "r", "1"}, []string{"EUR", "EURO", "eur", "EU", "EUR\n", ""}},
	}
}

// TestGrammars compares the patterns with the decoder's own grammars.
func TestGrammars(t *testing.T) {
	a, all := newArbiter(t), slots()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s := all[name]
		t.Run(name, func(t *testing.T) {
			before := a.accepted
			for _, text := range append(s.edges, s.sample) {
				if err := a.judge(s.kind, s.build(text)); err != nil {
					t.Errorf("%q: %v", text, err)
				}
			}
			if a.accepted == before {
				t.Error("no text was accepted")
			}
			rapid.Check(t, func(rt *rapid.T) {
				text := []rune(rapid.SampledFrom(append(s.edges, s.sample)).Draw(rt, "text"))
				for range rapid.IntRange(1, 3).Draw(rt, "changes") {
					i := rapid.IntRange(0, len(text)).Draw(rt, "from")
					j := rapid.IntRange(i, min(len(text), i+3)).Draw(rt, "to")
					text = slices.Concat(text[:i], []rune(rapid.SampledFrom(s.alphabet).Draw(rt, "piece")), text[j:])
				}
				if otherwise(name, string(text)) {
					return
				}
				if err := a.judge(s.kind, s.build(string(text))); err != nil {
					rt.Fatalf("%q: %v", string(text), err)
				}
			})
		})
	}
}

// otherwise reports whether the two readings of a text are known to differ, which
// TestSpellingsBeyondPatterns holds.
func otherwise(slot, text string) bool {
	return slot == "time" && strings.Contains(text, ":60") || slot == "endpoint" && ahp.IsLoopbackURL(text) && !strings.Contains(text, "[::1]")
}

// TestSpellingsBeyondPatterns holds the rules of grammar that the patterns don't
// express; each entry must be needed.
func TestSpellingsBeyondPatterns(t *testing.T) {
	schemas, all := compiled(t), slots()
	for _, c := range []struct {
		slot, text     string
		decoder, shape bool
	}{
		{"time", "2026-01-01T12:00:60Z", false, true},           // a leap second at noon
		{"endpoint", "http://[0:0:0:0:0:0:0:1]/", true, false},  // an unusual spelling of this machine
		{"endpoint", "http://[::ffff:127.0.0.1]/", true, false}, // another
	} {
		s := all[c.slot]
		data, err := json.Marshal(s.build(c.text))
		if err != nil {
			t.Fatal(err)
		}
		byDecoder, bySchema := decode(s.kind, data), schemas[s.kind].Validate(s.build(c.text))
		if (byDecoder == nil) != c.decoder || (bySchema == nil) != c.shape {
			t.Errorf("%s %q: decoder %v, schema %v", c.slot, c.text, byDecoder, bySchema)
		}
	}
}
