package policy

import (
	"path"
	"slices"
)

// resolve resolves a path once in an evaluation, however many rules look at it.
func (e *evaluation) resolve(dir, given string) (PathForms, error) {
	key := dir + "\x00" + given
	if r, ok := e.resolved[key]; ok {
		return r.forms, r.err
	}
	forms, err := e.resolveNow(dir, given)
	if e.resolved == nil {
		e.resolved = make(map[string]resolution, 8)
	}
	e.resolved[key] = resolution{forms, err}
	return forms, err
}

// resolution is the result of resolving a path.
type resolution struct {
	forms PathForms
	err   error
}

func (e *evaluation) resolveNow(dir, given string) (PathForms, error) {
	if f := e.in.Env.Resolve; f != nil {
		return f(dir, given, e.in.Env.Home)
	}
	return e.paths.resolve(dir, given)
}

// lazyDirs are directories that are resolved when they are first needed.
type lazyDirs struct {
	given, resolved []string
	done            bool
}

// get returns each directory as given and, where that differs, with links
// resolved.
func (l *lazyDirs) get(e *evaluation) []string {
	if !l.done {
		l.resolved, l.done = e.places(l.given), true
	}
	return l.resolved
}

// places returns absolute directories, as given and with links resolved.
func (e *evaluation) places(dirs []string) []string {
	out := make([]string, 0, 2*len(dirs))
	for _, d := range dirs {
		if !path.IsAbs(d) {
			continue
		}
		out = append(out, path.Clean(d))
		if f, err := e.resolve(d, d); err == nil && f.Place.Path != path.Clean(d) {
			out = append(out, f.Place.Path)
		}
	}
	return out
}

// inside reports whether a place lies in one of dirs.
func inside(p string, dirs []string, fold bool) bool {
	return slices.ContainsFunc(dirs, func(d string) bool {
		if fold {
			p, d = foldName(p, true), foldName(d, true)
		}
		_, ok := below(p, d)
		return ok
	})
}
