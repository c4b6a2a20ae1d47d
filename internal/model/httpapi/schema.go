package httpapi

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/abhed/abhed/internal/strictjson"
)

const maxSchemaDepth = 64

// StrictSchema reports whether OpenAI's strict mode takes the schema: every object
// in it names all its members as required and allows no others, and no keyword
// stands in it that the mode refuses.
func StrictSchema(schema []byte) bool { return strictSchema(schema, maxSchemaDepth) }

func strictSchema(schema jsontext.Value, depth int) bool {
	var m map[string]jsontext.Value
	if depth == 0 || strictjson.Unmarshal(schema, &m, strictjson.Options{}) != nil {
		return false
	}
	for name, v := range m {
		switch name {
		case "allOf", "oneOf", "not", "if", "then", "else", "patternProperties", "dependentRequired", "dependentSchemas", "prefixItems", "unevaluatedProperties", "contains", "propertyNames":
			return false
		case "items":
			if !strictSchema(v, depth-1) {
				return false
			}
		case "anyOf":
			var list []jsontext.Value
			if strictjson.Unmarshal(v, &list, strictjson.Options{}) != nil || slices.ContainsFunc(list, func(s jsontext.Value) bool { return !strictSchema(s, depth-1) }) {
				return false
			}
		case "$defs", "definitions":
			if !strictMembers(v, func(string) bool { return true }, depth) {
				return false
			}
		}
	}
	if Scalar(m["type"]) != "object" && Absent(m["properties"]) {
		return true
	}
	var required []string
	if r := m["required"]; !Absent(r) && strictjson.Unmarshal(r, &required, strictjson.Options{}) != nil {
		return false
	}
	return string(m["additionalProperties"]) == "false" && strictMembers(m["properties"], func(name string) bool { return slices.Contains(required, name) }, depth)
}

// strictMembers checks the schemas in an object and their names.
func strictMembers(v jsontext.Value, allowed func(name string) bool, depth int) bool {
	var m map[string]jsontext.Value
	if Absent(v) {
		return true
	}
	if strictjson.Unmarshal(v, &m, strictjson.Options{}) != nil {
		return false
	}
	for name, s := range m {
		if !allowed(name) || !strictSchema(s, depth-1) {
			return false
		}
	}
	return true
}
