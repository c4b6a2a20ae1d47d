package app

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"

	"github.com/abhed/abhed/internal/policy"
)

// protected lists what no tool of this session may touch that works in roots.
func (e *engine) protected(roots []string) policy.Protected {
	l := e.o.loaded
	all := slices.Clone(l.roots)
	for _, r := range roots {
		if !slices.Contains(all, r) {
			all = append(all, r)
		}
	}
	p := protected(l, all, e.registered.Looked, e.sys)
	programs, credentials := e.backendFiles()
	p.Write, p.Read = append(p.Write, programs...), append(p.Read, credentials...)
	return p
}

// protected lists what no tool may touch (gate.md §3 "Protected"): what decides
// about the agent must not be the agent's to change.
func protected(l *loaded, roots, registrations []string, sys System) policy.Protected {
	var p policy.Protected
	write := func(paths ...string) {
		for _, path := range paths {
			if path != "" {
				p.Write = append(p.Write, path)
			}
		}
	}
	write(l.files...)
	write(sys.configDir(), filepath.Dir(sys.managedFile()), "/etc/ahp")
	write(registrations...)
	for _, root := range roots {
		// Commands of git must write in .git, so the sandbox holds only parts of it
		// (see holding); the file tools have no business there at all.
		for _, name := range []string{".abhed", ".ahp", ".git"} {
			write(filepath.Join(root, name))
		}
	}
	for i, x := range l.Extensions {
		for _, word := range append([]string{x.Command}, x.Args...) {
			if file, ok := namesFile(word, l.extensionDir(i)); ok {
				write(file)
			}
		}
	}
	for _, s := range l.MCP {
		for _, word := range append([]string{s.Command}, s.Args...) {
			if file, ok := namesFile(word, cmp.Or(s.Cwd, l.workspace)); ok {
				write(file)
			}
		}
	}
	if state := sys.stateDir(); state != "" {
		write(filepath.Join(state, "sessions"), filepath.Join(state, "key"), filepath.Join(state, "trust.json"), filepath.Join(state, sandboxFile))
		p.Read = append(p.Read, filepath.Join(state, "key"))
	}
	p.Read = append(p.Read, l.Secrets.Files...)
	return p
}

// namesFile reports whether a word of a command names an existing file.
func namesFile(word, dir string) (string, bool) {
	if word == "" || filepath.Base(word) == word && !exists(filepath.Join(dir, word)) {
		return "", false
	}
	path := word
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	abs, err := filepath.Abs(path)
	if err != nil || !exists(abs) {
		return "", false
	}
	return abs, true
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
