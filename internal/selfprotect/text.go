package selfprotect

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// maxMention bounds the text in which protected names are searched for, in bytes:
// of a longer one the start and the end.
const maxMention = 512 << 10

// expressions are what texts of programs are read with, compiled at the first use.
type expressions struct{ escape, join, harm, substitution *regexp.Regexp }

var compiled = sync.OnceValue(func() expressions {
	return expressions{
		escape: regexp.MustCompile(`\\x[0-9a-fA-F]{2}|\\u\{?[0-9a-fA-F]{2,4}\}?|\\[0-7]{3}|%[0-9a-fA-F]{2}`),
		// One "s" of sed that is nothing but itself.
		substitution: regexp.MustCompile(`^s([/|#,])(\w+)([/|#,])([^&\\/|#,]*)([/|#,])g?$`),
		// What removes, moves or locks a file, in the words of any language.
		harm: regexp.MustCompile(`(?i)\b(rm|rmdir|rmtree|rmsync|rmdirsync|remove|removeall|remove_tree|remove-item|unlink|delete|rename|renamesync|move|mv|chmod|symlink|replace|rm_rf|rm_r)\b`),
		// Two literals that a language puts together.
		join: regexp.MustCompile("[\"'`]\\s*[+.&]{0,2}\\s*[\"'`]"),
	}
})

// mention looks for a protected name in a text that can't be read otherwise: a
// program, or a command that can't be parsed. With program its components may stand
// anywhere in it, and a folder around one counts where the text also removes, moves
// or locks something.
func (s *Set) mention(text string, program bool) *Place {
	if len(text) > maxMention {
		text = text[:maxMention/2] + "\n" + text[len(text)-maxMention/2:]
	}
	harms := program && compiled().harm.MatchString(text)
	for _, form := range forms(text) {
		if p := s.mentioned(s.folded(form), program, harms); p != nil {
			return p
		}
	}
	return nil
}

// forms returns a text as it is, and as a program puts it together.
func forms(text string) []string {
	out := []string{text}
	if strings.ContainsAny(text, `\%`) {
		plain := compiled().escape.ReplaceAllStringFunc(text, unescape)
		plain = strings.ReplaceAll(strings.ReplaceAll(plain, "\\\n", ""), `\`, "")
		out = append(out, plain)
	}
	if strings.ContainsAny(text, "\"'`") {
		for _, t := range out {
			if joined := compiled().join.ReplaceAllString(t, ""); joined != t {
				out = append(out, joined)
			}
		}
	}
	return out
}

func unescape(e string) string {
	digits, base := strings.Trim(e[1:], "xu{}"), 16
	if e[0] == '\\' && e[1] != 'x' && e[1] != 'u' {
		base = 8
	}
	n, err := strconv.ParseUint(digits, base, 32)
	if err != nil || n == 0 {
		return e
	}
	return string(rune(n))
}

// mentioned looks for a name among the paths in a text.
func (s *Set) mentioned(text string, scattered, harms bool) *Place {
	seen := map[string]bool{}
	for token := range strings.FieldsFuncSeq(text, notInPath) {
		if !strings.ContainsAny(token, "./") && !scattered {
			continue
		}
		parts := strings.FieldsFunc(token, func(r rune) bool { return r == '/' || r == '\\' })
		if len(parts) == 0 {
			continue
		}
		parts[len(parts)-1] = strings.TrimRight(parts[len(parts)-1], ".:")
		if m := s.suffix(parts); m.relation == direct || harms && m.relation == around {
			return m.place
		}
		if token[0] == '/' {
			if m := s.anchored.walk(parts, false); m.relation == direct {
				return m.place
			}
		}
		for _, p := range parts {
			if scattered && len(seen) < 1<<16 {
				seen[p] = true
			}
		}
	}
	if !scattered {
		return nil
	}
	return s.anywhere.among(seen)
}

// notInPath reports whether a character separates paths in a text.
func notInPath(r rune) bool {
	return r <= ' ' || strings.ContainsRune("\"'`()[]{}<>,;|&=$!?*#^:+@", r)
}

// among returns a place all of whose components are among names.
func (n *node) among(names map[string]bool) *Place {
	if n.place != nil {
		return n.place
	}
	for _, e := range n.next {
		is := names[e.name]
		if e.glob {
			for each := range names {
				is = is || glob(e.name, each)
			}
		}
		if is {
			if p := e.to.among(names); p != nil {
				return p
			}
		}
	}
	return nil
}
