package rules

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/abhed/abhed/internal/policy"
)

// urls reads a tool that fetches. Some have the URLs within a text.
func (r *reader) urls(n policy.Native) {
	var all []string
	for _, name := range r.members("url urls uri uris href links prompt") {
		switch v := r.input[name].(type) {
		case string:
			if oneOf(name, "prompt") {
				all = append(all, urlsIn(v)...)
				continue
			}
			if list := listIn(v); list != nil {
				all = append(all, textsIn(list)...)
				continue
			}
			all = append(all, v)
		case []any:
			texts := textsIn(v)
			if len(texts) < len(v) {
				r.miss("a URL in it isn't a text")
			}
			all = append(all, texts...)
		default:
			r.miss("a URL in it isn't a text")
		}
	}
	for _, s := range all {
		s = strings.TrimSpace(s)
		if head := len("file:"); len(s) > head && strings.EqualFold(s[:head], "file:") {
			r.path("file://"+strings.TrimPrefix(s[head:], "//"), "", []string{"read"}, 0)
		}
		r.url(s, n)
	}
}

// url adds a URL in the forms that it may be read in.
func (r *reader) url(s string, n policy.Native) {
	r.add(policy.SubjectURL, s, n.Tool)
	forms := []string{s}
	if !strings.Contains(s, "://") {
		r.add(policy.SubjectURL, "https://"+s, n.Tool) // as hosts complete it
		forms = append(forms, "https://"+s)
	}
	for _, f := range forms {
		plain, odd := asBrowser(f)
		if plain != "" && plain != f {
			r.add(policy.SubjectURL, plain, n.Tool)
		}
		if odd {
			r.miss("the host of %q may be another one than it seems", clipName(s))
		}
	}
}

func textsIn(list []any) []string {
	var out []string
	for _, each := range list {
		if s, is := each.(string); is {
			out = append(out, s)
		}
	}
	return out
}

// urlsIn returns the URLs in a text, up to white space or what ends a sentence.
func urlsIn(text string) []string {
	var out []string
	for word := range strings.FieldsSeq(text) {
		lower := strings.ToLower(word)
		for _, scheme := range []string{"http://", "https://", "file://"} {
			if i := strings.Index(lower, scheme); i >= 0 {
				out = append(out, strings.TrimRight(word[i:], `.,;:!?)]}>"'`))
			}
		}
	}
	return out
}

// asBrowser returns a URL as a parser reads it that follows the URL standard of the
// web, which is what most hosts fetch with: without control characters, with "/" for
// "\", whatever number of slashes is behind the scheme, with numbers as addresses
// and dot segments resolved, and without user and fragment. odd reports that its
// host is written in a way that may become any other name. What has no scheme of the
// web comes back empty.
func asBrowser(s string) (plain string, odd bool) {
	s = strings.TrimFunc(s, func(r rune) bool { return r <= ' ' })
	s = strings.NewReplacer("\t", "", "\n", "", "\r", "", `\`, "/").Replace(s)
	scheme, rest, has := strings.Cut(s, ":")
	scheme = strings.ToLower(scheme)
	if strings.HasPrefix(s, "//") {
		scheme, rest, has = "https", s, true // as hosts complete it
	}
	if !has || scheme != "http" && scheme != "https" {
		return "", false
	}
	rest = strings.TrimLeft(rest, "/")
	rest, _, _ = strings.Cut(rest, "#")
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	authority, rest := rest[:end], rest[end:]
	authority = authority[strings.LastIndexByte(authority, '@')+1:]
	host, odd := asHost(authority, scheme)
	at, query, asks := strings.Cut(rest, "?")
	at = withoutDots(at)
	if asks {
		at += "?" + query
	}
	return scheme + "://" + host + at, odd
}

// asHost returns host and port in the form that rules are compared with.
func asHost(authority, scheme string) (host string, odd bool) {
	host, port := authority, ""
	if i := strings.LastIndexByte(authority, ':'); i > strings.LastIndexByte(authority, ']') {
		host, port = authority[:i], strings.TrimLeft(authority[i+1:], "0")
	}
	if plain, err := url.PathUnescape(host); err == nil {
		host = plain
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if a, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil && strings.HasPrefix(host, "[") {
		host = "[" + a.String() + "]"
	} else if n, is := asNumber(host); is {
		host = n
	}
	for i := range len(host) {
		odd = odd || host[i] >= 0x80 || host[i] == '%' || host[i] <= ' '
	}
	if port != "" && !(scheme == "http" && port == "80") && !(scheme == "https" && port == "443") {
		host += ":" + port
	}
	return host, odd
}

// asNumber reads a host that is an address of IPv4 in any of its old spellings: one
// to four numbers, of which the last fills what is left, decimal, octal or
// hexadecimal.
func asNumber(host string) (string, bool) {
	parts := strings.Split(host, ".")
	if len(parts) > 4 {
		return "", false
	}
	var all uint64
	for i, p := range parts {
		base, digits := 10, p
		switch {
		case strings.HasPrefix(p, "0x"):
			base, digits = 16, p[2:]
		case len(p) > 1 && p[0] == '0':
			base, digits = 8, p[1:]
		}
		n, err := strconv.ParseUint(digits, base, 32)
		if base == 16 && digits == "" {
			n, err = 0, nil
		}
		bits := 8
		if i == len(parts)-1 {
			bits = 8 * (5 - len(parts))
		}
		if err != nil || n >= 1<<bits {
			return "", false
		}
		all = all<<bits | n
	}
	return netip.AddrFrom4([4]byte{byte(all >> 24), byte(all >> 16), byte(all >> 8), byte(all)}).String(), true
}

// withoutDots resolves the dot segments of a path, those with escaped dots too.
func withoutDots(p string) string {
	var out []string
	segments := strings.Split(strings.TrimPrefix(p, "/"), "/")
	for i, s := range segments {
		last := i == len(segments)-1
		switch strings.ReplaceAll(strings.ToLower(s), "%2e", ".") {
		case ".":
			if last {
				out = append(out, "")
			}
		case "..":
			out = out[:max(0, len(out)-1)]
			if last {
				out = append(out, "")
			}
		default:
			out = append(out, s)
		}
	}
	return "/" + strings.Join(out, "/")
}
