package hookd_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter/hosts"
	"github.com/abhed/abhed/internal/hookd"
)

// TestWhatCannotBeReadIsRefusedAsACall holds that an event of which nothing is known is
// refused in the words for a call of a tool: an agent decides how large or how odd the
// input of its call is, and a host goes on where the document is another event's.
func TestWhatCannotBeReadIsRefusedAsACall(t *testing.T) {
	for _, h := range hosts.All() {
		var want [][]byte
		for i := range h.Rows {
			if r := &h.Rows[i]; r.Type == ahp.ToolBefore && r.Denies() {
				want = append(want, h.Refusal(r.Native, "because"))
			}
		}
		two := fmt.Appendf(nil, "{%q:%q,", h.Rows[0].Native, h.Rows[len(h.Rows)-1].Native)
		for _, data := range [][]byte{nil, []byte("{"), two} {
			a := hookd.ByPolicy(h, nil, &hookd.Call{Host: h.Name, Data: data}, "", "because")
			text := append(append([]byte{}, a.Stdout...), a.Stderr...)
			found := false
			for _, w := range want {
				found = found || bytes.Equal(w, text)
			}
			if !found || a.Code != hookd.ExitDeny {
				t.Errorf("%s, %q: found %d %q, expected one of %q", h.Name, data, a.Code, text, want)
			}
		}
	}
}
