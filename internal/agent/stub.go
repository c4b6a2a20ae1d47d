package agent

import (
	"fmt"
	"strings"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/tool"
)

// stubHead is how many bytes of a result stay in its stub.
const stubHead = 200

// stubs returns the stubs for old large results.
func (l *Loop) stubs() []event.Stub {
	c := l.o.Context
	if c.StubBytes == 0 {
		return nil
	}
	keep := c.KeepResults
	if keep == 0 {
		keep = defaultKeepResults
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []event.Stub
	for i := len(l.messages) - 1; i >= 0; i-- {
		for _, p := range l.messages[i].Parts {
			res := p.ToolResult
			if res == nil {
				continue
			}
			if keep > 0 {
				keep--
				continue
			}
			if _, is := l.stubbed[res.CallID]; is || len(res.Content) <= c.StubBytes {
				continue
			}
			if text := stubText(res); len(text) < len(res.Content) {
				out = append(out, event.Stub{CallID: res.CallID, Text: text})
			}
		}
	}
	return out
}

func stubText(res *model.ToolResult) string {
	head := tool.Clean(strings.ToValidUTF8(res.Content[:min(len(res.Content), stubHead)], ""))
	return fmt.Sprintf("%sThis result of %d bytes is no longer kept in the context; recall with call_id %q reads it again. It began:\n%s", event.HarnessMark, len(res.Content), res.CallID, head)
}

// keepStubbed keeps the results that stubs stand for, so that they can be read back.
func (l *Loop) keepStubbed(stubs []event.Stub) {
	whole := map[string]string{}
	for _, m := range l.messages {
		for _, p := range m.Parts {
			if p.ToolResult != nil {
				whole[p.ToolResult.CallID] = p.ToolResult.Content
			}
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stubbed == nil {
		l.stubbed = map[string]string{}
	}
	for _, s := range stubs { // in place: there may be many by now
		l.stubbed[s.CallID] = whole[s.CallID]
	}
}

// Stubbed returns the result that a stub stands for. Any goroutine may ask.
func (l *Loop) Stubbed(callID string) (content string, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	content, ok = l.stubbed[callID]
	return content, ok
}
