package httpapi

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/strictjson"
)

// apiError is an error as servers write it.
type apiError struct{ message, kind, code string }

// parseError finds the error in a body or a frame; ok is false if there is none.
func parseError(data []byte) (e apiError, ok bool) {
	var list []jsontext.Value
	if strictjson.Unmarshal(data, &list, strictjson.Options{}) == nil && len(list) == 1 {
		data = list[0]
	}
	var m map[string]jsontext.Value
	if strictjson.Unmarshal(data, &m, strictjson.Options{}) != nil {
		return apiError{}, false
	}
	if inner := m["error"]; !Absent(inner) {
		if inner.Kind() != '{' {
			return apiError{message: Scalar(inner), code: Scalar(m["code"])}, true
		}
		var in map[string]jsontext.Value
		if strictjson.Unmarshal(inner, &in, strictjson.Options{}) != nil {
			return apiError{}, false
		}
		return membersOf(in, in["message"]), true
	}
	for _, name := range []string{"message", "detail"} {
		if v := m[name]; !Absent(v) {
			return membersOf(m, v), true
		}
	}
	return apiError{}, false
}

func membersOf(m map[string]jsontext.Value, message jsontext.Value) apiError {
	e := apiError{message: Scalar(message), kind: Scalar(m["type"]), code: Scalar(m["code"])}
	if e.message == "" && !Absent(message) && message.Kind() != '"' {
		e.message = string(message)
	}
	if s := Scalar(m["status"]); s != "" && (e.kind == "" || e.kind == "error") {
		e.kind = s // Gemini's word for it
	}
	return e
}

// hasAny reports whether s, in lower case, holds one of subs.
func hasAny(s string, subs ...string) bool {
	s = strings.ToLower(s)
	for _, sub := range subs {
		if strings.Contains(s, sub) {
			return true
		}
	}
	return false
}

// classify sorts an error inside a stream, which has no status of its own.
func (e apiError) classify() model.ErrorKind {
	words := e.kind + " " + e.code
	switch {
	case e.overflow():
		return model.ErrOverflow
	case e.replay():
		return model.ErrReplay
	case e.badKey(), hasAny(words, "auth", "permission", "api_key", "401", "403"):
		return model.ErrAuth
	case hasAny(words, "rate_limit", "ratelimit", "too_many_requests", "quota", "resource_exhausted", "429"):
		return model.ErrRateLimit
	case e.overloaded():
		return model.ErrServer
	case hasAny(words, "invalid_request", "invalid_prompt", "invalid_argument", "failed_precondition", "badrequest", "bad_request", "not_found", "unprocessable", "400", "404", "422"):
		return model.ErrRequest
	default:
		return model.ErrServer
	}
}

// overflow reports whether e says that the request is longer than the model's
// context window, in the words of the servers that are known.
func (e apiError) overflow() bool {
	if hasAny(e.kind+" "+e.code, "context_length_exceeded", "exceed_context_size", "request_too_large", "context_window_exceeded", "model_max_prompt_tokens_exceeded", "413") {
		return true
	}
	return hasAny(e.message,
		"maximum context length",                                  // OpenAI, vLLM, OpenRouter, Mistral
		"exceeds the context window", "exceed the context window", // OpenAI (responses)
		"prompt is too long", "exceed context limit", // Anthropic
		"exceeds the maximum number of tokens allowed",                                                 // Gemini
		"longer than the maximum model length",                                                         // vLLM
		"exceeds the available context size", "exceeds context size", "context size has been exceeded", // llama.cpp, LM Studio
		"longer than the model's context length", // SGLang
		"maximum prompt length",                  // xAI
		"input is too long for requested model",  // Bedrock
		"context length exceeded", "context window exceeded",
		"please reduce the length of the messages", // Groq
	) || hasAny(e.message, "`inputs` tokens") && hasAny(e.message, "max_new_tokens") // text-generation-inference
}

// replay reports whether e refuses reasoning or a signature that was sent back.
func (e apiError) replay() bool {
	if hasAny(e.kind+" "+e.code, "invalid_encrypted_content", "thinking_signature_invalid") {
		return true
	}
	m := e.message
	switch {
	case hasAny(m, "signature") && hasAny(m, "thinking", "thought", "reasoning"):
		return true
	case hasAny(m, "thinking", "redacted_thinking") && hasAny(m, "cannot be modified", "must remain as they were"):
		return true
	case hasAny(m, "encrypted content", "encrypted_content") && hasAny(m, "verif", "decrypt", "invalid", "pars", "not supported"):
		return true
	case hasAny(m, "items are not persisted"): // OpenAI, of an item that was sent by its id
		return true
	default: // OpenAI, of a reasoning item without the one that must follow it
		return hasAny(m, "item") && hasAny(m, "'reasoning'", "reasoning item")
	}
}

// badKey reports whether e refuses the key, which some say with status 400.
func (e apiError) badKey() bool {
	return hasAny(e.kind+" "+e.code, "api_key_invalid", "invalid_api_key") || hasAny(e.message, "api key not valid", "invalid api key", "api_key_invalid")
}

// overloaded reports whether e says that the endpoint has too much to do.
func (e apiError) overloaded() bool {
	return hasAny(e.kind+" "+e.code, "overloaded", "unavailable", "529", "503") || hasAny(e.message, "overloaded")
}
