package doctor

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/abhed/abhed/internal/confedit"
	"github.com/abhed/abhed/internal/hostconf"
	"github.com/abhed/abhed/internal/install"
	"github.com/abhed/abhed/internal/install/bridge"
	"github.com/abhed/abhed/internal/strictjson"
)

// compare plans the installation once more: whatever that would change is not as it was
// installed.
func (s *site) compare() {
	if s.call.Binary == "" {
		return // the missing program is told
	}
	p, err := install.Install(s.host, s.dialect, s.options())
	if err != nil {
		f := Finding{Level: Wrong, Check: "entries", What: err.Error(), Do: "repair that, then " + s.again()}
		var e *confedit.Error
		if errors.As(err, &e) {
			f.Where, f.What = at(e.Name, e.Line), e.Msg
		}
		s.add(f)
		return
	}
	for _, f := range p.Files {
		if f.Action == install.Keep {
			s.add(Finding{Level: OK, Check: "entries", What: "the entries are as installed", Where: f.Path})
			continue
		}
		s.differs(f)
	}
	for _, text := range p.Remains { // hooks of others that never run; what is to be done at first is told at install
		if strings.Contains(text, "never runs") {
			s.add(Finding{Level: Warning, Check: "inert-hook", What: text, Do: "use the event's name of " + s.dialect.Title})
		}
	}
}

// differs says what in a file isn't as installed.
func (s *site) differs(f install.File) {
	t, is := s.target(f.Path)
	switch {
	case !is && filepath.Base(f.Path) == "requirements.toml":
		s.add(Finding{Level: Wrong, Check: "requirements", What: "[features] hooks = true is missing: a project can switch managed hooks off", Where: f.Path, Do: s.again()})
	case f.Before == nil && t.Shape == hostconf.Scripts:
		s.add(Finding{Level: Wrong, Check: "entry-missing", What: "the script for " + filepath.Base(f.Path) + " is gone", Where: f.Path, Do: s.again()})
	case f.Before == nil:
		s.add(Finding{Level: Wrong, Check: "file-missing", What: "the file is gone, and with it every entry of AHP", Where: f.Path, Do: s.again()})
	case t.Shape == hostconf.Bridge:
		s.bridgeDiffers(f)
	case t.Shape == hostconf.Scripts:
		s.scriptDiffers(f)
	default:
		s.entriesDiffer(t, f)
	}
}

func (s *site) bridgeDiffers(f install.File) {
	what := fmt.Sprintf("the bridge isn't the one that ahp install writes: %d bytes instead of %d", len(f.Before), len(f.After))
	switch {
	case bytes.HasPrefix(f.After, f.Before):
		what = fmt.Sprintf("the bridge was cut off after %d of %d bytes", len(f.Before), len(f.After))
	default:
		before, err := bridge.Read(f.Before)
		after, _ := bridge.Read(f.After)
		if err == nil {
			list := []string{}
			if before.Binary != after.Binary {
				list = append(list, fmt.Sprintf("the program is %s, expected %s", before.Binary, after.Binary))
			}
			if before.OnMissing != after.OnMissing {
				list = append(list, fmt.Sprintf("onMissing is %q, expected %q", before.OnMissing, after.OnMissing))
			}
			if strings.Join(before.Args, "\x00") != strings.Join(after.Args, "\x00") {
				list = append(list, fmt.Sprintf("the arguments are %q, expected %q", before.Args, after.Args))
			}
			if len(list) > 0 {
				what += "; " + strings.Join(list, "; ")
			}
		}
	}
	line := 1 + bytes.Count(f.Before[:common(f.Before, f.After)], []byte("\n"))
	s.add(Finding{Level: Wrong, Check: "bridge-changed", What: what, Where: at(f.Path, line), Do: s.again()})
}

// common is the length of what two texts begin with.
func common(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func (s *site) scriptDiffers(f install.File) {
	event := strings.TrimSuffix(filepath.Base(f.Path), ".sh")
	what := "the script for " + event + " isn't as installed"
	if bytes.Equal(f.Before, f.After) {
		what = "the script for " + event + " isn't executable by all, as installed"
		if info, err := os.Stat(f.Path); err == nil {
			what += ": its mode is " + info.Mode().String()
		}
	} else if before, is := bytes.CutPrefix(f.Before, []byte("#!/bin/sh\n")); is {
		what += ": " + lineDiffers(strings.TrimSuffix(string(before), "\n"), strings.TrimSuffix(string(f.After[len("#!/bin/sh\n"):]), "\n"))
	}
	s.add(Finding{Level: Wrong, Check: "entry-changed", What: what, Where: f.Path, Do: s.again()})
}

// entriesDiffer says it event by event.
func (s *site) entriesDiffer(t hostconf.Target, f install.File) {
	before, after := s.oursIn(t, f.Path, f.Before), s.oursIn(t, f.Path, f.After)
	var missing []string
	said := false
	for _, want := range after {
		var there []hook
		for _, k := range before {
			if k.event == want.event {
				there = append(there, k)
			}
		}
		if len(there) == 0 {
			missing = append(missing, want.event)
			continue
		}
		for i, k := range there {
			what := entryDiffers(k, want)
			if what == "" && i > 0 {
				what = "it is there twice"
			}
			if what != "" {
				said = true
				s.add(Finding{Level: Wrong, Check: "entry-changed", What: "the entry for " + k.event + " isn't as installed: " + what, Where: at(f.Path, k.line), Do: s.again()})
			}
		}
	}
	if len(missing) > 0 {
		said = true
		s.add(Finding{Level: Wrong, Check: "entry-missing", What: "no entry of AHP is left for " + events(missing), Where: f.Path, Do: s.again()})
	}
	if !said {
		s.add(Finding{Level: Wrong, Check: "entry-changed", What: "the file isn't as ahp install would leave it", Where: f.Path, Do: "see ahp install " + s.host.Name + " --dry-run, then " + s.again()})
	}
}

// oursIn returns our hooks in a file's bytes.
func (s *site) oursIn(t hostconf.Target, path string, data []byte) []hook {
	src := &source{File: t.File, path: path, data: data}
	if t.Format == hostconf.TOML {
		src.toml, src.err = confedit.ParseTOML(data, path)
	} else {
		src.json, src.err = confedit.ParseJSON(data, confedit.JSONOptions{Name: path, Comments: t.Format == hostconf.JSONC})
	}
	var out []hook
	for _, k := range src.hooks(s.host.Name) {
		if k.ours() {
			out = append(out, k)
		}
	}
	return out
}

// entryDiffers says how an entry isn't as it should be; "" if it is.
func entryDiffers(k, want hook) string {
	if k.command != want.command {
		return lineDiffers(k.command, want.command)
	}
	if strictjson.Equal(k.element, want.element) {
		return ""
	}
	var a, b map[string]any
	if strictjson.Unmarshal(k.element, &a, strictjson.Options{}) != nil || strictjson.Unmarshal(want.element, &b, strictjson.Options{}) != nil {
		return "something beside the command is another"
	}
	if text := memberDiffers(a, b); text != "" {
		return text
	}
	// The same members of the one hook inside.
	inner := func(m map[string]any) map[string]any {
		list, _ := m["hooks"].([]any)
		if len(list) == 0 {
			return nil
		}
		one, _ := list[0].(map[string]any)
		return one
	}
	if text := memberDiffers(inner(a), inner(b)); text != "" {
		return text
	}
	return "something beside the command is another"
}

// memberDiffers names the first simple member that differs.
func memberDiffers(a, b map[string]any) string {
	for _, m := range []map[string]any{a, b} {
		for _, name := range sorted(m) {
			if compound(a[name]) || compound(b[name]) {
				continue
			}
			x, isX := a[name]
			y, isY := b[name]
			switch {
			case isX && !isY:
				return fmt.Sprintf("%q is %v, expected none", name, x)
			case !isX && isY:
				return fmt.Sprintf("%q is missing, expected %v", name, y)
			case x != y:
				return fmt.Sprintf("%q is %v, expected %v", name, x, y)
			}
		}
	}
	return ""
}

// lineDiffers says how an installed line was changed.
func lineDiffers(line, want string) string {
	got, err := install.ParseLine(line)
	if err != nil {
		return "its command is another: " + err.Error()
	}
	wanted, err := install.ParseLine(want)
	if err != nil {
		return "its command is another"
	}
	a, b := append([]string{got.Binary}, got.Args()...), append([]string{wanted.Binary}, wanted.Args()...)
	if strings.Join(a, "\x00") != strings.Join(b, "\x00") {
		return fmt.Sprintf("it starts %q, expected %q", strings.Join(a, " "), strings.Join(b, " "))
	}
	n := common([]byte(line), []byte(want))
	part := func(s string) string {
		from := max(0, n-10)
		return short(s[min(from, len(s)):min(n+30, len(s))], 60)
	}
	return fmt.Sprintf("what it makes of ahp's answer was changed at byte %d: found %q, expected %q", n, part(line), part(want))
}

// sorted returns the names of m in order.
func sorted(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

// compound reports whether a JSON value is a list or an object.
func compound(v any) bool {
	switch v.(type) {
	case []any, map[string]any:
		return true
	}
	return false
}
