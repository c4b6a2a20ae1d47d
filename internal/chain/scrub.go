package chain

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// removed stands in the place of what was scrubbed.
const removed = "[removed]"

// minSecret is the shortest value that Scrubber takes, in bytes: a shorter one would
// be found in everything.
const minSecret = 8

// Scrubber returns a function that takes secrets out of an event before it is logged.
// It replaces, in every string value
// of an event, the given values and what is shaped like a credential: tokens of
// well-known issuers, private keys, authorization headers, passwords in URLs and in
// assignments; and the whole value of a member whose name says that it is one.
// Member names, numbers and the order of members stay. It fails on a value of less
// than 8 bytes.
func Scrubber(values []string) (func(event []byte) ([]byte, error), error) {
	var pairs []string
	for _, v := range values {
		if len(v) < minSecret {
			return nil, fmt.Errorf("chain: a value of %d bytes is too short to be scrubbed; at least %d are needed", len(v), minSecret)
		}
		pairs = append(pairs, v, removed)
	}
	s := &scrubber{literal: strings.NewReplacer(pairs...)}
	for _, shape := range shapes() {
		s.shapes = append(s.shapes, regexp.MustCompile(shape))
	}
	return s.scrub, nil
}

// shapes are the expressions for credentials; what a group matches is kept.
func shapes() []string {
	return []string{
		`()\b(?:sk-|ghp_|gho_|ghs_|ghu_|github_pat_|glpat-|xox[abposr]-|AKIA|ASIA|AIza|npm_|hf_)[A-Za-z0-9_-]{12,}`,
		`()\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`,
		`()-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)`,
		`(?i)(\b(?:bearer|basic)\s+)[A-Za-z0-9+/=._~-]{8,}`,
		`(\b[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@"']*:)[^\s/@"']+(@)`,
		// Quotes may be escaped: a call stands in a message as a text within a text.
		`(?i)(\b[A-Z0-9_-]*(?:password|passwd|secret|token|api[_-]?key|access[_-]?key)\b\\*["']?\s*[=:]\s*\\*["']?)(?:[^\s"'&;,\\]|\\+[^"'\\]){4,}`,
		`(?i)(\s--[A-Z0-9-]*(?:password|passwd|secret|token|api-?key|access-?key)\s+\\*["']?)[^\s"'\\-][^\s"'\\]{3,}`,
	}
}

type scrubber struct {
	literal *strings.Replacer
	shapes  []*regexp.Regexp
}

func (s *scrubber) text(t string) string {
	t = s.literal.Replace(t)
	for _, shape := range s.shapes {
		t = shape.ReplaceAllString(t, "${1}"+removed+"${2}")
	}
	return t
}

// scrub copies the tokens of an event and changes the string values.
func (s *scrubber) scrub(event []byte) ([]byte, error) {
	var out bytes.Buffer
	dec := jsontext.NewDecoder(bytes.NewReader(event))
	enc := jsontext.NewEncoder(&out)
	name := ""
	for {
		tok, err := dec.ReadToken()
		if errors.Is(err, io.EOF) {
			return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
		}
		if err != nil {
			return nil, err
		}
		if tok.Kind() == '"' {
			kind, n := dec.StackIndex(dec.StackDepth())
			isName := kind == '{' && n%2 == 1
			switch text := tok.String(); {
			case isName:
				name, tok = text, tok.Clone()
			case kind == '{' && namesSecret(name):
				tok = jsontext.String(removed)
			default:
				tok = jsontext.String(s.text(text))
			}
		}
		if err := enc.WriteToken(tok); err != nil {
			return nil, err
		}
	}
}

// namesSecret reports whether a member of this name holds a credential: by its end,
// as DB_PASSWORD does.
func namesSecret(name string) bool {
	flat := strings.ToLower(strings.NewReplacer("-", "", "_", "", ".", "").Replace(name))
	for _, end := range []string{"password", "passwd", "passphrase", "secret", "token", "authorization", "apikey", "accesskey", "privatekey",
		"credential", "credentials", "cookie"} {
		if strings.HasSuffix(flat, end) {
			return true
		}
	}
	return false
}
