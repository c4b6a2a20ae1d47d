package elicitation_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/elicitation"
)

// formOf returns a request text with one property.
func formOf(property string) string {
	return `{"message":"m","requestedSchema":{"type":"object","properties":{"a":` + property + `}}}`
}

// TestRequestShapes holds each rule of the params: want is the pointer of the
// fault, and "ok" is none.
func TestRequestShapes(t *testing.T) {
	const bare = `"message":"m","requestedSchema":{"type":"object","properties":{}}`
	for _, tt := range []struct{ name, text, want string }{
		{"form without mode", `{` + bare + `}`, "ok"},
		{"form", `{"mode":"form",` + bare + `}`, "ok"},
		{"white space around", " \n{" + bare + "}\n", "ok"},
		{"meta and task", `{` + bare + `,"_meta":{"progressToken":7,"x.y/z":[1]},"task":{"ttl":60000}}`, "ok"},
		{"token is text", `{` + bare + `,"_meta":{"progressToken":"t"}}`, "ok"},
		{"token is a fraction", `{` + bare + `,"_meta":{"progressToken":1.5}}`, "/_meta/progressToken"},
		{"token is a list", `{` + bare + `,"_meta":{"progressToken":[]}}`, "/_meta/progressToken"},
		{"meta is a list", `{` + bare + `,"_meta":[]}`, "/_meta"},
		{"task is text", `{` + bare + `,"task":"t"}`, "/task"},
		{"ttl is text", `{` + bare + `,"task":{"ttl":"1"}}`, "/task/ttl"},
		{"unknown member of task", `{` + bare + `,"task":{"id":"1"}}`, "/task/id"},
		{"unknown mode", `{"mode":"voice",` + bare + `}`, "/mode"},
		{"mode is null", `{"mode":null,` + bare + `}`, "/mode"},
		{"no message", `{"requestedSchema":{"type":"object","properties":{}}}`, ""},
		{"message is a number", `{"message":1,"requestedSchema":{"type":"object","properties":{}}}`, "/message"},
		{"no schema", `{"message":"m"}`, ""},
		{"unknown member", `{` + bare + `,"extra":1}`, "/extra"},
		{"url in a form", `{` + bare + `,"url":"https://a.example/"}`, "/url"},
		{"a list", `[]`, ""},
		{"schema type", `{"message":"m","requestedSchema":{"type":"array","properties":{}}}`, "/requestedSchema/type"},
		{"no properties", `{"message":"m","requestedSchema":{"type":"object"}}`, "/requestedSchema"},
		{"properties list", `{"message":"m","requestedSchema":{"type":"object","properties":[]}}`, "/requestedSchema/properties"},
		{"additionalProperties", `{"message":"m","requestedSchema":{"type":"object","properties":{},"additionalProperties":false}}`, "/requestedSchema/additionalProperties"},
		{"dialect", `{"message":"m","requestedSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{}}}`, "ok"},
		{"dialect is a number", `{"message":"m","requestedSchema":{"$schema":1,"type":"object","properties":{}}}`, "/requestedSchema/$schema"},
		{"required", `{"message":"m","requestedSchema":{"type":"object","properties":{},"required":["a"]}}`, "ok"},
		{"required holds a number", `{"message":"m","requestedSchema":{"type":"object","properties":{},"required":["a",1]}}`, "/requestedSchema/required/1"},
		{"url", `{"mode":"url","message":"m","url":"https://a.example/x?y#z","elicitationId":"e"}`, "ok"},
		{"url without scheme", `{"mode":"url","message":"m","url":"a.example","elicitationId":"e"}`, "/url"},
		{"no url", `{"mode":"url","message":"m","elicitationId":"e"}`, ""},
		{"no id", `{"mode":"url","message":"m","url":"https://a.example/"}`, ""},
		{"schema in url mode", `{"mode":"url","url":"https://a.example/","elicitationId":"e",` + bare + `}`, "/requestedSchema"},
		{"escaped pointer", `{"message":"m","requestedSchema":{"type":"object","properties":{"a/b~c":1}}}`, "/requestedSchema/properties/a~1b~0c"},
	} {
		t.Run(tt.name, func(t *testing.T) { wantFault(t, tt.text, tt.want) })
	}
}

// TestFieldShapes holds each published shape of a property, and that shapes can't be
// mixed. want is a pointer below the property.
func TestFieldShapes(t *testing.T) {
	for _, tt := range []struct{ property, want string }{
		{`{"type":"string"}`, "ok"},
		{`{"type":"string","title":"T","description":"D","minLength":0,"maxLength":3.0,"format":"email","default":"x"}`, "ok"},
		{`{"type":"string","format":"date-time"}`, "ok"},
		{`{"type":"string","format":"ipv4"}`, "/format"},
		{`{"type":"string","minLength":-1}`, "/minLength"},
		{`{"type":"string","maxLength":1.5}`, "/maxLength"},
		{`{"type":"string","maxLength":1e30}`, "/maxLength"},
		{`{"type":"string","maxLength":"1"}`, "/maxLength"},
		{`{"type":"string","pattern":"a"}`, "/pattern"},
		{`{"type":"string","default":1}`, "/default"},
		{`{"type":"string","default":null}`, "/default"},
		{`{"type":"string","title":1}`, "/title"},
		{`{"type":"string","description":[]}`, "/description"},
		{`{"type":"number","minimum":-1.5,"maximum":1e3,"default":0.5}`, "ok"},
		{`{"type":"integer","default":1.0}`, "ok"},
		{`{"type":"integer","default":1.5}`, "/default"},
		{`{"type":"number","multipleOf":2}`, "/multipleOf"},
		{`{"type":"number","minimum":"1"}`, "/minimum"},
		{`{"type":"number","minimum":1e9999999}`, "/minimum"},
		{`{"type":"boolean","default":false}`, "ok"},
		{`{"type":"boolean","default":"false"}`, "/default"},
		{`{"type":"boolean","enum":[true]}`, "/enum"},
		{`{"type":"string","enum":["a","b"],"default":"a"}`, "ok"},
		{`{"type":"string","enum":["a","b"],"enumNames":["A","B"]}`, "ok"},
		{`{"type":"string","enumNames":["A"]}`, "/enumNames"},
		{`{"type":"string","enum":["a",1]}`, "/enum/1"},
		{`{"type":"string","enum":"a"}`, "/enum"},
		{`{"type":"string","enum":["a"],"minLength":1}`, "/minLength"},
		{`{"type":"string","oneOf":[{"const":"a","title":"A"}]}`, "ok"},
		{`{"type":"string","oneOf":[{"const":"a"}]}`, "/oneOf/0"},
		{`{"type":"string","oneOf":[{"const":"a","title":"A","x":1}]}`, "/oneOf/0/x"},
		{`{"type":"string","oneOf":[{"const":1,"title":"A"}]}`, "/oneOf/0/const"},
		{`{"type":"string","oneOf":[],"enum":["a"]}`, "/enum"},
		{`{"type":"array","items":{"type":"string","enum":["a"]},"minItems":1,"maxItems":2,"default":["a"]}`, "ok"},
		{`{"type":"array","items":{"anyOf":[{"const":"a","title":"A"}]}}`, "ok"},
		{`{"type":"array","items":{"type":"string"}}`, "/items"},
		{`{"type":"array","items":{"enum":["a"]}}`, "/items"},
		{`{"type":"array","items":{"type":"number","enum":["a"]}}`, "/items/type"},
		{`{"type":"array","items":{"type":"string","anyOf":[{"const":"a","title":"A"}]}}`, "/items/type"},
		{`{"type":"array","items":{"type":"string","enum":["a"]},"uniqueItems":true}`, "/uniqueItems"},
		{`{"type":"array","items":{"type":"string","enum":["a"]},"default":"a"}`, "/default"},
		{`{"type":"array"}`, ""},
		{`{"type":"object","properties":{}}`, "/type"},
		{`{"type":["string"]}`, "/type"},
		{`{"enum":["a"]}`, ""},
		{`{"$ref":"#"}`, ""},
		{`true`, ""},
	} {
		want := tt.want
		if want != "ok" {
			want = "/requestedSchema/properties/a" + want
		}
		t.Run(tt.property, func(t *testing.T) { wantFault(t, formOf(tt.property), want) })
	}
}

// wantFault reads a request and expects a fault at the pointer, whose offset is
// where the value starts in the text.
func wantFault(t *testing.T, text, want string) {
	t.Helper()
	_, err := elicitation.ParseRequest([]byte(text))
	if want == "ok" {
		if err != nil {
			t.Errorf("refused: %v", err)
		}
		return
	}
	var e *ahp.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want an error at %q", err, want)
	}
	if e.Pointer != want || e.Kind != ahp.KindShape || e.Found == "" || e.Expected == "" {
		t.Errorf("got %v (%v), want the pointer %q", e, e.Kind, want)
	}
	if e.Offset < 0 || int(e.Offset) >= len(text) || strings.ContainsAny(text[e.Offset:e.Offset+1], " :,") {
		t.Errorf("offset %d isn't the start of a value in %s", e.Offset, text)
	}
}

func TestStrictTexts(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":        "",
		"two values":     `{} {}`,
		"repeated name":  `{"message":"m","message":"n","requestedSchema":{"type":"object","properties":{}}}`,
		"bad UTF-8":      "{\"message\":\"\xff\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{}}}",
		"lone surrogate": `{"message":"\ud800","requestedSchema":{"type":"object","properties":{}}}`,
		"too deep":       strings.Repeat("[", 200) + strings.Repeat("]", 200),
		"too long":       `{"message":"` + strings.Repeat("x", elicitation.MaxTextBytes) + `"}`,
	} {
		var e *ahp.Error
		if _, err := elicitation.ParseRequest([]byte(text)); !errors.As(err, &e) || e.Kind != ahp.KindSyntax {
			t.Errorf("%s: request: got %v", name, err)
		}
		if _, err := elicitation.ParseResult([]byte(text), nil); !errors.As(err, &e) || e.Kind != ahp.KindSyntax {
			t.Errorf("%s: result: got %v", name, err)
		}
	}
}

func TestParsedRequest(t *testing.T) {
	q, err := elicitation.ParseRequest([]byte(`{"message":"Who?","_meta":{"k":1},"task":{"ttl":5},"requestedSchema":{"$schema":"s","type":"object","required":["z"],"properties":{
		"z":{"type":"string","title":"Z","description":"last","minLength":1,"format":"uri","default":"d"},
		"a":{"type":"integer","minimum":0},
		"m":{"type":"array","minItems":1,"items":{"anyOf":[{"const":"v","title":"T"}]}},
		"l":{"type":"string","enum":["x","y"],"enumNames":["X"]}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	one := int64(1)
	want := &elicitation.Request{Mode: elicitation.ModeForm, Message: "Who?", Meta: ahp.Raw(`{"k":1}`), Task: &elicitation.Task{TTL: ahp.Raw("5")},
		Form: &elicitation.Form{Dialect: "s", Required: []string{"z"}, Fields: []elicitation.Field{
			{Name: "z", Title: "Z", Description: "last", Type: elicitation.Text, MinLength: &one, Format: elicitation.FormatURI, Default: ahp.Raw(`"d"`)},
			{Name: "a", Type: elicitation.Integer, Minimum: ahp.Raw("0")},
			{Name: "m", Type: elicitation.Choices, MinItems: &one, Options: []elicitation.Option{{Value: "v", Title: "T"}}},
			{Name: "l", Type: elicitation.Choice, Options: []elicitation.Option{{Value: "x", Title: "X"}, {Value: "y"}}},
		}}}
	if diff := cmp.Diff(want, q, cmpopts.IgnoreUnexported(elicitation.Field{})); diff != "" {
		t.Error(diff)
	}
}
