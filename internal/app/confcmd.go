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

	"github.com/abhed/abhed/internal/ahpconfig"
	"github.com/abhed/abhed/internal/config"
	"github.com/abhed/abhed/internal/strictjson"
)

// ConfigCheckOptions says what settings to check.
type ConfigCheckOptions struct {
	SettingsOptions
	// Files are settings files; none means everything that would be in force.
	Files []string
	JSON  bool
}

// ConfigCheck checks settings and prints every fault in them. It exits with 1 if
// there is one.
func ConfigCheck(o ConfigCheckOptions, sys System) int {
	var checked []checkedFile
	if len(o.Files) == 0 {
		here, code, err := checkHere(o.SettingsOptions, sys)
		if err != nil {
			return sys.fail(code, err)
		}
		checked = append(checked, here)
	}
	for _, file := range o.Files {
		c, err := checkFile(file, o.SettingsOptions, sys)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return sys.fail(ExitUsage, err)
		case err != nil:
			return sys.fail(ExitFailure, err)
		}
		checked = append(checked, c)
	}
	sound := !slices.ContainsFunc(checked, func(c checkedFile) bool { return !c.OK })
	for _, c := range checked {
		if err := c.print(sys, o.JSON); err != nil {
			return sys.fail(ExitFailure, err)
		}
	}
	if !sound {
		return ExitNegative
	}
	return ExitOK
}

// checkedFile is what came of a check, as its JSON form has it.
type checkedFile struct {
	OK bool `json:"ok"`
	// Read lists the files that were read, Absent those that aren't there.
	Read     []string        `json:"read"`
	Absent   []string        `json:"absent,omitempty"`
	Faults   []settingsFault `json:"faults"`
	Warnings []string        `json:"warnings,omitempty"`
}

// settingsFault is one fault. Line and Column count from 1 and are 0 where the
// fault stands in no file.
type settingsFault struct {
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	Key    string `json:"key,omitempty"`
	// Message is the fault as a line of text, its place included.
	Message string `json:"message"`
	// ignored says that a run warns of it, and starts.
	ignored bool
}

// checkHere checks what would be in force. The code is for the error, which says
// that the check itself was not possible.
func checkHere(o SettingsOptions, sys System) (checkedFile, int, error) {
	if _, err := realDir(cmp.Or(o.Dir, ".")); err != nil {
		return checkedFile{}, ExitUsage, fmt.Errorf("the workspace can't be used: %w", err)
	}
	var c checkedFile
	l, err := loadSettings(o, sys)
	if err != nil {
		var path *fs.PathError
		switch {
		case errors.As(err, new(*config.Errors)):
		case errors.Is(err, fs.ErrNotExist):
			return c, ExitUsage, err
		case errors.As(err, &path):
			return c, ExitFailure, err
		}
		c.Faults = faultsOf(err)
		return c, 0, nil
	}
	for _, file := range l.files {
		if _, err := os.Stat(file); err == nil {
			c.Read = append(c.Read, file)
		} else {
			c.Absent = append(c.Absent, file)
		}
	}
	c.judge(l.Settings, sys, "")
	c.Warnings = append(l.notes(), c.Warnings...)
	code, err := c.checkRegistered(l, sys)
	return c, code, err
}

// checkFile checks one file as it would count at its place: the managed one, a
// project's, or else the user's. What ranks above it is read too, if that is sound by
// itself, because a model may name a provider that stands there; a fault that only both
// together have is reported.
func checkFile(file string, o SettingsOptions, sys System) (checkedFile, error) {
	abs, err := filepath.Abs(file)
	if err != nil {
		return checkedFile{}, err
	}
	data, err := readBounded(abs, maxSettings)
	if err != nil {
		return checkedFile{}, fmt.Errorf("the settings can't be read: %w", err)
	}
	src := config.Source{Layer: config.User, File: abs, Dir: filepath.Dir(abs), Home: sys.home(), Data: data, Trusted: true}
	switch {
	case abs == sys.managedFile():
		src.Layer = config.Managed
	case filepath.Base(src.Dir) == ".abhed" && filepath.Base(abs) == "config.json":
		src.Layer, src.Dir = config.Project, filepath.Dir(src.Dir)
	}
	above, err := sourcesAbove(src.Layer, o, sys)
	if err != nil {
		return checkedFile{}, err
	}
	c := checkedFile{Read: []string{abs}}
	s, err := config.Load(append(above, src))
	if err != nil {
		c.Faults = faultsOf(err)
		return c, nil
	}
	c.judge(s, sys, abs)
	return c, nil
}

// sourcesAbove returns the settings that rank above a layer; none if they are at
// fault by themselves.
func sourcesAbove(layer config.Layer, o SettingsOptions, sys System) ([]config.Source, error) {
	workspace, err := realDir(cmp.Or(o.Dir, "."))
	if err != nil {
		return nil, fmt.Errorf("the workspace can't be used: %w", err)
	}
	files, err := (&loaded{workspace: workspace}).read(o, sys)
	if err != nil {
		return nil, err
	}
	above := []config.Source{{Layer: config.Environment, File: "environment", Home: sys.home(), Environ: sys.Environ}}
	above = slices.DeleteFunc(append(above, files...), func(s config.Source) bool { return s.Layer <= layer })
	if _, err := config.Load(above); err != nil {
		return nil, nil
	}
	return above, nil
}

// judge checks what a start checks of settings that were understood; of those that
// stand in one file only, unless it is "".
func (c *checkedFile) judge(s *config.Settings, sys System, only string) {
	here := func(o config.Origin) bool { return only == "" || o.File == only }
	if o, ok := s.Origin("http.ca_file"); ok && here(o) {
		if err := s.CheckCAFile(func(f string) ([]byte, error) { return readBounded(f, maxSettings) }); err != nil {
			c.Faults = append(c.Faults, faultsOf(err)...)
		}
	}
	if o, ok := s.Origin("ahp.registration"); ok && here(o) {
		if err := checkRegistration(s.AHP.Registration); err != nil {
			c.Faults = append(c.Faults, faultsOf(&config.Error{Origin: o, Found: err.Error()})...)
		} else if data, err := readBounded(s.AHP.Registration, maxSettings); err == nil && only != "" {
			c.Faults = append(c.Faults, misplaced(ahpconfig.Source{Path: s.AHP.Registration, Content: data})...)
		}
	}
	faults, warnings := ruleFaults(s, sys, here)
	c.Faults, c.Warnings = append(c.Faults, faults...), append(c.Warnings, warnings...)
	slices.SortStableFunc(c.Faults, func(a, b settingsFault) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	c.OK = len(c.Faults) == 0
}

// faultsOf returns every fault of an error, one by one.
func faultsOf(err error) []settingsFault {
	var many *config.Errors
	var one *config.Error
	var list []*config.Error
	switch {
	case errors.As(err, &many):
		list = many.List
	case errors.As(err, &one):
		list = []*config.Error{one}
	default:
		return []settingsFault{{Message: err.Error()}}
	}
	out := make([]settingsFault, len(list))
	for i, e := range list {
		o := e.Origin
		out[i] = settingsFault{File: o.File, Line: o.Line, Column: o.Column, Key: o.Key, Message: e.Error()}
	}
	return out
}

func (c checkedFile) print(sys System, asJSON bool) error {
	if asJSON {
		if c.Faults == nil {
			c.Faults = []settingsFault{}
		}
		if c.Read == nil {
			c.Read = []string{}
		}
		b, err := strictjson.Marshal(c)
		if err == nil {
			_, err = fmt.Fprintf(sys.Stdout, "%s\n", b)
		}
		return err
	}
	var b strings.Builder
	for _, f := range c.Faults {
		fmt.Fprintf(&b, "%s\n", oneLine(f.Message))
	}
	if n := len(c.Faults); n > 0 {
		what := "what they name holds nothing"
		if slices.ContainsFunc(c.Faults, func(f settingsFault) bool { return !f.ignored }) {
			what = "nothing starts with these settings"
		}
		fmt.Fprintf(&b, "%s: %s\n", count(n, "fault"), what)
	} else {
		for _, file := range c.Read {
			fmt.Fprintf(&b, "valid      %s\n", oneLine(file))
		}
		for _, file := range c.Absent {
			fmt.Fprintf(&b, "not there  %s\n", oneLine(file))
		}
	}
	for _, w := range c.Warnings {
		fmt.Fprintf(sys.Stderr, "warning: %s\n", oneLine(w))
	}
	_, err := fmt.Fprint(sys.Stdout, b.String())
	return err
}

// count returns "1 fault" or "2 faults".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// ConfigShow prints the settings that would be in force, each with where it comes
// from. No secret is in it.
func ConfigShow(o SettingsOptions, asJSON bool, sys System) int {
	l, err := loadSettings(o, sys)
	if err != nil {
		return sys.fail(ExitUsage, err)
	}
	e := l.Explain()
	if !asJSON {
		fmt.Fprint(sys.Stdout, e.Text())
		return ExitOK
	}
	b, err := e.JSON()
	if err != nil {
		return sys.fail(ExitFailure, err)
	}
	fmt.Fprintf(sys.Stdout, "%s\n", b)
	return ExitOK
}

// ConfigSchema prints the JSON Schema of a settings file.
func ConfigSchema(sys System) int {
	b, err := config.Schema()
	if err != nil {
		return sys.fail(ExitFailure, err)
	}
	if _, err := sys.Stdout.Write(b); err != nil {
		return sys.fail(ExitFailure, err)
	}
	return ExitOK
}
