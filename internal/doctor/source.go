package doctor

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/abhed/abhed/internal/confedit"
	"github.com/abhed/abhed/internal/hostconf"
	"github.com/abhed/abhed/internal/install"
	"github.com/abhed/abhed/internal/install/bridge"
	"github.com/abhed/abhed/internal/strictjson"
)

// source is one file of a host that is there.
type source struct {
	hostconf.File
	path string
	data []byte
	json *confedit.JSON
	toml *confedit.TOML
	tree map[string]any // of TOML
	err  error
}

// sources reads every configuration source of a host that is there, the project's
// included. Folders of scripts and plugins give one source for each file in them.
func (d *doctor) sources(h hostconf.Host) []*source {
	var out []*source
	for _, f := range h.Files {
		if f.Scope == hostconf.Project && d.o.Roots.Project == "" {
			continue
		}
		for _, path := range expand(d.o.Roots, f) {
			if slices.ContainsFunc(out, func(s *source) bool { return s.path == path }) {
				continue
			}
			if s := read(f, path); s != nil {
				out = append(out, s)
			}
		}
	}
	return out
}

// expand returns the files that f stands for.
func expand(roots hostconf.Roots, f hostconf.File) []string {
	path := roots.Path(f)
	switch {
	case f.Format == hostconf.Script || f.Format == hostconf.Plugin:
		entries, _ := os.ReadDir(path)
		var out []string
		for _, e := range entries {
			if !e.IsDir() {
				out = append(out, filepath.Join(path, e.Name()))
			}
		}
		return out
	case strings.Contains(f.Path, "*"):
		found, _ := filepath.Glob(strings.NewReplacer(`\`, `\\`, "[", `\[`, "?", `\?`).Replace(path))
		return found
	}
	return []string{path}
}

// read reads one file; nil if it isn't there.
func read(f hostconf.File, path string) *source {
	s := &source{File: f, path: path}
	state, err := confedit.Read(path)
	if err == nil && !state.Exists {
		return nil
	}
	if s.data, s.err = state.Data, err; err != nil {
		return s
	}
	switch f.Format {
	case hostconf.JSON, hostconf.JSONC:
		s.json, s.err = confedit.ParseJSON(s.data, confedit.JSONOptions{Name: path, Comments: f.Format == hostconf.JSONC})
	case hostconf.TOML:
		if s.toml, s.err = confedit.ParseTOML(s.data, path); s.err == nil {
			s.err = toml.Unmarshal(s.data, &s.tree)
		}
	}
	return s
}

// where returns the place of a parse error.
func (s *source) where() string {
	var e *confedit.Error
	if errors.As(s.err, &e) {
		return at(s.path, e.Line)
	}
	return s.path
}

// value is what stands at a path of names: its JSON, or what TOML has as text.
func (s *source) value(name string) (text string, line int, is bool) {
	parts := strings.Split(name, ".")
	if s.err != nil {
		return "", 0, false
	}
	if s.json != nil {
		if found := s.json.List(parts...); len(found) > 0 {
			return strings.TrimSpace(string(found[0].JSON)), found[0].Line, true
		}
		return "", 0, false
	}
	var v any = s.tree
	for _, p := range parts {
		m, ok := v.(map[string]any)
		if !ok {
			return "", 0, false
		}
		if v, ok = m[p]; !ok {
			return "", 0, false
		}
	}
	raw, err := strictjson.Marshal(v)
	if err != nil {
		return "", 0, false
	}
	if blocks := s.toml.Blocks(parts[:len(parts)-1]...); len(blocks) > 0 {
		line = blocks[0].Line
	}
	return string(raw), line, true
}

// hook is one hook that a file registers.
type hook struct {
	path, event, command string
	line                 int
	// element is the entry as JSON; nil where there is none. alone tells that nothing but
	// this hook is in it.
	element []byte
	alone   bool
	// script tells that the file itself is started, bridge that the host loads it.
	script bool
	bridge *bridge.Parameters
}

func (k *hook) ours() bool { return k.bridge != nil || install.IsLine(k.command) }

// hooks returns what a source registers, in its order.
func (s *source) hooks(host string) []hook {
	switch {
	case s.err != nil:
		return nil
	case s.Format == hostconf.Script:
		event := strings.TrimSuffix(filepath.Base(s.path), filepath.Ext(s.path))
		k := hook{path: s.path, event: event, command: s.path, script: true}
		if rest, is := strings.CutPrefix(string(s.data), "#!/bin/sh\n"); is && install.IsLine(rest) {
			k.command = strings.TrimSuffix(rest, "\n")
		}
		return []hook{k}
	case s.Format == hostconf.Plugin:
		k := hook{path: s.path, command: s.path}
		if bridge.Is(s.data) {
			p, _ := bridge.Read(s.data) // what can't be read starts nothing, and the plan tells of it
			k.bridge = &p
		}
		return []hook{k}
	case s.toml != nil:
		return tomlHooks(s)
	case s.json != nil:
		return jsonHooks(s, host)
	}
	return nil
}

func tomlHooks(s *source) []hook {
	var out []hook
	for _, b := range s.toml.Blocks("hooks") {
		if b.Array {
			out = append(out, hook{path: s.path, event: b.Values["event"], command: b.Values["command"], line: b.Line, element: values(b), alone: true})
		}
	}
	for _, b := range s.toml.Blocks("hooks", "*", "hooks") {
		out = append(out, hook{path: s.path, event: b.Name[1], command: b.Values["command"], line: b.Line, alone: true})
	}
	return out
}

// values returns a table's members as JSON.
func values(b confedit.Block) []byte {
	raw, _ := strictjson.Marshal(b.Values)
	return raw
}

// jsonEntry is an entry in any of the shapes.
type jsonEntry struct {
	jsonCommand
	Trigger string        `json:"trigger"`
	Action  jsonCommand   `json:"action"`
	Hooks   []jsonCommand `json:"hooks"`
}

type jsonCommand struct {
	Command foreign `json:"command"`
	Bash    foreign `json:"bash"`
	URL     foreign `json:"url"`
	Type    foreign `json:"type"`
}

// foreign is a string, or anything else, which is no command.
type foreign = any

// text is what such an entry runs.
func (c jsonCommand) text() string {
	for _, v := range []any{c.Command, c.Bash, c.URL, c.Type} {
		if s, is := v.(string); is && s != "" {
			return s
		}
	}
	return ""
}

func jsonHooks(s *source, host string) []hook {
	var out []hook
	take := func(f confedit.Found, event string) {
		var e jsonEntry
		if strictjson.Unmarshal(f.JSON, &e, strictjson.Options{}) != nil {
			return
		}
		list := e.Hooks
		switch {
		case e.Trigger != "":
			event, list = e.Trigger, []jsonCommand{e.Action}
		case len(list) == 0:
			list = []jsonCommand{e.jsonCommand}
		}
		for _, c := range list {
			if c.text() != "" {
				out = append(out, hook{path: s.path, event: event, command: c.text(), line: f.Line, element: f.JSON, alone: len(list) == 1})
			}
		}
	}
	outer := []string{"hooks"}
	if host == "droid" && filepath.Base(s.path) == "hooks.json" {
		outer = nil // measured: that file has no outer key
	}
	for _, f := range s.json.List(append(slices.Clone(outer), "*")...) {
		inner := s.json.List(append(slices.Clone(f.Path), "*")...)
		if len(f.JSON) > 0 && f.JSON[0] == '{' {
			take(f, "")
			continue
		}
		for _, g := range inner {
			take(g, f.Path[len(f.Path)-1])
		}
	}
	return out
}
