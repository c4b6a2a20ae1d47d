package mcp_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/mcp"
	"github.com/abhed/abhed/internal/strictjson"
)

// TestBadSchemas is I178 and I180: each tool is judged by itself.
func TestBadSchemas(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"items":`, 60) + "{}" + strings.Repeat("}", 60)
	tests := []struct{ name, schema, args, want, notice string }{
		{"I178", `{"type":"object","properties":{"a/b c":{"type":"string"}}}`, "", "", `property "a/b c" has a name that model APIs refuse`},
		{"I178_deep", `{"type":"object","properties":{"x":{"type":"array","items":{"properties":{"ü":{}}}}}}`, "", "", `property "ü"`},
		{"I180_required", `{"type":"object","properties":{"a":{"type":"string"},"required":["a"]}}`, `{"a":"1"}`, `{"properties":{"a":{"type":"string"}},"required":["a"],"type":"object"}`, "moved to where it belongs"},
		{"I180_none", "", `{"z":1}`, `{"type":"object"}`, "has no schema"},
		{"I180_null", "null", `{}`, `{"type":"object"}`, "has no schema"},
		{"I180_array", `{"type":"array","items":{}}`, "", "", `of type "array"`},
		{"string", `"object"`, "", "", "a string, expected an object"},
		{"list", `[]`, "", "", "a list, expected an object"},
		{"types", `{"type":["object","null"]}`, `{}`, `{"type":"object"}`, "several types"},
		{"types_other", `{"type":["string","null"]}`, "", "", `don't include "object"`},
		{"type_number", `{"type":7}`, "", "", "neither a string nor a list"},
		{"untyped", `{"properties":{"required":{"type":"boolean"}}}`, `{"required":true}`, `{"properties":{"required":{"type":"boolean"}},"type":"object"}`, "has no type"},
		{"null_property", `{"type":"object","properties":{"a":null}}`, `{"a":1}`, `{"properties":{"a":{}},"type":"object"}`, "is null"},
		{"string_property", `{"type":"object","properties":{"a":"string"}}`, "", "", `property "a" is neither`},
		{"draft3", `{"type":"object","properties":{"a":{"type":"string","required":true}}}`, `{}`, `{"properties":{"a":{"type":"string"}},"type":"object"}`, "is no list"},
		{"draft4", `{"$schema":"http://json-schema.org/draft-04/schema#","type":"object","properties":{"n":{"type":"number","minimum":0,"exclusiveMinimum":true}}}`, `{"n":1}`, `{"properties":{"n":{"exclusiveMinimum":0,"type":"number"}},"type":"object"}`, "old form"},
		{"lookahead", `{"type":"object","properties":{"a":{"type":"string","pattern":"(?!x)y"}}}`, `{"a":"x"}`, `{"properties":{"a":{"type":"string"}},"type":"object"}`, "isn't one that this program can check"},
		{"top_any", `{"type":"object","anyOf":[{"properties":{"a":{"type":"string"}}},{"properties":{"b":{"type":"string"}}}]}`, `{"b":"x"}`, `{"properties":{"a":{"type":"string"},"b":{"type":"string"}},"type":"object"}`, `"anyOf" at the top`},
		{"loop", `{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"$ref":"#/$defs/x"}}}`, "", "", "never end"},
		{"tree", `{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#"}}}}`, `{"kids":[{"kids":[]}]}`, `{"properties":{"kids":{"items":{"$ref":"#"},"type":"array"}},"type":"object"}`, ""},
		{"elsewhere", `{"type":"object","properties":{"a":{"$ref":"https://example.org/s"}}}`, "", "", "doesn't name a place"},
		{"deep", `{"type":"object","properties":{"a":` + deep + `}}`, "", "", "nested deeper"},
		{"huge", `{"type":"object","description":"` + strings.Repeat("x", 200<<10) + `"}`, "", "", "the limit is 131072"},
		{"hidden", `{"type":"object","$comment":"x","properties":{"a":{"description":"b\u200be\u202e\u0007"}}}`, `{}`, `{"properties":{"a":{"description":"be"}},"type":"object"}`, ""},
	}
	tools := named("ok")
	for _, tt := range tests {
		schema := ""
		if tt.schema != "" {
			schema = `,"inputSchema":` + tt.schema
		}
		tools = append(tools, fmt.Sprintf(`{"name":%q%s}`, tt.name, schema))
	}
	tools = append(tools, `null`, `7`, `{"description":"nameless"}`, `{"name":7}`, `{"name":""}`, `{"name":"ok",`+open+`}`, `{"name":"odd","description":["x"],"annotations":"y","icons":7,`+open+`}`)
	r := start(t, mcp.Options{BudgetTokens: -1}, server(t, "srv", script{Tools: tools}))
	r.works("mcp__srv__ok", `{"a":1}`, `ok {"a":1}`)
	r.works("mcp__srv__odd", `{}`, "odd")
	r.noticed("it is null, expected an object", "it is a number", "it has no name", `"ok" is listed twice`)
	specs := map[string]string{}
	for _, x := range r.Tools() {
		specs[x.Spec().Name] = string(x.Spec().Schema)
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, there := specs["mcp__srv__"+tt.name]
			if there != (tt.want != "") || got != tt.want {
				t.Errorf("schema %q, expected %q", got, tt.want)
			}
			if tt.notice != "" && !lineWith(r.rec.text(), `MCP server "srv"`, fmt.Sprintf("its tool %q", tt.name), tt.notice) {
				t.Errorf("nothing recorded for %s with %q:\n%s", tt.name, tt.notice, r.rec.text())
			}
			if there {
				r.works("mcp__srv__"+tt.name, tt.args, tt.name+" "+tt.args)
			}
		})
	}
}

func lineWith(text string, want ...string) bool {
lines:
	for line := range strings.Lines(text) {
		for _, w := range want {
			if !strings.Contains(line, w) {
				continue lines
			}
		}
		return true
	}
	return false
}

func TestRequiredIsChecked(t *testing.T) {
	t.Parallel()
	r := start(t, mcp.Options{}, server(t, "s", script{Tools: []string{`{"name":"x","inputSchema":{"type":"object","properties":{"a":{"type":"string"},"required":["a"]}}}`}}))
	if _, err := r.reg.Check("mcp__s__x", []byte(`{}`)); err == nil || !strings.Contains(err.Error(), "a") {
		t.Errorf("I180: arguments without the required member: %v", err)
	}
}

// TestQuarantine is the end of I178: a provider refuses a schema after all.
func TestQuarantine(t *testing.T) {
	t.Parallel()
	r := start(t, mcp.Options{}, server(t, "s", script{Tools: named("bad", "ok")}))
	if !r.Quarantine("mcp__s__bad", "the model's API answered 400") || r.Quarantine("mcp__s__none", "x") {
		t.Error("Quarantine doesn't know which tools there are")
	}
	if specs := r.Listed(); len(specs) != 1 || specs[0].Name != "mcp__s__ok" {
		t.Errorf("listed %v", specs)
	}
	r.fails("mcp__s__bad", `{}`, "the model's API answered 400")
	r.works("mcp__s__ok", `{}`, "ok")
	r.noticed(`MCP server "s": its tool "bad" is left out`)
}

func TestDescriptionIsClean(t *testing.T) {
	t.Parallel()
	d := "Reads.\u200b\u202e\ufeff\u0007 \U000E0041\U000E0042\u3164\r\nIgnore" + strings.Repeat("x", 5000)
	quoted, _ := strictjson.AppendString(nil, d)
	r := start(t, mcp.Options{}, server(t, "s", script{Tools: []string{fmt.Sprintf(`{"name":"x","description":%s,%s}`, quoted, open)}}))
	got := r.Tools()[0].Spec().Description
	if !strings.HasPrefix(got, "[From MCP server \"s\"] Reads. \nIgnorex") || len(got) > 2200 || !strings.Contains(got, "bytes cut") {
		t.Errorf("description %d bytes: %.80q", len(got), got)
	}
}

// FuzzRepairSchema holds that a schema comes out as one that comes out unchanged.
func FuzzRepairSchema(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"a":{"type":"string"},"required":["a"]}}`))
	f.Add([]byte(`{"anyOf":[{"properties":{"a":{}}}],"allOf":[{"required":["a"]}]}`))
	f.Add([]byte(`{"required":[1,"a","a"],"properties":{"required":["b"]},"exclusiveMinimum":true}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		out, _, err := mcp.RepairSchema(raw)
		if err != nil {
			return
		}
		again, notes, err := mcp.RepairSchema(out)
		if err != nil || string(again) != string(out) || len(notes) > 0 {
			t.Fatalf("%q became %q and then %q, %q, %v", raw, out, again, notes, err)
		}
	})
}
