package modeltest

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Gemini is Google's API. The model stands in the path, so Request.Model is empty.
const Gemini API = "gemini"

// UnsignedCall is the word that models which check signatures take where a call was
// made by another model.
const UnsignedCall = "skip_thought_signature_validator"

// gemini is the Gemini API. Of the faults, those that name indices, choices, [DONE] or
// members of chat completions do nothing here; arguments are always an object, and
// those that are cut are not sent. Options.NeedReasoning refuses calls whose step has
// no signature.
func gemini() dialect {
	return dialect{
		serves: func(path string) bool { return strings.HasSuffix(path, ":streamGenerateContent") },
		key:    func(h http.Header) string { return h.Get("X-Goog-Api-Key") },
		decode: (*Server).decodeGemini,
		frames: geminiFrames,
		whole: func(p *plan) object {
			u := p.geminiUsage(1, 1)
			return p.geminiChunk(p.geminiParts(), p.geminiFinish(), u)
		},
		refusal: func(kind, message string) object {
			code, status := 400, "INVALID_ARGUMENT"
			switch kind {
			case "authentication_error":
				code, status = 401, "UNAUTHENTICATED"
			case "not_found_error":
				code, status = 404, "NOT_FOUND"
			}
			return object{"error": object{"code": code, "message": message, "status": status}}
		},
	}
}

// geminiParts returns the reply's parts, texts in pieces. With reasoning, the step is
// signed: on its first call, or on an empty text at its end.
func (p *plan) geminiParts() []object {
	var out []object
	for _, s := range split(p.turn.Reasoning, 4) {
		out = append(out, object{"text": s, "thought": true})
	}
	for _, s := range split(p.turn.Text, 3) {
		out = append(out, object{"text": s})
	}
	calls := p.turn.Calls
	if p.truncateArgs && len(calls) > 0 {
		calls = calls[:len(calls)-1]
	}
	for i, c := range calls {
		call := object{"name": c.Name}
		if c.ID != "" {
			call["id"] = c.ID
		}
		if args := jsontext.Value(c.Args); c.Args == "" || !args.IsValid() {
			call["args"] = c.Args
		} else if c.Args != "{}" {
			call["args"] = args
		}
		part := object{"functionCall": call}
		if i == 0 && p.turn.Reasoning != "" {
			part["thoughtSignature"] = seal(p.sealKey, c.Name)
		}
		out = append(out, part)
	}
	if p.turn.Reasoning != "" && len(calls) == 0 {
		out = append(out, object{"text": "", "thoughtSignature": seal(p.sealKey, "")})
	}
	return out
}

func (p *plan) geminiFinish() string {
	switch f := p.turn.Finish; {
	case f == "length", f == "" && p.truncateArgs:
		return "MAX_TOKENS"
	case f == "content_filter":
		return "SAFETY"
	case f == "error":
		return "OTHER"
	case f == "", f == "stop", f == "tool_calls":
		return "STOP"
	default:
		return strings.ToUpper(f)
	}
}

// geminiUsage returns what is reported when part of the reply's parts is sent.
func (p *plan) geminiUsage(part, parts int) object {
	u := p.counts()
	o := object{"promptTokenCount": u.Prompt}
	done := u.Completion * part / max(parts, 1)
	thoughts := min(u.Reasoning, done)
	if done > thoughts {
		o["candidatesTokenCount"] = done - thoughts
	}
	if thoughts > 0 {
		o["thoughtsTokenCount"] = thoughts
	}
	if u.Cached > 0 {
		o["cachedContentTokenCount"] = u.Cached
	}
	o["totalTokenCount"] = u.Prompt + done
	return o
}

// geminiChunk returns a frame; without a finish reason or a usage if those are empty.
func (p *plan) geminiChunk(parts []object, finish string, usage object) object {
	c := object{"content": object{"role": "model", "parts": parts}, "index": 0}
	if finish != "" && !p.noFinish {
		c["finishReason"] = finish
	}
	f := object{"candidates": []any{c}, "modelVersion": "scripted-1", "responseId": "r1"}
	if usage != nil && !p.noUsage {
		f["usageMetadata"] = usage
	}
	if p.nulls {
		f["error"], f["promptFeedback"] = nil, nil
		if _, ok := f["usageMetadata"]; !ok {
			f["usageMetadata"] = nil
		}
		for _, part := range parts {
			for _, name := range []string{"text", "thought", "functionCall", "inlineData"} {
				if _, ok := part[name]; !ok {
					part[name] = nil
				}
			}
		}
	}
	return f
}

func geminiFrames(p *plan) []frame {
	var out []frame
	add := func(o object) { out = append(out, frame{data: encode(o)}) }
	parts := p.geminiParts()
	if p.emptyChoices {
		add(object{"candidates": []any{}, "modelVersion": "scripted-1"})
	}
	if p.earlyUsage {
		add(p.geminiChunk([]object{}, "", p.geminiUsage(1, 1)))
	}
	usage := func(part int) object {
		if p.earlyUsage {
			return nil
		}
		return p.geminiUsage(part, len(parts))
	}
	for i, part := range parts {
		finish := ""
		if i == len(parts)-1 && p.errorFrame == "" {
			finish = p.geminiFinish()
		}
		add(p.geminiChunk([]object{part}, finish, usage(i+1)))
	}
	switch {
	case p.errorFrame != "":
	case len(parts) == 0:
		add(p.geminiChunk([]object{}, p.geminiFinish(), usage(1)))
	case p.repeatFinal:
		again := p.geminiChunk(nil, p.geminiFinish(), nil)
		again["usageMetadata"] = p.geminiUsage(1, 1)
		add(again)
	}
	return out
}

// checkGeminiTools returns the declarations in a tools member.
func checkGeminiTools(raw jsontext.Value) (declared []jsontext.Value, problem string) {
	var tools []struct {
		Declarations []jsontext.Value `json:"functionDeclarations"`
	}
	if err := strictly(raw, &tools); err != nil {
		return nil, "tools: " + err.Error()
	}
	seen := map[string]bool{}
	for _, t := range tools {
		for i, raw := range t.Declarations {
			var d struct {
				Name        string         `json:"name"`
				Description *string        `json:"description"`
				Schema      jsontext.Value `json:"parametersJsonSchema"`
			}
			err := strictly(raw, &d)
			switch {
			case err != nil:
				return nil, fmt.Sprintf("functionDeclarations/%d: %v", i, err)
			case !namePattern.MatchString(d.Name) || seen[d.Name]:
				return nil, fmt.Sprintf("functionDeclarations/%d: the name %q is bad or used twice", i, d.Name)
			case d.Schema.Kind() != '{':
				return nil, fmt.Sprintf("functionDeclarations/%d: parametersJsonSchema is not an object", i)
			}
			seen[d.Name] = true
			declared = append(declared, raw)
		}
	}
	if len(declared) == 0 {
		return nil, "tools is an empty list"
	}
	return declared, ""
}

// checkGeneration checks a generationConfig member.
func checkGeneration(raw jsontext.Value, tools bool) string {
	var c struct {
		Temperature      jsontext.Value `json:"temperature"`
		TopP             jsontext.Value `json:"topP"`
		TopK             jsontext.Value `json:"topK"`
		Seed             jsontext.Value `json:"seed"`
		FrequencyPenalty jsontext.Value `json:"frequencyPenalty"`
		PresencePenalty  jsontext.Value `json:"presencePenalty"`
		MaxOutputTokens  jsontext.Value `json:"maxOutputTokens"`
		StopSequences    []string       `json:"stopSequences"`
		MimeType         string         `json:"responseMimeType"`
		Schema           jsontext.Value `json:"responseJsonSchema"`
		Thinking         *struct {
			Level    jsontext.Value `json:"thinkingLevel"`
			Budget   jsontext.Value `json:"thinkingBudget"`
			Thoughts bool           `json:"includeThoughts"`
		} `json:"thinkingConfig"`
	}
	switch err := strictly(raw, &c); {
	case err != nil:
		return "generationConfig: " + err.Error()
	case c.Schema != nil && c.MimeType != "application/json":
		return "a schema needs the MIME type application/json"
	case c.MimeType != "" && tools:
		return "function calling with a response MIME type is unsupported"
	case c.Thinking != nil && c.Thinking.Level != nil && c.Thinking.Budget != nil:
		return "only one of thinking level and thinking budget may be set"
	case c.Thinking != nil && string(c.Thinking.Budget) == "0" && c.Thinking.Thoughts:
		return "thoughts are only included when thinking is enabled"
	}
	return ""
}
