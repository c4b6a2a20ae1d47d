// Package vectors holds test data for implementations of the Agent Hooks Protocol,
// in whatever language: messages, each with what an implementation must make of
// it, and exchanges between a harness and its backends with their outcome.
//
// It guarantees that each message breaks one rule at most and names the layer that
// must refuse it; that ids are unique; and that the loader takes no file whose
// sections or header it doesn't know, so that a vector is never half understood.
//
// Do not assume that an implementation which passes them all conforms: they show
// what they show.
//
// A file is a txtar archive: a header of "name: value" lines, then sections that
// start with "-- name --" lines. README.md says which there are.
package vectors

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

//go:embed messages exchanges
var files embed.FS

// Files returns the vectors as files, in the folders "messages" and "exchanges".
func Files() fs.FS { return files }

// Messages returns the message vectors in the order of their ids.
func Messages() ([]Message, error) {
	return load("messages", ParseMessage, func(m *Message) string { return m.ID })
}

// Exchanges returns the exchange vectors in the order of their ids.
func Exchanges() ([]Exchange, error) {
	return load("exchanges", ParseExchange, func(x *Exchange) string { return x.ID })
}

// load parses every file of a folder; the id of each is its file's name.
func load[T any](dir string, parse func(name string, data []byte) (*T, error), id func(*T) string) ([]T, error) {
	entries, err := files.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("vectors: %w", err)
	}
	var out []T
	for _, e := range entries {
		data, err := files.ReadFile(path.Join(dir, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("vectors: %w", err)
		}
		v, err := parse(e.Name(), data)
		if err != nil {
			return nil, err
		}
		if e.Name() != id(v)+".txtar" {
			return nil, fmt.Errorf("vectors: %s holds the vector %q, expected that of its name", e.Name(), id(v))
		}
		out = append(out, *v)
	}
	return out, nil
}

// archive is a file as it is written.
type archive struct {
	name     string
	header   map[string]string
	sections map[string]string
}

var sectionLine = regexp.MustCompile(`^-- (.+) --$`)

// parse splits a file; header and sections must have the names given, those in
// need must be there.
func parse(name string, data []byte, headers, sections, need []string) (*archive, error) {
	a := &archive{name: name, header: map[string]string{}, sections: map[string]string{}}
	section := ""
	for n, line := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n") {
		at := fmt.Sprintf("vectors: %s:%d", name, n+1)
		if m := sectionLine.FindStringSubmatch(line); m != nil {
			section = m[1]
			if _, twice := a.sections[section]; twice {
				return nil, fmt.Errorf("%s: section %q is there twice", at, section)
			}
			if !slices.Contains(sections, section) {
				return nil, fmt.Errorf("%s: unknown section %q; there are %v", at, section, sections)
			}
			a.sections[section] = ""
			continue
		}
		if section != "" {
			a.sections[section] += line + "\n"
			continue
		}
		key, value, is := strings.Cut(line, ":")
		_, twice := a.header[key]
		switch {
		case line == "":
			continue
		case !is || !slices.Contains(headers, key):
			return nil, fmt.Errorf("%s: %q is no line of a header; there are %v", at, line, headers)
		case twice:
			return nil, fmt.Errorf("%s: %q is there twice", at, key)
		}
		a.header[key] = strings.TrimSpace(value)
	}
	for _, key := range need {
		_, inHeader := a.header[key]
		_, inSections := a.sections[key]
		if !inHeader && !inSections {
			return nil, fmt.Errorf("vectors: %s lacks %q", name, key)
		}
	}
	return a, nil
}

// text returns a section without its last newline.
func (a *archive) text(section string) string {
	return strings.TrimSuffix(a.sections[section], "\n")
}

// lines returns the lines of a section that aren't empty.
func (a *archive) lines(section string) []string {
	var out []string
	for _, line := range strings.Split(a.sections[section], "\n") {
		if line != "" {
			out = append(out, line)
		}
	}
	return out
}

// has reports whether a section is there.
func (a *archive) has(section string) bool {
	_, is := a.sections[section]
	return is
}
