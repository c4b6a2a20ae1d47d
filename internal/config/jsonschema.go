package config

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/abhed/abhed/internal/strictjson"
)

// Schema returns the JSON Schema (draft 2020-12) of a settings file, indented.
// It is made of the table that Load checks against, so that the two agree on
// keys, types, closed sets, bounds and defaults; what spans several keys, and
// the forms of rules and names, only Load checks.
func Schema() ([]byte, error) {
	root := schemaOf(settingsSpec())
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "Abhed settings"
	b, err := strictjson.Marshal(root)
	if err != nil {
		return nil, err
	}
	v := jsontext.Value(b)
	if err := v.Indent(); err != nil {
		return nil, err
	}
	return append(v, '\n'), nil
}

func schemaOf(s *spec) map[string]any {
	out := map[string]any{}
	if s.doc != "" {
		out["description"] = s.doc
	}
	if s.def != "" {
		out["default"] = jsontext.Value(s.def)
	}
	switch s.shape {
	case shapeString:
		out["type"] = "string"
		if s.enum != nil {
			out["enum"] = s.enum
		}
	case shapeBool:
		out["type"] = "boolean"
	case shapeInt, shapeNumber:
		out["type"] = map[shape]string{shapeInt: "integer", shapeNumber: "number"}[s.shape]
		if s.max != 0 {
			out["minimum"], out["maximum"] = s.min, s.max
		}
	case shapeList:
		out["type"], out["items"] = "array", schemaOf(s.elem)
	case shapeMap:
		out["type"], out["additionalProperties"] = "object", schemaOf(s.elem)
	case shapeObject:
		properties := map[string]any{}
		var required []string
		for i := range s.fields {
			f := &s.fields[i]
			properties[f.name] = schemaOf(&f.spec)
			if f.required {
				required = append(required, f.name)
			}
		}
		out["type"], out["properties"], out["additionalProperties"] = "object", properties, false
		if required != nil {
			out["required"] = required
		}
	}
	if s.merge == mergeBound && !strings.Contains(s.doc, "managed") {
		out["description"] = strings.TrimSpace(s.doc + " Managed and project values only make it stricter.")
	}
	return out
}
