package proc

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Environ returns a small environment for a child, sorted by name: PATH, HOME,
// LANG, LC_*, TMPDIR, USER and XDG_* of this process, then extra, of which later
// entries win. Nothing else of this process's environment gets through, so no API
// key and no setting of the harness does unless the caller names it
// (spec/extensions.md, Configuration). Entries of extra that Start would refuse
// are kept, so that Start can say so.
func Environ(extra []string) []string {
	merged := map[string]string{}
	for _, entry := range os.Environ() {
		if name, _, ok := strings.Cut(entry, "="); ok && passes(name) {
			merged[name] = entry
		}
	}
	for _, entry := range extra {
		name, _, _ := strings.Cut(entry, "=")
		merged[name] = entry
	}
	env := make([]string, 0, len(merged))
	for _, name := range slices.Sorted(maps.Keys(merged)) {
		env = append(env, merged[name])
	}
	return env
}

func passes(name string) bool {
	switch name {
	case "PATH", "HOME", "LANG", "TMPDIR", "USER":
		return true
	}
	return strings.HasPrefix(name, "LC_") || strings.HasPrefix(name, "XDG_")
}

// checkEnv returns what is wrong with env, or "". Values are not quoted: they may
// be secret.
func checkEnv(env []string) string {
	for i, entry := range env {
		name, _, ok := strings.Cut(entry, "=")
		switch {
		case !ok || name == "":
			return fmt.Sprintf("environment entry %d is not NAME=value", i)
		case strings.IndexByte(entry, 0) >= 0:
			return fmt.Sprintf("environment variable %q holds a NUL byte", strings.ToValidUTF8(name, "?"))
		}
	}
	return ""
}

// LookPath returns the file that Start would execute for a program named path, a
// working directory and an environment, or why there is none. A path with a slash
// is not checked.
func LookPath(path, dir string, env []string) (string, error) {
	spec := Spec{Path: path, Dir: dir, Env: env}
	file, reason := lookup(&spec)
	if reason != "" {
		return "", &StartError{Name: spec.name(), Path: path, Reason: reason}
	}
	return file, nil
}

// lookup returns the file to execute for spec.Path, or the reason why there is none.
func lookup(spec *Spec) (file, reason string) {
	switch {
	case spec.Path == "":
		return "", "no program given"
	case strings.ContainsRune(spec.Path, '/'):
		if !filepath.IsAbs(spec.Path) && spec.Dir != "" {
			return filepath.Join(spec.Dir, spec.Path), ""
		}
		return spec.Path, ""
	}
	path := ""
	for _, entry := range spec.Env {
		if value, ok := strings.CutPrefix(entry, "PATH="); ok {
			path = value
		}
	}
	for _, dir := range filepath.SplitList(path) {
		// A relative element would let the working directory choose the program.
		if !filepath.IsAbs(dir) {
			continue
		}
		file := filepath.Join(dir, spec.Path)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file, ""
		}
	}
	return "", fmt.Sprintf("no such program in the %d folders of PATH; install it or give its absolute path", len(filepath.SplitList(path)))
}
