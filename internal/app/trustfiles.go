package app

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/ahpconfig"
	"github.com/abhed/abhed/internal/config"
	"github.com/abhed/abhed/internal/strictjson"
	"github.com/abhed/abhed/internal/trust"
)

// maxNamed bounds a file that trusted settings name.
const maxNamed = 64 << 20

// namedFile is a file of the workspace that its settings name.
type namedFile struct {
	path    string
	by      string // the key that names it
	content []byte
}

// named is what settings name in their workspace.
type named struct {
	files []namedFile
	// without is what has no bytes to be trusted: folders, and what isn't there. It
	// must not have been a file when it was trusted.
	without []namedFile
	notes   []string // about the latter
}

// brought is what a workspace brings, with the bytes that are trusted if it is.
type brought struct {
	workspace string
	settings  []byte           // nil if there are none
	own       *config.Settings // as it counts once it is trusted
	wary      *config.Settings // and as it counts before
	model     string
	named     named

	registration []byte // nil if there is none
	backends     *ahp.Registration
}

// brokenError says that what a workspace brings can't be understood.
type brokenError struct{ err error }

func (e *brokenError) Error() string { return e.err.Error() }
func (e *brokenError) Unwrap() error { return e.err }

// readBrought reads what a workspace brings.
func readBrought(workspace string, sys System) (*brought, error) {
	b := &brought{workspace: workspace}
	var err error
	if b.settings, err = readIfThere(settingsFile(workspace)); err != nil {
		return nil, err
	}
	if b.settings != nil {
		if b.own, err = ownSettings(sys, workspace, settingsFile(workspace), b.settings, true); err != nil {
			return nil, &brokenError{err}
		}
		b.model = modelIn(b.settings)
		if b.wary, err = ownSettings(sys, workspace, settingsFile(workspace), b.settings, false); err != nil {
			return nil, &brokenError{err}
		}
		if b.named, err = namedFiles(workspace, b.own); err != nil {
			return nil, err
		}
	}
	file := registrationFile(workspace)
	if b.registration, err = readIfThere(file); err != nil || b.registration == nil {
		return b, err
	}
	if b.backends, err = ahp.DecodeRegistration(b.registration); err != nil {
		return nil, &brokenError{fmt.Errorf("%s: %w", ahpconfig.Place(file, b.registration, err), err)}
	}
	return b, nil
}

// readIfThere returns the content of a settings file, nil if it isn't there.
func readIfThere(file string) ([]byte, error) {
	data, err := readBounded(file, maxSettings)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return slices.Concat([]byte{}, data), err
}

// anyBase is the script of the provider that ownSettings adds; no script is there.
const anyBase = "/"

// ownSettings reads a workspace's settings by themselves. Their model may be one of
// other settings' provider, so it is replaced by one that takes every parameter. The
// provider is called after the bytes of the settings, which so can't have one of
// that name, and none of theirs is hidden.
func ownSettings(sys System, workspace, file string, data []byte, trusted bool) (*config.Settings, error) {
	name := trust.Sum(data)[:32]
	stub, err := strictjson.Marshal(map[string]any{"model": name + "/any", "custom_providers": []any{
		map[string]any{"name": name, "api": config.APIScript, "base_url": anyBase, "sampling": config.SamplingNames()},
	}})
	if err != nil {
		return nil, err
	}
	return config.Load([]config.Source{
		{Layer: config.Project, File: file, Dir: workspace, Home: sys.home(), Data: data, Trusted: trusted},
		{Layer: config.User, File: "built in", Data: stub},
	})
}

// modelIn returns the model that settings name, "" for none. They have been read
// strictly before.
func modelIn(data []byte) string {
	var m struct {
		Model string `json:"model"`
	}
	plain, _ := config.Plain(data)
	if strictjson.Unmarshal(plain, &m, strictjson.Options{MaxBytes: maxSettings}) != nil {
		return ""
	}
	return m.Model
}

// namedFiles returns what a workspace's settings name in it as a command, an argument, a
// registration, a script or a certificate (gate.md §4).
func namedFiles(workspace string, s *config.Settings) (named, error) {
	n := &namer{workspace: workspace}
	for i, x := range s.Extensions {
		n.command(fmt.Sprintf("extensions[%d]", i), x.Command, x.Args, x.Cwd)
	}
	for _, name := range sortedKeys(s.MCP) {
		m := s.MCP[name]
		n.command("mcp."+name, m.Command, m.Args, m.Cwd)
	}
	for _, p := range s.Providers {
		if p.API == config.APIScript && p.BaseURL != anyBase {
			n.word("the provider "+p.Name, p.BaseURL, workspace)
		}
	}
	n.word("ahp.registration", s.AHP.Registration, workspace)
	n.word("http.ca_file", s.HTTP.CAFile, workspace)
	if !s.Record.IsURL() {
		n.word("record.anchor", s.Record.Anchor, workspace)
	}
	return n.named, n.err
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// namer gathers what settings name.
type namer struct {
	named
	workspace string
	err       error
}

func (n *namer) command(key, command string, args []string, cwd string) {
	dir := cmp.Or(cwd, n.workspace)
	if strings.Contains(command, "/") {
		n.word(key+".command", command, dir)
	}
	for i, a := range args {
		if name, value, ok := strings.Cut(a, "="); ok && strings.HasPrefix(name, "-") {
			a = value
		}
		n.word(fmt.Sprintf("%s.args[%d]", key, i), a, dir)
	}
}

// word adds the file that a word names as seen from dir, if it lies in the
// workspace. A link counts as its name and as what it leads to.
func (n *namer) word(key, word, dir string) {
	if word == "" || n.err != nil || strings.IndexByte(word, 0) >= 0 {
		return
	}
	path := word
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	real, err := filepath.EvalSymlinks(path)
	if !within(n.workspace, filepath.Clean(path)) && (err != nil || !within(n.workspace, real)) {
		return
	}
	if err != nil {
		n.without = append(n.without, namedFile{path: path, by: key})
		if strings.Contains(word, "/") {
			n.notes = append(n.notes, fmt.Sprintf("%s names %s, which isn't there: once it is, the settings aren't trusted until they are trusted anew", key, path))
		}
		return
	}
	info, err := os.Stat(real)
	switch {
	case err == nil && info.IsDir():
		n.without = append(n.without, namedFile{path: real, by: key})
		n.notes = append(n.notes, fmt.Sprintf("%s names the folder %s: what is in it may change and stays trusted", key, path))
		return
	case err == nil:
		if slices.ContainsFunc(n.files, func(f namedFile) bool { return f.path == path }) {
			return
		}
		var content []byte
		if content, err = readBounded(path, maxNamed); err == nil {
			n.files = append(n.files, namedFile{path: path, by: key, content: content})
			return
		}
	}
	n.err = fmt.Errorf("%s names %s, which can't be read: %w", key, path, err)
}

// The states of what a workspace brings; a third one says what has changed.
const (
	stateTrusted   = "trusted"
	stateUntrusted = "not trusted"
)

// projectTrust reports whether a workspace's settings are trusted with exactly this
// content, and the files of the workspace that they name with theirs; nil are settings
// that aren't there. If they were trusted and aren't any longer, why says what changed
// and what to do.
func projectTrust(sys System, workspace string, data []byte) (trusted bool, why string) {
	store, err := trustedSettings(sys)
	if err != nil {
		return false, "" // no place, so nothing was ever trusted
	}
	file := settingsFile(workspace)
	if data == nil {
		entries, err := store.List()
		if err != nil || !slices.ContainsFunc(entries, func(e trust.Entry) bool { return e.Path == file }) {
			return false, ""
		}
		return false, untrusted(workspace, fmt.Errorf("%s was trusted and is gone, and with it what it asked for", file))
	}
	if !store.Trusted(file, data) {
		switch {
		case store.Err() != nil:
			return false, untrusted(workspace, store.Err())
		case store.Known(file):
			return false, untrusted(workspace, fmt.Errorf("%s was trusted with other content", file))
		}
		return false, ""
	}
	own, err := ownSettings(sys, workspace, file, data, true)
	if err != nil {
		return false, "" // which stops the start
	}
	n, err := namedFiles(workspace, own)
	if err != nil {
		return false, untrusted(workspace, err)
	}
	if f := n.changed(store); f != nil {
		return false, untrusted(workspace, fmt.Errorf("%s, which %s names, was trusted with other content or not at all", f.path, f.by))
	}
	return true, ""
}

// changed returns what is named and isn't as it was trusted, nil if everything is.
func (n named) changed(store *trust.Store) *namedFile {
	for i, f := range n.files {
		if !store.Trusted(f.path, f.content) {
			return &n.files[i]
		}
	}
	entries, err := store.List()
	for i, f := range n.without {
		if err != nil || slices.ContainsFunc(entries, func(e trust.Entry) bool { return e.Path == f.path }) {
			return &n.without[i]
		}
	}
	return nil
}

// untrusted says what it means that settings aren't trusted any longer.
func untrusted(workspace string, why error) string {
	return fmt.Sprintf("%v: of the workspace's own settings only what is stricter counts; look at them with \"abhed trust --show %s\", and trust them again with \"abhed trust\" or no longer with \"abhed trust --remove\"", why, workspace)
}

// state says whether everything that the workspace brings is trusted as it is.
func (b *brought) state(settings, registrations *trust.Store) (string, error) {
	all, known := true, false
	look := func(s *trust.Store, path string, content []byte) {
		all, known = s.Trusted(path, content) && all, known || s.Known(path)
	}
	if b.settings != nil {
		look(settings, settingsFile(b.workspace), b.settings)
		all = b.named.changed(settings) == nil && all
	}
	if b.registration != nil {
		look(registrations, registrationFile(b.workspace), b.registration)
	}
	if err := errors.Join(settings.Err(), registrations.Err()); err != nil {
		return "", err
	}
	switch {
	case all:
		return stateTrusted, nil
	case known:
		return "changed since it was trusted", nil
	}
	return stateUntrusted, nil
}

// trust trusts the bytes that were read. The settings come after what they name:
// without them nothing counts.
func (b *brought) trust(settings, registrations *trust.Store) error {
	for _, f := range b.named.files {
		if err := settings.Add(f.path, f.content); err != nil {
			return err
		}
	}
	for _, f := range b.named.without {
		if _, err := settings.Remove(f.path); err != nil {
			return err
		}
	}
	if b.settings != nil {
		if err := settings.Add(settingsFile(b.workspace), b.settings); err != nil {
			return err
		}
	}
	if b.registration != nil {
		return registrations.Add(registrationFile(b.workspace), b.registration)
	}
	return nil
}
