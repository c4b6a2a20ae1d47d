package ahp

import (
	"bytes"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// Timestamp returns t as the protocol writes times: RFC 3339 in UTC with
// nanoseconds as needed.
func Timestamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// isTime reports whether s is an RFC 3339 date-time with separators and a zone,
// naming a day that exists. A leap second is accepted at the end of a day in UTC.
func isTime(s string) bool {
	if len(s) < len("2006-01-02T15:04:05Z") || !shaped(s[:19], "0000-00-00T00:00:00") {
		return false
	}
	num := func(i int) int { return int(s[i]-'0')*10 + int(s[i+1]-'0') }
	year, month, day := num(0)*100+num(2), num(5), num(8)
	if month < 1 || month > 12 || day < 1 || day > daysIn(year, month) || num(11) > 23 || num(14) > 59 || num(17) > 60 {
		return false
	}
	rest := s[19:]
	if rest[0] == '.' {
		n := 1
		for n < len(rest) && isDigit(rest[n]) {
			n++
		}
		if n == 1 {
			return false
		}
		rest = rest[n:]
	}
	east := 0 // of UTC, in minutes
	if rest != "Z" && rest != "z" {
		if !shaped(rest, "+00:00") {
			return false
		}
		hours, minutes := int(rest[1]-'0')*10+int(rest[2]-'0'), int(rest[4]-'0')*10+int(rest[5]-'0')
		if hours > 23 || minutes > 59 {
			return false
		}
		if east = hours*60 + minutes; rest[0] == '-' {
			east = -east
		}
	}
	if num(17) < 60 {
		return true
	}
	const day24 = 24 * 60
	return (num(11)*60+num(14)-east+2*day24)%day24 == day24-1
}

// shaped compares s with a pattern in which 0 stands for a digit, T for T or t,
// and + for a sign.
func shaped(s, pattern string) bool {
	if len(s) != len(pattern) {
		return false
	}
	for i := range len(s) {
		switch p := pattern[i]; {
		case p == '0' && isDigit(s[i]), p == 'T' && s[i] == 't', p == '+' && s[i] == '-':
		case p == '0', p != s[i]:
			return false
		}
	}
	return true
}

func daysIn(year, month int) int {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
func isAlpha(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
func isHex(c byte) bool   { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

// isURI reports whether s is a URI with a scheme by the grammar of RFC 3986.
func isURI(s string) bool {
	scheme, rest, ok := strings.Cut(s, ":")
	if !ok || scheme == "" || !isAlpha(scheme[0]) {
		return false
	}
	for i := range len(scheme) {
		if c := scheme[i]; !isAlpha(c) && !isDigit(c) && c != '+' && c != '-' && c != '.' {
			return false
		}
	}
	rest, fragment, _ := strings.Cut(rest, "#")
	rest, query, _ := strings.Cut(rest, "?")
	if !uriChars(fragment, "/?:@") || !uriChars(query, "/?:@") {
		return false
	}
	if authority, ok := strings.CutPrefix(rest, "//"); ok {
		host, path := authority, ""
		if i := strings.IndexByte(authority, '/'); i >= 0 {
			host, path = authority[:i], authority[i:]
		}
		return isAuthority(host) && uriChars(path, "/:@")
	}
	return uriChars(rest, "/:@")
}

func isAuthority(s string) bool {
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		if !uriChars(s[:i], ":") {
			return false
		}
		s = s[i+1:]
	}
	host, port := s, ""
	if strings.HasPrefix(s, "[") {
		end := strings.IndexByte(s, ']')
		if end < 0 || !isIPLiteral(s[1:end]) {
			return false
		}
		rest := s[end+1:]
		if rest != "" && rest[0] != ':' {
			return false
		}
		return rest == "" || allDigits(rest[1:])
	}
	if i := strings.LastIndexByte(s, ':'); i >= 0 {
		host, port = s[:i], s[i+1:]
	}
	return uriChars(host, "") && allDigits(port)
}

func isIPLiteral(s string) bool {
	if s != "" && s[0]|0x20 == 'v' {
		version, addr, ok := strings.Cut(s[1:], ".")
		for i := range len(version) {
			ok = ok && isHex(version[i])
		}
		return ok && version != "" && addr != "" && !strings.Contains(addr, "%") && uriChars(addr, ":")
	}
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is6() && a.Zone() == ""
}

func allDigits[T string | []byte](s T) bool {
	for i := range len(s) {
		if !isDigit(s[i]) {
			return false
		}
	}
	return true
}

// uriChars reports whether s holds only unreserved characters, sub-delimiters,
// complete percent escapes and the characters of extra.
func uriChars(s, extra string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '%':
			if i+2 >= len(s) || !isHex(s[i+1]) || !isHex(s[i+2]) {
				return false
			}
			i += 2
		case isAlpha(c), isDigit(c), strings.IndexByte("-._~!$&'()*+,;=", c) >= 0, strings.IndexByte(extra, c) >= 0:
		default:
			return false
		}
	}
	return true
}

// httpHost returns scheme and host of an http or https URI; ok is false for any
// other text.
func httpHost(s string) (scheme, host string, ok bool) {
	if !isURI(s) {
		return "", "", false
	}
	scheme, rest, _ := strings.Cut(s, "://")
	scheme = strings.ToLower(scheme)
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		rest = rest[i+1:]
	}
	host = rest
	if strings.HasPrefix(rest, "[") {
		host = rest[:strings.IndexByte(rest, ']')+1]
	} else if i := strings.LastIndexByte(rest, ':'); i >= 0 {
		host = rest[:i]
	}
	return scheme, host, (scheme == "http" || scheme == "https") && host != ""
}

// IsLoopbackURL reports whether s is an http or https URL whose host is
// localhost, 127.0.0.0/8 or [::1]: the places where plain http is allowed (§17).
func IsLoopbackURL(s string) bool {
	_, host, ok := httpHost(s)
	if !ok {
		return false
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && a.IsLoopback()
}

// isReverseDNS reports whether s is two or more labels of letters, digits, _ and
// -, each starting with a letter, joined by dots (§4).
func isReverseDNS(s string) bool {
	labels := 0
	for label := range strings.SplitSeq(s, ".") {
		labels++
		if label == "" || !isAlpha(label[0]) {
			return false
		}
		for i := range len(label) {
			if c := label[i]; !isAlpha(c) && !isDigit(c) && c != '_' && c != '-' {
				return false
			}
		}
	}
	return labels > 1
}

// isEnvName reports whether s is the name of an environment variable.
func isEnvName(s string) bool {
	for i := range len(s) {
		if c := s[i]; !isAlpha(c) && c != '_' && (i == 0 || !isDigit(c)) {
			return false
		}
	}
	return s != ""
}

func isSHA256(s string) bool {
	for i := range len(s) {
		if c := s[i]; !isDigit(c) && (c < 'a' || c > 'f') {
			return false
		}
	}
	return len(s) == 64
}

func isCurrency(s string) bool {
	return len(s) == 3 && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// isAttachmentType reports whether a media type may be an attachment's: no text,
// no JSON (§7).
func isAttachmentType(s string) bool {
	main, sub, ok := strings.Cut(strings.ToLower(s), "/")
	if !ok {
		return s != ""
	}
	sub, _, _ = strings.Cut(sub, ";")
	sub = strings.TrimSpace(sub)
	return main != "text" && sub != "json" && !strings.HasSuffix(sub, "+json")
}

// isIntegral reports whether the JSON number v is an integer, of whatever size:
// 1.0, 1e400 and 10e-1 are, 1.5 and 1e-1 aren't (§2).
func isIntegral(v []byte) bool {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(string(v)), "e")
	whole, frac, _ := strings.Cut(strings.TrimPrefix(mantissa, "-"), ".")
	frac = strings.TrimRight(frac, "0")
	digits := strings.TrimRight(whole+frac, "0")
	if digits == "" {
		return true // zero
	}
	// The value is digits times ten to the power of shift.
	shift := len(whole) - len(digits)
	if exponent == "" {
		return shift >= 0
	}
	e, err := strconv.ParseInt(exponent, 10, 64)
	if err != nil { // beyond any length that a message can have
		return exponent[0] != '-'
	}
	return e >= int64(-shift)
}

// isNegative reports whether the JSON number v is less than 0; -0 isn't.
func isNegative(v []byte) bool {
	if v[0] != '-' {
		return false
	}
	if i := bytes.IndexAny(v, "eE"); i >= 0 {
		v = v[:i]
	}
	return bytes.ContainsAny(v, "123456789")
}

// integerText returns the integer that the JSON number v stands for: 1.0 and
// 1e2 are integers, 1.5 isn't (§2). ok is false also outside of int64.
func integerText(v []byte) (n int64, ok bool) {
	if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
		return n, true
	}
	s := string(v)
	mantissa, exp := s, 0
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		e, err := strconv.Atoi(s[i+1:])
		if err != nil || e < -400 || e > 400 {
			return 0, false
		}
		mantissa, exp = s[:i], e
	}
	whole, frac, _ := strings.Cut(mantissa, ".")
	frac = strings.TrimRight(frac, "0")
	if exp > 0 && len(whole) > len("-9223372036854775808") {
		return 0, false // more digits make it no smaller
	}
	for ; exp > 0; exp-- {
		if frac == "" {
			whole += "0"
		} else {
			whole, frac = whole+frac[:1], frac[1:]
		}
	}
	for ; exp < 0; exp++ {
		if !strings.HasSuffix(whole, "0") || frac != "" {
			// Only 0 has a digit less without a fraction.
			break
		}
		if trimmed := whole[:len(whole)-1]; trimmed != "" && trimmed != "-" {
			whole = trimmed
		}
	}
	if frac != "" || exp < 0 {
		return 0, false
	}
	n, err := strconv.ParseInt(whole, 10, 64)
	return n, err == nil
}
