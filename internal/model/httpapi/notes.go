package httpapi

import (
	"slices"
	"strings"
)

const maxNotes = 12

// Notes collects what had to be repaired or assumed in a reply, for Response.Note.
// The zero value is ready.
type Notes struct{ list []string }

// Note adds s once. A reply that needs very many keeps the first.
func (n *Notes) Note(s string) {
	if len(n.list) < maxNotes && !slices.Contains(n.list, s) {
		n.list = append(n.list, s)
	}
}

// String returns the notes in one line.
func (n *Notes) String() string { return strings.Join(n.list, "; ") }
