package tool

import (
	"fmt"
	"strings"
	"testing"
)

func TestCheckSchema(t *testing.T) {
	var doubling strings.Builder
	for i := range 40 {
		fmt.Fprintf(&doubling, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	tests := []struct{ name, schema, want string }{
		{"plain", `{"type":"object","properties":{"$ref":{"type":"string"},"$id":{"type":"string"},"a":{"anyOf":[{"type":"null"},{}]}}}`, ""},
		{"a reference down", `{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#"}}}}`, ""},
		{"used twice", `{"properties":{"a":{"$ref":"#/$defs/x~1y"},"b":{"$ref":"#/$defs/x~1y"}},"$defs":{"x/y":{"type":"string"}}}`, ""},
		{"into a list", `{"allOf":[{"$ref":"#/anyOf/1"}],"anyOf":[{},{"type":"object"}]}`, ""},
		{"itself", `{"$ref":"#"}`, "never end"},
		{"itself by a definition", `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/a"}}}`, "never end"},
		{"a circle", `{"properties":{"x":{"allOf":[{"not":{"$ref":"#/$defs/a"}}]}},"$defs":{"a":{"if":{"$ref":"#/properties/x"}}}}`, "never end"},
		{"a circle by dependence", `{"dependentSchemas":{"a/b":{"$ref":"#"}}}`, "never end"},
		{"a circle written in two ways", `{"anyOf":[{"$ref":"#/anyOf/00"}]}`, "never end"},
		{"doubling", `{"$ref":"#/$defs/d0","$defs":{` + doubling.String() + `"d40":{}}}`, "more than 10000 subschemas"},
		{"missing", `{"$ref":"#/$defs/none"}`, `$ref "#/$defs/none" doesn't name a place`},
		{"elsewhere", `{"$ref":"https://example.org/s"}`, "doesn't name a place"},
		{"an anchor", `{"$ref":"#a","$defs":{"x":{"$anchor":"a"}}}`, "doesn't name a place"},
		{"dynamic", `{"$dynamicRef":"#"}`, "$dynamicRef"},
		{"an inner identity", `{"$defs":{"x":{"$id":"https://example.org/x","$ref":"#"}}}`, "inner $id"},
		{"broken", `{"a":1,"a":2}`, "the same member name twice"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := checkSchema([]byte(tt.schema))
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}
