// Package gemini is the hook dialect of Gemini CLI (measured with 0.61.0).
//
// It guarantees that a refusal is exit code 2 with words on standard error and nothing
// on standard output: the one answer that the host, its fork and its neighbours were all
// measured to take for a refusal. A document on standard output beside it would be read
// instead of the words, whatever the exit code, so that there would be two answers to
// keep equal; and words that look like JSON would be read as an answer, so that none do.
// No answer asks: in a headless run the host would wait for ever.
//
// Do not assume that a person's own hooks run in a folder that isn't trusted.
package gemini

import (
	"strconv"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/shape"
)

// Host returns the dialect.
func Host() *adapter.Host {
	h := &adapter.Host{
		Name: "gemini", Title: "Gemini CLI", Deny: adapter.Delivery{Exit: 2, Stream: adapter.Stderr}, Deduplicates: true,
		Rows: rows(), Write: write,
	}
	h.Read = func(in adapter.Input) (*adapter.Event, error) { return profile().Read(h, in) }
	return h
}

func profile() *shape.Profile {
	return &shape.Profile{
		Host: "gemini", MCP: mcp, Strict: true, Own: model, Show: shape.LLMContent, Others: shape.LLMOthers, Last: []string{"prompt_response"},
		Kinds: map[string]shape.Kind{
			"BeforeTool": shape.Before, "AfterTool": shape.After, "BeforeAgent": shape.Prompt, "AfterAgent": shape.Stop,
			"SessionStart": shape.SessionStart, "SessionEnd": shape.SessionEnd, "PreCompress": shape.CompactBefore,
			"Notification": shape.Notification, "BeforeModel": shape.Own, "AfterModel": shape.Own,
		},
	}
}

// mcp reads what the host tells of a tool's server. Arguments are left out: they are
// where people put keys.
func mcp(o *adapter.Object, tool string) *ahp.MCP {
	context := o.Object("mcp_context")
	server, name := context.Text("server_name"), context.Text("tool_name")
	if m := adapter.InferMCP(server, name); m != nil {
		m.Provenance = "runtime"
		if command := context.Text("command"); command != "" {
			m.Connection = ahp.Connection{Transport: "stdio", Command: command, Gaps: []ahp.Gap{
				{Path: "args", Reason: "left out, because they may hold credentials"}, {Path: "cwd", Reason: "the host's hooks don't say it"}}}
		}
		return m
	}
	return shape.MCPByPrefix(tool)
}

// model reads what is sent to a model, and what comes back.
func model(native string, o *adapter.Object, b *adapter.Base, data []byte) *ahp.Event {
	request := o.Object("llm_request")
	m := adapter.ModelCall{Model: request.Need("model"), Messages: []ahp.Message{}}
	b.Model = m.Model
	if native == "AfterModel" {
		response := o.Object("llm_response")
		var finish string
		for _, raw := range response.List("candidates") {
			c, err := adapter.ParseObject(raw)
			if o.Fail(err); err == nil && finish == "" {
				finish = c.Text("finishReason")
			}
		}
		m.Messages = append(m.Messages, message("response", ahp.RoleAssistant, response.Text("text")))
		return b.ModelResponse(m, finish, data)
	}
	if config := request.Raw("config"); config.IsObject() {
		m.Params = config
	}
	for i, raw := range request.List("messages") {
		each, err := adapter.ParseObject(raw)
		if o.Fail(err); err != nil {
			break
		}
		m.Messages = append(m.Messages, message("message-"+strconv.Itoa(i+1), role(each.Text("role")), adapter.Show(each.Raw("content"))))
	}
	return b.ModelRequest(m, data)
}

func message(id string, r ahp.Role, text string) ahp.Message {
	m := ahp.TextMessage(id, r, text)
	m.Synthesized = true
	return m
}

func role(native string) ahp.Role {
	switch native {
	case "model", "assistant":
		return ahp.RoleAssistant
	case "system":
		return ahp.RoleSystem
	case "tool", "function":
		return ahp.RoleTool
	}
	return ahp.RoleUser
}

func rows() []adapter.Row {
	sure := func(e ahp.EffectType, how adapter.How, note string) adapter.Ability {
		return adapter.Ability{Effect: e, How: how, Level: adapter.Enforced, Note: note}
	}
	stop := adapter.Ability{Effect: ahp.EffectFlow, Operation: ahp.FlowStop, How: adapter.Native, Level: adapter.Enforced, Note: "the turn ends; the model is told nothing"}
	halt := adapter.Ability{Effect: ahp.EffectFlow, Operation: ahp.FlowStop, How: adapter.Denies, Level: adapter.Enforced, Note: "a refusal here ends the turn"}
	notice := adapter.Ability{Effect: ahp.EffectMessage, How: adapter.Native, Level: adapter.BestEffort, Note: "alone as plain text, which is measured; beside another effect as systemMessage, which is documented"}
	context := sure(ahp.EffectInject, adapter.Native, "the host escapes < and >")
	return []adapter.Row{
		{Native: "BeforeTool", Type: ahp.ToolBefore, Can: []adapter.Ability{
			sure(ahp.EffectDeny, adapter.Native, ""), sure(ahp.EffectAsk, adapter.Denies, "the host would wait for ever in a headless run"),
			sure(ahp.EffectModify, adapter.Native, "replaces the whole input"), notice, stop}},
		{Native: "AfterTool", Type: ahp.ToolAfter, Can: []adapter.Ability{
			sure(ahp.EffectModify, adapter.Replaces, "the model sees the text as the error of the call"), context, notice, stop}},
		{Native: "BeforeAgent", Type: ahp.TurnStart, Can: []adapter.Ability{
			sure(ahp.EffectDeny, adapter.Native, ""), sure(ahp.EffectModify, adapter.Denies, ""), context, notice, halt}},
		{Native: "AfterAgent", Type: ahp.TurnFinishBefore, Continuations: 1, Can: []adapter.Ability{
			{Effect: ahp.EffectFlow, Operation: ahp.FlowContinue, How: adapter.Native, Level: adapter.Enforced, Note: "the host has no limit of its own: once in a row here"}, notice}},
		{Native: "BeforeModel", Type: ahp.ModelRequestBefore, Can: []adapter.Ability{
			sure(ahp.EffectDeny, adapter.Native, ""), sure(ahp.EffectModify, adapter.Denies, ""), halt}},
		{Native: "AfterModel", Type: ahp.ModelResponseAfter, Note: "a refusal is a warning here: the calls of the answer still run"},
		{Native: "SessionStart", Type: ahp.SessionStart, Can: []adapter.Ability{context, notice}},
		{Native: "SessionEnd", Type: ahp.SessionEnd},
		{Native: "PreCompress", Type: ahp.ContextCompactBefore, Note: "fires in every turn, even where nothing is compressed"},
		{Native: "Notification", Type: ahp.UserAttention, Note: "in the interactive mode alone"},
	}
}
