package ahp

// IsURI reports whether s is a URI with a scheme by the grammar of RFC 3986: what
// the format "uri" of JSON Schema means as well.
func IsURI(s string) bool { return isURI(s) }

// IsDateTime reports whether s is a date and time of RFC 3339 with separators and
// a zone, naming a day that exists.
func IsDateTime(s string) bool { return isTime(s) }
