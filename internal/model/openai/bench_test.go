package openai

import (
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/strictjson"
)

// BenchmarkStreamedArguments reads a reply whose tool call has large arguments, which
// come in pieces of some bytes each, as servers send them.
func BenchmarkStreamedArguments(b *testing.B) {
	args := `{"path":"f","content":"` + strings.Repeat("some words of a file, ", 4000) + `"}`
	data := []string{`{"choices":[{"index":0,"delta":{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"write","arguments":""}}]},"finish_reason":null}],"usage":null}`}
	for rest := args; rest != ""; {
		n := min(len(rest), 16)
		quoted, err := strictjson.Marshal(rest[:n])
		if err != nil {
			b.Fatal(err)
		}
		rest = rest[n:]
		data = append(data, `{"id":"x","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":`+string(quoted)+`}}]},"logprobs":null,"finish_reason":null}],"usage":null}`)
	}
	stream := frames(append(data, finishCalls, "[DONE]")...)
	b.SetBytes(int64(len(stream)))
	b.ReportAllocs()
	for b.Loop() {
		resp, err := streamBytes(b, strings.NewReader(stream), func(model.Delta) {})
		if err != nil {
			b.Fatal(err)
		}
		if calls := resp.Message.ToolCalls(); len(calls) != 1 || string(calls[0].Args) != args {
			b.Fatalf("%d calls", len(calls))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(data)), "ns/piece")
}
