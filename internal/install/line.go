package install

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/abhed/abhed/ahp/adapter"
)

// The exit codes of "ahp hook". Any other code, a signal, and a delivery or a refusal
// without a text are no answer.
const (
	ExitPass    = 40 // nothing to say, or the document that the host needs
	ExitDeliver = 41 // an answer that must be delivered
	ExitDeny    = 42 // a refusal
)

// OnMissing says what no answer means.
type OnMissing string

// The policies.
const (
	Deny  OnMissing = "deny"
	Allow OnMissing = "allow"
)

// Call is how the installed line starts "ahp hook".
type Call struct {
	// Binary is the absolute path of ahp.
	Binary string `json:"binary"`
	// Host is the host's name.
	Host string `json:"host,omitempty"`
	// Event is the native event, where the payload does not name it; else "".
	Event string `json:"event,omitempty"`
	// Registration is the absolute path of a registration; "" for the usual places.
	Registration string    `json:"registration,omitempty"`
	OnMissing    OnMissing `json:"onMissing"`
	// LimitMS is the host's time limit in milliseconds.
	LimitMS int `json:"limitMS,omitempty"`
	// NoSelfProtect turns off the protection of AHP's own files.
	NoSelfProtect bool `json:"noSelfProtect,omitempty"`
	// Home replaces the account's home; "" for the account's.
	Home string `json:"home,omitempty"`
}

// Args returns the arguments after the binary.
func (c Call) Args() []string {
	args := []string{"hook", c.Host}
	option := func(name, value string) {
		if value != "" {
			args = append(args, name, value)
		}
	}
	option("--event", c.Event)
	option("--registration", c.Registration)
	option("--home", c.Home)
	args = append(args, "--on-missing", string(c.OnMissing), "--limit", strconv.Itoa(c.LimitMS))
	if c.NoSelfProtect {
		args = append(args, "--no-self-protect")
	}
	return args
}

// mark begins every installed line: it does nothing, in every shell, and tells our
// lines from others'.
const mark = ": ahp-line-1; "

// opening stands before the call. What a variable of a Go developer has this program's
// runtime print would be part of the answer, and a host that reads a document goes on
// where it finds none.
const opening = "{ o=$(GODEBUG= "

// maxRefusal bounds the text that a line holds for the case of no answer.
const maxRefusal = 8 << 10

// NoAnswer is the reason that a person and a model read when the program gave no
// answer and that is to refuse.
func NoAnswer(host string) string {
	return "AHP could not check this call (the ahp program gave no answer), so it was refused. Run \"ahp doctor " + host + "\" to find out why."
}

// Line returns the command line that is installed for a native event: a POSIX shell
// command that says ahp's answer in the way the host wants it. Where there is no
// answer, it refuses if c says so and the host can be refused at that event.
func Line(c Call, dialect *adapter.Host, native string) (string, error) {
	row := dialect.Row(native)
	if row == nil {
		return "", fmt.Errorf("%s has no event %q that AHP knows", dialect.Name, native)
	}
	words := []string{c.Binary}
	words = append(words, c.Args()...)
	command, err := shellWords(words)
	if err != nil {
		return "", err
	}
	deny := dialect.Delivery(row)
	missing := say(dialect.Blank(native), adapter.Stdout, 0, "")
	unsaid := ""
	if text := dialect.Refusal(native, NoAnswer(c.Host)); text != nil {
		unsaid = " || exit 2" // it can't be written, as to a file on a full disk: almost every host refuses at this code
		if c.OnMissing != Allow {
			missing = say(text, deny.Stream, deny.Exit, unsaid)
		}
	}
	if len(missing) > maxRefusal || !utf8.ValidString(missing) || strings.ContainsRune(missing, 0) {
		return "", fmt.Errorf("%s: the refusal for %s can't be written into a command line", dialect.Name, native)
	}
	// What a shell itself says of a program that was killed goes nowhere: a host may
	// take standard error for the answer.
	return mark + opening + command + " 2>&1) && c=0 || c=$?; } 2>/dev/null; " +
		`if [ "$c" = ` + strconv.Itoa(ExitPass) + ` ]; then if [ -n "$o" ]; then printf '%s\n' "$o"; fi; exit 0; ` +
		`elif [ "$c" = ` + strconv.Itoa(ExitDeliver) + ` ] && [ -n "$o" ]; then printf '%s\n' "$o"` + unsaid + `; exit 0; ` +
		`elif [ "$c" = ` + strconv.Itoa(ExitDeny) + ` ] && [ -n "$o" ]; then printf '%s\n' "$o"` + redirect(deny.Stream) + unsaid + `; exit ` + strconv.Itoa(deny.Exit) + `; fi; ` +
		missing, nil
}

// say is the shell code that prints a text and ends; unsaid is what it does where it can't.
func say(text []byte, to adapter.Stream, code int, unsaid string) string {
	end := "exit " + strconv.Itoa(code)
	if len(text) == 0 {
		return end
	}
	return `printf '%s\n' ` + shellQuote(strings.TrimRight(string(text), "\n")) + redirect(to) + unsaid + "; " + end
}

func redirect(to adapter.Stream) string {
	if to == adapter.Stderr {
		return " >&2"
	}
	return ""
}

// shellQuote quotes one word for a POSIX shell.
func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// shellWords quotes words for a POSIX shell, and refuses what no file should be called.
func shellWords(words []string) (string, error) {
	quoted := make([]string, len(words))
	for i, w := range words {
		if strings.ContainsAny(w, "\x00\n\r") || !utf8.ValidString(w) {
			return "", fmt.Errorf("%q can't be written into a command line: it holds a line end, a zero byte or is not UTF-8; use another path", w)
		}
		quoted[i] = w
		if w == "" || strings.Trim(w, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./") != "" || i == 0 {
			quoted[i] = shellQuote(w)
		}
	}
	return strings.Join(quoted, " "), nil
}

// IsLine reports whether a command line is one of ours, as it was or changed.
func IsLine(command string) bool {
	return strings.HasPrefix(strings.TrimLeft(command, " \t\r\n"), strings.TrimRight(mark, " ;"))
}

// ParseLine reads the call back from a command line. It is an error if the line is not
// one of ours; it is also one if a later hand has changed the part that holds the
// call. Whether the rest is as installed, [Line] of the outcome tells.
func ParseLine(command string) (Call, error) {
	rest, is := strings.CutPrefix(command, mark+opening)
	if !is {
		return Call{}, fmt.Errorf("not a line that ahp installed: it begins with %.40q, expected %q", command, mark)
	}
	var words []string
	for {
		word, tail, err := shellWord(rest)
		if err != nil {
			return Call{}, err
		}
		if word == "2>&1" {
			break
		}
		words, rest = append(words, word), tail
	}
	return parseWords(words)
}

// shellWord reads one word as shellWords writes it, and the space after it.
func shellWord(s string) (word, rest string, err error) {
	var b strings.Builder
	for i := 0; i < len(s); {
		switch s[i] {
		case ' ', ')':
			return b.String(), s[i+1:], nil
		case '\'':
			end := strings.IndexByte(s[i+1:], '\'')
			if end < 0 {
				return "", "", fmt.Errorf("the line was changed: a quote without an end")
			}
			b.WriteString(s[i+1 : i+1+end])
			i += end + 2
		case '\\':
			if i+1 == len(s) {
				return "", "", fmt.Errorf("the line was changed: it ends in a backslash")
			}
			b.WriteByte(s[i+1])
			i += 2
		default:
			b.WriteByte(s[i])
			i++
		}
	}
	return "", "", fmt.Errorf("the line was changed: it ends inside the call of ahp")
}

func parseWords(words []string) (Call, error) {
	if len(words) < 3 || words[1] != "hook" || !filepath.IsAbs(words[0]) {
		return Call{}, fmt.Errorf("the line was changed: it starts %q, expected an absolute path, \"hook\" and a host", words)
	}
	c := Call{Binary: words[0], Host: words[2]}
	for words = words[3:]; len(words) > 0; {
		if words[0] == "--no-self-protect" {
			c.NoSelfProtect, words = true, words[1:]
			continue
		}
		if len(words) < 2 {
			return Call{}, fmt.Errorf("the line was changed: %s has no value", words[0])
		}
		switch name, value := words[0], words[1]; name {
		case "--event":
			c.Event = value
		case "--registration":
			c.Registration = value
		case "--home":
			c.Home = value
		case "--on-missing":
			c.OnMissing = OnMissing(value)
		case "--limit":
			n, err := strconv.Atoi(value)
			if err != nil {
				return Call{}, fmt.Errorf("the line was changed: --limit %q is no number", value)
			}
			c.LimitMS = n
		default:
			return Call{}, fmt.Errorf("the line was changed: unknown argument %q", name)
		}
		words = words[2:]
	}
	return c, nil
}
