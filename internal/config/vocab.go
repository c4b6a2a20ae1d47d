package config

import (
	"net/url"
	"slices"
	"strings"
)

// Modes returns the permission modes, the strictest first (gate.md §2).
func Modes() []string { return []string{"plan", "default", "accept-edits", "auto", "bypass"} }

// Tiers returns the sandbox tiers, the least strict first (abhed.md, Sandbox).
func Tiers() []string { return []string{"none", "process", "container"} }

// ExtensionEvents returns the events that an extension may subscribe to
// (extensions.md, Wire).
func ExtensionEvents() []string {
	return []string{
		"list_tools", "session_start", "session_end", "user_prompt_submit", "before_agent_start", "context",
		"tool_call", "permission_request", "tool_result", "before_compact", "invoke_tool", "turn_end", "subagent_end", "notification",
	}
}

// SamplingNames returns the sampling parameters that exist (abhed.md, Providers).
func SamplingNames() []string {
	return []string{
		"temperature", "top_p", "top_k", "min_p", "seed", "frequency_penalty", "presence_penalty",
		"repetition_penalty", "max_tokens", "stop", "effort", "thinking_budget",
	}
}

// APIs returns the model APIs that a provider may name.
func APIs() []string {
	return []string{APIOpenAI, APIOpenAIResponses, APIAnthropic, APIGemini, APIScript}
}

// The model APIs (abhed.md, Providers). APIOpenAI is chat completions.
const (
	APIOpenAI          = "openai"
	APIOpenAIResponses = "openai-responses"
	APIAnthropic       = "anthropic"
	APIGemini          = "gemini"
	APIScript          = "script"
)

// APISampling returns the sampling parameters that requests of an API can hold at
// all. What one endpoint honours may be less.
func APISampling(api string) []string {
	switch api {
	case APIOpenAIResponses:
		return []string{"temperature", "top_p", "max_tokens", "effort"}
	case APIAnthropic:
		return []string{"temperature", "top_p", "top_k", "max_tokens", "stop", "effort", "thinking_budget"}
	case APIGemini:
		return []string{"temperature", "top_p", "top_k", "seed", "frequency_penalty", "presence_penalty", "max_tokens", "stop", "effort", "thinking_budget"}
	default: // chat completions servers differ, and a script takes anything
		return SamplingNames()
	}
}

// Compactions returns the ways to treat a conversation that gets too long.
func Compactions() []string { return []string{"auto", "off"} }

// The functions below check one string each. They return what was expected, or
// "" if the string fits.

func nonEmpty(s string) string {
	if s == "" {
		return "some text"
	}
	return ""
}

// word reports whether s is 1 to 64 letters, digits and the given others, the
// first a letter or a digit.
func word(s, others string) bool {
	if len(s) > 64 {
		return false
	}
	for i, c := range []byte(s) {
		alnum := c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' && c < 0x80
		if !alnum && (i == 0 || strings.IndexByte(others, c) < 0) {
			return false
		}
	}
	return s != ""
}

func plainName(s string) string {
	if word(s, "._-") {
		return ""
	}
	return "a name of letters, digits, '.', '_' and '-', at most 64 characters"
}

func providerName(s string) string {
	if s == environmentProvider || slices.Contains(BuiltinProviders(), s) {
		return "a name that no built-in provider has"
	}
	return plainName(s)
}

func serverName(s string) string {
	if strings.Contains(s, "__") {
		return `a name without "__", which separates server and tool in a rule`
	}
	return plainName(s)
}

// toolName checks the name of one tool, as read or mcp__server__tool.
func toolName(s string) string {
	if s == "" || len(s) > 128 || strings.ContainsAny(s, " \t\r\n()*?,/") {
		return "the name of a tool, without a pattern"
	}
	return ""
}

// modelName checks "provider/model"; the bare name of a model is for the
// endpoint that ABHED_BASE_URL names.
func modelName(s string) string {
	if s == "" || strings.HasPrefix(s, "/") || strings.HasSuffix(s, "/") || strings.ContainsAny(s, " \t\r\n") {
		return "provider/model"
	}
	return ""
}

func qualifiedModel(s string) string {
	if !strings.Contains(s, "/") {
		return "provider/model"
	}
	return modelName(s)
}

func variableName(s string) string {
	for i, c := range []byte(s) {
		letter := c == '_' || c < 0x80 && c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return "the name of an environment variable"
		}
	}
	if s == "" {
		return "the name of an environment variable"
	}
	return ""
}

func headerName(s string) string {
	if word(s, "-_.") {
		return ""
	}
	return "the name of an HTTP header"
}

// endpointURL checks a base URL. It must hold no password, because it is
// printed.
func endpointURL(s string) string {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return "an absolute http or https URL"
	case u.User != nil:
		return "a URL without a user or password"
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "a URL without query and fragment"
	}
	return ""
}

// foundURL describes a refused URL; it repeats it only if no password can be in
// it.
func foundURL(s string) string {
	if strings.Contains(s, "@") {
		return "found a text with an @"
	}
	return "found " + quote(s)
}

// anchorTarget checks record.anchor: a URL or a program.
func anchorTarget(s string) string {
	if strings.Contains(s, "://") {
		return endpointURL(s)
	}
	return filePath(s)
}

func filePath(s string) string {
	if s == "" || strings.IndexByte(s, 0) >= 0 {
		return "a path"
	}
	return ""
}

// ruleShape checks the outer form of a permission rule (gate.md §3): tool or
// tool(pattern). Whether the tool exists and the pattern means anything is for
// internal/policy.
func ruleShape(s string) string {
	tool, pattern, has := strings.Cut(s, "(")
	if tool == "" || strings.ContainsAny(tool, " \t\r\n)") {
		return "a rule: tool or tool(pattern)"
	}
	if has && !strings.HasSuffix(pattern, ")") {
		return `a rule whose pattern ends with ")"`
	}
	return ""
}

// settableVariable checks a name that a child process is given: wider than
// variableName, because programs read odd ones.
func settableVariable(s string) string {
	if s == "" || strings.ContainsAny(s, "=\x00") {
		return "the name of an environment variable"
	}
	return ""
}
