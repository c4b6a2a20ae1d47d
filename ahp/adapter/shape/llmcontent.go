package shape

import (
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
)

// LLMContent shows the result of a call in the form of Gemini CLI and its fork: an
// object whose llmContent is a text or a list of parts, and which has an error if the
// call failed.
func LLMContent(result ahp.Raw) (text string, failed bool) {
	o, err := adapter.ParseObject(result)
	if err != nil || !o.Has("llmContent") && !o.Has("error") {
		return adapter.Show(result), false
	}
	failed = o.Has("error")
	content := o.Raw("llmContent")
	if content == nil {
		return adapter.Show(o.Raw("error")), failed
	}
	if content[0] != '[' {
		return adapter.Show(content), failed
	}
	var texts []string
	for _, raw := range o.List("llmContent") {
		part, err := adapter.ParseObject(raw)
		if err != nil || !part.Has("text") {
			texts = append(texts, adapter.Show(raw))
			continue
		}
		texts = append(texts, adapter.Show(part.Raw("text")))
	}
	return strings.Join(texts, "\n"), failed
}
