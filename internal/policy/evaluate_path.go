package policy

import (
	"net/url"
	"strings"
)

// matchesPath reports whether a path rule matches a path: in any form, or with
// allow in its true place alone.
func (e *evaluation) matchesPath(r *pathRule, f *PathForms, allow bool) bool {
	if allow {
		return e.matchesForm(r, f.Place.Path, f.Place.Fold, false)
	}
	if e.reaches(r, f.Place.Path, f.Place.Fold, false) {
		return true
	}
	if f.Absolute != f.Place.Path && e.reaches(r, f.Absolute, f.Place.Fold, false) {
		return true
	}
	if f.Given != f.Absolute && r.base == baseAbsolute && r.matches(foldName(f.Given, f.Place.Fold), f.Place.Fold, false) {
		return true
	}
	// A backslash is an ordinary character here, but a rule that forbids a path
	// forbids it in the other system's spelling too.
	if strings.Contains(f.Given, `\`) {
		other := strings.ReplaceAll(strings.TrimPrefix(f.Absolute, `\\?\`), `\`, "/")
		return e.reaches(r, other, f.Place.Fold, false)
	}
	return false
}

// reaches reports whether a deny or ask rule matches an absolute path: as written,
// or with the links resolved through which the rule is written.
func (e *evaluation) reaches(r *pathRule, p string, fold, some bool) bool {
	if e.matchesForm(r, p, fold, some) {
		return true
	}
	for _, alias := range e.aliases(r) {
		if e.matchesForm(alias, p, fold, some) {
			return true
		}
	}
	return false
}

// aliases returns the rules that r is once the links in its literal start are
// resolved, of which there are none if there is no link. They are found once in
// an evaluation.
func (e *evaluation) aliases(r *pathRule) []*pathRule {
	if r.head == "" {
		return nil
	}
	if out, ok := e.aliased[r]; ok {
		return out
	}
	bases := []string{""}
	switch r.base {
	case baseHome:
		bases = e.homes.get(e)
	case baseRoot:
		bases = e.roots.get(e)
	}
	var out []*pathRule
	for _, b := range bases {
		f, err := e.resolve("/", b+r.head)
		if err != nil || f.Place.Path == f.Absolute {
			continue // what can't be resolved, nothing can be reached through
		}
		pat := escapePattern(f.Place.Path)
		if r.tail != "" {
			pat = strings.TrimSuffix(pat, "/") + "/" + r.tail
		}
		out = append(out, compilePathRule(pat))
	}
	if e.aliased == nil {
		e.aliased = make(map[*pathRule][]*pathRule)
	}
	e.aliased[r] = out
	return out
}

// matchesForm reports whether a path rule matches the absolute path p; with some,
// for some value of its unknown stretches.
func (e *evaluation) matchesForm(r *pathRule, p string, fold, some bool) bool {
	p = foldName(p, fold)
	var bases []string
	switch r.base {
	case baseAbsolute:
		return r.matches(p, fold, some)
	case baseHome:
		bases = e.homes.get(e)
	default:
		bases = e.roots.get(e)
	}
	for _, b := range bases {
		if rel, ok := below(p, foldName(b, fold)); ok && r.matches(rel, fold, some) {
			return true
		}
	}
	return false
}

// matchesURL reports whether a URL rule matches: for allow the URL as it will be
// used, and only if there is no user part in it to hide the host; else also as
// written.
func matchesURL(p *pattern, subject string, allow bool) bool {
	plain, clean := normalURL(subject)
	if p.matches(plain) {
		return !allow || clean
	}
	return !allow && p.matches(subject)
}

// normalURL returns a URL with scheme and host in lower case, without a default
// port, a last dot of the host, and user. clean reports that it could be read
// and had no user.
func normalURL(s string) (plain string, clean bool) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || strings.ContainsAny(s, "\\\t\n\r ") {
		return s, false
	}
	clean = u.User == nil
	u.User = nil
	u.Scheme = strings.ToLower(u.Scheme)
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port := u.Port(); port != "" && !(u.Scheme == "http" && port == "80") && !(u.Scheme == "https" && port == "443") {
		host += ":" + port
	}
	u.Host = host
	if u.Path == "" {
		u.Path = "/"
	}
	return u.String(), clean
}
