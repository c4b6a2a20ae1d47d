package app

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/abhed/abhed/internal/config"
	"github.com/abhed/abhed/internal/policy"
)

// maxSettings bounds the size of a settings file.
const maxSettings = 4 << 20

// SettingsOptions are the flags that change what judges a call.
type SettingsOptions struct {
	Mode, Model      string
	Allow, Ask, Deny []string
	// Dir is the workspace; "" means the current directory.
	Dir     string
	AddDirs []string
	// ConfigFile replaces the user's settings file; it must exist. UserData, if not nil,
	// is what is read instead, and relative paths in it start at the workspace.
	ConfigFile string
	UserData   []byte
	// Registration is an AHP registration file; it must exist.
	Registration   string
	TrustWorkspace bool
	MinTier        string
	// The limits of a run; zero leaves the configured limit.
	MaxTurns, MaxTokens, MaxSeconds int64
	MaxCost                         float64
}

// loaded is the settings of a run with what they belong to.
type loaded struct {
	*config.Settings
	workspace string
	roots     []string
	// registration is the file that --ahp names; trusted says that the workspace's
	// own settings apply in full.
	registration string
	trusted      bool
	// held says that the workspace's own settings are trusted with the content that
	// they have ("abhed trust"); noLonger, if not "", what of them has changed since.
	held     bool
	noLonger string
	// files lists the settings files that were read, or would have been.
	files []string
}

// loadSettings reads and merges every source of settings.
func loadSettings(o SettingsOptions, sys System) (*loaded, error) {
	dir := o.Dir
	if dir == "" {
		dir = "."
	}
	workspace, err := realDir(dir)
	if err != nil {
		return nil, fmt.Errorf("the workspace can't be used: %w", err)
	}
	l := &loaded{workspace: workspace, roots: []string{workspace}, trusted: o.TrustWorkspace}
	if o.Registration != "" {
		if l.registration, err = filepath.Abs(o.Registration); err != nil {
			return nil, err
		}
	}
	for _, d := range o.AddDirs {
		real, err := realDir(d)
		if err != nil {
			return nil, fmt.Errorf("--add-dir: %w", err)
		}
		l.roots = append(l.roots, real)
	}
	cwd, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	sources := []config.Source{
		{Layer: config.CommandLine, File: "command line", Dir: cwd, Home: sys.home(), Args: o.args()},
		{Layer: config.Environment, File: "environment", Dir: cwd, Home: sys.home(), Environ: sys.Environ},
	}
	files, err := l.read(o, sys)
	if err != nil {
		return nil, err
	}
	sources = append(sources, files...)
	if l.Settings, err = config.Load(sources); err != nil {
		return nil, err
	}
	if l.Record.Anchor != "" {
		origin, _ := l.Origin("record.anchor")
		return nil, fmt.Errorf("%s: anchors are not supported by this version; remove the setting", origin)
	}
	return l, nil
}

// read reads the settings files that exist; one that a flag names must.
func (l *loaded) read(o SettingsOptions, sys System) ([]config.Source, error) {
	managed, user := sys.managedFile(), o.ConfigFile
	switch {
	case user != "":
		abs, err := filepath.Abs(user)
		if err != nil {
			return nil, err
		}
		user = abs
	case sys.configDir() != "":
		user = filepath.Join(sys.configDir(), "config.json")
	}
	var sources []config.Source
	for _, f := range []struct {
		layer         config.Layer
		file, base    string
		must, trusted bool
	}{
		{config.Managed, managed, filepath.Dir(managed), false, true},
		{config.User, user, filepath.Dir(user), o.ConfigFile != "", true},
		{config.Project, filepath.Join(l.workspace, ".abhed", "config.json"), l.workspace, false, o.TrustWorkspace},
	} {
		if f.layer == config.User && o.UserData != nil {
			sources = append(sources, config.Source{Layer: f.layer, File: "settings of the program", Dir: l.workspace, Home: sys.home(), Data: o.UserData, Trusted: true})
			continue
		}
		if f.file == "" {
			continue
		}
		l.files = append(l.files, f.file)
		data, err := readBounded(f.file, maxSettings)
		if errors.Is(err, fs.ErrNotExist) && !f.must {
			data, err = nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("the settings can't be read: %w", err)
		}
		if f.layer == config.Project && !f.trusted {
			f.trusted, l.noLonger = projectTrust(sys, l.workspace, data)
			l.held = f.trusted
		}
		if data == nil {
			continue
		}
		sources = append(sources, config.Source{Layer: f.layer, File: f.file, Dir: f.base, Home: sys.home(), Data: data, Trusted: f.trusted})
	}
	return sources, nil
}

// notes says what of the settings was ignored and what is odd about them.
func (l *loaded) notes() []string {
	var out []string
	if l.noLonger != "" {
		out = append(out, l.noLonger)
	}
	for _, i := range l.Ignored {
		out = append(out, fmt.Sprintf("ignored: %s: %s", i.Origin, i.Reason))
	}
	for _, w := range l.Warnings {
		out = append(out, fmt.Sprintf("%s: %s", w.Origin, w.Text))
	}
	return out
}

// args returns the flags as settings.
func (o SettingsOptions) args() []config.Arg {
	var args []config.Arg
	add := func(flag, key string, values ...string) {
		if len(values) > 0 && values[0] != "" {
			args = append(args, config.Arg{Flag: flag, Key: key, Values: values})
		}
	}
	number := func(flag, key string, n int64) {
		if n != 0 {
			add(flag, key, fmt.Sprint(n))
		}
	}
	add("--mode", "permissions.mode", o.Mode)
	add("--model", "model", o.Model)
	add("--allow", "permissions.allow", o.Allow...)
	add("--ask", "permissions.ask", o.Ask...)
	add("--deny", "permissions.deny", o.Deny...)
	add("--min-tier", "sandbox.min_tier", o.MinTier)
	number("--max-turns", "limits.max_turns", o.MaxTurns)
	number("--max-tokens", "limits.max_tokens", o.MaxTokens)
	if o.MaxCost != 0 {
		add("--max-cost", "limits.max_cost_usd", strconv.FormatFloat(o.MaxCost, 'f', -1, 64))
	}
	number("--max-time", "limits.max_seconds", o.MaxSeconds)
	return args
}

// readBounded reads a regular file of at most limit bytes.
func readBounded(file string, limit int64) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", file)
	}
	if info.Size() > limit {
		return nil, fmt.Errorf("%s has %d bytes, the limit is %d", file, info.Size(), limit)
	}
	return os.ReadFile(file)
}

// restrictions hands deny or ask rules to the policy. What a managed rule says of
// "~" holds for the account's home too: HOME is the user's to set.
func restrictions(rules []config.Rule, home string) []policy.RuleText {
	out := ruleTexts(rules)
	account := accountHome()
	if account == "" || account == home {
		return out
	}
	for i, r := range rules {
		if head, rest, ok := strings.Cut(r.Text, "(~"); ok && r.Origin.Layer == config.Managed {
			t := out[i]
			t.Text = head + "(" + escapePattern(account) + rest
			out = append(out, t)
		}
	}
	return out
}

// escapePattern makes every character of s literal in a pattern.
func escapePattern(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`).Replace(s)
}

// ruleTexts hands the rules of the settings to the policy.
func ruleTexts(rules []config.Rule) []policy.RuleText {
	out := make([]policy.RuleText, 0, len(rules))
	for _, r := range rules {
		o := r.Origin
		file := o.File
		if file == "" {
			file = o.Layer.String()
		}
		out = append(out, policy.RuleText{Text: r.Text, Origin: policy.Origin{File: file, Line: o.Line, Column: o.Column, Key: o.Key}})
	}
	return out
}

// problems joins the problems of the rules that stop the start; the rest are
// warnings.
func problems(list []policy.Problem) (warnings []string, err error) {
	var stop []string
	for i := range list {
		if list[i].Warning {
			warnings = append(warnings, list[i].Error())
		} else {
			stop = append(stop, list[i].Error())
		}
	}
	if len(stop) > 0 {
		return warnings, errors.New(strings.Join(stop, "\nabhed: "))
	}
	return warnings, nil
}
