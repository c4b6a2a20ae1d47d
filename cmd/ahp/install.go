package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter/hosts"
	"github.com/abhed/abhed/internal/ahpconfig"
	"github.com/abhed/abhed/internal/backends/rules"
	"github.com/abhed/abhed/internal/confedit"
	"github.com/abhed/abhed/internal/hooklog"
	"github.com/abhed/abhed/internal/hostconf"
	"github.com/abhed/abhed/internal/install"
	"github.com/abhed/abhed/internal/trust"
)

// installFlags are what "ahp install" and "ahp uninstall" share, and what the first
// has of its own.
type installFlags struct {
	scope, home, registration, onMissing string
	noSelfProtect, trust, dryRun, json   bool
}

func newInstall(sys system) *cobra.Command {
	var f installFlags
	c := &cobra.Command{
		Use:   "install HOST",
		Short: "Put AHP into the hook configuration of an agent",
		Long: `ahp install writes the agent's own hook configuration: it adds its entries, keeps
every byte that others wrote, keeps a backup and prints what it changed, long lines cut;
--dry-run and --json print them whole. Installing twice is installing once.

Hosts: ` + strings.Join(hostconf.Names(), ", ") + `.

The program that runs is written into the configuration: a program that lies in the
project, or that others can change, is refused.

Exit codes: 0 done, 2 wrong use or a file that can't be changed as it is, 3 an
operational failure.`,
		Args: oneArgument("HOST, one of " + strings.Join(hostconf.Names(), ", ")),
		RunE: func(_ *cobra.Command, args []string) error { return f.run(sys, args[0], false) },
	}
	f.shared(c)
	flags := c.Flags()
	flags.StringVar(&f.registration, "registration", "", "the registration `file` that the hook uses, instead of the user's and the project's")
	flags.StringVar(&f.onMissing, "on-missing", "deny", "what no answer of ahp means: `deny or allow`")
	flags.BoolVar(&f.noSelfProtect, "no-self-protect", false, "let the agent change the files of AHP itself")
	flags.BoolVar(&f.trust, "trust", false, "codex: also write the trust in these hooks into the user's config.toml, which its review would write")
	return c
}

func newUninstall(sys system) *cobra.Command {
	var f installFlags
	c := &cobra.Command{
		Use:   "uninstall HOST",
		Short: "Take AHP out of the hook configuration of an agent",
		Long: `ahp uninstall restores the agent's configuration byte for byte if nothing has changed
since ahp install, and else removes its entries alone.

Exit codes: 0 done, or nothing to do, 2 wrong use or a file that can't be changed as it
is, 3 an operational failure.`,
		Args: oneArgument("HOST, one of " + strings.Join(hostconf.Names(), ", ")),
		RunE: func(_ *cobra.Command, args []string) error { return f.run(sys, args[0], true) },
	}
	f.shared(c)
	return c
}

func (f *installFlags) shared(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.scope, "scope", string(hostconf.User), "whose configuration: `user, project or managed`")
	flags.StringVar(&f.home, "home", "", "the home `folder` to use instead of the account's; the hook will use it too")
	flags.BoolVar(&f.dryRun, "dry-run", false, "print what would change, and write nothing")
	flags.BoolVar(&f.json, "json", false, "print one JSON object")
}

func (f *installFlags) run(sys system, name string, undo bool) error {
	h, is := hostconf.Lookup(name)
	if !is {
		return failWith(exitUsage, unknownHost(name))
	}
	o, err := f.options(sys)
	if err != nil {
		return failWith(exitUsage, err)
	}
	var remains []string
	if !undo {
		if remains, err = f.prepare(sys, h, &o); err != nil {
			return failWith(exitUsage, err)
		}
	}
	var p *install.Plan
	work := func() error {
		if undo {
			p, err = install.Uninstall(h, o)
		} else {
			p, err = install.Install(h, hosts.Lookup(name), o)
		}
		if err != nil || f.dryRun {
			return err
		}
		return p.Apply()
	}
	if f.dryRun {
		err = work()
	} else {
		err = install.Locked(o.State, work)
	}
	if err != nil {
		return failWith(installExit(err), err)
	}
	p.Remains = append(p.Remains, remains...)
	return f.print(sys, p, undo)
}

// unknownHost says which hosts there are, and which one was probably meant.
func unknownHost(name string) error {
	var meant string
	for _, known := range hostconf.Names() {
		if len(name) > 3 && (strings.HasPrefix(known, name) || strings.Contains(name, known)) {
			meant = fmt.Sprintf(" (did you mean %s?)", known)
		}
	}
	return fmt.Errorf("the host %q isn't known%s; known are %s", name, meant, strings.Join(hostconf.Names(), ", "))
}

// installExit tells a failure of the system from a wrong use or configuration.
func installExit(err error) int {
	var path *os.PathError
	var link *os.LinkError
	if errors.As(err, &path) || errors.As(err, &link) || errors.Is(err, confedit.ErrChanged) {
		return exitFailed
	}
	return exitUsage
}

// options says where the files are.
func (f *installFlags) options(sys system) (install.Options, error) {
	o := install.Options{Scope: hostconf.Scope(f.scope), Trust: f.trust}
	if !slices.Contains(hostconf.Scopes(), o.Scope) {
		return o, fmt.Errorf("--scope %s: expected user, project or managed", f.scope)
	}
	home := f.home
	if home == "" {
		home = sys.getenv("AHP_HOME")
	}
	if home != "" && !filepath.IsAbs(home) {
		return o, fmt.Errorf("--home %s: expected an absolute path", home)
	}
	if home == "" && o.Scope == hostconf.User {
		if err := oneHome(sys.getenv("HOME"), accountHome()); err != nil {
			return o, err
		}
	}
	var err error
	if o.State, err = hooklog.StateDir(home); err != nil {
		return o, err
	}
	o.Roots = hostconf.Roots{Home: home, Mac: runtime.GOOS == "darwin"}
	if home == "" {
		// The state's folder is .local/state/ahp in the home.
		o.Roots.Home = filepath.Join(o.State, "..", "..", "..")
		o.Roots.Getenv = sys.getenv
	}
	o.Call.Home = home
	if o.Scope != hostconf.Project {
		return o, nil
	}
	if sys.dir == "" {
		return o, errors.New("the working folder is unknown, so the project is too; go into its folder")
	}
	if o.Roots.Project, err = filepath.EvalSymlinks(projectRoot(sys.dir)); err != nil {
		return o, err
	}
	return o, nil
}

// oneHome refuses to guess between two homes: an agent reads its configuration in HOME,
// while ahp goes by the user database, as an agent could set HOME for its hooks. What
// is installed in the one would never run in the other, without a word.
func oneHome(variable, account string) error {
	if variable == "" || account == "" || filepath.Clean(variable) == filepath.Clean(account) {
		return nil
	}
	a, errA := os.Stat(variable)
	b, errB := os.Stat(account)
	if errA == nil && errB == nil && os.SameFile(a, b) {
		return nil
	}
	return fmt.Errorf("HOME is %s, and the home of this account is %s: agents read their configuration in HOME, ahp goes by the account; say which is meant by --home %[1]s or --home %[2]s", variable, account)
}

// projectRoot is the folder with the repository that dir lies in, or dir.
func projectRoot(dir string) string {
	if root := repositoryRoot(dir); root != "" {
		return root
	}
	return dir
}

// repositoryRoot is the folder with the repository that dir lies in, or "".
func repositoryRoot(dir string) string {
	for at := dir; at != ""; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	return ""
}

// prepare fills in how the line starts ahp, and returns what the person should know.
func (f *installFlags) prepare(sys system, h hostconf.Host, o *install.Options) ([]string, error) {
	if f.trust && h.Name != "codex" {
		return nil, fmt.Errorf("--trust is for codex; %s keeps no such trust", h.Name)
	}
	switch install.OnMissing(f.onMissing) {
	case install.Deny, install.Allow:
		o.Call.OnMissing = install.OnMissing(f.onMissing)
	default:
		return nil, fmt.Errorf("--on-missing %s: expected deny or allow", f.onMissing)
	}
	o.Call.NoSelfProtect = f.noSelfProtect
	project := o.Roots.Project
	if project == "" {
		project = repositoryRoot(sys.dir)
		// A home that is kept in a repository holds ~/.local/bin as well: programs lie
		// there as they do in a home that isn't.
		if a, err := os.Stat(project); err == nil {
			if b, err := os.Stat(o.Roots.Home); err == nil && os.SameFile(a, b) {
				project = ""
			}
		}
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if o.Call.Binary, err = install.CheckBinary(exe, project); err != nil {
		return nil, err
	}
	if o.BinarySHA256, err = install.SumFile(o.Call.Binary); err != nil {
		return nil, err
	}
	if f.registration != "" {
		o.Call.Registration = f.registration
		if !filepath.IsAbs(f.registration) {
			o.Call.Registration = filepath.Join(sys.dir, f.registration)
		}
	}
	// A registration at fault makes the hook refuse everything: better now than then.
	loaded, err := ahpconfig.Load(ahpconfig.Options{File: o.Call.Registration, Home: o.Call.Home})
	if err != nil {
		return nil, err
	}
	for _, s := range loaded.Sources {
		o.Registrations = append(o.Registrations, install.Sum{Path: s.Path, SHA256: trust.Sum(s.Content)})
	}
	if loaded.Registration != nil {
		return unready(loaded, o.Roots.Home), nil
	}
	then := "every prompt and every call is refused"
	if o.Call.OnMissing == install.Allow {
		then = "everything passes unchecked"
	}
	return []string{"there is no registration yet (" + strings.Join(loaded.Looked, ", ") + "): until there is one, " + then}, nil
}

// unready tells what of the backends is amiss as far as that shows without starting
// them, which is for "ahp doctor": a program that is missing, and faults of rules.
func unready(loaded *ahpconfig.Loaded, home string) (out []string) {
	for _, b := range loaded.Registration.Hooks {
		t := b.Transport
		if t.Type != ahp.TransportStdio || !filepath.IsAbs(t.Command) {
			continue
		}
		file := loaded.FileOf(b.ID)
		if _, err := os.Stat(t.Command); err != nil {
			out = append(out, fmt.Sprintf("%s registers %s, which can't be started: %v", file, b.ID, err))
			continue
		}
		if filepath.Base(t.Command) == "ahp" && len(t.Args) == 4 && slices.Equal(t.Args[:3], []string{"backend", "rules", "--rules"}) {
			out = append(out, unreadyRules(from(from(filepath.Dir(file), t.Cwd), t.Args[3]), home)...)
		}
	}
	return out
}

// unreadyRules tells the faults of a file of rules.
func unreadyRules(file, home string) (out []string) {
	doc, err := rules.ReadFile(file)
	if err != nil {
		return []string{fmt.Sprintf("the rules can't be used: %v", err)}
	}
	_, warnings, err := rules.New(doc, rules.Options{Home: home})
	if err != nil {
		return []string{fmt.Sprintf("the rules can't be used: %v", err)}
	}
	for _, w := range warnings {
		out = append(out, fmt.Sprint(w))
	}
	return out
}

// from returns path as seen from dir.
func from(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// maxDiffLine is how many characters of a line of a difference a person is shown: each
// entry is a line of shell of many hundred, and some hosts' file is one line.
const maxDiffLine = 160

// narrow cuts the lines of a difference.
func narrow(diff string) string {
	var b strings.Builder
	for line := range strings.Lines(diff) {
		if r := []rune(strings.TrimSuffix(line, "\n")); len(r) > maxDiffLine {
			line = fmt.Sprintf("%s… (%d more characters)\n", string(r[:maxDiffLine]), len(r)-maxDiffLine)
		}
		b.WriteString(line)
	}
	return b.String()
}

// installResult is what --json prints.
type installResult struct {
	Host    string          `json:"host"`
	Scope   string          `json:"scope"`
	DryRun  bool            `json:"dryRun"`
	Changed bool            `json:"changed"`
	Files   []installedFile `json:"files"`
	Remains []string        `json:"remains"`
	Diff    string          `json:"diff"`
}

type installedFile struct {
	Path   string `json:"path"`
	Action string `json:"action"`
}

func (f *installFlags) print(sys system, p *install.Plan, undo bool) error {
	if f.json {
		r := installResult{Host: p.Host, Scope: string(p.Scope), DryRun: f.dryRun, Changed: p.Changes(), Files: []installedFile{}, Remains: append([]string{}, p.Remains...), Diff: p.Diff()}
		for _, file := range p.Files {
			r.Files = append(r.Files, installedFile{file.Path, string(file.Action)})
		}
		return sys.printJSON(r)
	}
	var b strings.Builder
	if f.dryRun {
		b.WriteString(p.Diff())
	} else {
		b.WriteString(narrow(p.Diff()))
	}
	verb := "installed in"
	if undo {
		verb = "uninstalled from"
	}
	switch {
	case !p.Changes() && undo:
		fmt.Fprintf(&b, "Nothing of AHP is in the %s configuration of %s.\n", p.Scope, p.Host)
	case !p.Changes():
		fmt.Fprintf(&b, "AHP is in the %s configuration of %s already; nothing was changed.\n", p.Scope, p.Host)
	case f.dryRun:
		fmt.Fprintf(&b, "This is what would be written; nothing was.\n")
	default:
		fmt.Fprintf(&b, "AHP is %s the %s configuration of %s.\n", verb, p.Scope, p.Host)
	}
	for _, text := range p.Remains {
		fmt.Fprintf(&b, "To do: %s.\n", text)
	}
	if p.Changes() && !f.dryRun {
		b.WriteString("Sessions that run already may go on as before: start them anew.\n")
	}
	if !undo && !f.dryRun {
		fmt.Fprintf(&b, "Check it with: ahp doctor %s\n", p.Host)
	}
	return sys.print(b.String())
}
