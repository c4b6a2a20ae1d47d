package shape

import (
	"fmt"
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
)

// Texts returns the text of content that is a list of typed parts, one part a line, and
// how many parts aren't text.
func Texts(parts []*adapter.Object) (text string, others int) {
	var texts []string
	for _, part := range parts {
		if part.Text("type") == "text" {
			texts = append(texts, part.Text("text"))
		} else {
			others++
		}
	}
	return strings.Join(texts, "\n"), others
}

// NotText returns the gap that others parts of a content leave, which aren't text; nil
// for none.
func NotText(others int) []ahp.Gap {
	if others == 0 {
		return nil
	}
	return []ahp.Gap{{Path: "items", Reason: fmt.Sprintf("parts of the content that aren't text aren't sent: %d", others)}}
}

// bridgeAnswer is what every bridge plugin of ours reads on standard output. A member
// that isn't there has no effect.
type bridgeAnswer struct {
	// Args replaces the arguments of the call.
	Args ahp.Raw `json:"args,omitzero"`
	// Output replaces the result.
	Output *string `json:"output,omitzero"`
	// Context is added for the model.
	Context []string `json:"context,omitzero"`
	// Reason is that of a refusal.
	Reason string `json:"reason,omitzero"`
}

// WriteBridge says a verdict to a bridge plugin. A bridge goes by the exit code: the
// document says what a delivery holds, or why a call is refused. Context for a result
// comes with the result's own text, because a bridge puts both in place of it.
func WriteBridge(e *adapter.Event, v *adapter.Verdict) ([]byte, error) {
	if v.Deny != "" {
		return adapter.Encode(bridgeAnswer{Reason: adapter.Reason(v.Deny)})
	}
	if v.Silent() {
		return nil, nil
	}
	a := bridgeAnswer{Args: v.Input, Output: v.Output, Context: v.Context}
	if e.Row.Type == ahp.ToolAfter && a.Context != nil && a.Output == nil && e.AHP != nil {
		text := resultText(e.AHP)
		a.Output = &text
	}
	return adapter.Encode(a)
}

// resultText returns the text of a result that this package read.
func resultText(e *ahp.Event) string {
	var texts []string
	for _, m := range e.Items.Messages {
		for _, p := range m.Parts {
			if p.Text != nil {
				texts = append(texts, *p.Text)
			}
		}
	}
	return strings.Join(texts, "\n")
}
