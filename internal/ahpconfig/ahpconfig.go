// Package ahpconfig finds and reads the AHP registrations that hold on this
// machine: the managed one, the user's and the project's, or one that is named.
//
// It guarantees that the managed file is always read and comes first, that neither
// it nor the user's counts if somebody else can write it, that a
// project's file counts only if its exact bytes are trusted, that every file is
// valid and free of literal secrets, that no backend is registered twice, and that
// one file at fault refuses everything: nothing is skipped. Errors name the file
// with line and column, what was found and what was expected. Nothing is read from
// the environment: what a caller takes from there it passes in.
//
// Do not assume that a backend can be reached, or that its credential is there.
package ahpconfig

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/strictjson"
)

// ManagedFile is where an administrator's registration stands.
const ManagedFile = "/etc/ahp/registration.json"

// maxBytes bounds one registration file.
const maxBytes = 4 << 20

// Scope says which place a registration came from.
type Scope string

// The scopes, in the order in which they are read.
const (
	Managed Scope = "managed"
	// Given is a file that was named: it takes the place of User and Project.
	Given   Scope = "given"
	User    Scope = "user"
	Project Scope = "project"
)

// Options says where to look. The zero value reads the managed file and the user's.
type Options struct {
	// File, if set, is read instead of the user's and the project's; it must exist.
	File string
	// Imposed, if set, is what an administrator's settings name: it must exist, is read
	// after Managed, whatever File says, and takes the place of the user's and the
	// project's too. Its scope is Managed.
	Imposed string
	// Home is the user's home folder; "" means that of the account in the user
	// database, whatever HOME says.
	Home string
	// Dir is the project's folder; "" means that there is no project.
	Dir string
	// Managed is the managed file; "" means ManagedFile.
	Managed string
	// Trusted reports whether the project's file at path may be used with exactly
	// this content. Nil trusts none.
	Trusted func(path string, content []byte) bool
}

// Source is one file that was read.
type Source struct {
	Path  string
	Scope Scope
	// Content is the bytes that were decoded.
	Content []byte
}

// Loaded is the registrations of all sources as one, in the order of the sources.
type Loaded struct {
	// Registration has at least one backend; nil if no source was found.
	Registration *ahp.Registration
	Sources      []Source
	// Looked names every file that was looked for.
	Looked []string

	files map[string]string // by backend id
}

// FileOf returns the file that registers the backend, "" for none.
func (l *Loaded) FileOf(backend string) string { return l.files[backend] }

// UntrustedError says that a project's registration isn't trusted.
type UntrustedError struct{ Path string }

// Error names the file and what to do.
func (e *UntrustedError) Error() string {
	return fmt.Sprintf("%s: found a project's registration that isn't trusted: read it, and if it may decide about your agents run \"ahp trust\" or name it with --registration; else remove it", e.Path)
}

// Load reads the registrations. A place without a file is fine, but for those that
// are named; a project's file that isn't trusted is an *UntrustedError.
func Load(opts Options) (*Loaded, error) {
	places, err := opts.places()
	if err != nil {
		return nil, err
	}
	l := &Loaded{files: map[string]string{}}
	for _, p := range places {
		l.Looked = append(l.Looked, p.Path)
		if err := checkOwner(p.Source); err != nil {
			return nil, err
		}
		content, err := read(p.Path, "registration", maxBytes)
		if errors.Is(err, fs.ErrNotExist) && !p.must {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("the AHP registration can't be read: %w", err)
		}
		if p.Scope == Project && (opts.Trusted == nil || !opts.Trusted(p.Path, content)) {
			return nil, &UntrustedError{p.Path}
		}
		p.Content = content
		if err := l.add(p.Source); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// place is where a registration may stand.
type place struct {
	Source
	must bool // a missing file is an error
}

// places returns the files to look for, in order and each once.
func (o *Options) places() ([]place, error) {
	var out []place
	add := func(path string, scope Scope, must bool) {
		for i := range out {
			if same(out[i].Path, path) {
				out[i].must = out[i].must || must
				return
			}
		}
		out = append(out, place{Source{Path: path, Scope: scope}, must})
	}
	managed := o.Managed
	if managed == "" {
		managed = ManagedFile
	}
	add(managed, Managed, false)
	if o.Imposed != "" {
		add(o.Imposed, Managed, true)
	}
	if o.File != "" {
		add(o.File, Given, true)
	}
	if o.Imposed != "" || o.File != "" {
		return out, nil
	}
	home := o.Home
	if home == "" {
		account, err := user.LookupId(strconv.Itoa(os.Getuid()))
		if err != nil {
			return nil, fmt.Errorf("the home folder of this account is unknown, so the user's AHP registration can't be found; name one on the command line: %w", err)
		}
		home = account.HomeDir
	}
	add(filepath.Join(home, ".config", "ahp", "registration.json"), User, false)
	if o.Dir != "" {
		add(filepath.Join(o.Dir, ".ahp", "registration.json"), Project, false)
	}
	return out, nil
}

// same reports whether two paths name one file.
func same(a, b string) bool {
	if filepath.Clean(a) == filepath.Clean(b) {
		return true
	}
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// read returns the content of a regular file within the bound. A pipe or a device
// would never end, or wait forever.
func read(path, what string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: found %s, expected a regular file", path, info.Mode().Type())
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s: found more than %d bytes, expected a %s of at most that", path, limit, what)
	}
	return data, nil
}

// add decodes a source and appends its backends.
func (l *Loaded) add(p Source) error {
	reg, err := ahp.DecodeRegistration(p.Content)
	if err != nil {
		return fmt.Errorf("%s: %s", Place(p.Path, p.Content, err), strings.TrimPrefix(err.Error(), "ahp: "))
	}
	for i := range reg.Hooks {
		id := reg.Hooks[i].ID
		if other, twice := l.files[id]; twice {
			at := ahp.Locate(p.Content, fmt.Sprintf("/hooks/%d/id", i))
			line, column := strictjson.LineColumn(p.Content, at)
			return fmt.Errorf("%s:%d:%d: found the backend %q again, expected it once: it is registered in %s", p.Path, line, column, id, other)
		}
		l.files[id] = p.Path
	}
	if l.Registration == nil {
		l.Registration = &ahp.Registration{ProtocolVersion: ahp.Version}
	}
	l.Registration.Hooks = append(l.Registration.Hooks, reg.Hooks...)
	l.Sources = append(l.Sources, p)
	return nil
}

// Place names a file, with line and column where err says at which byte of data it
// is at fault.
func Place(path string, data []byte, err error) string {
	var (
		e    *ahp.Error
		door *strictjson.Error
		at   int64
	)
	switch {
	case errors.As(err, &e) && e.Offset >= 0:
		at = e.Offset
	case errors.As(err, &door):
		at = door.Offset
	default:
		return path
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return path
	}
	line, column := strictjson.LineColumn(data, at)
	return fmt.Sprintf("%s:%d:%d", path, line, column)
}
