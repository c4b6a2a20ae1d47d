package probe

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/strictjson"
)

const (
	toolName   = "look_up"
	toolSchema = `{"type":"object","properties":{"key":{"type":"string","description":"the key to look up"}},"required":["key"],"additionalProperties":false}`
	toolSystem = "You have the tool " + toolName + ". Use it whenever you are asked to, and never guess what it returns."
	onePrompt  = `Call the tool look_up once, with the key "colour". When its result has come, answer with that result alone.`
	twoPrompt  = `Call the tool look_up twice, with the keys "one" and "two". Make both calls now, together in this one reply.`
	// toolValue is what the tool returns; no model guesses it.
	toolValue = "ochre-4117"

	noToolsDo = "choose a model that calls tools, and turn tool calls on in the server: without them an agent can't work"
	parserDo  = "turn on the server's parser for tool calls (vLLM: --enable-auto-tool-choice and --tool-call-parser; llama.cpp: --jinja)"
)

// probing is a conversation about the tool.
type probing struct {
	question *model.Message
	reply    *model.Message
	calls    []*model.ToolCall
}

func toolRequest(ms ...*model.Message) *model.Request {
	return &model.Request{System: toolSystem, Messages: ms, Tools: []model.ToolSpec{
		{Name: toolName, Description: "Looks up the value of a key.", Schema: []byte(toolSchema)}}}
}

// toolCall asks for one call, and returns it if a result can be given.
func (r *runner) toolCall(ctx context.Context) *probing {
	p := &probing{question: user(onePrompt)}
	a := r.call(ctx, toolRequest(p.question))
	if a.err != nil {
		r.failed(ToolCall, a, noToolsDo)
	} else if !r.unfinished(ToolCall, a.resp) {
		p.reply, p.calls = a.resp.Message, a.resp.Message.ToolCalls()
		r.sayCall(a.resp, p.calls)
	}
	if r.probes[ToolCall].Outcome == OK {
		return p
	}
	why := "no usable call came"
	if r.blocked != "" {
		why = r.blocked
	}
	for _, n := range []string{ToolResult, TwoCalls, Replay} {
		r.skip(n, why)
	}
	return nil
}

func (r *runner) sayCall(resp *model.Response, calls []*model.ToolCall) {
	if len(calls) == 0 {
		r.sayNoCall(resp)
		return
	}
	for _, c := range calls {
		if _, problem := r.key(c); problem != "" {
			r.set(ToolCall, No, "check the server's parser for tool calls, or choose another model", "%s%s", problem, noted(resp))
			return
		}
	}
	r.set(ToolCall, OK, "", "%s called with valid arguments, %s%s", times(len(calls)), ids(calls), noted(resp))
}

func (r *runner) sayNoCall(resp *model.Response) {
	text := resp.Message.Text()
	for _, sign := range []string{toolName, "<tool_call", "<function", "[TOOL_CALLS]", "<|python_tag|>"} {
		if strings.Contains(text, sign) && strings.ContainsAny(text, "{<[") {
			r.set(ToolCall, No, parserDo, "the call came as text: %s%s", r.quoted(text), noted(resp))
			return
		}
	}
	r.set(ToolCall, No, noToolsDo, "asked to call a tool, it answered in text: %s%s", r.quoted(text), noted(resp))
}

// key returns the argument of a call, or what is wrong with the call.
func (r *runner) key(c *model.ToolCall) (value, problem string) {
	if c.Name != toolName {
		return "", fmt.Sprintf("it called %s, which is no tool that it was given", r.quoted(c.Name))
	}
	if err := strictjson.Check([]byte(c.Args), strictjson.Options{}); err != nil {
		return "", fmt.Sprintf("the arguments are not JSON: %s: %v", r.quoted(c.Args), err)
	}
	var args struct {
		Key *string `json:"key"`
	}
	if err := strictjson.Unmarshal([]byte(c.Args), &args, strictjson.Options{}); err != nil || args.Key == nil {
		return "", fmt.Sprintf("the arguments do not fit the tool's schema: %s", r.quoted(c.Args))
	}
	return *args.Key, ""
}

// ids says whether the calls came with ids. Clients make one where none came, and
// these are their forms.
func ids(calls []*model.ToolCall) string {
	made := regexp.MustCompile(`^(call|toolu)_[A-Z2-7]{26}$|^call_[a-z2-7]{8}_[0-9]+$`)
	for _, c := range calls {
		if made.MatchString(c.ID) {
			return "without an id of the endpoint's own"
		}
	}
	return "with an id"
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// toolResult answers the call, with the reply that held it as it came.
func (r *runner) toolResult(ctx context.Context, p *probing) {
	results := &model.Message{Role: "tool"}
	for _, c := range p.calls {
		results.Parts = append(results.Parts, model.Part{ToolResult: &model.ToolResult{CallID: c.ID, Name: c.Name, Content: toolValue}})
	}
	reasoned := thoughtful(p.reply)
	a := r.call(ctx, toolRequest(p.question, p.reply, results))
	var me *model.Error
	if reasoned && errors.As(a.err, &me) && (me.Kind == model.ErrReplay || me.Kind == model.ErrRequest) {
		again := r.call(ctx, toolRequest(p.question, withoutThoughts(p.reply), results))
		switch {
		case again.err == nil || me.Kind == model.ErrReplay:
			r.set(Replay, No, "nothing need be done where the client then leaves it out; else turn reasoning off", "the reasoning of a reply was refused when it was sent back: %s", said(me))
			a = again
		default:
			r.set(Replay, Unclear, "", "the result of the call was refused, with reasoning and without")
		}
	} else {
		r.sayReplay(reasoned, a)
	}
	r.sayResult(a)
}

func (r *runner) sayReplay(reasoned bool, a *answer) {
	switch {
	case !reasoned:
		r.skip(Replay, "the reply that called the tool held no reasoning")
	case a.err != nil:
		r.set(Replay, Unclear, "", "the request that sent reasoning back failed")
	default:
		r.set(Replay, OK, "", "the reply was sent back with what the client keeps of its reasoning, and was taken")
	}
}

func (r *runner) sayResult(a *answer) {
	switch {
	case a.err != nil:
		r.failed(ToolResult, a, "check that the server's chat template takes results of tools")
	case r.unfinished(ToolResult, a.resp):
	case strings.Contains(a.resp.Message.Text(), toolValue):
		r.set(ToolResult, OK, "", "it was taken, and the answer holds it%s", noted(a.resp))
	case len(a.resp.Message.ToolCalls()) > 0:
		r.set(ToolResult, Unclear, "try again; a model that repeats its calls is no good for an agent", "it was taken, and the model called again instead of answering%s", noted(a.resp))
	default:
		r.set(ToolResult, Unclear, "try again; the server's chat template may leave results out", "it was taken, but the answer does not hold it: %s%s", r.quoted(a.resp.Message.Text()), noted(a.resp))
	}
}

// thoughtful reports whether m holds what may be refused when it is sent back.
func thoughtful(m *model.Message) bool {
	for _, p := range m.Parts {
		if p.Reasoning != nil || p.Seal != nil {
			return true
		}
	}
	return false
}

// withoutThoughts returns m without reasoning and seals.
func withoutThoughts(m *model.Message) *model.Message {
	out := &model.Message{Role: m.Role}
	for _, p := range m.Parts {
		p.Reasoning, p.Seal = nil, nil
		if p.Text != nil || p.ToolCall != nil {
			out.Parts = append(out.Parts, p)
		}
	}
	return out
}

// twoCalls asks for two calls in one reply.
func (r *runner) twoCalls(ctx context.Context) {
	if r.blocked != "" {
		return
	}
	a := r.call(ctx, toolRequest(user(twoPrompt)))
	if a.err != nil {
		r.failed(TwoCalls, a, "turn parallel calls on in the server, if it has them")
		return
	}
	if r.unfinished(TwoCalls, a.resp) {
		return
	}
	calls := a.resp.Message.ToolCalls()
	keys, seen := map[string]bool{}, map[string]bool{}
	for _, c := range calls {
		value, problem := r.key(c)
		if problem != "" {
			r.set(TwoCalls, No, "check the server's parser for tool calls", "of %d calls one can't be used: %s", len(calls), problem)
			return
		}
		keys[value], seen[c.ID] = true, true
	}
	switch {
	case len(calls) < 2:
		r.set(TwoCalls, No, "an agent works without, but with more requests", "asked for two calls in one reply, %s came%s", count(len(calls), "call"), noted(a.resp))
	case len(seen) < len(calls):
		r.set(TwoCalls, No, "update the server: results can't be told apart", "%d calls came under %s", len(calls), count(len(seen), "id"))
	case !keys["one"] || !keys["two"]:
		r.set(TwoCalls, Unclear, "check the server's parser for tool calls", "%d calls came in one reply, but with other arguments than were asked for%s", len(calls), noted(a.resp))
	default:
		r.set(TwoCalls, OK, "", "%d calls came in one reply, each whole%s", len(calls), noted(a.resp))
	}
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
