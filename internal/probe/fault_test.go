package probe

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed/internal/model/modeltest"
)

// saw is what a probe must say.
type saw struct {
	outcome Outcome
	text    string // in what was seen, or in what to do
}

// fault is an endpoint that can't do something.
type fault struct {
	name string
	api  modeltest.API // "" is chat completions
	// at is the turn that is changed by change, and after it those that are never asked
	// for are left out.
	at     int
	change func(*modeltest.Turn)
	unused []int
	// all, if set, changes every turn.
	all func(*modeltest.Turn)
	// twice says that the turn is asked for a second time, and how it goes then.
	twice func(*modeltest.Turn)
	opts  func(*Options)
	want  map[string]saw
	// verdict is No if it isn't set.
	verdict Outcome
}

// failing gives a turn a fault.
func failing(f modeltest.Fault) func(*modeltest.Turn) {
	return func(t *modeltest.Turn) { t.Faults = append(t.Faults, f) }
}

func healed(t *modeltest.Turn) { t.Faults = nil }

func text(s string) func(*modeltest.Turn) {
	return func(t *modeltest.Turn) { t.Text, t.Calls = s, nil }
}

func calls(list ...modeltest.Call) func(*modeltest.Turn) {
	return func(t *modeltest.Turn) { t.Calls = list }
}

func refusal(message string) string {
	return `{"error":{"message":"` + message + `","type":"invalid_request_error"}}`
}

// after lists the turns behind at, which are not asked for.
func after(at int) []int {
	var out []int
	for i := at + 1; i <= atAgain; i++ {
		out = append(out, i)
	}
	return out
}

// entry are faults that end everything.
func entry() []fault {
	rest := saw{NotTried, "not tried: "}
	return []fault{
		{name: "401", change: failing(modeltest.Status(401, refusal("bad key "+testKey))), unused: after(atPlain), want: map[string]saw{
			Credential: {No, "not accepted: HTTP 401"}, Reply: rest, ToolCall: {NotTried, "refuses the credentials"}, Cache: rest}},
		{name: "403", change: failing(modeltest.Status(403, refusal("not in your country"))), unused: after(atPlain), want: map[string]saw{
			Credential: {No, "may not do this: HTTP 403"}, Model: {Unclear, "before"}, Reply: rest}},
		{name: "404 path", change: failing(modeltest.Status(404, "404 page not found")), unused: after(atPlain), want: map[string]saw{
			Model: {No, "the path is not known"}, Credential: {Unclear, "first"}, Reply: rest, Output: rest}},
		{name: "404 path that holds the word", api: modeltest.Gemini, change: failing(modeltest.Status(404, `{"error":{"message":"no such route: POST /v1/models/m1:streamGenerateContent"}}`)), unused: after(atPlain), want: map[string]saw{
			Model: {No, "check base_url"}}},
		{name: "404 model", change: failing(modeltest.Status(404, `{"error":{"message":"The model 'm1' does not exist","code":"model_not_found"}}`)), unused: after(atPlain), want: map[string]saw{
			Model: {No, "the model is not known"}, Reply: rest}},
		{name: "400 model", change: failing(modeltest.Status(400, refusal("m1 is not a valid model ID"))), unused: after(atPlain), want: map[string]saw{
			Model: {No, "the model is not known"}}},
		{name: "405", change: failing(modeltest.Status(405, "")), unused: after(atPlain), want: map[string]saw{Model: {No, "the path is not known"}}},
		{name: "400 something else", change: failing(modeltest.Status(400, refusal("top_k is not permitted for this model"))), unused: after(atPlain), want: map[string]saw{
			Credential: {OK, "looked at"}, Model: {Unclear, ""}, Reply: {No, "sampling parameter"}, Stream: rest}},
		{name: "429", change: failing(modeltest.RateLimited(7)), unused: after(atPlain), verdict: Unclear, want: map[string]saw{
			Credential: {Unclear, "rate limit"}, Reply: {Unclear, "try again after 7s"}, ToolCall: {NotTried, "limits the rate"}}},
		{name: "429 without a time", change: failing(modeltest.Status(429, "{}")), unused: after(atPlain), verdict: Unclear, want: map[string]saw{Reply: {Unclear, "try again later"}}},
		{name: "500", change: failing(modeltest.Status(500, "")), unused: after(atPlain), verdict: Unclear, want: map[string]saw{Reply: {Unclear, "HTTP 500"}, UsageSaid: rest}},
		{name: "a page", change: failing(modeltest.Raw("text/html", "<!doctype html><title>Sign in</title>")), unused: after(atPlain), want: map[string]saw{
			Reply: {No, "web page"}, Model: {Unclear, ""}, Stream: rest}},
		{name: "a page at another API", api: modeltest.Messages, change: failing(modeltest.Raw("text/html", "<html>")), unused: after(atPlain), want: map[string]saw{Reply: {No, "something else than the API"}}},
		{name: "redirect", change: func(t *modeltest.Turn) {
			t.Faults = []modeltest.Fault{modeltest.Status(308, ""), modeltest.Header("Location", "https://elsewhere.example/v1?key=hidden")}
		}, unused: after(atPlain), want: map[string]saw{Reply: {No, "redirects to https://elsewhere.example/v1"}}},
		{name: "hangs before it answers", change: failing(modeltest.StallHeaders()), opts: hurry, unused: after(atPlain), want: map[string]saw{
			Reply: {No, "no whole reply came within 500ms"}, ToolCall: {NotTried, "not answered in time"}}},
		{name: "hangs in the reply", api: modeltest.Responses, change: failing(modeltest.StallAt(900)), opts: hurry, unused: after(atPlain), want: map[string]saw{Reply: {No, "needs more time"}}},
		{name: "cut", change: failing(modeltest.CutAt(300)), unused: after(atPlain), want: map[string]saw{Reply: {No, "cut: the stream ended"}, Model: {Unclear, ""}}},
		{name: "cut in the text", change: failing(modeltest.CutAt(3000)), unused: after(atPlain), want: map[string]saw{Reply: {No, "cut: the stream ended"}, Model: {OK, "began"}, Credential: {OK, ""}}},
		{name: "only reasoning", change: text(""), unused: after(atPlain), want: map[string]saw{Reply: {No, "holds no text"}, ToolCall: rest, Credential: {OK, ""}}},
		{name: "no room for an answer", change: func(t *modeltest.Turn) { t.Finish = "length" }, verdict: Unclear, want: map[string]saw{Reply: {Unclear, "limit of 2000 tokens"}, ToolCall: {OK, ""}}},
		{name: "filtered", change: func(t *modeltest.Turn) { t.Finish = "content_filter" }, verdict: Unclear, want: map[string]saw{Reply: {Unclear, "withheld"}}},
	}
}

func hurry(o *Options) { o.Timeout = 500 * time.Millisecond }

// ofTools are faults of tool calls.
func ofTools() []fault {
	none := saw{NotTried, "no usable call"}
	noCall := map[string]saw{TwoCalls: none, ToolResult: none, Replay: none, Output: {OK, ""}, Cache: {OK, ""}}
	with := func(s saw) map[string]saw { noCall := cloned(noCall); noCall[ToolCall] = s; return noCall }
	skipped := []int{atResult, atTwo}
	return []fault{
		{name: "tools unsupported", at: atCall, change: failing(modeltest.Status(400, refusal("this model does not support tools"))), unused: skipped, want: with(saw{No, "does not support tools"})},
		{name: "tools unsupported, model named", at: atCall, api: modeltest.Messages, change: failing(modeltest.Status(400, refusal("tools: not for m1"))), unused: skipped, want: with(saw{No, "choose a model"})},
		{name: "text instead", at: atCall, change: text("The colour is blue."), unused: skipped, want: with(saw{No, "answered in text"})},
		{name: "text that names the tool", at: atCall, change: text("I have no look_up here."), unused: skipped, want: with(saw{No, "choose a model"})},
		{name: "the call as text", at: atCall, change: text(`<tool_call>{"name":"look_up"}</tool_call>`), unused: skipped, want: with(saw{No, "parser for tool calls"})},
		{name: "args cut", at: atCall, change: calls(modeltest.Call{ID: "a", Name: toolName, Args: `{"key":"col`}), unused: skipped, want: with(saw{No, "not JSON"})},
		{name: "args cut by the limit", at: atCall, change: failing(modeltest.TruncatedArgs()), unused: skipped, verdict: Unclear, want: with(saw{Unclear, "limit of 2000 tokens"})},
		{name: "other args", at: atCall, change: calls(modeltest.Call{ID: "a", Name: toolName, Args: `{"name":"colour"}`}), unused: skipped, want: with(saw{No, "do not fit"})},
		{name: "another tool", at: atCall, change: calls(modeltest.Call{ID: "a", Name: "search", Args: `{"key":"colour"}`}), unused: skipped, want: with(saw{No, "no tool that it was given"})},
		{name: "tools and then the server fails", at: atCall, change: failing(modeltest.Status(503, "")), unused: skipped, verdict: Unclear, want: with(saw{Unclear, "HTTP 503"})},
		{name: "a limit within", at: atCall, change: failing(modeltest.RateLimited(61)), unused: after(atCall), verdict: Unclear, want: map[string]saw{
			ToolCall: {Unclear, "after 1m1s"}, ToolResult: {NotTried, "limits the rate"}, Output: {NotTried, "limits the rate"}, Stream: {OK, ""}}},
		{name: "hangs within", at: atCall, change: failing(modeltest.StallHeaders()), opts: hurry, unused: after(atCall), verdict: Unclear, want: map[string]saw{
			ToolCall: {Unclear, "within 500ms"}, TwoCalls: {NotTried, "not answered in time"}, Window: {NotTried, ""}}},
		{name: "no id", at: atCall, change: calls(modeltest.Call{Name: toolName, Args: `{"key":"colour"}`}), verdict: OK, want: map[string]saw{ToolCall: {OK, "without an id"}}},
		{name: "result refused", at: atResult, change: failing(modeltest.Status(400, refusal("role tool is unknown"))), twice: func(*modeltest.Turn) {}, want: map[string]saw{
			ToolResult: {No, "role tool is unknown"}, Replay: {Unclear, "with reasoning and without"}, TwoCalls: {OK, ""}}},
		{name: "reasoning refused", at: atResult, change: failing(modeltest.Status(400, refusal("Extra inputs are not permitted: reasoning_content"))), twice: healed, verdict: OK, want: map[string]saw{
			Replay: {No, "Extra inputs"}, ToolResult: {OK, ""}}},
		{name: "seal refused", at: atResult, api: modeltest.Messages, change: failing(modeltest.Status(400, refusal("Invalid signature in thinking block"))), twice: healed, verdict: OK, want: map[string]saw{
			Replay: {No, "Invalid signature"}, ToolResult: {OK, ""}}},
		{name: "seal refused for good", at: atResult, api: modeltest.Responses, change: failing(modeltest.Status(400, `{"error":{"message":"no","code":"invalid_encrypted_content"}}`)), twice: func(*modeltest.Turn) {}, want: map[string]saw{
			Replay: {No, "invalid_encrypted_content"}, ToolResult: {No, ""}}},
		{name: "nothing to send back", at: atCall, change: func(t *modeltest.Turn) { t.Reasoning = "" }, verdict: OK, want: map[string]saw{Replay: {NotTried, "held no reasoning"}}},
		{name: "result not read", at: atResult, change: text("It is blue."), verdict: Unclear, want: map[string]saw{ToolResult: {Unclear, "does not hold it"}, Replay: {OK, ""}}},
		{name: "calls again", at: atResult, change: func(t *modeltest.Turn) {
			t.Text, t.Calls = "", []modeltest.Call{{ID: "z", Name: toolName, Args: `{"key":"colour"}`}}
		}, verdict: Unclear, want: map[string]saw{ToolResult: {Unclear, "called again"}}},
		{name: "one of two", at: atTwo, change: calls(modeltest.Call{ID: "b", Name: toolName, Args: `{"key":"one"}`}), verdict: OK, want: map[string]saw{TwoCalls: {No, "1 call came"}}},
		{name: "the same twice", at: atTwo, change: calls(modeltest.Call{ID: "b", Name: toolName, Args: `{"key":"one"}`}, modeltest.Call{ID: "c", Name: toolName, Args: `{"key":"one"}`}), verdict: OK, want: map[string]saw{TwoCalls: {Unclear, "other arguments"}}},
		{name: "the second broken", at: atTwo, change: calls(modeltest.Call{ID: "b", Name: toolName, Args: `{"key":"one"}`}, modeltest.Call{ID: "c", Name: toolName, Args: `{"key":`}), verdict: OK, want: map[string]saw{TwoCalls: {No, "of 2 calls one"}}},
		{name: "two refused", at: atTwo, change: failing(modeltest.Status(400, refusal("only single tool-calls"))), verdict: OK, want: map[string]saw{TwoCalls: {No, "single"}, Output: {OK, ""}}},
	}
}

func cloned(m map[string]saw) map[string]saw {
	out := map[string]saw{}
	for k, v := range m {
		out[k] = v
	}
	return out
}

// ofExtras are faults with which an agent can live.
func ofExtras() []fault {
	return []fault{
		{name: "no bound of the output", change: failing(modeltest.Status(400, refusal("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."))), twice: healed, want: map[string]saw{
			Reply: {OK, "refused, and left out"}, Stream: {OK, ""}, Cache: {OK, ""}}},
		{name: "one JSON body", change: failing(modeltest.JSONBody()), want: map[string]saw{Stream: {No, "in one piece"}, Reply: {OK, "instead of a stream"}}},
		{name: "no usage", change: failing(modeltest.NoUsage()), want: map[string]saw{UsageSaid: {No, "no count"}}},
		{name: "no usage", api: modeltest.Responses, change: failing(modeltest.NoUsage()), want: map[string]saw{UsageSaid: {No, "no count"}}},
		{name: "schema refused", at: atOutput, change: failing(modeltest.Status(400, refusal("response_format"))), want: map[string]saw{Output: {No, "response_format"}, Image: {OK, ""}}},
		{name: "schema passed over", at: atOutput, change: text("Twelve."), want: map[string]saw{Output: {No, "not held to"}}},
		{name: "schema in a fence", at: atOutput, change: text("```json\n{\"legs\":12}\n```"), want: map[string]saw{Output: {No, "not held to"}}},
		{name: "schema, other members", at: atOutput, change: text(`{"legs":12,"unit":"legs"}`), want: map[string]saw{Output: {No, ""}}},
		{name: "schema, nothing in it", at: atOutput, change: text(`{}`), want: map[string]saw{Output: {No, "not held to"}}},
		{name: "schema, cut", at: atOutput, change: func(t *modeltest.Turn) { t.Finish = "length" }, want: map[string]saw{Output: {Unclear, "cut"}}},
		{name: "image refused", at: atImage, change: failing(modeltest.Status(400, refusal("m1 is not a multimodal model"))), want: map[string]saw{Image: {No, "set images to false"}}},
		{name: "image not seen", at: atImage, change: text("I can't see it."), want: map[string]saw{Image: {Unclear, "can't see it"}}},
		{name: "image not claimed", opts: func(o *Options) { o.Images = false }, unused: []int{atImage}, want: map[string]saw{Image: {NotTried, "isn't configured"}}},
		{name: "no reasoning", all: func(t *modeltest.Turn) { t.Reasoning = "" }, want: map[string]saw{Reasoning: {No, "in 8 requests"}, Replay: {NotTried, ""}}},
		{name: "hidden reasoning", at: atPlain, all: func(t *modeltest.Turn) { t.Reasoning = "" }, change: func(t *modeltest.Turn) { t.Usage = &modeltest.Usage{Prompt: 9, Completion: 90, Reasoning: 50} }, want: map[string]saw{Reasoning: {OK, "50 tokens of it"}}},
		{name: "no cache", at: atAgain, change: func(t *modeltest.Turn) { t.Usage = &modeltest.Usage{Prompt: 5000, Completion: 4} }, want: map[string]saw{Cache: {No, "nothing of the second"}, Window: {OK, "5000 tokens"}}},
		{name: "cache unsaid", at: atAgain, change: failing(modeltest.NoUsage()), want: map[string]saw{Cache: {Unclear, "does not say"}}},
		{name: "cache unsaid, usage said", at: atAgain, change: failing(modeltest.Raw("text/event-stream", `data: {"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5000,"completion_tokens":4}}`+"\n\ndata: [DONE]\n\n")), want: map[string]saw{Cache: {Unclear, "does not say"}}},
		{name: "the second fails", at: atAgain, change: failing(modeltest.Status(500, "")), want: map[string]saw{Cache: {Unclear, "HTTP 500"}, Window: {OK, ""}}},
		{name: "prompt cut", at: atLong, change: func(t *modeltest.Turn) { t.Text, t.Usage = "lighthouse", &modeltest.Usage{Prompt: 2048, Completion: 4} }, want: map[string]saw{Window: {No, "only 2048 tokens"}, Cache: {OK, ""}}},
		{name: "prompt not recalled", at: atLong, change: text("lighthouse"), want: map[string]saw{Window: {Unclear, "lighthouse"}}},
		{name: "prompt recalled, not counted", at: atLong, change: failing(modeltest.NoUsage()), want: map[string]saw{Window: {OK, "from its start"}}},
		{name: "prompt too long", at: atLong, change: failing(modeltest.Status(400, `{"error":{"message":"maximum context length is 4096","code":"context_length_exceeded"}}`)), unused: []int{atAgain}, want: map[string]saw{Window: {No, "does not fit"}, Cache: {NotTried, "the long request"}}},
	}
}

// play runs the probes against the endpoint of a fault.
func (f *fault) play(t *testing.T) *Report {
	t.Helper()
	turns := script()
	if f.change != nil {
		f.change(&turns[f.at])
	}
	var kept []modeltest.Turn
	for i, turn := range turns {
		if slices.Contains(f.unused, i) {
			continue
		}
		if f.all != nil {
			f.all(&turn)
		}
		kept = append(kept, turn)
		if f.twice != nil && i == f.at {
			f.twice(&turn)
			kept = append(kept, turn)
		}
	}
	s := modeltest.New(t, kept...)
	api := f.api
	if api == "" {
		api = modeltest.Chat
	}
	o := options(connect(t, api, s.URL, ""), s.URL)
	if f.opts != nil {
		f.opts(&o)
	}
	r := Run(t.Context(), o)
	whole(t, r)
	for i, req := range s.Requests() {
		if _, bound := req.Params["max_tokens"]; api == modeltest.Chat && bound != (f.name != "no bound of the output" || i == 0) {
			t.Errorf("request %d has a bound: %v", i, bound)
		}
	}
	if s.Left() != 0 {
		t.Errorf("%d turns were not asked for", s.Left())
	}
	return r
}

func (f *fault) check(t *testing.T, r *Report) {
	t.Helper()
	for name, want := range f.want {
		if p := find(t, r, name); p.Outcome != want.outcome || !strings.Contains(p.Saw+"\n"+p.Do, want.text) {
			t.Errorf("got %+v, want %s with %q", p, want.outcome, want.text)
		}
	}
	if r.Verdict != f.verdict {
		t.Errorf("the verdict is %s, want %s", r.Verdict, f.verdict)
	}
	if t.Failed() {
		t.Log("\n" + r.Text())
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	for _, group := range []struct {
		list    []fault
		verdict Outcome
	}{{entry(), No}, {ofTools(), No}, {ofExtras(), OK}} {
		for _, f := range group.list {
			if f.verdict == "" {
				f.verdict = group.verdict
			}
			t.Run(f.name, func(t *testing.T) {
				t.Parallel()
				f.check(t, f.play(t))
			})
		}
	}
}

// TestWithoutThoughts: after a refusal for whatever is in the reply, the second try is
// without the model's reasoning and its seals.
func TestWithoutThoughts(t *testing.T) {
	t.Parallel()
	why := "a call"
	for api, mark := range map[modeltest.API]string{modeltest.Chat: why, modeltest.Responses: `"encrypted_content":`, modeltest.Messages: `"signature":`, modeltest.Gemini: `"thoughtSignature":`} {
		turns := script()
		refused := turns[atResult]
		failing(modeltest.Status(422, refusal("cannot")))(&refused)
		s := modeltest.New(t, slices.Insert(turns, atResult, refused)...)
		r := Run(t.Context(), options(connect(t, api, s.URL, ""), s.URL))
		whole(t, r)
		if find(t, r, Replay).Outcome != No || find(t, r, ToolResult).Outcome != OK || r.Requests != MaxRequests-1 {
			t.Errorf("%s: %s", api, r.Text())
		}
		var has []bool
		for _, req := range s.Requests()[atResult : atResult+2] {
			has = append(has, strings.Contains(string(req.Body), mark))
		}
		if !slices.Equal(has, []bool{true, false}) {
			t.Errorf("%s: reasoning sent %v, want first alone", api, has)
		}
	}
}
