package oauth

import (
	"errors"
	"slices"
	"strings"
)

const (
	maxChallengeBytes = 16 << 10
	maxChallenges     = 16
	maxParams         = 32
)

// challenge is one challenge of a WWW-Authenticate field (RFC 9110 §11.6.1). Names
// are in lower case.
type challenge struct {
	scheme  string
	token68 string
	params  map[string]string
}

var errChallenge = errors.New("the WWW-Authenticate header can't be read")

// parseChallenges reads the field's lines. A field that is malformed anywhere, or
// beyond a bound, is an error: what stands before the fault isn't trusted.
func parseChallenges(lines []string) ([]challenge, error) {
	s := strings.Join(lines, ", ")
	if len(s) > maxChallengeBytes {
		return nil, errChallenge
	}
	p := &challengeReader{s: s}
	var out []challenge
	for p.separator(); p.s != ""; p.separator() {
		c, ok := p.challenge()
		if !ok || len(out) == maxChallenges {
			return nil, errChallenge
		}
		out = append(out, c)
	}
	return out, nil
}

// challengeReader holds what is still to be read.
type challengeReader struct{ s string }

func (p *challengeReader) challenge() (challenge, bool) {
	c := challenge{scheme: strings.ToLower(p.token()), params: map[string]string{}}
	if c.scheme == "" {
		return c, false
	}
	if p.s == "" || p.s[0] == ',' {
		return c, true
	}
	if p.s[0] != ' ' {
		return c, false
	}
	p.space()
	if t := p.token68(); t != "" {
		c.token68 = t
		return c, true
	}
	for p.s != "" && p.s[0] != ',' {
		name, value, ok := p.param()
		_, twice := c.params[name]
		if !ok || twice || len(c.params) == maxParams {
			return c, false
		}
		c.params[name] = value
		p.space()
		if p.s == "" {
			break
		}
		if p.s[0] != ',' {
			return c, false
		}
		after := *p
		after.separator()
		if _, _, another := after.clone().param(); !another {
			break // the next challenge, or the end, begins after the comma
		}
		*p = after
	}
	return c, true
}

func (p challengeReader) clone() *challengeReader { return &p }

// param reads name = value.
func (p *challengeReader) param() (name, value string, ok bool) {
	name = strings.ToLower(p.token())
	p.space()
	if name == "" || !p.take('=') {
		return "", "", false
	}
	p.space()
	if strings.HasPrefix(p.s, `"`) {
		value, ok = p.quoted()
		return name, value, ok
	}
	value = p.token()
	return name, value, value != ""
}

func (p *challengeReader) quoted() (string, bool) {
	var b strings.Builder
	for i := 1; i < len(p.s); i++ {
		switch c := p.s[i]; {
		case c == '"':
			p.s = p.s[i+1:]
			return b.String(), true
		case c == '\\' && i+1 < len(p.s) && isText(p.s[i+1]):
			i++
			b.WriteByte(p.s[i])
		case c == '\\' || !isText(c):
			return "", false
		default:
			b.WriteByte(c)
		}
	}
	return "", false
}

// token68 reads a value of that form if it is all up to the comma or the end.
func (p *challengeReader) token68() string {
	i := 0
	for i < len(p.s) && (isAlnum(p.s[i]) || strings.IndexByte("-._~+/", p.s[i]) >= 0) {
		i++
	}
	if i == 0 {
		return ""
	}
	for i < len(p.s) && p.s[i] == '=' {
		i++
	}
	rest := strings.TrimLeft(p.s[i:], " \t")
	if rest != "" && rest[0] != ',' {
		return ""
	}
	out := p.s[:i]
	p.s = rest
	return out
}

func (p *challengeReader) token() string {
	i := 0
	for i < len(p.s) && (isAlnum(p.s[i]) || strings.IndexByte("!#$%&'*+-.^_`|~", p.s[i]) >= 0) {
		i++
	}
	out := p.s[:i]
	p.s = p.s[i:]
	return out
}

func (p *challengeReader) space() { p.s = strings.TrimLeft(p.s, " \t") }

func (p *challengeReader) separator() { p.s = strings.TrimLeft(p.s, " \t,") }

func (p *challengeReader) take(c byte) bool {
	if p.s == "" || p.s[0] != c {
		return false
	}
	p.s = p.s[1:]
	return true
}

func isAlnum(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func isText(c byte) bool { return c == '\t' || c >= ' ' && c != 0x7f }

// wants is what a challenge asks for.
type wants struct {
	metadata string   // the URL of the resource's metadata, or ""
	scopes   []string // nil where it doesn't say
}

// readWants returns what the Bearer challenge of a 401 asks for. A response without
// the field asks for something that only the metadata tells.
func readWants(lines []string) (*wants, error) {
	all, err := parseChallenges(lines)
	if err != nil {
		return nil, failure("HTTP status 401: %v", err)
	}
	if len(all) == 0 {
		return &wants{}, nil
	}
	i := slices.IndexFunc(all, func(c challenge) bool { return c.scheme == "bearer" })
	if i < 0 {
		return nil, failure("HTTP status 401: the endpoint asks for another scheme than Bearer")
	}
	w := &wants{metadata: all[i].params["resource_metadata"]}
	if scope, ok := all[i].params["scope"]; ok {
		w.scopes = append([]string{}, strings.Fields(scope)...)
	}
	return w, nil
}
