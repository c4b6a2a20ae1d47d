package main

import "strings"

// The grammars as regular expressions of the dialect that JSON Schema asks for
// (ECMA-262), without lookaround, so that RE2 and others take them too.
const (
	reverseDNS = `^(?:[A-Za-z][A-Za-z0-9_-]*\.)+[A-Za-z][A-Za-z0-9_-]*$`
	sha256     = `^[0-9a-f]{64}$`
	envName    = `^[A-Za-z_][A-Za-z0-9_]*$`
	currency   = `^[A-Z]{3}$`
	// family is a selector of a whole family of events.
	family = `^[a-z]+\.\*$`
	// textOrJSON are the media types that no attachment has: text of any kind, and
	// JSON of any kind, in any case and with any parameters.
	textOrJSON = `^(?:[Tt][Ee][Xx][Tt]/|[^/]*/\s*(?:[^;]*\+)?[Jj][Ss][Oo][Nn]\s*(?:;|$))`
)

// Pieces of RFC 3986.
const (
	uriChar   = `(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})`
	pathChar  = `(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})`
	queryChar = `(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})`
	userinfo  = `(?:(?:[A-Za-z0-9._~!$&'()*+,;=:-]|%[0-9A-Fa-f]{2})*@)?`
	tail      = `(?:\?` + queryChar + `*)?(?:#` + queryChar + `*)?$`
	port      = `(?::[0-9]*)?`
	octet     = `(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])`
	ipv4      = octet + `(?:\.` + octet + `){3}`
	ipFuture  = `[Vv][0-9A-Fa-f]+\.[A-Za-z0-9._~!$&'()*+,;=:-]+`
)

// ipv6 is the rule IPv6address of RFC 3986.
func ipv6() string {
	const (
		h    = `[0-9A-Fa-f]{1,4}`
		ls32 = `(?:` + h + `:` + h + `|` + ipv4 + `)`
	)
	forms := []string{
		`(?:` + h + `:){6}` + ls32,
		`::(?:` + h + `:){5}` + ls32,
		`(?:` + h + `)?::(?:` + h + `:){4}` + ls32,
		`(?:(?:` + h + `:){0,1}` + h + `)?::(?:` + h + `:){3}` + ls32,
		`(?:(?:` + h + `:){0,2}` + h + `)?::(?:` + h + `:){2}` + ls32,
		`(?:(?:` + h + `:){0,3}` + h + `)?::` + h + `:` + ls32,
		`(?:(?:` + h + `:){0,4}` + h + `)?::` + ls32,
		`(?:(?:` + h + `:){0,5}` + h + `)?::` + h,
		`(?:(?:` + h + `:){0,6}` + h + `)?::`,
	}
	return `(?:` + strings.Join(forms, "|") + `)`
}

func ipLiteral() string { return `\[(?:` + ipv6() + `|` + ipFuture + `)\]` }

// uri is a URI with a scheme.
func uri() string {
	authority := userinfo + `(?:` + ipLiteral() + `|` + uriChar + `*)` + port
	return `^[A-Za-z][A-Za-z0-9+.-]*:(?://` + authority + `(?:/` + pathChar + `*)?|` + notTwoSlashes + `)` + tail
}

// notTwoSlashes is a path that doesn't start as an authority does.
const notTwoSlashes = `(?:/?(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})` + pathChar + `*|/?)`

// webURL is a URL of a scheme with a host.
func webURL(scheme string) string {
	host := `(?:` + ipLiteral() + `|` + uriChar + `+)`
	return `^` + scheme + `://` + userinfo + host + port + `(?:/` + pathChar + `*)?` + tail
}

func httpURL() string  { return webURL(`[Hh][Tt][Tt][Pp][Ss]?`) }
func httpsURL() string { return webURL(`[Hh][Tt][Tt][Pp][Ss]`) }

// loopbackURL is an http URL of this machine, in its usual spellings.
func loopbackURL() string {
	host := `(?:[Ll][Oo][Cc][Aa][Ll][Hh][Oo][Ss][Tt]|127(?:\.` + octet + `){3}|\[::1\])`
	return `^[Hh][Tt][Tt][Pp]://` + userinfo + host + port + `(?:/` + pathChar + `*)?` + tail
}

// dateTime is RFC 3339, with the days of each month.
func dateTime() string {
	const (
		leap = `(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)`
		date = `(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|` +
			`02-(?:0[1-9]|1[0-9]|2[0-8]))|` + leap + `-02-29)`
		clock = `(?:[01][0-9]|2[0-3]):[0-5][0-9]`
	)
	return `^` + date + `[Tt]` + clock + `:(?:[0-5][0-9]|60)(?:\.[0-9]+)?(?:[Zz]|[+-]` + clock + `)$`
}

// grammars returns the strings with a grammar, by the format of a member. The
// schema's format is an annotation for tools that know it; the pattern is what
// counts.
func grammars() object {
	text := object{"type", "string"}
	return object{
		"uri", text.with("format", "uri", "pattern", uri()),
		"time", text.with("format", "date-time", "pattern", dateTime()),
		"rdns", text.with("pattern", reverseDNS),
		"sha256", text.with("pattern", sha256),
		"httpurl", text.with("format", "uri", "pattern", httpURL()),
		"https", text.with("format", "uri", "pattern", httpsURL()),
		"env", text.with("pattern", envName),
		"currency", text.with("pattern", currency),
	}
}
