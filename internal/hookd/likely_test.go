package hookd_test

import (
	"bytes"
	"fmt"
	"strings"
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

// TestWhatPassesByPolicy holds that a host which needs a document to go on gets it where
// the line says that what can't be judged passes, and that an event is known by its name
// wherever that stands near the start.
func TestWhatPassesByPolicy(t *testing.T) {
	documents := 0
	for _, h := range hosts.All() {
		for i := range h.Rows {
			r := &h.Rows[i]
			data := fmt.Appendf(nil, `{"cwd":%q,"name":%q,`, "/"+strings.Repeat("x", 1000), r.Native)
			a := hookd.ByPolicy(h, nil, &hookd.Call{Host: h.Name, Data: data, Open: true}, "", "because")
			if want := h.Blank(r.Native); a.Code != hookd.ExitPass || !bytes.Equal(a.Stdout, want) || len(a.Stderr) > 0 {
				t.Errorf("%s, %s, allow: found %d %q %q, expected %q", h.Name, r.Native, a.Code, a.Stdout, a.Stderr, want)
			} else if len(want) > 0 {
				documents++
			}
			a = hookd.ByPolicy(h, nil, &hookd.Call{Host: h.Name, Data: data}, "", "because")
			if (a.Code == hookd.ExitPass) == r.Denies() {
				t.Errorf("%s, %s, deny: found %d %q", h.Name, r.Native, a.Code, a.Stdout)
			}
		}
	}
	if documents == 0 {
		t.Error("no host needs a document")
	}
}

// TestAGuestIsRefusedByTheCode holds that Cursor and Continue, which run the lines of
// Claude Code's files, are refused by the exit code of those, and never by an answer that
// is delivered.
func TestAGuestIsRefusedByTheCode(t *testing.T) {
	w := newWorld(t, hookd.Options{})
	w.register(w.document(hook{mode: "deny", policy: "fail-closed"}))
	for host, more := range map[string]string{"cursor": `"conversation_id":"c","cursor_version":"2",`, "continue": `"transcript_path":"",`} {
		data := bytes.Replace(bash("s", "t"+host, w.home, "echo hi"), []byte("{"), []byte("{"+more), 1)
		if a := w.do(hookd.Call{Data: data}); a.Code != hookd.ExitDeny || !a.Complete() || !strings.Contains(said(a), "not in this house") {
			t.Errorf("%s: %d %q %q", host, a.Code, a.Stdout, a.Stderr)
		}
		if e := w.last(); e.Host != host {
			t.Errorf("the log says that %s asked, expected %s", e.Host, host)
		}
	}
}
