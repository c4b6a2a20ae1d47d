package extension

// nearest returns the first of known that is one edit away from name: one
// character more, less, other, or two neighbours swapped; "" if there is none.
func nearest(name string, known []string) string {
	for _, k := range known {
		if k != name && oneEdit(name, k) {
			return k
		}
	}
	return ""
}

func oneEdit(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b)-len(a) > 1 {
		return false
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	if len(a) < len(b) {
		return a[i:] == b[i+1:]
	}
	if i == len(a) || a[i+1:] == b[i+1:] {
		return true
	}
	return i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
}
