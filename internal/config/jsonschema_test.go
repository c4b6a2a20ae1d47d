package config

import (
	"encoding/json"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

// TestSchemaAgreesWithLoad validates files by the published schema with a
// validator of somebody else's and expects what Load says of their shape.
func TestSchemaAgreesWithLoad(t *testing.T) {
	data, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(data, &schema); err != nil {
		t.Fatal(err)
	}
	validator, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	cleaned, _ := clean([]byte(specExample))
	for data, valid := range map[string]bool{
		string(cleaned):                  true,
		`{}`:                             true,
		`{"$schema": "x"}`:               true,
		`{"permissions": {"deny": []}}`:  true,
		`{"sampling": {"seed": -5}}`:     true,
		`{"secrets": {"env": ["A"]}}`:    true,
		`{"pemissions": {}}`:             false,
		`{"permissions": {"mode": "x"}}`: false,
		`{"permissions": {"deny": [1]}}`: false,
		`{"limits": {"max_turns": -1}}`:  false,
		`{"limits": {"max_turns": 1.5}}`: false,
		`{"sampling": {"top_p": 2}}`:     false,
		`{"sandbox": {"network": 0}}`:    false,
		`{"extensions": [{}]}`:           false,
		`{"mcp": {"a": []}}`:             false,
		`{"mcp": {"a": {"url": "http://h", "timeout_ms": 1}}, "mcp_budget_tokens": 0}`:              true,
		`{"mcp": {"a": {"url": "http://h", "timeout_ms": 0}}}`:                                      false,
		`{"context": {"compaction": "off", "threshold": 0.99, "keep_results": 0, "stub_bytes": 0}}`: true,
		`{"context": {"threshold": 0.05}}`:                                                          false,
		`{"context": {"compaction": "on"}}`:                                                         false,
		`{"tools": {"disabled": ["bash"]}, "skills": {"paths": ["/s"]}}`:                            true,
		`{"tools": {"disabled": "bash"}}`:                                                           false,
		`{"skills": {"path": []}}`:                                                                  false,
		`{"http": {"ca_file": "/c.pem", "stall_seconds": 1, "retries": 0}}`:                         true,
		`{"http": {"retries": -1}}`:                                                                 false,
		`{"models": {"a/b": {"images": true}}}`:                                                     true,
		`{"models": {"a/b": {"images": "yes"}}}`:                                                    false,
		`{"models": {"a/b": {"x": 1}}}`:                                                             false,
		`[]`:                                                                                        false,
	} {
		var v any
		if err := json.Unmarshal([]byte(data), &v); err != nil {
			t.Fatal(err)
		}
		if err := validator.Validate(v); (err == nil) != valid {
			t.Errorf("the schema says %v of %s", err, data)
		}
		if _, err := Load([]Source{file(User, data)}); (err == nil) != valid {
			t.Errorf("Load says %v of %s", err, data)
		}
	}
}
