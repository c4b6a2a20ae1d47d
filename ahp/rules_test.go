package ahp_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/abhed/abhed/ahp"
)

func TestEffects(t *testing.T) {
	tests := []struct{ name, text, pointer string }{
		{"all eight", `[{"type":"deny","reason":"r","code":"a.b","extensions":{"a.b":1}},{"type":"allow"},{"type":"ask"},` +
			`{"type":"modify","target":"input","operation":"merge","value":{"a":null}},{"type":"message","text":""},{"type":"return","value":null},` +
			`{"type":"flow","operation":"stop","reason":"r"},{"type":"flow","operation":"continue"},` +
			`{"type":"inject","target":"context","operation":"append","deliverAt":"now","value":[` + message + `]}]`, "-"},
		{"type last", `[{"reason":"r","type":"deny"}]`, "-"},
		{"not a list", `{"type":"deny"}`, ""},
		{"null", `null`, ""},
		{"an item that isn't an object", `["deny"]`, "/0"},
		{"no type", `[{"reason":"r"}]`, "/0"},
		{"an unknown type", `[{"type":"allow"},{"type":"permit"}]`, "/1/type"},
		{"a type in capitals", `[{"type":"Deny","reason":"r"}]`, "/0/type"},
		{"an extension name", `[{"type":"com.example.effect"}]`, "/0/type"},
		{"no reason", `[{"type":"deny"}]`, "/0"},
		{"an empty reason", `[{"type":"deny","reason":""}]`, "/0/reason"},
		{"a plain code", `[{"type":"deny","reason":"r","code":"x"}]`, "/0/code"},
		{"a reason to allow", `[{"type":"allow","reason":"r"}]`, "/0/reason"},
		{"an unknown member", `[{"type":"ask","x":1}]`, "/0/x"},
		{"an unknown target", `[{"type":"modify","target":"args","operation":"merge","value":{}}]`, "/0/target"},
		{"an unknown operation", `[{"type":"modify","target":"input","operation":"patch","value":{}}]`, "/0/operation"},
		{"no value", `[{"type":"modify","target":"input","operation":"merge"}]`, "/0"},
		{"a list as input", `[{"type":"modify","target":"input","operation":"merge","value":[]}]`, "/0/value"},
		{"an object as output", `[{"type":"modify","target":"output","operation":"merge","value":{}}]`, "/0/value"},
		{"an object as content", `[{"type":"modify","target":"content","operation":"merge","value":{}}]`, "-"},
		{"a list as content", `[{"type":"modify","target":"content","operation":"merge","value":[]}]`, "-"},
		{"messages as instructions", `[{"type":"modify","target":"instructions","operation":"merge","value":[` + message + `]}]`, "/0/value/0/role"},
		{"an attachment as summary", `[{"type":"modify","target":"summary","operation":"merge","value":[{"id":"p","kind":"attachment","mediaType":"image/png","selection":"omit"}]}]`, "/0/value/0"},
		{"no text", `[{"type":"message"}]`, "/0"},
		{"null as text", `[{"type":"message","text":null}]`, "/0/text"},
		{"no return value", `[{"type":"return"}]`, "/0"},
		{"stop without a reason", `[{"type":"flow","operation":"stop"}]`, "/0"},
		{"stop with an instruction", `[{"type":"flow","operation":"stop","reason":"r","instruction":"i"}]`, "/0/instruction"},
		{"continue with a reason", `[{"type":"flow","operation":"continue","reason":"r"}]`, "/0/reason"},
		{"an empty instruction", `[{"type":"flow","operation":"continue","instruction":""}]`, "/0/instruction"},
		{"another flow", `[{"type":"flow","operation":"pause"}]`, "/0/operation"},
		{"an injection of text", `[{"type":"inject","target":"context","operation":"append","deliverAt":"now","value":"x"}]`, "/0/value"},
		{"an injection elsewhere", `[{"type":"inject","target":"system","operation":"append","deliverAt":"now","value":[]}]`, "/0/target"},
		{"an injection at another time", `[{"type":"inject","target":"context","operation":"append","deliverAt":"later","value":[]}]`, "/0/deliverAt"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			effects, err := ahp.DecodeEffects([]byte(tt.text))
			var e *ahp.Error
			switch {
			case tt.pointer == "-":
				if err != nil {
					t.Fatal(err)
				}
				for _, eff := range effects {
					if _, err := ahp.EncodeEffect(eff); err != nil {
						t.Error(err)
					}
				}
			case !errors.As(err, &e) || e.Pointer != tt.pointer || e.Kind != ahp.KindEffect || effects != nil:
				t.Fatalf("got %v and %v, want a fault at %q", effects, err, tt.pointer)
			default:
				checkOffset(t, tt.text, e)
			}
		})
	}
}

// part returns an event with one part.
func partText(part string) []byte {
	return []byte(eventText(ahp.ToolBefore, leastEvents[ahp.ToolBefore]+`,"items":[{"id":"p",`+part+`}]`))
}

func TestParts(t *testing.T) {
	text := func(rest string) string { return `"kind":"text","mediaType":"text/plain","selection":` + rest }
	file := func(rest string) string { return `"kind":"attachment","mediaType":"image/png","selection":` + rest }
	hash := `"sha256":"` + strings.Repeat("0a", 32) + `"`
	good := []string{
		text(`"body","text":""`), text(`"body","gap":{"reason":"r"}`), text(`"body","gap":{"reason":"r","path":"p"},"size":1,` + hash),
		text(`"metadata"`), text(`"metadata","size":0,` + hash), text(`"omit","category":"reasoning","synthesized":true`),
		file(`"body","body":{"ref":"r"}`), file(`"body","gap":{"reason":"r"},"size":1`), file(`"metadata",` + hash), file(`"omit"`),
		strings.Replace(file(`"omit"`), "image/png", "application/jsonp", 1), strings.Replace(file(`"omit"`), "image/png", "x/y; a=json", 1),
	}
	bad := []string{
		text(`"body"`), text(`"body","text":"x","gap":{"reason":"r"}`), text(`"metadata","text":"x"`), text(`"omit","text":""`),
		text(`"body","text":"x","size":1`), text(`"body","text":"x",` + hash), text(`"body","body":{"ref":"r"}`), text(`"metadata","gap":{"reason":"r"}`),
		text(`"whole"`), text(`"metadata","sha256":"AB"`), text(`"metadata","sha256":"` + strings.Repeat("0A", 32) + `"`), text(`"metadata","size":-1`),
		text(`"metadata","role":"user"`), text(`"metadata","parentItemId":"x"`), text(`"body","text":"x","x":1`), text(`"body","gap":{}`),
		file(`"body"`), file(`"body","text":"x"`), file(`"body","body":{"ref":""}`), file(`"body","body":{"ref":"r","size":1}`), file(`"metadata","body":{"ref":"r"}`),
		file(`"body","body":{"ref":"r"},"size":1`),
		strings.Replace(text(`"omit"`), "text/plain", "text/html", 1), strings.Replace(text(`"omit"`), `"text",`, `"json",`, 1),
	}
	for _, media := range []string{"text/plain", "TEXT/csv", "application/json", "Application/JSON; v=1", "application/ld+json", "a/b+JSON;x"} {
		bad = append(bad, strings.Replace(file(`"omit"`), "image/png", media, 1))
	}
	for _, p := range good {
		if _, err := ahp.DecodeEvent(partText(p)); err != nil {
			t.Errorf("%s: %v", p, err)
		}
	}
	for _, p := range bad {
		if _, err := ahp.DecodeEvent(partText(p)); err == nil {
			t.Errorf("accepted %s", p)
		}
	}
}

func TestGrammars(t *testing.T) {
	decode := func(from, to string) error {
		text := eventText(ahp.ToolBefore, leastEvents[ahp.ToolBefore])
		_, err := ahp.DecodeEvent([]byte(strings.Replace(text, from, to, 1)))
		return err
	}
	check := func(from string, good, bad []string) {
		t.Helper()
		for _, s := range good {
			if err := decode(from, s); err != nil {
				t.Errorf("%s: %v", s, err)
			}
		}
		for _, s := range bad {
			if err := decode(from, s); err == nil {
				t.Errorf("accepted %q", s)
			}
		}
	}
	check("2026-01-01T00:00:00Z",
		[]string{"2024-02-29T23:59:59.123456789+05:30", "2026-12-31T23:59:60Z", "2017-01-01T05:29:60.5+05:30", "2016-12-31T15:59:60-08:00", "2026-01-01t00:00:00z", "2026-01-01T00:00:00-00:00", ahp.Timestamp(time.Now())},
		[]string{"2026-01-01T12:00:60Z", "2026-12-31T23:58:60Z", "2026-12-31T23:59:60+01:00", "2026-02-29T00:00:00Z", "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z", "2026-01-01 00:00:00Z", "2026-01-01T00:00:00", "2026-01-01T24:00:00Z",
			"2026-01-01T00:60:00Z", "2026-01-01T00:00:00.Z", "2026-01-01T00:00:00+24:00", "2026-01-01T00:00:00+0100", "2026-01-01T00:00:00Z ", "2100-02-29T00:00:00Z", "２026-01-01T00:00:00Z"})
	check("urn:x",
		[]string{"https://user@host.example:8080/a/b?q=1#f", "http://[::1]:80/", "http://[v1.a:b]/", "urn:uuid:5b7de29e", "mailto:a@b", "x+y-z.1:", "file:///tmp/a%20b"},
		[]string{"", "x", "/abs", "//host/", "1x:y", "http://a b/", "http://x/%zz", "http://x/%2", "http://[::1/", "http://[1.2.3.4]/", "http://[fe80::1%25eth0]/", "http://x:port/",
			"http://x/[", "http://é/", "http://x/#a#b", "http://a@b@c/"})
}

func TestIntegerForms(t *testing.T) {
	at := func(n string) error {
		_, err := ahp.DecodeEvent([]byte(eventText(ahp.ToolAfter, leastEvents[ahp.ToolAfter]+`,"durationMs":`+n)))
		return err
	}
	for _, n := range []string{"0", "1.0", "1e2", "10e-1", "1.5e1", "-0", "0.0", "0e5", "120.00e-1", "9223372036854775807"} {
		if err := at(n); err != nil {
			t.Errorf("%s: %v", n, err)
		}
	}
	for _, n := range []string{"0.1", "1e-1", "15e-1", "-1", "1e400", "1e9999999999", "9223372036854775808", "true", `"1"`, "null", "[1]"} {
		if at(n) == nil {
			t.Errorf("accepted %s", n)
		}
	}
}

func TestCapabilities(t *testing.T) {
	decode := func(caps string, typ ahp.EventType) error {
		_, err := ahp.DecodeRequest([]byte(`{"jsonrpc":"2.0","id":"e","method":"hooks/intercept","params":{"protocolVersion":"draft","event":` +
			eventText(typ, leastEvents[typ]) + `,"capabilities":` + caps + `}}`))
		return err
	}
	full := `{"effects":["deny","modify","flow","inject"],"modify":{"input":{"replace":false,"merge":true}},"flow":{"operations":["stop"]},"inject":{"context":{"append":true,"deliverAt":["now"]}}}`
	good := []string{`{"effects":[]}`, `{"effects":["deny"],"x":1}`, full, strings.Replace(full, `"input":`, `"new":{},"input":`, 1)}
	bad := []string{
		`{}`, `[]`, `{"effects":["deny","deny"]}`, `{"effects":["permit"]}`, `{"effects":["com.example.x"]}`, `{"effects":["modify"]}`, `{"effects":[],"modify":{"input":{"replace":true,"merge":true}}}`,
		`{"effects":["modify"],"modify":{}}`, `{"effects":["modify"],"modify":{"input":{"replace":false,"merge":false}}}`, `{"effects":["modify"],"modify":{"input":{"replace":true}}}`,
		`{"effects":["modify"],"modify":{"output":{"replace":true,"merge":true}}}`, `{"effects":["flow"],"flow":{"operations":[]}}`,
		`{"effects":["flow"],"flow":{"operations":["stop","continue"],"remainingContinuations":1,"continuationCount":0}}`,
		`{"effects":["inject"],"inject":{"context":{"append":false,"deliverAt":["now"]}}}`, `{"effects":["inject"],"inject":{"context":{"append":true,"deliverAt":["soon"]}}}`,
	}
	for _, c := range good {
		if err := decode(c, ahp.ToolBefore); err != nil {
			t.Errorf("%s: %v", c, err)
		}
	}
	for _, c := range bad {
		if err := decode(c, ahp.ToolBefore); err == nil {
			t.Errorf("accepted %s", c)
		}
	}
	if err := decode(`{"effects":["ask"]}`, ahp.ToolPermissionRequest); err == nil {
		t.Error("ask at tool.permission.request")
	}
	if err := decode(`{"effects":["flow"],"flow":{"operations":["continue"]}}`, ahp.ToolAfter); err == nil {
		t.Error("continue without its counts")
	}
}

func TestPermissionOrder(t *testing.T) {
	order := []ahp.Permission{ahp.PermissionNone, ahp.PermissionAllow, ahp.PermissionAsk, ahp.PermissionDeny}
	for i, p := range order {
		for j, q := range order {
			if p.Stricter(q) != (i > j) {
				t.Errorf("%s over %s: %v", p, q, p.Stricter(q))
			}
		}
	}
}

// TestCapabilitiesValidateAgrees holds over random advertisements that Validate
// says what the decoder of a request says.
func TestCapabilitiesValidateAgrees(t *testing.T) {
	count := func(rt *rapid.T, name string) *int64 {
		if rapid.Bool().Draw(rt, name) {
			return nil
		}
		n := rapid.Int64Range(-1, 2).Draw(rt, name+" value")
		return &n
	}
	agreed := map[bool]int{}
	rapid.Check(t, func(rt *rapid.T) {
		typ := rapid.SampledFrom([]ahp.EventType{ahp.ToolBefore, ahp.ToolAfter, ahp.SessionStart, ahp.WorkspaceChangeBefore}).Draw(rt, "type")
		c := &ahp.Capabilities{Effects: rapid.SliceOfN(rapid.SampledFrom(append(typ.Effects(), "permit", "com.example.x")), 0, 3).Draw(rt, "effects")}
		if rapid.Bool().Draw(rt, "modify") == c.Has(ahp.EffectModify) {
			target := rapid.SampledFrom([]ahp.Target{typ.Target(), ahp.TargetInput}).Draw(rt, "target")
			c.Modify = map[ahp.Target]ahp.ModifyCapability{}
			if target != "" && rapid.IntRange(0, 5).Draw(rt, "any") > 0 {
				c.Modify[target] = ahp.ModifyCapability{Replace: rapid.Bool().Draw(rt, "replace"), Merge: rapid.Bool().Draw(rt, "merge")}
			}
		}
		if c.Has(ahp.EffectFlow) {
			c.Flow = &ahp.FlowCapability{Operations: rapid.SliceOfN(rapid.SampledFrom([]ahp.FlowOperation{ahp.FlowStop, ahp.FlowContinue}), 0, 2).Draw(rt, "operations"),
				RemainingContinuations: count(rt, "remaining"), ContinuationCount: count(rt, "count"), MaxContinuations: count(rt, "max")}
		}
		if c.Has(ahp.EffectInject) {
			c.Inject = &ahp.InjectCapability{Context: ahp.ContextInjection{Append: rapid.Bool().Draw(rt, "append"),
				DeliverAt: rapid.SliceOfN(rapid.SampledFrom([]ahp.Delivery{ahp.DeliverNow, ahp.DeliverNextTurn, "soon"}), 0, 2).Draw(rt, "deliver")}}
		}
		e, err := ahp.DecodeEvent([]byte(eventText(typ, leastEvents[typ])))
		if err != nil {
			rt.Fatal(err)
		}
		msg, err := (&ahp.Intercept{Event: e, Capabilities: *c}).Encode()
		if err != nil {
			rt.Fatal(err)
		}
		_, decodeErr := ahp.DecodeRequest(msg)
		validateErr := c.Validate(typ)
		if (decodeErr == nil) != (validateErr == nil) {
			rt.Fatalf("%s\ndecoder  %v\nValidate %v", msg, decodeErr, validateErr)
		}
		agreed[validateErr == nil]++
	})
	if agreed[true] == 0 || agreed[false] == 0 {
		t.Errorf("one-sided: %v", agreed)
	}
}
