package rules

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/abhed/abhed/internal/policy"
)

// around reads what the call's other members do to its commands, which are the
// subjects from before on: words behind them, variables of their environment, and
// the program that they are given to.
func (r *reader) around(before int, n policy.Native) {
	words := r.words()
	set := r.environment()
	shells := r.members("shell")
	if words == "" && set == "" && len(shells) == 0 {
		return
	}
	for _, s := range slices.Clone(r.subjects[before:]) {
		if s.kind != policy.SubjectCommand {
			continue
		}
		text := s.text + words
		if words != "" || set != "" {
			r.add(policy.SubjectCommand, set+text, n.Tool)
		}
		for _, name := range shells {
			r.shell(r.input[name], set, text, n)
		}
	}
}

// words returns the arguments that a member of their own holds, as a shell takes
// them.
func (r *reader) words() string {
	var b strings.Builder
	for _, name := range r.members("args arguments argv argslist argumentslist commandargs") {
		switch v := r.input[name].(type) {
		case string:
			b.WriteString(" " + v)
		case []any:
			if len(textsIn(v)) < len(v) {
				r.miss("an argument of its command isn't a text")
			}
			for _, s := range textsIn(v) {
				b.WriteString(" " + quote(s))
			}
		default:
			r.miss("the arguments of its command aren't a list")
		}
	}
	return b.String()
}

// environment returns the commands that set what a member wants set.
func (r *reader) environment() string {
	var b strings.Builder
	set := func(name, value string) {
		if !isName(name) {
			r.miss("%q isn't the name of a variable", clipName(name))
			return
		}
		fmt.Fprintf(&b, "export %s=%s; ", name, quote(value))
	}
	for _, member := range r.members("env environment envvars environmentvariables") {
		switch v := r.input[member].(type) {
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				value, is := v[name].(string)
				if !is {
					value = fmt.Sprint(v[name])
				}
				set(name, value)
			}
		case []any:
			for _, each := range textsIn(v) {
				name, value, _ := strings.Cut(each, "=")
				set(name, value)
			}
			if len(textsIn(v)) < len(v) {
				r.miss("a variable of its environment isn't a text")
			}
		default:
			r.miss("its environment can't be read")
		}
	}
	return b.String()
}

func isName(s string) bool {
	for i, c := range []byte(s) {
		if c != '_' && (c|0x20 < 'a' || c|0x20 > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// shell adds a command as the program that is to run it is started.
func (r *reader) shell(v any, set, text string, n policy.Native) {
	program, is := v.(string)
	switch {
	case !is:
		r.miss("its shell isn't a text")
		return
	case program == "":
		return
	}
	r.add(policy.SubjectCommand, set+quote(program)+" -c "+quote(text), n.Tool)
	if !slices.Contains([]string{"sh", "bash", "zsh", "dash"}, path.Base(program)) {
		r.miss("%q isn't a shell that is known", clipName(program))
	}
}
