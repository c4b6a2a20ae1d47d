package shape

import (
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
)

// LLMContent shows the result of a call in the form of Gemini CLI and its fork: an
// object whose llmContent is a text or a list of parts, and which has an error if the
// call failed. Parts that aren't text are left out, and LLMOthers counts them.
func LLMContent(result ahp.Raw) (text string, failed bool) {
	text, _, failed = llmContent(result)
	return text, failed
}

// LLMOthers returns how many parts of a result LLMContent leaves out.
func LLMOthers(result ahp.Raw) int {
	_, others, _ := llmContent(result)
	return others
}

func llmContent(result ahp.Raw) (text string, others int, failed bool) {
	o, err := adapter.ParseObject(result)
	if err != nil || !o.Has("llmContent") && !o.Has("error") {
		return adapter.Show(result), 0, false
	}
	failed = o.Has("error")
	content := o.Raw("llmContent")
	switch {
	case content == nil:
		return adapter.Show(o.Raw("error")), 0, failed
	case content[0] != '[' && !content.IsObject():
		return adapter.Show(content), 0, failed
	}
	list := []ahp.Raw{content}
	if content[0] == '[' {
		list = o.List("llmContent")
	}
	var texts []string
	for _, raw := range list {
		part, err := adapter.ParseObject(raw)
		switch {
		case err != nil: // a text without an object around it
			texts = append(texts, adapter.Show(raw))
		case part.Has("text"):
			texts = append(texts, adapter.Show(part.Raw("text")))
		default:
			others++
		}
	}
	return strings.Join(texts, "\n"), others, failed
}
