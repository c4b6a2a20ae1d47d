package ahp_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/strictjson"
)

const (
	envelope = `"id":"e","source":"urn:x","time":"2026-01-01T00:00:00Z"`
	toolBody = `"call":{"id":"c"},"tool":{"name":"bash","origin":"native","input":{}},"path":"native"`
	message  = `{"id":"m","role":"assistant","parts":[{"id":"p","kind":"text","mediaType":"text/plain","selection":"body","text":"hi"}]}`
	model    = `{"id":"m","provider":"p"}`
	attempt  = `{"id":"a","number":1}`
	manifest = `{"events":[],"gaps":[],"transports":[],"authentication":[],"toolPaths":[],"contentCategories":[],"limits":{},"managedPolicy":{"scopes":[],"disableable":true},"correlationIdentityFields":[]}`
)

// leastEvents holds the members beyond the envelope that the least event of each
// type has, by the table of the specification (§6).
var leastEvents = map[ahp.EventType]string{
	ahp.SessionStart:           `"session":{"id":"s"},"trigger":"startup","harness":{"name":"h","version":"1"},"permissionMode":"x","manifest":` + manifest + `,"items":[]`,
	ahp.SessionEnd:             `"session":{"id":"s"},"outcome":"completed","reason":"done"`,
	ahp.ConfigChangeBefore:     `"change":{"source":"s","scope":"s","settings":[],"summary":"s"}`,
	ahp.ConfigChangeAfter:      `"change":{"source":"s","scope":"s","settings":[],"summary":"s"}`,
	ahp.TurnStart:              `"turn":{"id":"t"},"trigger":"user","items":[]`,
	ahp.TurnFinishBefore:       `"turn":{"id":"t"},"outcome":"completed","continuationCount":0,"items":[]`,
	ahp.TurnEnd:                `"turn":{"id":"t"},"outcome":"failed","continuationCount":0,"items":[]`,
	ahp.TurnProgress:           `"turn":{"id":"t"},"item":{"id":"i"},"delta":` + message + `,"final":false`,
	ahp.ModelRequestBefore:     `"model":` + model + `,"attempt":` + attempt + `,"params":{},"items":[]`,
	ahp.ModelResponseAfter:     `"model":` + model + `,"attempt":` + attempt + `,"execution":{"status":"executed"},"items":[],"finishReason":"stop"`,
	ahp.ModelErrorEvent:        `"model":` + model + `,"attempt":` + attempt + `,"execution":{"status":"executed"},"error":{"class":"c","message":"m"}`,
	ahp.ModelSwitchBefore:      `"current":` + model + `,"proposed":` + model + `,"reason":"r"`,
	ahp.ModelSwitchAfter:       `"previous":` + model + `,"current":` + model + `,"reason":"r"`,
	ahp.ToolBefore:             toolBody,
	ahp.ToolPermissionRequest:  toolBody + `,"suggestions":[],"sandboxBypass":false`,
	ahp.ToolPermissionResolved: toolBody + `,"decision":"allow","decidedBy":"user"`,
	ahp.ToolProgress:           toolBody + `,"partialOutput":` + message + `,"backgrounded":false`,
	ahp.ToolAfter:              toolBody + `,"outcome":"ok","execution":{"status":"executed"},"items":[]`,
	ahp.ToolBatchAfter:         `"batch":{"id":"b"},"calls":[{` + toolBody + `,"outcome":"ok","execution":{"status":"executed"}}]`,
	ahp.ContextCompactBefore:   `"trigger":"auto","items":[]`,
	ahp.ContextCompactAfter:    `"summary":[],"removed":[],"execution":{"status":"executed"}`,
	ahp.TaskChangeBefore:       `"task":{"id":"t","operation":"create","change":{}}`,
	ahp.TaskChangeAfter:        `"task":{"id":"t","operation":"create","change":{}}`,
	ahp.WorkspaceChangeBefore:  `"workspace":{"kind":"cwd","change":{"cwd":"/"}}`,
	ahp.WorkspaceChangeAfter:   `"workspace":{"kind":"roots","change":{"workspaceRoots":[]}}`,
	ahp.FileChanged:            `"changes":[{"path":"p","operation":"create","agentCaused":false}]`,
	ahp.UserAttention:          `"attention":{"kind":"k","message":[],"title":[]}`,
	ahp.UserElicitationRequest: `"elicitation":{"server":"s","mode":"form"}`,
	ahp.UserElicitationResult:  `"elicitation":{"server":"s","mode":"form","action":"accept"}`,
	ahp.UserMessageInbound:     `"message":{"channel":"c","sender":"s","messages":[]}`,
	ahp.UserMessageOutbound:    `"message":{"channel":"c","messages":[]}`,
	ahp.HookFailure:            `"failure":{"backendId":"a.b","reason":"r","policy":"fail-open"},"parentEventId":"p"`,
}

func eventText(t ahp.EventType, body string) string {
	return `{` + envelope + `,"type":"` + string(t) + `",` + body + `}`
}

// TestEveryEventType decodes the least event of each type, encodes it again, and
// takes each member away.
func TestEveryEventType(t *testing.T) {
	for _, typ := range ahp.EventTypes() {
		t.Run(string(typ), func(t *testing.T) {
			text := eventText(typ, leastEvents[typ])
			e, err := ahp.DecodeEvent([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			out, err := e.Encode()
			if err != nil || !strictjson.Equal(out, []byte(text)) {
				t.Errorf("in  %s\nout %s\n%v", text, out, err)
			}
			var members map[string]ahp.Raw
			if err := strictjson.Unmarshal([]byte(text), &members, strictjson.Options{}); err != nil {
				t.Fatal(err)
			}
			for name := range members {
				less := map[string]ahp.Raw{}
				for n, v := range members {
					if n != name {
						less[n] = v
					}
				}
				if _, err := ahp.DecodeEvent(encode(t, less)); err == nil {
					t.Errorf("accepted without %s", name)
				}
			}
		})
	}
	if len(ahp.EventTypes()) != 32 || len(leastEvents) != 32 {
		t.Errorf("%d types, %d least events", len(ahp.EventTypes()), len(leastEvents))
	}
	interceptable := 0
	for _, typ := range ahp.EventTypes() {
		if typ.Interceptable() {
			interceptable++
		}
	}
	if interceptable != 19 {
		t.Errorf("%d interceptable types", interceptable)
	}
}

func encode(t testing.TB, v any) []byte {
	t.Helper()
	b, err := strictjson.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// eventRow is one event with something changed: good, or refused at pointer.
type eventRow struct {
	name    string
	typ     ahp.EventType
	from    string
	to      string
	pointer string // "-" for accepted
}

// nativeInput is what the least tool.before says after the tool's name.
const nativeInput = `"origin":"native","input":{}`

// mcpWithGap is the same of a tool of an MCP server whose location is a gap.
func mcpWithGap(gap string) string {
	return `"origin":"mcp","input":{},"mcp":{"server":{"id":"s"},"toolName":"t","provenance":"runtime","connection":{"transport":"http","gaps":[` + gap + `]}}`
}

func eventRows() []eventRow {
	tb, ta := ahp.ToolBefore, ahp.ToolAfter
	return []eventRow{
		{"unknown members of the envelope", tb, `"path"`, `"x-new":{"a":[1]},"path"`, "-"},
		{"a member of another event, of another shape", tb, `"path"`, `"reason":{"why":1},"path"`, "-"},
		{"a member twice, before the type", tb, `{"id":"e"`, `{"path":"native","id":"e"`, "/path"},
		{"a forbidden member", tb, `"path"`, `"outcome":"ok","path"`, "/outcome"},
		{"an unknown member of tool", tb, `"origin"`, `"output":1,"origin"`, "/tool/output"},
		{"an unknown member of call", tb, `{"id":"c"}`, `{"id":"c","x":1}`, "/call/x"},
		{"an unknown member of session", tb, `"path"`, `"session":{"id":"s","x":1,"agent":{"id":"a","y":2}},"path"`, "-"},
		{"null for a string", tb, `"path":"native"`, `"path":null`, "/path"},
		{"null for an object", tb, `{"id":"c"}`, `null`, "/call"},
		{"an input that isn't an object", tb, `"input":{}`, `"input":"{}"`, "/tool/input"},
		{"mcp without origin", tb, `"input":{}`, `"input":{},"mcp":{}`, "/tool/mcp"},
		{"a gap of the connection", tb, nativeInput, mcpWithGap(`{"path":"url","reason":"r"}`), "-"},
		{"an unknown member of a connection's gap", tb, nativeInput, mcpWithGap(`{"path":"url","reason":"r","x":1}`), "/tool/mcp/connection/gaps/0/x"},
		{"a connection without its location", tb, nativeInput, mcpWithGap(`{"path":"cwd","reason":"r"}`), "/tool/mcp/connection"},
		{"an unknown member of the event's gap", tb, `"path"`, `"gaps":[{"path":"p","reason":"r","x":1}],"path"`, "-"},
		{"an origin", tb, `"native","input"`, `"wild","input"`, "/tool/origin"},
		{"a name of another case", tb, `"path"`, `"Path"`, ""},
		{"an empty id", tb, `"id":"e"`, `"id":""`, "/id"},
		{"a relative source", tb, `"urn:x"`, `"x/y"`, "/source"},
		{"a compact time", tb, `2026-01-01T00:00:00Z`, `20260101T000000Z`, "/time"},
		{"a text as boolean", tb, `"path"`, `"synthesized":"true","path"`, "/synthesized"},
		{"an extension without dots", tb, `"path"`, `"extensions":{"x":1},"path"`, "/extensions/x"},
		{"an extension that is null", tb, `"path"`, `"extensions":{"a.b":null},"path"`, "-"},
		{"native null", tb, `"path"`, `"native":null,"path"`, "-"},
		{"bare parts", tb, `"path"`, `"items":[{"id":"p","kind":"text","mediaType":"text/plain","selection":"omit"}],"path"`, "-"},
		{"messages where parts are due", tb, `"path"`, `"items":[` + message + `],"path"`, "/items/0/role"},
		{"parts where messages are due", ta, `"items":[]`, `"items":[{"id":"p","kind":"text","mediaType":"text/plain","selection":"omit"}]`, "/items/0/kind"},
		{"a batch without calls", tb, `"path"`, `"batch":{"id":"b"},"path"`, "/batch"},
		{"a call twice in a batch", tb, `"path"`, `"batch":{"id":"b","callIds":["c","c"]},"path"`, "/batch/callIds/1"},
		{"an empty batch", tb, `"path"`, `"batch":{"id":"b","callIds":[]},"path"`, "/batch/callIds"},
		{"an error without the outcome", ta, `"items"`, `"error":{"class":"c","message":"m"},"items"`, "/outcome"},
		{"the outcome without an error", ta, `"ok"`, `"error"`, "/outcome"},
		{"denied but executed", ta, `"ok"`, `"denied"`, "/execution"},
		{"skipped with a duration", ta, `{"status":"executed"}`, `{"status":"skipped","reason":"supplied_result"},"durationMs":1`, "/durationMs"},
		{"skipped without a reason", ta, `{"status":"executed"}`, `{"status":"skipped"}`, "/execution"},
		{"an integer as 1.0", ta, `"items"`, `"durationMs":1.0,"items"`, "-"},
		{"a fraction", ta, `"items"`, `"durationMs":1.5,"items"`, "/durationMs"},
		{"a negative duration", ta, `"items"`, `"durationMs":-1,"items"`, "/durationMs"},
		{"moved without a previous path", ta, `"items"`, `"fileChanges":[{"path":"p","change":"moved"}],"items"`, "/fileChanges/0"},
		{"fork without an origin", ahp.SessionStart, `startup`, `fork`, ""},
		{"resume without an origin", ahp.SessionStart, `startup`, `resume`, "-"},
		{"a trigger of another event", ahp.SessionStart, `startup`, `user`, "/trigger"},
		{"a trigger of another event", ahp.TurnStart, `user`, `startup`, "/trigger"},
		{"completed with an error", ahp.TurnEnd, `"failed"`, `"completed","error":{"class":"c","message":"m"}`, "/error"},
		{"an inbound assistant", ahp.UserMessageInbound, `"messages":[]`, `"messages":[` + message + `]`, "/message/messages/0/role"},
		{"an outbound assistant", ahp.UserMessageOutbound, `"messages":[]`, `"messages":[` + message + `]`, "-"},
		{"no change of the workspace", ahp.WorkspaceChangeBefore, `{"cwd":"/"}`, `{}`, "/workspace/change"},
		{"managed and disableable", ahp.SessionStart, `"scopes":[]`, `"scopes":["managed"]`, "/manifest/managedPolicy/disableable"},
		{"an identity in the manifest", ahp.SessionStart, `"gaps":[]`, `"gaps":[],"identity":"me"`, "/manifest/identity"},
		{"counters", ahp.SessionEnd, `"reason"`, `"counters":{"a":1,"b":-1},"reason"`, "/counters/b"},
	}
}

func TestEventRules(t *testing.T) {
	for _, row := range eventRows() {
		t.Run(row.name, func(t *testing.T) {
			text := eventText(row.typ, leastEvents[row.typ])
			if !strings.Contains(text, row.from) {
				t.Fatalf("no %q in %s", row.from, text)
			}
			text = strings.Replace(text, row.from, row.to, 1)
			_, err := ahp.DecodeEvent([]byte(text))
			if row.pointer == "-" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			var e *ahp.Error
			if !errors.As(err, &e) || e.Pointer != row.pointer {
				t.Fatalf("got %v, want a fault at %q", err, row.pointer)
			}
			checkOffset(t, text, e)
		})
	}
}

// checkOffset checks that the offset is where the pointed value starts.
func checkOffset(t *testing.T, text string, e *ahp.Error) {
	t.Helper()
	if e.Kind == ahp.KindSyntax {
		return
	}
	rest := text[e.Offset:]
	last := e.Pointer[strings.LastIndexByte(e.Pointer, '/')+1:]
	before := strings.TrimRight(text[:e.Offset], " ")
	if strings.HasSuffix(before, `"`+last+`":`) || e.Pointer == "" && e.Offset == 0 {
		return
	}
	if strings.HasSuffix(before, "[") || strings.HasSuffix(before, ",") { // an item of a list
		return
	}
	t.Errorf("offset %d of %q points to %.30q", e.Offset, e.Pointer, rest)
}

// TestTypeLast holds that the order of members doesn't matter, and that faults in
// members before the type have their pointers.
func TestTypeLast(t *testing.T) {
	good := `{` + leastEvents[ahp.ToolAfter] + `,` + envelope + `,"type":"tool.after"}`
	e, err := ahp.DecodeEvent([]byte(good))
	if err != nil || e.Tool.Name != "bash" || e.Items.Messages == nil {
		t.Fatalf("%+v, %v", e, err)
	}
	bad := strings.Replace(good, `"origin"`, `"x":1,"origin"`, 1)
	_, err = ahp.DecodeEvent([]byte(bad))
	var f *ahp.Error
	if !errors.As(err, &f) || f.Pointer != "/tool/x" || bad[f.Offset] != '1' {
		t.Errorf("got %v", err)
	}
	_, err = ahp.DecodeEvent([]byte(`{` + leastEvents[ahp.ToolAfter] + `,` + envelope + `}`))
	if !errors.As(err, &f) || !strings.Contains(f.Found, `"type"`) {
		t.Errorf("got %v", err)
	}
}

func TestUnknownType(t *testing.T) {
	for _, name := range []string{"tool.error", "prompt.submitted", "notification", "other", "Tool.before", ""} {
		_, err := ahp.DecodeEvent([]byte(eventText(ahp.EventType(name), toolBody)))
		var e *ahp.Error
		if !errors.As(err, &e) || e.Kind != ahp.KindEvent || e.Pointer != "/type" || e.RPC().Code != ahp.CodeUnsupportedEvent {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestEncodeRefuses holds that a Go value which would not decode isn't encoded.
func TestEncodeRefuses(t *testing.T) {
	good := func() *ahp.Event {
		e, err := ahp.DecodeEvent([]byte(eventText(ahp.ToolBefore, leastEvents[ahp.ToolBefore])))
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	tests := map[string]func(*ahp.Event){
		"no type":                  func(e *ahp.Event) { e.Type = "" },
		"no call":                  func(e *ahp.Event) { e.Call = nil },
		"no source":                func(e *ahp.Event) { e.Source = "" },
		"a member of another type": func(e *ahp.Event) { e.Decision = "allow" },
		"a forbidden member":       func(e *ahp.Event) { e.Outcome = "ok" },
		"messages as items":        func(e *ahp.Event) { e.Items = ahp.MessageItems() },
		"both kinds of items":      func(e *ahp.Event) { e.Items = ahp.Items{Messages: []ahp.Message{}, Parts: []ahp.Part{}} },
		"input that isn't JSON":    func(e *ahp.Event) { e.Tool.Input = ahp.Raw(`{"a":}`) },
		"input with a repeat":      func(e *ahp.Event) { e.Tool.Input = ahp.Raw(`{"a":1,"a":2}`) },
		"two values as input":      func(e *ahp.Event) { e.Tool.Input = ahp.Raw(`{} {}`) },
		"no input":                 func(e *ahp.Event) { e.Tool.Input = nil },
		"bad UTF-8":                func(e *ahp.Event) { e.Tool.Name = "\xff" },
		"an extension":             func(e *ahp.Event) { e.Extensions = ahp.Extensions{"x": ahp.Raw("1")} },
		"input that is too deep": func(e *ahp.Event) {
			e.Tool.Input = ahp.Raw(strings.Repeat(`{"a":`, 130) + "1" + strings.Repeat("}", 130))
		},
	}
	for name, change := range tests {
		e := good()
		change(e)
		b, err := e.Encode()
		var f *ahp.Error
		if !errors.As(err, &f) || f.Offset != -1 {
			t.Errorf("%s: %s, %v", name, b, err)
		}
	}
	if err := good().Validate(); err != nil {
		t.Error(err)
	}
	e := good()
	e.Tool.Input = ahp.Raw("{\n \"a\": \"line\\nfeed\",\n \"n\": 1.50\n}")
	b, err := e.Encode()
	if err != nil || strings.Contains(string(b), "\n") || !strings.Contains(string(b), `"n":1.50`) {
		t.Errorf("%s, %v", b, err)
	}
}
