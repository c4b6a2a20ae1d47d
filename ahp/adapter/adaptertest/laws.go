package adaptertest

import (
	"fmt"
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
)

// Faults returns how an answer breaks the laws of all adapters: a refusal is never
// empty or blank, an effect is never silence, silence says nothing unless the host needs
// a document, and nothing permits but what carries a rewrite.
func Faults(h *adapter.Host, e *adapter.Event, v *adapter.Verdict, data []byte, document bool) []string {
	var out []string
	blank := strings.TrimSpace(string(data)) == ""
	switch {
	case v.Deny != "" && blank:
		out = append(out, "a refusal without a word")
	case v.Deny == "" && !v.Silent() && blank:
		out = append(out, "a verdict with an effect is silence")
	case v.Silent() && !blank && !document:
		out = append(out, fmt.Sprintf("silence says %q", data))
	}
	if v.Deny != "" && !strings.Contains(unescaped(data), firstLine(v.Deny)) {
		out = append(out, fmt.Sprintf("a refusal loses its reason %q: %q", v.Deny, data))
	}
	doc := ahp.Raw(data)
	d := h.Delivery(e.Row)
	if v.Deny == "" || d.Stream == adapter.Stdout {
		// What isn't one object would be shown to somebody as it stands, or be thrown away.
		if !blank && v.Deny == "" && len(data) > 0 && data[0] == '{' && !doc.IsObject() {
			out = append(out, fmt.Sprintf("an answer that is no JSON object: %q", data))
		}
	}
	if doc.IsObject() && v.Input == nil {
		paths(doc, "", func(path string, value ahp.Raw) {
			if permits(path, string(value)) {
				out = append(out, fmt.Sprintf("the member %s permits: %s", path, data))
			}
		})
	}
	return out
}

// permits reports whether a member of an answer says that something may run.
func permits(path, value string) bool {
	name := path[strings.LastIndex(path, ".")+1:]
	switch strings.ToLower(name) {
	case "decision", "permission", "permissiondecision", "behavior", "action", "status":
		switch strings.ToLower(strings.Trim(value, `"`)) {
		case "allow", "allowed", "approve", "approved", "accept", "proceed", "yes":
			return true
		}
	case "allow", "approve", "approved":
		return value == "true"
	}
	return false
}

// unescaped returns a document's text in which a reason can be looked for.
func unescaped(data []byte) string {
	text := string(data)
	paths(ahp.Raw(data), "", func(_ string, v ahp.Raw) { text += "\n" + adapter.Show(v) })
	return text
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}
