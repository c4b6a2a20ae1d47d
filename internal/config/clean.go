package config

import "bytes"

// clean returns data with its byte order mark, comments and trailing commas
// overwritten by spaces, so that what is left is JSON and every offset is still
// right. If a comment is never closed, open is the offset where it starts,
// otherwise -1.
//
// A comma is blanked only if it follows a value and only white space and
// comments stand between it and the closing bracket: "[,]" and "[1,,]" stay
// broken.
func clean(data []byte) (out []byte, open int) {
	out = bytes.Clone(data)
	if bytes.HasPrefix(out, []byte(byteOrderMark)) {
		blank(out[:len(byteOrderMark)])
	}
	comma := -1     // the last comma, while only blanks followed it
	last := byte(0) // the last significant byte before that comma or here
	for i := 0; i < len(out); i++ {
		switch c := out[i]; c {
		case ' ', '\t', '\r', '\n':
			continue
		case '/':
			end := commentEnd(out, i)
			if end < 0 {
				return out, i
			}
			if end > i {
				blank(out[i:end])
				i = end - 1
				continue
			}
		case '"':
			i = stringEnd(out, i)
		case ',':
			if comma < 0 && last != 0 && last != '[' && last != '{' && last != ':' {
				comma = i
				last = c
				continue
			}
		case '}', ']':
			if comma >= 0 {
				out[comma] = ' '
			}
		}
		comma, last = -1, out[i]
	}
	return out, -1
}

// commentEnd returns the offset after the comment that starts at i: i itself if
// none does, -1 if it never ends.
func commentEnd(b []byte, i int) int {
	rest := b[i:]
	switch {
	case bytes.HasPrefix(rest, []byte("//")):
		if n := bytes.IndexAny(rest, "\r\n"); n >= 0 {
			return i + n
		}
		return len(b)
	case bytes.HasPrefix(rest, []byte("/*")):
		if n := bytes.Index(rest[2:], []byte("*/")); n >= 0 {
			return i + 2 + n + 2
		}
		return -1
	}
	return i
}

// stringEnd returns the offset of the quotation mark that closes the string
// which starts at i, or of the last byte if none does.
func stringEnd(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return len(b) - 1
}

// blank overwrites b with spaces but keeps its line ends.
func blank(b []byte) {
	for i, c := range b {
		if c != '\n' && c != '\r' {
			b[i] = ' '
		}
	}
}
