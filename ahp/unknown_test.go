package ahp_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/strictjson"
)

// unknownSession is a session.start with an unknown member in every open object
// that an event can hold.
const unknownSession = `{"id":"e","source":"urn:a","type":"session.start","time":"2026-01-01T00:00:00Z","x-event":[1.0,{"a":null}],"delta":"of another event",` +
	`"session":{"id":"s","x-session":1,"agent":{"id":"a","x-agent":"ü"}},"turn":{"id":"t","x-turn":false},"gaps":[{"path":"p","reason":"r","x-gap":{}}],` +
	`"trigger":"startup","harness":{"name":"h","version":"1"},"permissionMode":"m","items":[],` +
	`"manifest":{"x-manifest":null,"events":[{"event":"tool.after","modes":["intercept"],"x-row":2,"capabilities":{"x-caps":3,"effects":["modify","flow","inject"],` +
	`"modify":{"output":{"replace":true,"merge":false,"x-modify":4}},"flow":{"operations":["stop"],"x-flow":5},` +
	`"inject":{"x-inject":6,"context":{"append":true,"deliverAt":["now"],"x-context":7}},"elicitation":{"x-elicitation":8,"form":{"x-form":9}}}}],` +
	`"gaps":[],"transports":[],"authentication":[],"toolPaths":[],"contentCategories":[],"limits":{"x-limits":10},` +
	`"managedPolicy":{"scopes":[],"disableable":true,"x-managed":11},"correlationIdentityFields":[]}}`

// TestUnknownMembersAreKept holds that whoever passes a message on passes on what
// it doesn't understand.
func TestUnknownMembersAreKept(t *testing.T) {
	intercept := `{"jsonrpc":"2.0","id":"e","method":"hooks/intercept","params":{"protocolVersion":"draft","event":` + unknownSession +
		`,"capabilities":{"effects":["message"],"x-caps":1},"state":{"permission":"none","candidate":{"value":1,"x-candidate":2},"x-state":3},"x-params":4,"extensions":{"a.b":5}}}`
	observe := `{"jsonrpc":"2.0","method":"hooks/observe","params":{"x-params":1,"protocolVersion":"draft","event":` + unknownSession + `,"capabilities":"none here"}}`
	for _, text := range []string{intercept, observe} {
		q, err := ahp.DecodeRequest([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		out, err := q.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if !strictjson.Equal(out, []byte(text)) {
			t.Errorf("in  %s\nout %s", text, out)
		}
	}
	e, err := ahp.DecodeEvent([]byte(unknownSession))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := e.Encode(); err != nil || !strictjson.Equal(out, []byte(unknownSession)) {
		t.Errorf("the event alone came back as %s, %v", out, err)
	}
}

// TestUnknownMembersStayUnknown holds that nobody can smuggle a known member past
// the rules by way of the unknown ones.
func TestUnknownMembersStayUnknown(t *testing.T) {
	for _, name := range []string{"tool", "id", "outcome", "type", "parentEventId", "extensions"} {
		e, err := ahp.DecodeEvent([]byte(eventText(ahp.ToolBefore, leastEvents[ahp.ToolBefore])))
		if err != nil {
			t.Fatal(err)
		}
		e.Unknown = ahp.Unknown{name: ahp.Raw(`"x"`)}
		for _, q := range []ahp.Request{&ahp.Observe{Event: e}, &ahp.Intercept{Event: e, Capabilities: ahp.Capabilities{Effects: []ahp.EffectType{}}}} {
			var fault *ahp.Error
			if _, err := q.Encode(); !errors.As(err, &fault) || fault.Pointer != "/"+name {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	e, err := ahp.DecodeEvent([]byte(eventText(ahp.ToolBefore, leastEvents[ahp.ToolBefore])))
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []ahp.Request{
		&ahp.Intercept{Event: e, Capabilities: ahp.Capabilities{Effects: []ahp.EffectType{}}, Unknown: ahp.Unknown{"state": ahp.Raw("1")}},
		&ahp.Observe{Event: e, Unknown: ahp.Unknown{"event": ahp.Raw("1")}},
		&ahp.Observe{Event: e, Unknown: ahp.Unknown{"x": ahp.Raw("}")}},
		&ahp.Observe{Event: e, Unknown: ahp.Unknown{"x\xff": ahp.Raw("1")}},
		&ahp.Observe{Event: e, Unknown: ahp.Unknown{"x": ahp.Raw(strings.Repeat("[", 130) + strings.Repeat("]", 130))}},
	} {
		if out, err := q.Encode(); err == nil {
			t.Errorf("encoded %s", out)
		}
	}
}

// TestUnknownInClosedObjects holds that closed objects stay closed (§4).
func TestUnknownInClosedObjects(t *testing.T) {
	for _, text := range []string{
		`"call":{"id":"c","x":1},"path":"p","tool":{"name":"n","origin":"native","input":{}}`,
		`"call":{"id":"c"},"path":"p","tool":{"name":"n","origin":"native","input":{},"x":1}`,
		`"call":{"id":"c"},"path":"p","tool":{"name":"n","origin":"native","input":{}},"items":[{"id":"i","kind":"text","mediaType":"text/plain","selection":"omit","x":1}]`,
		`"call":{"id":"c"},"path":"p","tool":{"name":"n","origin":"mcp","input":{},"mcp":{"server":{"id":"s"},"toolName":"t","provenance":"runtime",` +
			`"connection":{"transport":"http","gaps":[{"path":"url","reason":"r","x":1}]}}}`,
	} {
		var e *ahp.Error
		if _, err := ahp.DecodeEvent([]byte(eventText(ahp.ToolBefore, text))); !errors.As(err, &e) || !strings.HasSuffix(e.Pointer, "/x") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestIntegralIDs(t *testing.T) {
	for id, valid := range map[string]bool{
		"0": true, "-0": true, "1.0": true, "10e-1": true, "1e400": true, "0.0": true, "0e-99999999999999999999": true, "12300e-2": true, "1.25e2": true,
		"1e99999999999999999999": true, "123456789012345678901234567890.000": true, "1.5": false, "1e-1": false, "1.25e1": false, "12300e-3": false,
		"1e-99999999999999999999": false, "true": false, `""`: false, `"1.5"`: true, "[]": false, "{}": false,
	} {
		text := `{"jsonrpc":"2.0","id":` + id + `,"method":"hooks/capabilities","params":{"protocolVersion":"draft"}}`
		q, err := ahp.DecodeRequest([]byte(text))
		if (err == nil) != valid {
			t.Errorf("%s: %v", id, err)
			continue
		}
		if err != nil {
			continue
		}
		if got := q.(*ahp.Discover).ID.String(); got != id {
			t.Errorf("the id %s became %s", id, got)
		}
	}
}

// TestTurnIsClosedWhereItIsThePayload holds §4: turn is open on events that it is
// only the envelope of.
func TestTurnIsClosedWhereItIsThePayload(t *testing.T) {
	const turn = `"turn":{"id":"t","x":1}`
	for _, typ := range ahp.EventTypes() {
		body := leastEvents[typ]
		closed := strings.HasPrefix(string(typ), "turn.")
		if closed {
			body = strings.Replace(body, `"turn":{"id":"t"}`, turn, 1)
		} else {
			body += "," + turn
		}
		if !strings.Contains(body, turn) {
			t.Fatalf("%s: %s", typ, body)
		}
		e, err := ahp.DecodeEvent([]byte(eventText(typ, body)))
		if (err != nil) != closed || err == nil && len(e.Turn.Unknown) != 1 {
			t.Errorf("%s: %v", typ, err)
		}
	}
}
