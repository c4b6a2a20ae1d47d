package chain

import (
	"regexp"
	"strings"
	"sync"
)

// shape is one form that a credential has in a text. To look for words and to judge
// only where one stands is a hundred times faster than an expression over all of it.
type shape struct {
	// words are what the form begins with, in the case of the text if exact is set, else
	// in lower case and matching any.
	words []string
	exact bool
	// before says whether what stands in front of text[at] fits; nil takes anything.
	before func(text string, at int) bool
	// form matches from the word on; what its group 1 matches is kept, and group 2 if
	// there is one.
	// It is compiled where the first word stands: most processes never meet one.
	form func() *regexp.Regexp
	// run tells that what follows a word up to the end of its run of isRun is all that
	// the form needs to fail, so that it fails for every word in that run.
	run bool
}

// names are what a variable, an option or a member that holds a credential ends with.
const names = `(?:password|passwd|secret|token|api[_-]?key|access[_-]?key)`

// lazily returns what compiles an expression once, when it is called.
func lazily(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// shapes returns the forms, in the order in which they are replaced: a header in an
// assignment goes before the assignment.
func shapes() []shape {
	nameWords := []string{"password", "passwd", "secret", "token", "api", "access"}
	return []shape{
		{
			words: []string{"sk-", "ghp_", "gho_", "ghs_", "ghu_", "github_pat_", "glpat-", "xox", "AKIA", "ASIA", "AIza", "npm_", "hf_"}, exact: true, before: noWord,
			form: lazily(`^()(?:sk-|ghp_|gho_|ghs_|ghu_|github_pat_|glpat-|xox[abposr]-|AKIA|ASIA|AIza|npm_|hf_)[A-Za-z0-9_-]{12,}`),
		},
		{
			words: []string{"eyJ"}, exact: true, before: noWord, run: true,
			form: lazily(`^()eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`),
		},
		{
			words: []string{"-----BEGIN "}, exact: true,
			form: lazily(`^()-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)`),
		},
		{
			words: []string{"bearer", "basic"}, before: noWord,
			form: lazily(`^((?i:bearer|basic)\s+)[A-Za-z0-9+/=._~-]{8,}`),
		},
		{
			words: []string{"://"},
			form:  lazily(`^(://[^\s/:@"']*:)[^\s/@"']+(@)`),
		},
		{
			// Quotes may be escaped: a call stands in a message as a text within a text.
			words: nameWords,
			form:  lazily(`^((?i:` + names + `)\b\\*["']?\s*[=:]\s*\\*["']?)(?:[^\s"'&;,\\]|\\+[^"'\\]){4,}`),
		},
		{
			words: nameWords, before: option,
			form: lazily(`^((?i:` + names + `)\s+\\*["']?)[^\s"'\\-][^\s"'\\]{3,}`),
		},
	}
}

// at reports whether text begins with one of the words.
func (s *shape) at(text []byte) bool {
	for _, word := range s.words {
		if len(text) < len(word) {
			continue
		}
		i := 0
		for i < len(word) && (text[i] == word[i] || !s.exact && lower(text[i]) == word[i]) {
			i++
		}
		if i == len(word) {
			return true
		}
	}
	return false
}

// replace returns text without what has the form.
func (s *shape) replace(text string) string {
	var out strings.Builder
	from := 0
	raw := []byte(text)
	for i := 0; i < len(text); {
		if !s.at(raw[i:]) || s.before != nil && !s.before(text, i) {
			i++
			continue
		}
		m := s.form().FindStringSubmatchIndex(text[i:])
		if m == nil {
			i++
			for s.run && i < len(text) && isRun(text[i]) {
				i++
			}
			continue
		}
		out.WriteString(text[from:i])
		out.WriteString(text[i+m[2] : i+m[3]])
		out.WriteString(removed)
		if len(m) > 4 {
			out.WriteString(text[i+m[4] : i+m[5]])
		}
		i += m[1]
		from = i
	}
	if from == 0 {
		return text
	}
	out.WriteString(text[from:])
	return out.String()
}

// noWord takes a place that no letter, digit or underscore stands in front of.
func noWord(text string, at int) bool { return at == 0 || !isWord(text[at-1]) }

func isWord(c byte) bool {
	c = lower(c)
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_'
}

func isRun(c byte) bool { return isWord(c) || c == '-' }

// maxOption bounds the name of an option, so that a long text costs no more than its
// length.
const maxOption = 128

// option takes a place within an option of a command line: behind a space and --.
func option(text string, at int) bool {
	start := at
	for start > 0 && at-start < maxOption && isRun(text[start-1]) && text[start-1] != '_' {
		start--
	}
	return start > 0 && strings.HasPrefix(text[start:], "--") && strings.ContainsRune(" \t\n\f\r", rune(text[start-1]))
}
