package ahp_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
)

func interceptText(envelope, params string) string {
	return `{"jsonrpc":"2.0","id":"e","method":"hooks/intercept"` + envelope + `,"params":{"protocolVersion":"draft","event":` +
		eventText(ahp.ToolBefore, leastEvents[ahp.ToolBefore]) + `,"capabilities":{"effects":["deny"]}` + params + `}}`
}

func TestRequests(t *testing.T) {
	event := eventText(ahp.ToolBefore, leastEvents[ahp.ToolBefore])
	observe := `{"jsonrpc":"2.0","method":"hooks/observe","params":{"protocolVersion":"draft","event":` + event + `}}`
	discover := `{"jsonrpc":"2.0","id":7,"method":"hooks/capabilities","params":{"protocolVersion":"draft"}}`
	edit := func(s, from, to string) string {
		if !strings.Contains(s, from) {
			t.Fatalf("no %q in %s", from, s)
		}
		return strings.Replace(s, from, to, 1)
	}
	good := interceptText("", "")
	tests := []struct {
		name, text string
		kind       ahp.Kind // 0: accepted
		pointer    string
	}{
		{"an intercept", good, 0, ""},
		{"an observation", observe, 0, ""},
		{"a discovery", discover, 0, ""},
		{"unknown members", interceptText(`,"x":{"y":[]}`, `,"z":1,"extensions":{"a.b":2}`), 0, ""},
		{"params first", `{"params":` + good[strings.Index(good, `{"protocolVersion"`):len(good)-1] + `,"method":"hooks/intercept","id":"e","jsonrpc":"2.0"}`, 0, ""},
		{"a state", interceptText("", `,"state":{"permission":"ask","candidate":{"value":null},"flow":"none","x":1}`), 0, ""},
		{"instructions", interceptText("", `,"state":{"permission":"ask","candidate":null,"instructions":["a"]}`), 0, ""},
		{"an empty instruction", interceptText("", `,"state":{"permission":"ask","candidate":null,"instructions":["a",""]}`), ahp.KindShape, "/params/state/instructions/1"},
		{"a very large id", edit(discover, `"id":7`, `"id":123456789012345678901234567890`), 0, ""},
		{"a fraction as id", edit(discover, `"id":7`, `"id":7.5`), ahp.KindEnvelope, "/id"},
		{"a boolean as id", edit(discover, `"id":7`, `"id":true`), ahp.KindEnvelope, "/id"},
		{"no candidate in the state", interceptText("", `,"state":{"permission":"ask"}`), ahp.KindShape, "/params/state"},
		{"a candidate without value", interceptText("", `,"state":{"permission":"ask","candidate":{}}`), ahp.KindShape, "/params/state/candidate"},
		{"a permission", interceptText("", `,"state":{"permission":"maybe","candidate":null}`), ahp.KindShape, "/params/state/permission"},
		{"not JSON", `{`, ahp.KindSyntax, ""},
		{"a byte order mark", "\xef\xbb\xbf" + good, ahp.KindSyntax, ""},
		{"bad UTF-8", edit(good, "bash", "b\xffsh"), ahp.KindSyntax, "/params/event/tool/name"},
		{"a lone surrogate", edit(good, "bash", `b\ud800`), ahp.KindSyntax, "/params/event/tool/name"},
		{"a repeated member", edit(good, `"id":"c"`, `"id":"c","id":"d"`), ahp.KindSyntax, "/params/event/call/id"},
		{"a repeated member, escaped", edit(good, `"id":"c"`, `"id":"c","\u0069d":"d"`), ahp.KindSyntax, "/params/event/call/id"},
		{"a repeat in an opaque value", edit(good, `"input":{}`, `"input":{"a":1,"a":2}`), ahp.KindSyntax, "/params/event/tool/input/a"},
		{"two values", good + good, ahp.KindSyntax, ""},
		{"too deep", edit(good, `"input":{}`, `"input":{"a":`+strings.Repeat("[", 130)+strings.Repeat("]", 130)+`}`), ahp.KindSyntax, ""},
		{"a batch", "[" + good + "]", ahp.KindEnvelope, ""},
		{"another JSON-RPC", edit(good, `"2.0"`, `"1.0"`), ahp.KindEnvelope, "/jsonrpc"},
		{"no JSON-RPC", edit(good, `"jsonrpc":"2.0",`, ""), ahp.KindEnvelope, ""},
		{"no method", edit(good, `"method":"hooks/intercept",`, ""), ahp.KindEnvelope, ""},
		{"an empty method", edit(good, `hooks/intercept`, ""), ahp.KindEnvelope, "/method"},
		{"another method", edit(good, `hooks/intercept`, "hooks/Intercept"), ahp.KindMethod, "/method"},
		{"no params", `{"jsonrpc":"2.0","id":"e","method":"hooks/intercept"}`, ahp.KindEnvelope, ""},
		{"params as a list", `{"jsonrpc":"2.0","id":"e","method":"hooks/intercept","params":[]}`, ahp.KindShape, "/params"},
		{"no id", edit(good, `"id":"e",`, ""), ahp.KindEnvelope, ""},
		{"a null id", edit(good, `"id":"e",`, `"id":null,`), ahp.KindEnvelope, ""},
		{"an empty id", edit(good, `"id":"e",`, `"id":"",`), ahp.KindEnvelope, "/id"},
		{"a boolean id", edit(good, `"id":"e",`, `"id":true,`), ahp.KindEnvelope, "/id"},
		{"a fraction as id", edit(discover, `7`, `7.5`), ahp.KindEnvelope, "/id"},
		{"an id as 7.0", edit(discover, `7`, `7.0`), 0, ""},
		{"another id", edit(good, `"id":"e",`, `"id":"f",`), ahp.KindCorrelation, "/id"},
		{"an id in a notification", edit(observe, `"method"`, `"id":null,"method"`), ahp.KindEnvelope, ""},
		{"another revision", edit(good, `"draft"`, `"2031-01-01"`), ahp.KindVersion, "/params/protocolVersion"},
		{"another revision with another shape", edit(edit(good, `"draft"`, `"2031-01-01"`), `"path"`, `"lane"`), ahp.KindVersion, "/params/protocolVersion"},
		{"no revision", edit(good, `"protocolVersion":"draft",`, ""), ahp.KindShape, "/params"},
		{"no capabilities", edit(good, `"capabilities":{"effects":["deny"]}`, `"c":1`), ahp.KindShape, "/params"},
		{"an observed event", edit(good, event, eventText(ahp.SessionEnd, leastEvents[ahp.SessionEnd])), ahp.KindEvent, "/params/event/type"},
		{"an extra member in a discovery", edit(discover, `"draft"`, `"draft","x":1`), ahp.KindShape, "/params/x"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q, err := ahp.DecodeRequest([]byte(tt.text))
			if tt.kind == 0 {
				if err != nil {
					t.Fatal(err)
				}
				if _, err := q.Encode(); err != nil {
					t.Error(err)
				}
				return
			}
			var e *ahp.Error
			if !errors.As(err, &e) || e.Kind != tt.kind || e.Pointer != tt.pointer {
				t.Fatalf("got %v, want %s at %q", err, tt.kind, tt.pointer)
			}
			if e.Offset < 0 || e.Offset > int64(len(tt.text)) {
				t.Errorf("offset %d", e.Offset)
			}
		})
	}
}

func TestReplies(t *testing.T) {
	id := ahp.StringID("e")
	tests := []struct {
		name, text string
		class      ahp.FailureClass // "": accepted
	}{
		{"nothing", `{"jsonrpc":"2.0","id":"e","result":{"protocolVersion":"draft","effects":[]}}`, ""},
		{"unknown members", `{"x":1,"jsonrpc":"2.0","id":"e","result":{"y":2,"protocolVersion":"draft","effects":[],"extensions":{"a.b":1}}}`, ""},
		{"result first", `{"result":{"effects":[],"protocolVersion":"draft"},"id":"e","jsonrpc":"2.0"}`, ""},
		{"null result", `{"jsonrpc":"2.0","id":"e","result":null}`, ahp.FailMalformed},
		{"a manifest", `{"jsonrpc":"2.0","id":"e","result":{"protocolVersion":"draft","effects":[],"manifest":{}}}`, ahp.FailMalformed},
		{"no revision", `{"jsonrpc":"2.0","id":"e","result":{"effects":[]}}`, ahp.FailMalformed},
		{"another revision", `{"jsonrpc":"2.0","id":"e","result":{"protocolVersion":"2031-01-01","verdicts":[]}}`, ahp.FailVersion},
		{"effects as an object", `{"jsonrpc":"2.0","id":"e","result":{"protocolVersion":"draft","effects":{}}}`, ahp.FailEffect},
		{"another id", `{"jsonrpc":"2.0","id":"f","result":{"protocolVersion":"draft","effects":[]}}`, ahp.FailIDMismatch},
		{"a number as id", `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"draft","effects":[]}}`, ahp.FailIDMismatch},
		{"an escaped id", `{"jsonrpc":"2.0","id":"\u0065","result":{"protocolVersion":"draft","effects":[]}}`, ""},
		{"no id", `{"jsonrpc":"2.0","result":{"protocolVersion":"draft","effects":[]}}`, ahp.FailMalformed},
		{"a null id", `{"jsonrpc":"2.0","id":null,"result":{"protocolVersion":"draft","effects":[]}}`, ahp.FailMalformed},
		{"an error", `{"jsonrpc":"2.0","id":"e","error":{"code":-32003,"message":"x","data":{"a":1}}}`, ahp.FailRPCError},
		{"an error without an id", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}`, ahp.FailRPCError},
		{"an error without a code", `{"jsonrpc":"2.0","id":"e","error":{"message":"x"}}`, ahp.FailMalformed},
		{"an error with a fraction", `{"jsonrpc":"2.0","id":"e","error":{"code":1.5,"message":"x"}}`, ahp.FailMalformed},
		{"a null error beside a result", `{"jsonrpc":"2.0","id":"e","error":null,"result":{"protocolVersion":"draft","effects":[]}}`, ahp.FailMalformed},
		{"an error beside a result", `{"jsonrpc":"2.0","id":"e","result":{"protocolVersion":"draft","effects":[]},"error":{"code":-32003,"message":"x"}}`, ahp.FailMalformed},
		{"an error for another id", `{"jsonrpc":"2.0","id":"f","error":{"code":-32003,"message":"x"}}`, ahp.FailIDMismatch},
		{"neither", `{"jsonrpc":"2.0","id":"e"}`, ahp.FailMalformed},
		{"the request", interceptText("", ""), ahp.FailMalformed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ahp.DecodeEffectsReply([]byte(tt.text), id)
			if tt.class == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil {
				t.Fatal("accepted")
			}
			if f := ahp.ReplyFailure(err); f.Class != tt.class {
				t.Errorf("class %s: %v", f.Class, err)
			}
		})
	}
}

func TestIDs(t *testing.T) {
	if !(ahp.ID{}).IsZero() || !ahp.StringID("").IsZero() || ahp.StringID("1") == ahp.IntID(1) {
		t.Error("ids are mixed up")
	}
	if s, ok := ahp.StringID("a\"b").Value(); !ok || s != `a"b` {
		t.Errorf("%q, %v", s, ok)
	}
	for text, want := range map[string]ahp.ID{
		`{"x":{"id":"no"},"id":"a"}`: ahp.StringID("a"), `{"id":12}`: ahp.IntID(12), `{"id":null}`: {}, `{"id":"a"`: ahp.StringID("a"),
		`{"id":"a" and then nonsense`: ahp.StringID("a"), `[{"id":"a"}]`: {}, `nonsense`: {}, ``: {},
	} {
		if got, ok := ahp.MessageID([]byte(text)); got != want || ok != !want.IsZero() {
			t.Errorf("%s: %v, %v", text, got, ok)
		}
	}
}
