package policy

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

const (
	// maxCommand is the longest command, in bytes, that is judged (gate.md §3).
	maxCommand = 64 << 10
	// maxParts is the largest number of simple commands that are judged.
	maxParts = 1024
	// maxNesting is the deepest nesting that is given to the parser, whose cost
	// grows faster than the depth.
	maxNesting = 100
	// maxStrings is how deep command strings (`sh -c`, `eval`) are followed.
	maxStrings = 16
	// maxWrappers is how deep wrappers are followed in all.
	maxWrappers = 48
	// maxWords is the largest number of words that brace expansion may make.
	maxWords = 512
	// maxDirs is how many directories a part is judged in before its directory
	// counts as unknown; maxDir is the longest of them, in bytes.
	maxDirs = 4
	maxDir  = 1024
	// maxSource is how many bytes of command strings are parsed in all.
	maxSource = 4 * maxCommand
)

// parserPool keeps parsers, whose buffers are worth more than the parsing of a
// short command.
type parserPool struct{ pool sync.Pool }

// parse returns the statements of src; with an error those before it, which the
// shell would run before it meets the error.
func (p *parserPool) parse(src string) (out []*syntax.Stmt, err error) {
	parser, ok := p.pool.Get().(*syntax.Parser)
	if !ok {
		parser = syntax.NewParser(syntax.Variant(syntax.LangBash))
	}
	defer func() {
		// A panic of the parser is a command that doesn't parse; what the parser
		// holds then isn't used again.
		if v := recover(); v != nil {
			err = fmt.Errorf("the parser failed: %v", v)
			return
		}
		p.pool.Put(parser)
	}()
	for s, err := range parser.StmtsSeq(strings.NewReader(src)) {
		if err != nil {
			return out, err
		}
		out = append(out, s)
	}
	return out, nil
}

// analysis is what a command line may do, as far as the shell's grammar tells.
type analysis struct {
	parts  []*part
	redirs []redir
	// faults say why the command can't be judged; empty if it can.
	faults []string
	// bombs are the functions that start themselves again without end.
	bombs []string
	// variables are what the command line sets.
	variables variables
}

// part is one simple command that may run.
type part struct {
	// words are the program and its arguments; none in a part that only assigns.
	words   []word
	assigns []assign
	// via names the wrapper or construct that leads here, or is "".
	via string
	// wrapper reports that what it runs is a part of its own.
	wrapper bool
	// appended reports that a wholly unknown word is what a program appends.
	appended bool
	// inert reports that its arguments are known not to be run.
	inert bool
	cwd   *cwds
	// own is how many words aren't also words of the next part, run in the same
	// directory; zero means all.
	own int
	// subjects are the texts that deny and ask rules compare; the first is the
	// command as written, the only one that allow rules compare.
	subjects []string
}

type assign struct {
	name  string
	value word
}

// redir is one redirection to or from a named file.
type redir struct {
	target word
	writes bool
	// bare reports that there is no command: the file is only made or emptied.
	bare bool
	cwd  *cwds
}

// cwds are the directories that a command may run in. It is immutable.
type cwds struct {
	dirs []string
	// unknown reports that it may also be any other.
	unknown bool
}

func (c *cwds) join(o *cwds) *cwds {
	if c == o {
		return c
	}
	out := &cwds{dirs: appendNew(append([]string(nil), c.dirs...), o.dirs), unknown: c.unknown || o.unknown}
	if len(out.dirs) > maxDirs {
		out.dirs, out.unknown = out.dirs[:maxDirs], true
	}
	return out
}

// base returns the last component of a program's name.
func base(program string) string {
	return program[strings.LastIndexByte(program, '/')+1:]
}

// analyzer walks through the syntax tree of one command line.
type analyzer struct {
	env   *Env
	parse func(string) ([]*syntax.Stmt, error)
	out   *analysis
	cwd   *cwds
	via   string
	// strings and wrappers are how deep the walk is in command strings and in
	// wrappers.
	strings  int
	wrappers int
	bytes    int
	words    int
	// cdUnknown reports that "cd" may not go where its argument says.
	cdUnknown bool
	// homeKnown reports that nothing in the command sets HOME.
	homeKnown bool
	// input is what a construct around a command gives it to read, or nil.
	input *word
	// appends reports that what is walked gets further arguments from a program.
	appends bool
	// zsh reports that what is walked is run by zsh.
	zsh bool
	// defining are the functions whose bodies are being walked.
	defining []string
}

// analyze parses command and finds every simple command that may run. It runs
// nothing. Its time is bounded by the limits above.
func analyze(command, workdir string, env *Env, parse func(string) ([]*syntax.Stmt, error)) *analysis {
	a := &analyzer{
		env: env, parse: parse, out: &analysis{},
		cwd:       startIn(workdir),
		homeKnown: !setsHome(command),
		cdUnknown: env.getenv("CDPATH") != "" || strings.Contains(command, "CDPATH") || strings.Contains(command, "cdable_vars"),
	}
	a.source(command, "")
	for _, p := range a.out.parts {
		p.finish(env)
		if !p.inert && !p.wrapper && len(p.words) > maxPartWords {
			a.fault("%q has more than %d words", show(p.words[0].text), maxPartWords)
		}
	}
	return a.out
}

// startIn returns the directory that a command starts in; an empty one is unknown.
func startIn(workdir string) *cwds {
	if workdir == "" {
		return &cwds{dirs: []string{"/"}, unknown: true}
	}
	return &cwds{dirs: []string{workdir}}
}

func (a *analyzer) fault(format string, args ...any) {
	if len(a.out.faults) >= 8 {
		return
	}
	if f := fmt.Sprintf(format, args...); !slices.Contains(a.out.faults, f) {
		a.out.faults = append(a.out.faults, f)
	}
}

func (a *analyzer) full() bool { return len(a.out.parts) >= maxParts }

// source walks through a command string.
func (a *analyzer) source(src, via string) {
	a.bytes += len(src)
	switch {
	case a.full():
		a.fault("it has more than %d parts", maxParts)
	case len(src) > maxCommand:
		a.fault("it is longer than %d bytes", maxCommand)
	case a.bytes > maxSource || a.strings > maxStrings:
		a.fault("its command strings are nested too deeply or too long")
	case strings.IndexByte(src, 0) >= 0:
		a.fault("it holds a NUL byte, which the shell drops")
	case strings.ContainsAny(src, unknownBytes):
		a.fault("it holds a control character (U+0001 or U+0002)")
	case nesting(src) > maxNesting:
		a.fault("it is nested more than %d deep", maxNesting)
	default:
		list, err := a.parse(src)
		if err != nil {
			a.fault("it does not parse as shell: %v", err)
			if again := respell(src); again != src {
				more, _ := a.parse(again)
				list = append(list, more...)
			}
		}
		outer := a.via
		if via != "" {
			a.via = via
		}
		a.strings++
		a.stmts(list)
		a.strings--
		a.via = outer
	}
}

// respell returns src with what the shell accepts and the parser doesn't in other
// words: "((" that is no arithmetic, and a repeated "!". The command stays
// unjudgeable; this only lets deny rules see it.
func respell(src string) string {
	for strings.Contains(src, "((") {
		src = strings.ReplaceAll(src, "((", "( (")
	}
	for strings.Contains(src, "! !") {
		src = strings.ReplaceAll(src, "! !", "!")
	}
	return src
}

// setsHome reports whether command may change HOME: whether the name stands
// there other than as an expansion.
func setsHome(command string) bool {
	for rest := command; ; {
		i := strings.Index(rest, "HOME")
		if i < 0 {
			return false
		}
		before := rest[:i]
		if !strings.HasSuffix(before, "$") && !strings.HasSuffix(before, "${") && !endsInNameByte(before) {
			return true
		}
		rest = rest[i+4:]
		if strings.HasSuffix(before, "${") && !strings.HasPrefix(rest, "}") {
			return true // ${HOME:=…} assigns
		}
	}
}

func endsInNameByte(s string) bool { return s != "" && isWordByte(s[len(s)-1]) }

// ownWords returns the words that are looked at one by one: those that are also
// words of the part that this one runs are looked at there.
func (p *part) ownWords() []word {
	if p.own > 0 {
		return p.words[:p.own]
	}
	return p.words
}

// finish computes what the rules compare.
func (p *part) finish(env *Env) {
	if len(p.words) == 0 {
		return
	}
	written := joinWords(p.words)
	p.subjects = append(p.subjects, written)
	program := p.words[0].text
	if b := base(program); b != program && b != "" {
		p.subjects = append(p.subjects, b+written[len(program):])
	}
	if strings.Contains(program, "/") && path.Clean(program) != program {
		p.subjects = append(p.subjects, path.Clean(program)+written[len(program):])
	}
	if programFold && strings.ToLower(base(program)) != program {
		p.subjects = append(p.subjects, strings.ToLower(base(program))+written[len(program):])
	}
	if env.Home != "" && strings.Contains(written, env.Home) {
		p.subjects = append(p.subjects, tildeForm(p.words, env.Home))
	}
	for _, rest := range withoutOptions(p.words) {
		rest[0].text = base(program)
		p.subjects = append(p.subjects, joinWords(rest))
	}
}

func joinWords(words []word) string {
	if len(words) == 1 {
		return foldName(words[0].text, false)
	}
	n := len(words)
	for _, w := range words {
		n += len(w.text)
	}
	var b strings.Builder
	b.Grow(n)
	for i, w := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(w.text)
	}
	return foldName(b.String(), false)
}

// tildeForm joins the words with the home directory written as "~".
func tildeForm(words []word, home string) string {
	out := make([]word, len(words))
	for i, w := range words {
		if rest, ok := strings.CutPrefix(w.text, home); ok && (rest == "" || rest[0] == '/') {
			w.text = "~" + rest
		}
		out[i] = w
	}
	return joinWords(out)
}

// show returns text with its unknown stretches made visible, as valid UTF-8.
func show(text string) string {
	if !strings.ContainsAny(text, unknownBytes) && utf8.ValidString(text) {
		return text
	}
	return strings.Map(func(r rune) rune {
		if r <= anyName {
			return '…'
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}
