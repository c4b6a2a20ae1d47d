package anthropic

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/model/modeltest"
)

// want is what a stream means.
type want struct {
	text, reasoning string
	calls           []modeltest.Call
	finish          model.Finish // "" means that the call fails with kind
	kind            model.ErrorKind
	note            string // a part of the note, "" for no note
}

type streamCase struct {
	name string
	in   string
	want want
}

// read is a call of the tool read with its input in pieces.
func readCall(i int) []string {
	return []string{blockStart(i, `{"type":"tool_use","id":"toolu_a","name":"read","input":{}}`), jsonDelta(i, ``), jsonDelta(i, `{\"path\"`), jsonDelta(i, `:\"x\"}`), blockStop(i)}
}

var (
	one      = []modeltest.Call{{ID: "toolu_a", Name: "read", Args: `{"path":"x"}`}}
	none     = []modeltest.Call{{ID: "toolu_a", Name: "read", Args: `{}`}}
	oneAfter = []modeltest.Call{{ID: "toolu_a", Name: "read", Args: `{"path":"x"}`}, {ID: "toolu_b", Name: "read", Args: `{"path":"y"}`}}
)

func events(parts ...any) string {
	var out []string
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			out = append(out, p)
		case []string:
			out = append(out, p...)
		}
	}
	return stream(out...)
}

// anthropicStreams are what the API itself sends.
func anthropicStreams() []streamCase {
	tool := func(block string, deltas ...string) string {
		return events(msgStart, blockStart(0, block), deltas, blockStop(0), ending("tool_use"), msgStop)
	}
	return []streamCase{
		{"text", events(msgStart, blockStart(0, `{"type":"text","text":""}`), `{"type":"ping"}`, textDelta(0, "a é北"), textDelta(0, "😀"), blockStop(0), ending("end_turn"), msgStop), want{text: "a é北😀", finish: model.FinishStop}},
		{"text and a call", events(msgStart, blockStart(0, `{"type":"text","text":""}`), textDelta(0, "a"), blockStop(0), readCall(1), ending("tool_use"), msgStop), want{text: "a", calls: one, finish: model.FinishToolCalls}},
		{"I142 no input at all", tool(`{"type":"tool_use","id":"toolu_a","name":"read","input":{}}`), want{calls: none, finish: model.FinishToolCalls}},
		{"I142 an empty piece of input", tool(`{"type":"tool_use","id":"toolu_a","name":"read"}`, jsonDelta(0, "")), want{calls: none, finish: model.FinishToolCalls}},
		{"I144 no input member", tool(`{"type":"tool_use","id":"toolu_a","name":"read"}`, jsonDelta(0, `{\"path\":`), jsonDelta(0, `\"x\"}`)), want{calls: one, finish: model.FinishToolCalls}},
		{"I144 a null input", tool(`{"type":"tool_use","id":"toolu_a","name":"read","input":null}`, jsonDelta(0, `{\"path\":\"x\"}`)), want{calls: one, finish: model.FinishToolCalls}},
		{"input that is whole at the start", tool(`{"type":"tool_use","id":"toolu_a","name":"read","input":{"path":"x"}}`), want{calls: one, finish: model.FinishToolCalls}},
		{"input whole and in pieces", tool(`{"type":"tool_use","id":"toolu_a","name":"read","input":{"path":"old"}}`, jsonDelta(0, `{\"path\":\"x\"}`)), want{calls: one, finish: model.FinishToolCalls}},
		{"thinking", events(msgStart, blockStart(0, `{"type":"thinking","thinking":"","signature":""}`), blockDelta(0, `{"type":"thinking_delta","thinking":"hm "}`), blockDelta(0, `{"type":"thinking_delta","thinking":"é"}`), blockDelta(0, `{"type":"signature_delta","signature":"c2ln"}`), blockStop(0),
			blockStart(1, `{"type":"text","text":""}`), textDelta(1, "a"), blockStop(1), ending("end_turn"), msgStop), want{text: "a", reasoning: "hm é", finish: model.FinishStop}},
		{"an unknown block and delta", events(msgStart, blockStart(0, `{"type":"server_tool_use","id":"s","name":"web_search","input":{}}`), jsonDelta(0, `{}`), blockStop(0), blockStart(1, `{"type":"text","text":""}`), blockDelta(1, `{"type":"citations_delta","citation":{}}`), textDelta(1, "a"), blockStop(1), ending("end_turn"), msgStop),
			want{text: "a", finish: model.FinishStop, note: `content of an unknown type was left out: "server_tool_use"; pieces`}},
		{"an unknown event", events(msgStart, `{"type":"message_hint","hint":1}`, blockStart(0, `{"type":"text","text":"a"}`), blockStop(0), ending("end_turn"), msgStop), want{text: "a", finish: model.FinishStop, note: `"message_hint"`}},
		{"nothing to say", events(msgStart, ending("end_turn"), msgStop), want{finish: model.FinishStop}},
		{"the output limit in a call", events(msgStart, blockStart(0, `{"type":"text","text":""}`), textDelta(0, "a"), blockStop(0), readCall(1)[:3], ending("max_tokens"), msgStop), want{text: "a", finish: model.FinishLength, note: `1 tool calls were withheld because the reply was not complete: "read"`}},
		{"the output limit after a whole call", events(msgStart, readCall(0), ending("max_tokens"), msgStop), want{finish: model.FinishLength, note: "withheld"}},
		{"the context window is full", events(msgStart, readCall(0), ending("model_context_window_exceeded"), msgStop), want{finish: model.FinishLength, note: "withheld"}},
		{"a refusal", events(msgStart, blockStart(0, `{"type":"text","text":""}`), textDelta(0, "a"), blockStop(0), readCall(1), ending("refusal"), msgStop), want{text: "a", finish: model.FinishFiltered, note: "withheld"}},
		{"a stop sequence", events(msgStart, blockStart(0, `{"type":"text","text":"a"}`), blockStop(0), ending("stop_sequence"), msgStop), want{text: "a", finish: model.FinishStop}},
		{"a stop sequence within the input", events(msgStart, readCall(0)[:3], ending("stop_sequence"), msgStop), want{finish: model.FinishStop, note: "withheld"}},
		{"I149 overloaded", events(msgStart, blockStart(0, `{"type":"text","text":""}`), textDelta(0, "ab"), `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), want{text: "ab", kind: model.ErrServer}},
		{"an error of the request", events(msgStart, `{"type":"error","error":{"type":"invalid_request_error","message":"no"}}`), want{kind: model.ErrRequest}},
		{"too many requests", events(`{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}`), want{kind: model.ErrRateLimit}},
		{"I150 the end within text", events(msgStart, blockStart(0, `{"type":"text","text":""}`), textDelta(0, "ab")), want{text: "ab", kind: model.ErrCut}},
		{"I150 the end within a call", events(msgStart, readCall(0)[:3]), want{kind: model.ErrCut}},
		{"I150 the end after a whole call", events(msgStart, readCall(0)), want{kind: model.ErrCut}},
		{"I150 a stop reason and no end", events(msgStart, readCall(0), ending("tool_use")), want{kind: model.ErrCut}},
		{"an end and no stop reason", events(msgStart, readCall(0), msgStop), want{kind: model.ErrCut}},
	}
}

// proxyStreams are what servers that imitate the API send.
func proxyStreams() []streamCase {
	nameless := strings.ReplaceAll(events(msgStart, blockStart(0, `{"type":"text","text":"a"}`), blockStop(0), readCall(1), ending("tool_use"), msgStop), "event: ", ": ")
	typeless := strings.ReplaceAll(events(msgStart, blockStart(0, `{"type":"text","text":"a"}`), readCall(1), ending("tool_use"), msgStop), `data: {"type":"`, `data: {"_":"`)
	second := strings.NewReplacer("toolu_a", "toolu_b", `\"x\"`, `\"y\"`)
	other := func(i int) []string {
		var out []string
		for _, e := range readCall(i) {
			out = append(out, second.Replace(e))
		}
		return out
	}
	bare := func(es []string) []string {
		var out []string
		for _, e := range es {
			out = append(out, strings.NewReplacer(`"index":0,`, "", `,"index":0`, "").Replace(e))
		}
		return out
	}
	return []streamCase{
		{"Bedrock's metrics at the end", events(msgStart, readCall(0), ending("tool_use"), `{"type":"message_stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":12}}`), want{calls: one, finish: model.FinishToolCalls}},
		{"a guardrail", events(msgStart, blockStart(0, `{"type":"text","text":"a"}`), blockStop(0), ending("guardrail_intervened"), msgStop), want{text: "a", finish: model.FinishFiltered}},
		{"no names of events", nameless, want{text: "a", calls: one, finish: model.FinishToolCalls}},
		{"types by the name alone", typeless, want{text: "a", calls: one, finish: model.FinishToolCalls, note: "not ended"}},
		{"types by the name alone, little more", "event: message_start\ndata: {\"message\":{}}\n\nevent: content_block_delta\ndata: {\"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}}\n\nevent: message_delta\ndata: {\"delta\":{\"stop_reason\":\"end_turn\"}}\n\nevent: message_stop\ndata: {}\n\n", want{text: "a", finish: model.FinishStop, note: "without the start"}},
		{"words of chat completions", events(msgStart, readCall(0), ending("tool_calls"), msgStop), want{calls: one, finish: model.FinishToolCalls}},
		{"end_turn after calls", events(msgStart, readCall(0), ending("end_turn"), msgStop), want{calls: one, finish: model.FinishToolCalls}},
		{"[DONE] after the end", events(msgStart, readCall(0), ending("tool_use"), msgStop, "[DONE]"), want{calls: one, finish: model.FinishToolCalls}},
		{"[DONE] instead of the end", events(msgStart, readCall(0), ending("tool_use"), "[DONE]"), want{calls: one, finish: model.FinishToolCalls, note: "[DONE]"}},
		{"[DONE] without a stop reason", events(msgStart, readCall(0), "[DONE]"), want{kind: model.ErrCut}},
		{"no end after text", events(msgStart, blockStart(0, `{"type":"text","text":"a"}`), blockStop(0), ending("end_turn")), want{text: "a", finish: model.FinishStop, note: "the end of the message was not marked"}},
		{"text without a stop reason", events(msgStart, blockStart(0, `{"type":"text","text":"a"}`), blockStop(0), msgStop), want{text: "a", finish: model.FinishStop, note: "no stop reason"}},
		{"no stops of blocks", events(msgStart, blockStart(0, `{"type":"text","text":"a"}`), readCall(1)[:4], other(2)[:4], ending("tool_use"), msgStop), want{text: "a", calls: oneAfter, finish: model.FinishToolCalls, note: "not ended"}},
		{"every index is 0", events(msgStart, blockStart(0, `{"type":"text","text":""}`), textDelta(0, "a"), blockStop(0), readCall(0), other(0), ending("tool_use"), msgStop), want{text: "a", calls: oneAfter, finish: model.FinishToolCalls}},
		{"no indices", events(msgStart, bare(readCall(0)), bare(other(0)), ending("tool_use"), msgStop), want{calls: oneAfter, finish: model.FinishToolCalls}},
		{"interleaved calls", events(msgStart, readCall(0)[:3], other(1)[:3], readCall(0)[3:], other(1)[3:], ending("tool_use"), msgStop), want{calls: oneAfter, finish: model.FinishToolCalls}},
		{"a call begun twice", events(msgStart, readCall(0)[:1], readCall(0), ending("tool_use"), msgStop), want{calls: one, finish: model.FinishToolCalls, note: "begun twice"}},
		{"a call sent twice", events(msgStart, readCall(0), readCall(1), ending("tool_use"), msgStop), want{calls: one, finish: model.FinishToolCalls, note: "sent twice"}},
		{"I141 two ends", events(msgStart, readCall(0), ending("tool_use"), ending("tool_use"), msgStop, msgStop), want{calls: one, finish: model.FinishToolCalls}},
		{"input as a string", events(msgStart, blockStart(0, `{"type":"tool_use","id":"toolu_a","name":"read","input":"{\"path\":\"x\"}"}`), blockStop(0), ending("tool_use"), msgStop), want{calls: one, finish: model.FinishToolCalls}},
		{"a piece of input as an object", events(msgStart, readCall(0)[0], blockDelta(0, `{"type":"input_json_delta","partial_json":{"path":"x"}}`), ending("tool_use"), msgStop), want{calls: one, finish: model.FinishToolCalls, note: "not ended"}},
		{"a piece of input and no call", events(msgStart, jsonDelta(0, `{}`), ending("tool_use"), msgStop), want{kind: model.ErrMalformed}},
		{"a piece of input where text began", events(msgStart, blockStart(0, `{"type":"text","text":""}`), jsonDelta(0, `{}`), ending("tool_use"), msgStop), want{kind: model.ErrMalformed}},
		{"text where a call began", events(msgStart, readCall(0), textDelta(0, "a"), ending("tool_use"), msgStop), want{text: "a", calls: one, finish: model.FinishToolCalls, note: "without the start"}},
		{"a call without a name", events(msgStart, blockStart(0, `{"type":"tool_use","id":"a"}`), ending("tool_use"), msgStop), want{kind: model.ErrMalformed}},
		{"calls and an unknown reason", events(msgStart, readCall(0), ending("whim"), msgStop), want{kind: model.ErrMalformed}},
		{"text and an unknown reason", events(msgStart, blockStart(0, `{"type":"text","text":"a"}`), blockStop(0), ending("whim"), msgStop), want{text: "a", finish: model.FinishStop, note: `"whim"`}},
		{"tool_use and no call", events(msgStart, blockStart(0, `{"type":"text","text":"a"}`), blockStop(0), ending("tool_use"), msgStop), want{text: "a", finish: model.FinishStop, note: "none came"}},
		{"an end and nothing else", events(msgStop), want{kind: model.ErrMalformed}},
		{"a second message", events(msgStart, blockStart(0, `{"type":"text","text":"a"}`), msgStart), want{text: "a", kind: model.ErrMalformed}},
	}
}

// oddStreams are what shouldn't be sent, and is.
func oddStreams() []streamCase {
	return []streamCase{
		{"pings alone", events(`{"type":"ping"}`, `{"type":"ping"}`) + ": keep-alive\n\n", want{kind: model.ErrCut}},
		{"I149 an error without a name", events(msgStart, blockStart(0, `{"type":"text","text":""}`), textDelta(0, "ab"), `{"error":{"message":"upstream failed"}}`), want{text: "ab", kind: model.ErrServer}},
		{"an error without an error member", `data: {"type":"error","message":"upstream failed"}` + "\n\n", want{kind: model.ErrServer}},
		{"an empty error", events(msgStart, blockStart(0, `{"type":"text","text":"a"}`), blockStop(0), `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"error":null}`, `{"type":"message_stop","error":{}}`), want{text: "a", finish: model.FinishStop}},
		{"half characters", events(msgStart, blockStart(0, `{"type":"text","text":""}`), textDelta(0, `a\ud83d`), textDelta(0, `\ude00b`), blockStop(0), ending("end_turn"), msgStop), want{text: "a😀b", finish: model.FinishStop}},
		{"half of a character", events(msgStart, blockStart(0, `{"type":"text","text":""}`), textDelta(0, `a\ud83d`), blockStop(0), ending("end_turn"), msgStop), want{text: "a\ufffd", finish: model.FinishStop, note: "1 half characters"}},
		{"a whole body", `{"type":"message","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"a"},{"type":"tool_use","id":"toolu_a","name":"read","input":{"path":"x"}}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":2}}`, want{text: "a", reasoning: "hm", calls: one, finish: model.FinishToolCalls, note: "one JSON body"}},
		{"a whole body without a stop reason", `{"type":"message","content":[{"type":"tool_use","id":"toolu_a","name":"read","input":{"path":"x"}}]}`, want{kind: model.ErrCut}},
		{"a whole body that is cut", `{"type":"message","content":[{"type":"tool_use","id":"toolu_a","name":"read","input":{"path":"x"`, want{kind: model.ErrCut}},
		{"a whole body that is an error", `{"type":"error","error":{"type":"overloaded_error","message":"x"}}`, want{kind: model.ErrServer}},
		{"a whole body of something else", `{"choices":[]}`, want{kind: model.ErrMalformed}},
		{"no JSON", "data: oops\n\n", want{kind: model.ErrMalformed}},
		{"no type", events(`{"x":1}`), want{kind: model.ErrMalformed}},
		{"a web page", "<html>", want{kind: model.ErrMalformed}},
	}
}

func allStreams() []streamCase {
	return slices.Concat(anthropicStreams(), proxyStreams(), oddStreams())
}

func (w want) check(t testing.TB, got *collect, resp *model.Response, err error) {
	t.Helper()
	if got.text.String() != w.text || got.reasoning.String() != w.reasoning {
		t.Errorf("streamed %q and %q, want %q and %q", got.text.String(), got.reasoning.String(), w.text, w.reasoning)
	}
	if w.finish == "" {
		me := asError(t, err)
		if me.Kind != w.kind || me.Partial != w.text || resp != nil {
			t.Errorf("kind %s, partial %q, want %s, %q: %v, %v", me.Kind, me.Partial, w.kind, w.text, err, resp)
		}
		return
	}
	if err != nil {
		t.Error(err)
		return
	}
	if d := cmp.Diff(w.calls, calls(resp.Message)); d != "" {
		t.Errorf("calls: %s", d)
	}
	if resp.Finish != w.finish || resp.Message.Text() != w.text || reasoning(resp.Message) != w.reasoning {
		t.Errorf("finish %s, want %s; message %+v", resp.Finish, w.finish, resp.Message)
	}
	if (w.note == "") != (resp.Note == "") || !strings.Contains(resp.Note, w.note) {
		t.Errorf("note %q, want %q", resp.Note, w.note)
	}
}

func TestStreams(t *testing.T) {
	for _, c := range allStreams() {
		t.Run(c.name, func(t *testing.T) {
			var got collect
			resp, err := streamBytes(t, strings.NewReader(c.in), got.add)
			c.want.check(t, &got, resp, err)
		})
	}
}

// cutReader yields the first n bytes apart.
type cutReader struct {
	data string
	n    int
}

func (c *cutReader) Read(b []byte) (int, error) {
	if c.data == "" {
		return 0, io.EOF
	}
	n := len(c.data)
	if c.n > 0 {
		n, c.n = c.n, 0
	}
	n = copy(b, c.data[:min(n, len(c.data))])
	c.data = c.data[n:]
	return n, nil
}

// TestSplitAnywhere splits two streams with characters of several bytes at every byte,
// and the others at every 53rd: they mean the same (I134).
func TestSplitAnywhere(t *testing.T) {
	for i, c := range allStreams() {
		step := 53
		if c.name == "text" || c.name == "thinking" {
			step = 1
		}
		for n := 1 + i%step; n < len(c.in); n += step {
			var got collect
			resp, err := streamBytes(t, &cutReader{c.in, n}, got.add)
			c.want.check(t, &got, resp, err)
			if t.Failed() {
				t.Fatalf("%s, split at %d", c.name, n)
			}
		}
	}
}

// TestI150NoCallOfACutStream cuts every stream that has calls at every 19th byte, each
// at others: what is delivered then is all of them, and only after the stop reason and
// the end.
func TestI150NoCallOfACutStream(t *testing.T) {
	for i, c := range allStreams() {
		if c.want.calls == nil {
			continue
		}
		marked := strings.Index(c.in, `"message_stop"`)
		if marked < 0 {
			marked = strings.Index(c.in, `[DONE]`)
		}
		for n := i % 19; n < len(c.in); n += 19 {
			resp, err := streamBytes(t, strings.NewReader(c.in[:n]), nil)
			if err != nil {
				if me := asError(t, err); !me.Retryable() {
					t.Errorf("%s, cut at %d: %v", c.name, n, err)
				}
				continue
			}
			if len(resp.Message.ToolCalls()) > 0 && (n < marked || cmp.Diff(c.want.calls, calls(resp.Message)) != "") {
				t.Errorf("%s, cut at %d: %v", c.name, n, calls(resp.Message))
			}
		}
	}
}

// TestAnyOrder feeds events in any order and number: nothing fails but with an error,
// and no call comes from a reply without its end.
func TestAnyOrder(t *testing.T) {
	menu := append(readCall(0), msgStart, msgStop, ending("tool_use"), ending("max_tokens"), textDelta(0, "a"), textDelta(1, "b"), blockStart(1, `{"type":"text","text":"c"}`),
		blockStart(1, `{"type":"thinking","thinking":"d"}`), blockDelta(1, `{"type":"signature_delta","signature":"s"}`), blockDelta(0, `{"type":"thinking_delta","thinking":"e"}`), blockStop(1), `{"type":"ping"}`, blockStart(0, `{"type":"redacted_thinking","data":"r"}`))
	rapid.Check(t, func(t *rapid.T) {
		var es []string
		ended := false
		for range rapid.IntRange(0, 14).Draw(t, "n") {
			e := rapid.SampledFrom(menu).Draw(t, "event")
			es = append(es, e)
			ended = ended || e == msgStop
		}
		var got collect
		resp, err := streamBytes(t, strings.NewReader(stream(es...)), got.add)
		switch {
		case err != nil && resp != nil:
			t.Fatal("a response together with an error")
		case err != nil:
			return
		case len(resp.Message.ToolCalls()) > 0 && !ended:
			t.Fatal("a call of a reply without an end")
		case resp.Message.Text() != got.text.String() || reasoning(resp.Message) != got.reasoning.String():
			t.Fatalf("streamed %q, %q; message %+v", got.text.String(), got.reasoning.String(), resp.Message)
		}
	})
}

func TestTooManyBlocks(t *testing.T) {
	es := []string{msgStart}
	for i := range maxBlocks + 1 {
		es = append(es, blockStart(i, `{"type":"text","text":"a"}`))
	}
	_, err := streamBytes(t, strings.NewReader(stream(es...)), nil)
	if me := asError(t, err); me.Kind != model.ErrMalformed || !strings.Contains(me.Detail, fmt.Sprint(maxBlocks)) {
		t.Error(err)
	}
}
