package anthropic

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/abhed/abhed/internal/model"
)

// standIn is sent where there are calls and no tools (TestCallsNeedTools).
const standIn = `"tools":[{"name":"none","description":"Not available.","input_schema":{"type":"object","properties":{}},"cache_control":{"type":"ephemeral"}}],"tool_choice":{"type":"none"},`

const at = `,"cache_control":{"type":"ephemeral"}`

func TestEncoding(t *testing.T) {
	img := model.Image{MediaType: "image/png", Data: "aGk="}
	foreign := thought("theirs", "sig")
	foreign.Seal = &model.Seal{Origin: "openai-responses:test/m1", Kind: "thinking", Data: "sig"}
	cases := []struct {
		name string
		ms   []*model.Message
		want string
	}{
		{"user", []*model.Message{user("a\"\n\x00é😀")}, `{"role":"user","content":[{"type":"text","text":"a\"\n\u0000é😀"` + at + `}]}`},
		{"bad UTF-8", []*model.Message{user("a\xffb")}, `{"role":"user","content":[{"type":"text","text":"a` + "\ufffd" + `b"` + at + `}]}`},
		{"same roles become one", []*model.Message{user("a"), user("b"), assistant(say("c")), assistant(say("d")), user("e")},
			`{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"` + at + `}]},{"role":"assistant","content":[{"type":"text","text":"c"},{"type":"text","text":"d"}]},{"role":"user","content":[{"type":"text","text":"e"` + at + `}]}`},
		{"I145 no empty text", []*model.Message{user(""), user("x"), assistant(say(""), say(" \n"), call1("i", "f", `{"x": 1}`)), tool(result1("i", " "))},
			`{"role":"user","content":[{"type":"text","text":"x"` + at + `}]},{"role":"assistant","content":[{"type":"tool_use","id":"i","name":"f","input":{"x": 1}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"i"` + at + `}]}`},
		{"an assistant with nothing to say", []*model.Message{user("a"), assistant(thought("x", "s"), redacted("r")), assistant(), user("b")}, `{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"` + at + `}]}`},
		{"results, then what the user says", []*model.Message{user("a"), assistant(call1("i", "f", "{}"), call1("j", "g", "")), tool(result1("i", "one")), tool(model.Part{ToolResult: &model.ToolResult{CallID: "j", Content: "two", IsError: true}}), user("b")},
			`{"role":"user","content":[{"type":"text","text":"a"` + at + `}]},{"role":"assistant","content":[{"type":"tool_use","id":"i","name":"f","input":{}},{"type":"tool_use","id":"j","name":"g","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"i","content":"one"},{"type":"tool_result","tool_use_id":"j","content":"two","is_error":true},{"type":"text","text":"b"` + at + `}]}`},
		{"invalid arguments, names and ids", []*model.Message{user("a"), assistant(call1("functions.f:0", "a b", `{"x`)), tool(result1("functions.f:0", "r"))},
			`{"role":"user","content":[{"type":"text","text":"a"` + at + `}]},{"role":"assistant","content":[{"type":"tool_use","id":"functions_f_0_d6bdd4de328a22ed","name":"a_b","input":{"invalid_arguments":"{\"x"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"functions_f_0_d6bdd4de328a22ed","content":"r"` + at + `}]}`},
		{"images", []*model.Message{{Role: "user", Parts: []model.Part{{Image: &img}, {Image: &model.Image{MediaType: "image/tiff", Data: "x"}}, {Image: &model.Image{MediaType: "image/gif"}}}}, assistant(call1("i", "f", "{}")),
			tool(model.Part{ToolResult: &model.ToolResult{CallID: "i", Content: "c", Images: []model.Image{img}, IsError: true}})},
			`{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}},{"type":"text","text":"[an image of type \"image/tiff\" was left out: the API does not take it]"},{"type":"text","text":"[an image of type \"image/gif\" was left out: the API does not take it]"` + at + `}]},{"role":"assistant","content":[{"type":"tool_use","id":"i","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"i","content":[{"type":"text","text":"c"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}}]` + at + `}]}`},
		{"I154 thinking in its place", []*model.Message{user("a"), assistant(thought("hm é\u2028", "c2ln"), say("b"), thought("", "only"), redacted("blob"), call1("i", "f", "{}"), thought("last", "cut")), tool(result1("i", "r"))},
			`{"role":"user","content":[{"type":"text","text":"a"` + at + `}]},{"role":"assistant","content":[{"type":"thinking","thinking":"hm é` + "\u2028" + `","signature":"c2ln"},{"type":"text","text":"b"},{"type":"thinking","thinking":"","signature":"only"},{"type":"redacted_thinking","data":"blob"},{"type":"tool_use","id":"i","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"i","content":"r"` + at + `}]}`},
		{"I156 no foreign or unsigned thinking", []*model.Message{user("a"), assistant(foreign, thought("unsigned", ""), say("b")), user("c")},
			`{"role":"user","content":[{"type":"text","text":"a"` + at + `}]},{"role":"assistant","content":[{"type":"text","text":"b"}]},{"role":"user","content":[{"type":"text","text":"c"` + at + `}]}`},
		{"beginning with the assistant", []*model.Message{assistant(say("a")), user("b")},
			`{"role":"user","content":[{"type":"text","text":"(the conversation so far is not shown)"}]},{"role":"assistant","content":[{"type":"text","text":"a"}]},{"role":"user","content":[{"type":"text","text":"b"` + at + `}]}`},
		{"none", nil, ``},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, _ := sent(t, newClient(t, nowhere, nil), &model.Request{Messages: c.ms})
			got = strings.Replace(got, standIn, "", 1)
			if d := cmp.Diff(`{"model":"m1","stream":true,"max_tokens":32000,"messages":[`+c.want+`]}`, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestIDsStayApart(t *testing.T) {
	seen := map[string]string{}
	for _, id := range []string{"", "a.b", "a:b", "a_b", "toolu_01", strings.Repeat("x", 65), strings.Repeat("x", 66), "é"} {
		out := safeID(id)
		if other, dup := seen[out]; dup || len(out) > 64 || strings.Trim(out, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
			t.Errorf("%q became %q, as did %q", id, out, other)
		}
		seen[out] = id
		if out != safeID(id) {
			t.Errorf("%q isn't the same twice", id)
		}
	}
	if safeID("toolu_01-A") != "toolu_01-A" {
		t.Error("a good id was changed")
	}
}

func TestWhatIsCached(t *testing.T) {
	c := newClient(t, nowhere, nil)
	req := request(user("one"), assistant(call1("i", "read", "{}")), tool(result1("i", "r1")), assistant(call1("j", "read", "{}")), tool(result1("j", "r2")))
	got, _ := sent(t, c, req)
	for _, want := range []string{
		`"tools":[{"name":"read","description":"reads","input_schema":{"type":"object","properties":{"path":{"type":"string"}}}},{"name":"list","input_schema":{"type":"object","properties":{}}` + at + `}],`,
		`"system":[{"type":"text","text":"be brief"` + at + `}],`,
		`"content":"r1"` + at + `}`, `"content":"r2"` + at + `}`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s\nlacks\n%s", got, want)
		}
	}
	if n := strings.Count(got, "cache_control"); n != 4 {
		t.Errorf("%d marks", n)
	}
	// What the next request has before its new messages is the same but for the marks.
	req.Messages = append(req.Messages, assistant(say("done")), user("two"))
	next, _ := sent(t, c, req)
	old, prefix := strings.ReplaceAll(got, at, ""), strings.ReplaceAll(next, at, "")
	if !strings.HasPrefix(prefix, strings.TrimSuffix(old, "]}")) {
		t.Errorf("the prefix changed:\n%s\n%s", old, prefix)
	}
	if !strings.Contains(next, `"content":"r2"`+at) || !strings.Contains(next, `"two"`+at) || strings.Count(next, "cache_control") != 4 {
		t.Error(next)
	}
}

// TestCallsNeedTools holds that a request without tools, as for a summary, names some
// where the history has calls, and forbids to call them.
func TestCallsNeedTools(t *testing.T) {
	c := newClient(t, nowhere, nil)
	history := []*model.Message{user("a"), assistant(call1("i", "read", "{}")), tool(result1("i", "r"))}
	got, _ := sent(t, c, &model.Request{Messages: history})
	if !strings.Contains(got, standIn) {
		t.Error(got)
	}
	with, _ := sent(t, c, request(history...))
	if strings.Contains(with, "tool_choice") {
		t.Error(with)
	}
	got, _ = sent(t, c, &model.Request{System: "be brief", Messages: history})
	if want := strings.Replace(with, `"system"`, `"tool_choice":{"type":"none"},"system"`, 1); got != want {
		t.Error(cmp.Diff(want, got))
	}
	if got, _ = sent(t, c, &model.Request{Messages: append(history, assistant(say("b")), user("c"))}); !strings.Contains(got, "tool_choice") {
		t.Error(got)
	}
	if got, _ = sent(t, c, &model.Request{Messages: history[:1]}); strings.Contains(got, "tool") {
		t.Error(got)
	}
}

func TestOutputAndLimits(t *testing.T) {
	c := newClient(t, nowhere, func(cfg *Config) {
		cfg.Sampling = map[string]any{"effort": "low", "max_tokens": 100}
	})
	schema := []byte(`{"type":"object"}`)
	got, _ := sent(t, c, &model.Request{Output: schema, MaxOutput: 50})
	if want := `{"model":"m1","stream":true,"max_tokens":50,"output_config":{"effort":"low","format":{"type":"json_schema","schema":{"type":"object"}}},"messages":[]}`; got != want {
		t.Error(got)
	}
	got, _ = sent(t, c, &model.Request{MaxOutput: 5000})
	if want := `{"model":"m1","stream":true,"max_tokens":100,"output_config":{"effort":"low"},"messages":[]}`; got != want {
		t.Error(got)
	}
	got, _ = sent(t, newClient(t, nowhere, nil), &model.Request{Output: schema})
	if !strings.Contains(got, `"output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}},`) {
		t.Error(got)
	}
	for _, req := range []*model.Request{{Output: []byte(`{"a":1,"a":2}`)}, {Tools: []model.ToolSpec{{Name: "bad", Schema: []byte(`{`)}}}} {
		_, err := c.Stream(t.Context(), req, nil)
		if me := asError(t, err); me.Kind != model.ErrRequest || !strings.Contains(me.Detail, "schema of") {
			t.Error(err)
		}
	}
}

func TestThinkingIsHeldBackWhereTheAPIRefusesIt(t *testing.T) {
	const on = `"thinking":{"type":"enabled","budget_tokens":2000},`
	thinking := func(cfg *Config) { cfg.Sampling = map[string]any{"thinking_budget": 2000} }
	asked, answered := call1("i", "read", "{}"), tool(result1("i", "r"))
	again := []*model.Message{assistant(call1("j", "read", "{}")), tool(result1("j", "r"))}
	cases := []struct {
		name string
		ms   []*model.Message
		max  int64
		want bool
	}{
		{"a first message", []*model.Message{user("a")}, 0, true},
		{"an answer without thinking", []*model.Message{user("a"), assistant(say("b")), user("c")}, 0, true},
		{"a tool loop with thinking", []*model.Message{user("a"), assistant(thought("t", "s"), asked), answered}, 0, true},
		{"thinking only at its start", append([]*model.Message{user("a"), assistant(thought("t", "s"), asked), answered}, again...), 0, true},
		{"a tool loop of another model", []*model.Message{user("a"), assistant(thought("t", ""), asked), answered}, 0, false},
		{"thinking before the loop", append([]*model.Message{user("a"), assistant(thought("t", "s"), asked), answered, assistant(say("b")), user("c")}, again...), 0, false},
		{"a loop that has ended", []*model.Message{user("a"), assistant(asked), answered, assistant(say("b")), user("c")}, 0, true},
		{"said while the tool ran", []*model.Message{user("a"), assistant(asked), answered, user("c")}, 0, false},
		{"too little output", []*model.Message{user("a")}, 2000, false},
	}
	for _, c := range cases {
		got, note := sent(t, newClient(t, nowhere, thinking), &model.Request{Messages: c.ms, MaxOutput: c.max})
		if strings.Contains(got, on) != c.want || (note == "") != c.want {
			t.Errorf("%s: note %q, %s", c.name, note, got)
		}
	}
	got, _ := sent(t, newClient(t, nowhere, func(cfg *Config) { cfg.Sampling = map[string]any{"thinking_budget": 0, "temperature": 1} }), &model.Request{})
	if !strings.Contains(got, `"thinking":{"type":"disabled"},`) || !strings.Contains(got, `"temperature":1,`) {
		t.Error(got)
	}
}

// TestKeptEncodingIsTheFreshOne edits a history at random and compares what a client
// with a memory sends with what a new one sends. Bodies handed out before must not
// change.
func TestKeptEncodingIsTheFreshOne(t *testing.T) {
	thinking := func(cfg *Config) { cfg.Sampling = map[string]any{"thinking_budget": 2000} }
	rapid.Check(t, func(t *rapid.T) {
		kept := newClient(t, nowhere, thinking)
		var history []*model.Message
		type handedOut struct {
			parts [][]byte
			was   string
		}
		var out []handedOut
		for i := range rapid.IntRange(1, 12).Draw(t, "turns") {
			keep := rapid.IntRange(0, len(history)).Draw(t, "keep")
			if rapid.IntRange(0, 3).Draw(t, "edit") > 0 {
				keep = len(history)
			}
			history = append([]*model.Message{}, history[:keep]...)
			for j := range rapid.IntRange(0, 3).Draw(t, "new") {
				id := fmt.Sprintf("%d_%d", i, j)
				history = append(history, rapid.SampledFrom([]*model.Message{
					user("u" + id), assistant(say("t" + id)), assistant(thought("r", id), call1(id, "f", "{}")), assistant(call1(id, "f", "{}")), tool(result1(id, "x")), user(""),
				}).Draw(t, "message"))
			}
			req := &model.Request{System: rapid.SampledFrom([]string{"", "s", "t"}).Draw(t, "system"), Messages: history}
			want, wantNote := sent(t, newClient(t, nowhere, thinking), req)
			got, note := sent(t, kept, req)
			if got != want || note != wantNote {
				t.Fatalf("kept (%s):\n%s\nfresh (%s):\n%s", note, got, wantNote, want)
			}
			parts, _, err := kept.body(req)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, handedOut{parts, want})
		}
		for _, h := range out {
			if got := flat(h.parts); got != h.was {
				t.Fatalf("a body changed after it was handed out:\n%s\n%s", got, h.was)
			}
		}
	})
}

func TestALongSessionIsEncodedOnce(t *testing.T) {
	ms := []*model.Message{user("go")}
	for i := range 500 {
		id := fmt.Sprint("toolu_", i)
		ms = append(ms, assistant(thought("hm", "sig"), say("next"), call1(id, "read", `{"path":"a.go"}`)), tool(result1(id, strings.Repeat("some line of code\n", 110))))
	}
	c := newClient(t, nowhere, nil)
	for n := 1; n <= len(ms); n += 2 {
		parts, _, err := c.body(request(ms[:n]...))
		if err != nil {
			t.Fatal(err)
		}
		if len(parts) > 20 {
			t.Fatalf("%d slices for %d messages", len(parts), n)
		}
	}
	if got := c.enc.history.Encoded(); got != len(ms) {
		t.Errorf("%d encodings for %d messages", got, len(ms))
	}
}
