package policy

import (
	"slices"
	"strings"
)

// hit says whether something is so in a command whose words may be unknown.
type hit uint8

const (
	hitNo hit = iota
	hitMaybe
	hitYes
)

// optionValue is an option found in a command, with its value if it takes one.
type optionValue struct {
	// name has no dashes: one letter, or a long name as written.
	name string
	long bool
	word word
}

// in reports whether the option is one of the names, separated by spaces. A long
// option counts in any abbreviation.
func (v optionValue) in(names string) bool {
	for n := range strings.FieldsSeq(names) {
		if n == v.name || v.long && v.name != "" && strings.HasPrefix(n, v.name) {
			return true
		}
	}
	return false
}

// options are the options of a command.
type options struct {
	flags  []optionValue
	values []optionValue
	// rest are the words that are no options.
	rest []word
	// unknown reports that some word may turn out to be an option.
	unknown bool
}

// scanOptions reads the options before the first operand.
func scanOptions(args []word, short string, long []string) options {
	return scan(args, short, long, false)
}

// scanAll reads the options wherever they stand before "--".
func scanAll(args []word, short string, long ...string) options {
	return scan(args, short, long, true)
}

func scan(args []word, short string, long []string, permute bool) options {
	var o options
	for i := 0; i < len(args); i++ {
		w := args[i]
		switch {
		case w.text == "--":
			o.rest = append(o.rest, args[i+1:]...)
			return o
		case w.unknown && w.text != "" && (w.text[0] == anyText || w.text[0] == anyName):
			o.unknown = true
			o.rest = append(o.rest, w)
		case len(w.text) > 0 && w.text[0] == '-' && (len(w.text) > 1 || !permute):
			i += o.option(w, args[i+1:], short, long)
		case permute:
			o.rest = append(o.rest, w)
		default:
			o.rest = args[i:]
			return o
		}
		if o.unknown && !permute {
			return o
		}
	}
	return o
}

// option reads one option word, and returns how many further words it took.
func (o *options) option(w word, next []word, short string, long []string) int {
	if name, ok := strings.CutPrefix(w.text, "--"); ok {
		name, value, attached := strings.Cut(name, "=")
		v := optionValue{name: name, long: true, word: word{text: value, unknown: w.unknown}}
		if strings.ContainsAny(name, unknownBytes) {
			o.unknown = true
		}
		o.flags = append(o.flags, v)
		takes := slices.ContainsFunc(long, func(l string) bool { return strings.HasPrefix(l, name) })
		switch {
		case attached:
			o.values = append(o.values, v)
		case takes && len(next) > 0:
			v.word = next[0]
			o.values = append(o.values, v)
			return 1
		}
		return 0
	}
	cluster := w.text[1:]
	for i := range len(cluster) {
		if cluster[i] == anyText || cluster[i] == anyName {
			o.unknown = true
			return 0
		}
		v := optionValue{name: cluster[i : i+1]}
		if !strings.Contains(short, v.name) {
			o.flags = append(o.flags, v)
			continue
		}
		o.flags = append(o.flags, v)
		if i+1 < len(cluster) {
			v.word = word{text: cluster[i+1:], unknown: w.unknown}
			o.values = append(o.values, v)
			return 0
		}
		if len(next) > 0 {
			v.word = next[0]
			o.values = append(o.values, v)
			return 1
		}
	}
	return 0
}

// has says whether one of the letters or long names is among the options. A long
// name counts in any abbreviation.
func (o options) has(letters string, longs ...string) hit {
	for _, f := range o.flags {
		if !f.long && strings.Contains(letters, f.name) {
			return hitYes
		}
		if f.long && f.name != "" && slices.ContainsFunc(longs, func(l string) bool { return strings.HasPrefix(l, f.name) }) {
			return hitYes
		}
	}
	if o.unknown {
		return hitMaybe
	}
	return hitNo
}

// shellOptions are the options of a shell's command line.
type shellOptions struct {
	command bool // -c: the first of rest is the command string
	stdin   bool // -s
	informs bool // --version, --help
	unknown bool
	rest    []word
}

func scanShellOptions(args []word) shellOptions {
	var o shellOptions
	for i := 0; i < len(args); i++ {
		w := args[i]
		switch {
		case w.unknown && w.text != "" && w.text[0] <= anyName && w.text[0] != anyDigit,
			w.unknown && (w.text[0] == '-' || w.text[0] == '+'):
			o.unknown = true
			return o
		case w.text == "--" || w.text == "-":
			o.rest = args[i+1:]
			return o
		case w.text == "--version" || w.text == "--help":
			o.informs = true
		case w.text == "--rcfile" || w.text == "--init-file":
			i++
		case strings.HasPrefix(w.text, "--"):
		case len(w.text) > 1 && (w.text[0] == '-' || w.text[0] == '+'):
			if w.text[0] == '-' {
				o.command = o.command || strings.Contains(w.text, "c")
				o.stdin = o.stdin || strings.Contains(w.text, "s")
			}
			i += strings.Count(w.text, "o") + strings.Count(w.text, "O")
		default:
			o.rest = args[i:]
			return o
		}
	}
	return o
}
