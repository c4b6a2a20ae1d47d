package policy

import (
	"fmt"
	"path"
	"runtime"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

const (
	maxPath  = 4096
	maxLinks = 40
)

// Place is where a path truly lands. A tool opens exactly this place, following
// no link in any component, and compares the opened Anchor with Dev and Ino.
type Place struct {
	// Anchor is the deepest existing directory that properly contains Path ("/"
	// contains itself).
	Anchor string `json:"anchor"`
	// Dev and Ino identify the directory that Anchor named when it was judged.
	Dev uint64 `json:"dev"`
	// Fold reports that the anchor's file system ignores case.
	Fold bool   `json:"fold,omitzero"`
	Ino  uint64 `json:"ino"`
	// Path is absolute, without "." and "..", with every link resolved. It need
	// not exist.
	Path string `json:"path"`
}

// PathForms is one path in every form that rules compare (gate.md §3).
type PathForms struct {
	// Absolute is Given made absolute and cleaned as text, links unresolved.
	Absolute string `json:"absolute"`
	// Given is the path as the model wrote it.
	Given string `json:"given"`
	// Place is where the path lands.
	Place Place `json:"place"`
}

// PathError says why a path could not be resolved to a place. A tool must not
// run on such a path.
type PathError struct {
	// Given is the path as the model wrote it.
	Given string
	// Msg says what was wrong, and with which component.
	Msg string
	// Err is the cause, or nil.
	Err error
}

// Error returns the message with the path.
func (e *PathError) Error() string { return fmt.Sprintf("path %q: %s", e.Given, e.Msg) }

// Unwrap returns the cause.
func (e *PathError) Unwrap() error { return e.Err }

// Resolve finds where given lands, seen from the absolute directory workdir.
// "~" and "~/…" stand for home. Links are resolved before "..", as the kernel
// does it; components may be missing at the end. It fails with a *PathError on
// a path that the kernel would refuse (a loop, a file used as a directory, ".."
// after something missing) and on the magic links of /proc, whose target isn't
// a path. It only looks at the file system; what it saw can change, which is
// why a Place holds device and inode.
func Resolve(workdir, given, home string) (PathForms, error) {
	r := resolver{home: home}
	return r.resolve(workdir, given)
}

// resolver resolves the paths of one evaluation and remembers what it saw, so
// that one evaluation sees one state of each directory. It isn't safe for
// concurrent use.
type resolver struct {
	home string
	seen map[string]entry
}

// entry is what one component of a path was found to be.
type entry struct {
	kind   entryKind
	target string // of a link
	dev    uint64
	ino    uint64
	err    error
}

type entryKind uint8

const (
	entryMissing entryKind = iota
	entryDir
	entryLink
	entryOther
	entryError
)

func (r *resolver) look(p string) entry {
	if e, ok := r.seen[p]; ok {
		return e
	}
	e := lstat(p)
	if r.seen == nil {
		r.seen = make(map[string]entry, 16)
	}
	r.seen[p] = e
	return e
}

// resolve is Resolve with what was seen before.
func (r *resolver) resolve(workdir, given string) (PathForms, error) {
	full, err := r.absolute(workdir, given)
	if err != nil {
		return PathForms{}, err
	}
	w := walk{resolver: r, given: given, rest: full}
	if err := w.run(); err != nil {
		return PathForms{}, err
	}
	if !utf8.ValidString(given) || !utf8.ValidString(w.at) {
		// Neither a record nor an approver could show it.
		return PathForms{}, &PathError{Given: given, Msg: fmt.Sprintf("%q isn't UTF-8; rename the file", w.at)}
	}
	anchor := r.look(w.anchor)
	return PathForms{
		Given: given, Absolute: path.Clean(full),
		Place: Place{Path: w.at, Anchor: w.anchor, Dev: anchor.dev, Ino: anchor.ino, Fold: foldsCase(w.anchor)},
	}, nil
}

// absolute returns given as an absolute path that isn't cleaned.
func (r *resolver) absolute(workdir, given string) (string, error) {
	switch {
	case given == "":
		return "", &PathError{Msg: "it is empty; give the path of a file or a directory"}
	case strings.IndexByte(given, 0) >= 0:
		return "", &PathError{Given: given, Msg: "it holds a NUL byte, which no path can"}
	case len(given) > maxPath:
		return "", &PathError{Given: given[:64] + "…", Msg: fmt.Sprintf("it is %d bytes long; at most %d are possible", len(given), maxPath)}
	}
	full := given
	if given == "~" || strings.HasPrefix(given, "~/") {
		if !path.IsAbs(r.home) {
			return "", &PathError{Given: given, Msg: "the home directory is not known; give an absolute path"}
		}
		full = r.home + given[1:]
	}
	if !path.IsAbs(full) {
		if !path.IsAbs(workdir) {
			return "", &PathError{Given: given, Msg: fmt.Sprintf("the working directory %q is not absolute", workdir)}
		}
		full = workdir + "/" + full
	}
	return full, nil
}

// walk goes through the components of one path.
type walk struct {
	*resolver
	given   string
	rest    string // what is still to do
	at      string // the resolved path so far; "" is the root directory
	anchor  string
	links   int
	missing bool
}

func (w *walk) run() error {
	w.anchor = "/"
	for w.rest != "" {
		var name string
		name, w.rest, _ = strings.Cut(w.rest, "/")
		if err := w.step(name); err != nil {
			return err
		}
		if len(w.at) > maxPath {
			return w.fail("it is too long once links are resolved", nil)
		}
	}
	if w.at == "" {
		w.at = "/"
	}
	return nil
}

func (w *walk) fail(msg string, cause error) error {
	return &PathError{Given: w.given, Msg: msg, Err: cause}
}

func (w *walk) step(name string) error {
	switch name {
	case "", ".":
		return nil
	case "..":
		if w.missing {
			return w.fail(fmt.Sprintf("%q does not exist, so \"..\" after it leads nowhere", w.at), nil)
		}
		w.at = w.at[:max(strings.LastIndexByte(w.at, '/'), 0)]
		w.anchor = parentOf(w.at)
		return nil
	}
	if len(name) > 255 {
		return w.fail(fmt.Sprintf("the component %q… is longer than 255 bytes", name[:32]), nil)
	}
	next := w.at + "/" + name
	if w.missing {
		w.at = next
		return nil
	}
	e := w.look(next)
	switch e.kind {
	case entryMissing:
		w.missing = true
		w.at, w.anchor = next, orRoot(w.at)
	case entryDir:
		w.at, w.anchor = next, orRoot(w.at)
	case entryLink:
		return w.follow(next, e.target)
	case entryOther:
		if strings.Trim(w.rest, "/") != "" {
			return w.fail(fmt.Sprintf("%q is not a directory", next), nil)
		}
		w.at, w.anchor = next, orRoot(w.at)
	default:
		return w.fail(fmt.Sprintf("cannot look at %q: %v", next, e.err), e.err)
	}
	return nil
}

func (w *walk) follow(link, target string) error {
	if w.links++; w.links > maxLinks {
		return w.fail("too many links; there is a loop of symbolic links", nil)
	}
	if magicLink(link) {
		return w.fail(fmt.Sprintf("%q leads to an open file or a process's own view, not to a path; name the file itself", link), nil)
	}
	if target == "" {
		return w.fail(fmt.Sprintf("the link %q is empty", link), nil)
	}
	if w.rest != "" {
		target += "/" + w.rest
	}
	if path.IsAbs(target) {
		w.at, w.anchor = "", "/"
	}
	w.rest = target
	return nil
}

// magicLink reports whether the link at p, whose parents are resolved, is one of
// those in /proc that jump without being a path. The plain links there ("self",
// "mounts") are of one level.
func magicLink(p string) bool {
	rest, ok := strings.CutPrefix(p, "/proc/")
	return ok && strings.Contains(rest, "/")
}

func parentOf(p string) string {
	return orRoot(p[:max(strings.LastIndexByte(p, '/'), 0)])
}

func orRoot(p string) string {
	if p == "" {
		return "/"
	}
	return p
}

// below returns the path of p relative to dir; ok is false if p isn't dir or in
// it. Both are absolute and clean. The path of dir itself is ".".
func below(p, dir string) (rel string, ok bool) {
	if dir == "/" {
		if p == "/" {
			return ".", true
		}
		return p[1:], true
	}
	rest, ok := strings.CutPrefix(p, dir)
	switch {
	case !ok:
		return "", false
	case rest == "":
		return ".", true
	case rest[0] != '/':
		return "", false
	}
	return rest[1:], true
}

// foldName returns s as compared on a file system: NFC, and without case if the
// file system ignores it.
func foldName(s string, fold bool) string {
	if !norm.NFC.IsNormalString(s) {
		s = norm.NFC.String(s)
	}
	if fold {
		s = strings.ToLower(s)
	}
	return s
}

// programFold reports that the names of programs are found without regard to
// case.
const programFold = runtime.GOOS == "darwin" || runtime.GOOS == "windows"
