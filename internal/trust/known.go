package trust

import "slices"

// Known reports whether the file at path is trusted with some content: another content
// is then a change, and no file that nobody has read. A store that can't be read knows
// every file.
func (s *Store) Known(path string) bool {
	entries, err := s.List()
	if err != nil {
		return true
	}
	real, err := resolve(path)
	return err == nil && slices.ContainsFunc(entries, func(e Entry) bool { return e.Path == real })
}
