package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/ahpconfig"
	"github.com/abhed/abhed/internal/strictjson"
)

// misplaced returns a fault for each member of a registration that belongs in a settings
// file. The protocol has such members ignored, so rules that somebody wrote there hold
// nothing back, and nobody would notice.
func misplaced(s ahpconfig.Source) []settingsFault {
	var members map[string]jsontext.Value
	if err := strictjson.Unmarshal(s.Content, &members, strictjson.Options{MaxBytes: maxSettings}); err != nil {
		return nil // which the reading of the registration says
	}
	var out []settingsFault
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !slices.Contains([]string{"permissions", "deny", "ask", "allow", "rules", "mode", "tools", "sandbox", "limits", "extensions", "mcp", "secrets"}, name) {
			continue
		}
		f := settingsFault{File: s.Path, Key: name, ignored: true}
		f.Line, f.Column = strictjson.LineColumn(s.Content, ahp.Locate(s.Content, "/"+name))
		f.Message = fmt.Sprintf("%s:%d:%d: %q counts for nothing in an AHP registration; it belongs in a settings file: ~/.config/abhed/config.json, or .abhed/config.json of the workspace", s.Path, f.Line, f.Column, name)
		out = append(out, f)
	}
	return out
}

// checkRegistered checks the registrations that would be in force with the settings. The
// code is as in checkHere.
func (c *checkedFile) checkRegistered(l *loaded, sys System) (int, error) {
	if slices.ContainsFunc(c.Faults, func(f settingsFault) bool { return f.Key == "ahp.registration" }) {
		return 0, nil // it is said already
	}
	e := &engine{o: buildOptions{loaded: l}, sys: sys}
	err := e.readRegistrations(context.Background())
	switch {
	case l.registration != "" && errors.Is(err, fs.ErrNotExist):
		return ExitUsage, err
	case err != nil:
		c.Faults = append(c.Faults, settingsFault{Message: err.Error()})
	default:
		for _, s := range e.registered.Sources {
			c.Read = append(c.Read, s.Path)
			c.Faults = append(c.Faults, misplaced(s)...)
		}
	}
	for _, w := range e.warnings { // here what a run only warns of is a fault
		if !slices.ContainsFunc(c.Faults, func(f settingsFault) bool { return f.Message == w }) {
			c.Warnings = append(c.Warnings, w)
		}
	}
	c.OK = len(c.Faults) == 0
	return 0, nil
}
