package config

import (
	"cmp"
	"slices"
)

// builtinModels is the data table of what is generally known of models: names of
// one provider, its tokens of context and of one reply, and whether they see
// images. No price stands here, because prices change while a program doesn't.
func builtinModels() []knownModels {
	return []knownModels{
		{"openai", []string{"gpt-4o", "gpt-4o-mini"}, 128_000, 16_384, true},
		{"openai", []string{"gpt-4.1", "gpt-4.1-mini", "gpt-4.1-nano"}, 1_047_576, 32_768, true},
		{"openai", []string{"o3", "o4-mini"}, 200_000, 100_000, true},
		{"openai", []string{"o3-mini"}, 200_000, 100_000, false},
		{"openai", []string{"gpt-5", "gpt-5-mini", "gpt-5-nano"}, 400_000, 128_000, true},
		{"anthropic", []string{"claude-3-5-haiku-20241022", "claude-3-5-haiku-latest"}, 200_000, 8_192, true},
		{"anthropic", []string{"claude-3-7-sonnet-20250219", "claude-3-7-sonnet-latest"}, 200_000, 64_000, true},
		{"anthropic", []string{"claude-opus-4-20250514", "claude-opus-4-0", "claude-opus-4-1-20250805", "claude-opus-4-1"}, 200_000, 32_000, true},
		{"anthropic", []string{"claude-sonnet-4-20250514", "claude-sonnet-4-0", "claude-sonnet-4-5-20250929", "claude-sonnet-4-5",
			"claude-haiku-4-5-20251001", "claude-haiku-4-5", "claude-opus-4-5-20251101", "claude-opus-4-5"}, 200_000, 64_000, true},
		{"gemini", []string{"gemini-2.0-flash", "gemini-2.0-flash-lite"}, 1_048_576, 8_192, true},
		{"gemini", []string{"gemini-2.5-pro", "gemini-2.5-flash", "gemini-2.5-flash-lite", "gemini-3-pro-preview"}, 1_048_576, 65_536, true},
	}
}

// knownModels are models of one provider that have the same bounds.
type knownModels struct {
	provider      string
	names         []string
	context, most int64
	images        bool
}

// builtinModel returns what is generally known of a model; the zero value if
// nothing is. Only the exact name counts: nothing is guessed from a part of it.
func builtinModel(provider, name string) ModelInfo {
	for _, k := range builtinModels() {
		if k.provider == provider && slices.Contains(k.names, name) {
			return ModelInfo{ContextWindow: k.context, OutputLimit: k.most, Images: &k.images}
		}
	}
	return ModelInfo{}
}

// over returns m with what it leaves open taken from below, member by member.
func (m ModelInfo) over(below ModelInfo) ModelInfo {
	m.ContextWindow = cmp.Or(m.ContextWindow, below.ContextWindow)
	m.OutputLimit = cmp.Or(m.OutputLimit, below.OutputLimit)
	m.Images = cmp.Or(m.Images, below.Images)
	if m.Price == nil || below.Price == nil {
		m.Price = cmp.Or(m.Price, below.Price)
		return m
	}
	m.Price = &Price{
		Input:      cmp.Or(m.Price.Input, below.Price.Input),
		Output:     cmp.Or(m.Price.Output, below.Price.Output),
		CacheRead:  cmp.Or(m.Price.CacheRead, below.Price.CacheRead),
		CacheWrite: cmp.Or(m.Price.CacheWrite, below.Price.CacheWrite),
	}
	return m
}
