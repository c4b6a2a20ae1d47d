package conformance

import "slices"

// MisfitNames returns what is wrong with the registrations that a check is about,
// over a binding.
func MisfitNames(check string, b Binding) []string {
	var out []string
	for _, m := range misfits()[check] {
		if m.bindings == nil || slices.Contains(m.bindings, b) {
			out = append(out, m.name)
		}
	}
	return out
}
