package app

import (
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/abhed/abhed/internal/strictjson"
)

// answerCheck returns what says why an answer doesn't fit a JSON Schema.
func answerCheck(schema []byte) (func(answer string) error, error) {
	var s jsonschema.Schema
	if err := strictjson.Check(schema, strictjson.Options{}); err != nil {
		return nil, fmt.Errorf("the JSON Schema of the answer is not JSON: %w", err)
	}
	if err := s.UnmarshalJSON(schema); err != nil {
		return nil, fmt.Errorf("the JSON Schema of the answer can't be used: %w", err)
	}
	if s.Type != "object" {
		return nil, fmt.Errorf("the JSON Schema of the answer has the type %q at its top; expected \"object\", which is what model APIs take", s.Type)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("the JSON Schema of the answer can't be used: %w", err)
	}
	return func(answer string) error {
		var v any
		if err := strictjson.Unmarshal([]byte(answer), &v, strictjson.Options{}); err != nil {
			return fmt.Errorf("it is not one JSON value: %w", err)
		}
		return resolved.Validate(v)
	}, nil
}
