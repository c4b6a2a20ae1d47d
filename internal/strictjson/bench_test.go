package strictjson_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/abhed/abhed/internal/strictjson"
)

// piece is of the shape of a streamed piece of a tool call.
type piece struct {
	Model   string `json:"model"`
	Choices []struct {
		Index int `json:"index"`
		Delta *struct {
			Content   *string `json:"content"`
			Role      string  `json:"role"`
			ToolCalls []struct {
				Index    int    `json:"index"`
				ID       string `json:"id"`
				Function *struct {
					Name      string `json:"name"`
					Arguments string `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"delta"`
		FinishReason jsontext.Value `json:"finish_reason"`
	} `json:"choices"`
	Usage jsontext.Value `json:"usage"`
}

// BenchmarkUnmarshal decodes a small message with and without nulls, and a long
// list with one null.
func BenchmarkUnmarshal(b *testing.B) {
	text := `{"model":"m","choices":[{"index":0,"delta":{"content":null,"tool_calls":[{"index":0,"function":{"arguments":"some more text"}}]},"finish_reason":null}],"usage":null}`
	plain := strings.ReplaceAll(text, "null", `"x"`)
	long := `{"c":[` + strings.Repeat(`{"a":"x","n":1},`, 1000) + `{"b":null}]}`
	for name, run := range map[string]func() error{
		"nulls":   func() error { var p piece; return strictjson.Unmarshal([]byte(text), &p, strictjson.Options{}) },
		"long":    func() error { var d doc; return strictjson.Unmarshal([]byte(long), &d, strictjson.Options{}) },
		"no-null": func() error { var p piece; return strictjson.Unmarshal([]byte(plain), &p, strictjson.Options{}) },
		"any":     func() error { var v any; return strictjson.Unmarshal([]byte(text), &v, strictjson.Options{}) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := run(); err != nil {
					b.Fatal(fmt.Errorf("%s: %w", name, err))
				}
			}
		})
	}
}
