package elicitation

import (
	"net/netip"
	"strings"
	"unicode/utf8"

	"github.com/abhed/abhed/ahp"
)

// Format names the grammar that a string must follow.
type Format string

// The formats of MCP's forms.
const (
	// FormatEmail is a Mailbox of RFC 5321 §4.1.2.
	FormatEmail Format = "email"
	// FormatURI is a URI with a scheme, of RFC 3986.
	FormatURI Format = "uri"
	// FormatDate is a full-date of RFC 3339.
	FormatDate Format = "date"
	// FormatDateTime is a date-time of RFC 3339.
	FormatDateTime Format = "date-time"
)

// Matches reports whether s follows the grammar of f. An empty f takes every
// string, an unknown one none.
func (f Format) Matches(s string) bool {
	switch f {
	case "":
		return true
	case FormatEmail:
		return isMailbox(s)
	case FormatURI:
		return ahp.IsURI(s)
	case FormatDate:
		return len(s) == len("2006-01-02") && ahp.IsDateTime(s+"T00:00:00Z")
	case FormatDateTime:
		return ahp.IsDateTime(s)
	}
	return false
}

// isMailbox reports whether s is a Mailbox of RFC 5321 within the lengths of its
// §4.5.3.1: 64 octets before the @ and 255 behind it.
func isMailbox(s string) bool {
	i := strings.LastIndexByte(s, '@')
	if i < 1 || i > 64 || len(s)-i-1 > 255 {
		return false
	}
	local, domain := s[:i], s[i+1:]
	if local[0] == '"' {
		if !isQuotedString(local) {
			return false
		}
	} else if !isDotString(local) {
		return false
	}
	if inner, ok := strings.CutPrefix(domain, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		return ok && isAddressLiteral(inner)
	}
	for label := range strings.SplitSeq(domain, ".") {
		if !isSubDomain(label) {
			return false
		}
	}
	return true
}

func isLetDig(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

// isSubDomain is sub-domain: letters, digits and hyphens, no hyphen at an end, and
// at most 63 of them (RFC 1035 §2.3.4).
func isSubDomain(s string) bool {
	if s == "" || len(s) > 63 || !isLetDig(s[0]) {
		return false
	}
	return isLdhString(s)
}

// isLdhString is Ldh-str: it ends in a letter or a digit.
func isLdhString(s string) bool {
	for i := range len(s) {
		if !isLetDig(s[i]) && s[i] != '-' {
			return false
		}
	}
	return s != "" && isLetDig(s[len(s)-1])
}

// isDotString is Dot-string: atoms joined by single dots.
func isDotString(s string) bool {
	for atom := range strings.SplitSeq(s, ".") {
		if atom == "" {
			return false
		}
		for i := range len(atom) {
			if !isLetDig(atom[i]) && strings.IndexByte("!#$%&'*+-/=?^_`{|}~", atom[i]) < 0 {
				return false
			}
		}
	}
	return true
}

// isQuotedString is Quoted-string: printable ASCII between quotes, in which a
// quote and a backslash are escaped.
func isQuotedString(s string) bool {
	if len(s) < 2 || s[len(s)-1] != '"' {
		return false
	}
	s = s[1 : len(s)-1]
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c < ' ' || c > '~' || c == '"':
			return false
		case c == '\\':
			if i++; i == len(s) || s[i] < ' ' || s[i] > '~' {
				return false
			}
		}
	}
	return true
}

// isAddressLiteral is what stands between the brackets of an address-literal.
func isAddressLiteral(s string) bool {
	tag, rest, tagged := strings.Cut(s, ":")
	if !tagged {
		a, err := netip.ParseAddr(s)
		return err == nil && a.Is4()
	}
	if strings.EqualFold(tag, "IPv6") {
		a, err := netip.ParseAddr(rest)
		return err == nil && a.Is6() && a.Zone() == ""
	}
	if !isLdhString(tag) || rest == "" {
		return false
	}
	for i := range len(rest) { // dcontent
		if c := rest[i]; c < '!' || c > '~' || c == '[' || c == '\\' || c == ']' {
			return false
		}
	}
	return true
}

// length counts the characters of s as JSON Schema does.
func length(s string) int64 { return int64(utf8.RuneCountInString(s)) }
