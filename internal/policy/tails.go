package policy

import (
	"fmt"
	"iter"
	"strings"
)

const (
	// maxPartWords is how many words a program may have whose arguments may be run.
	maxPartWords = 512
	// maxWork bounds what is spent on arguments that may be run: bytes compared.
	maxWork = 1 << 20
	// maxFiles is how many different words of one command are resolved as files.
	maxFiles = 1024
)

// tails gives what an unknown program may run: its arguments from each one on,
// the pieces of each argument from each one on, and the value of an option with
// what the program adds to it, which is the case where more is true.
func (p *part) tails() iter.Seq2[[]word, bool] {
	return func(yield func(words []word, more bool) bool) {
		if p.inert || p.wrapper || len(p.words) == 0 {
			return
		}
		for i := 1; i < min(len(p.words), maxPartWords); i++ {
			if !yield(p.words[i:], false) {
				return
			}
			pieces, more := piecesOf(p.words[i].text)
			for k := range pieces {
				if !yield(pieces[k:], more) {
					return
				}
			}
		}
	}
}

// piecesOf returns the words in an argument that is a command string, or else,
// with more, the value of an option followed by an unknown word.
func piecesOf(text string) (words []word, more bool) {
	if more = strings.IndexByte(text, ' ') < 0; more {
		var ok bool
		if _, text, ok = strings.Cut(text, "="); !ok {
			return nil, false
		}
	}
	pieces := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\n;&|()\"'`=!:{}", r) })
	words = make([]word, len(pieces))
	for k, piece := range pieces {
		words[k] = word{text: piece, unknown: strings.ContainsAny(piece, unknownBytes)}
	}
	if more {
		words = append(words, unknownValue())
	}
	return words, more
}

// judgeTails looks at everything that the unknown programs of a command may run:
// whether it would be destructive, or match a deny or ask rule. The work is
// bounded; what would take more is unjudgeable.
func (c *shellCall) judgeTails(e *evaluation) {
	left := maxWork
	for _, p := range c.parts {
		for tail, more := range p.tails() {
			if tail[0].text == "" {
				continue
			}
			what, cost := e.tail(p, tail, more)
			if left -= cost; left < 0 {
				c.maybe = fmt.Sprintf("%q has too many arguments that may be commands", show(p.words[0].text))
				return
			}
			if what != "" {
				c.maybe = what
				return
			}
		}
	}
}

// tail says what an unknown program may run, or returns "", and what it cost to
// find out. With more, where it is hardly a command, a rule must match whatever
// follows.
func (e *evaluation) tail(p *part, tail []word, more bool) (what string, cost int) {
	if isDestructiveProgram(tail[0]) && !everydayWords.has(tail[0].text) {
		cost += 16 * len(tail)
		if h, row := destructive(tail); h == hitYes {
			return fmt.Sprintf("%q may run %q (%s)", show(p.words[0].text), show(joinWords(tail)), row.name), cost
		}
	}
	head := base(tail[0].text)
	if head == "" {
		return "", cost
	}
	for _, r := range e.rules.starts[head[0]] {
		cost++
		if !r.tool.matches(e.in.Call.Tool) || !r.text.mayStart(head, tail[1:]) {
			continue
		}
		text := head + joinAfter(tail)
		cost += 2 * len(text)
		if more && r.text.matches(text) || !more && r.text.possible(text) {
			return fmt.Sprintf("%q may run %q, which matches %s", show(p.words[0].text), show(joinWords(tail)), r.ref), cost
		}
	}
	return "", cost
}

// everydayWords are names of the table that as an argument most often mean
// something else. It is never changed.
var everydayWords = names{"pass", "op", "bw", "security", "vault", "keyring", "doppler", "wipe", "scrub", "halt", "init", "trash", "del"}

// mayStart reports whether the literal start of the pattern fits a program with
// the arguments in rest, as far as they are known.
func (p *pattern) mayStart(program string, rest []word) bool {
	prefix := p.prefix
	for text, i := program, 0; ; i++ {
		if k := strings.IndexAny(text, unknownBytes); k >= 0 {
			n := min(k, len(prefix))
			return len(p.prefix) > 0 && text[:n] == prefix[:n]
		}
		n := min(len(text), len(prefix))
		if n == 0 && i == 0 || text[:n] != prefix[:n] {
			return false
		}
		if prefix = prefix[n:]; prefix == "" {
			return true
		}
		if i == len(rest) || prefix[0] != ' ' {
			return false // what is left of the pattern can't be there
		}
		prefix, text = prefix[1:], rest[i].text
	}
}

func joinAfter(words []word) string {
	if len(words) < 2 {
		return ""
	}
	return " " + joinWords(words[1:])
}
