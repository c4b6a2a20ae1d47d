package hookd

import (
	"testing"

	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/copilot"
	"github.com/abhed/abhed/ahp/adapter/cursor"
	"github.com/abhed/abhed/ahp/adapter/hosts"
)

// TestManifests holds that what is promised for each host is valid: no process of one
// call takes the time to see to it.
func TestManifests(t *testing.T) {
	list := append(hosts.All(), copilot.VSCode(), cursor.Guest())
	for _, h := range list {
		if _, err := manifestOf(h).Encode(); err != nil {
			t.Errorf("%s: %v", h.Name, err)
		}
	}
}

// TestGuestsAreKnown holds that the test above misses none of the hosts that a payload
// is recognised as.
func TestGuestsAreKnown(t *testing.T) {
	known := map[string]bool{copilot.VSCode().Name: true, cursor.Guest().Name: true}
	for _, h := range hosts.All() {
		known[h.Name] = true
	}
	named := hosts.Lookup("claude-code")
	for _, data := range []string{`{"hookEventName":"x"}`, `{"sessionId":"x"}`, `{"conversation_id":"x"}`, `{"transcript_path":""}`, `{"timestamp":1}`, `{}`, `x`} {
		var h *adapter.Host = hosts.Recognise(named, []byte(data), nil)
		if !known[h.Name] {
			t.Errorf("%s: %s has no test of its manifest", data, h.Name)
		}
	}
}
