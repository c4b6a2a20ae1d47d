package app

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/abhed/abhed/internal/hooklog"
	"github.com/abhed/abhed/internal/strictjson"
	"github.com/abhed/abhed/internal/trust"
)

// TrustOptions says what to do with the trust in a workspace's own settings.
type TrustOptions struct {
	// Dir is the workspace; "" means the current directory.
	Dir string
	// Show, Remove and List exclude each other; without one the workspace is shown
	// and then trusted.
	Show, Remove, List bool
	// Yes trusts without a question.
	Yes  bool
	JSON bool
	// Terminal says that standard input is a terminal, at which somebody can be asked.
	Terminal bool
}

// Trust shows what a workspace brings, and trusts exactly that. It exits with 1 if
// the answer is no, or nothing was there to remove.
func Trust(o TrustOptions, sys System) int {
	chosen := 0
	for _, b := range []bool{o.Show, o.Remove, o.List} {
		if b {
			chosen++
		}
	}
	if chosen > 1 || chosen == 1 && o.Yes || o.List && o.Dir != "" {
		return sys.fail(ExitUsage, errors.New("expected one of DIR, --show, --remove and --list; --yes is for trusting, and --list lists every workspace"))
	}
	store, err := trustedSettings(sys)
	if err != nil {
		return sys.fail(ExitFailure, err)
	}
	if o.List {
		return o.list(store, sys)
	}
	dir, err := realDir(cmp.Or(o.Dir, "."))
	switch {
	case err != nil && o.Remove && errors.Is(err, fs.ErrNotExist): // the trust in what is gone must end, too
		if dir, err = filepath.Abs(o.Dir); err != nil {
			return sys.fail(ExitFailure, err)
		}
	case err != nil:
		return sys.fail(ExitUsage, fmt.Errorf("the workspace can't be used: %w", err))
	}
	if o.Remove {
		return o.remove(store, dir, sys)
	}
	return o.add(store, dir, sys)
}

// trustedSettings returns the store of the workspaces whose settings are trusted.
func trustedSettings(sys System) (*trust.Store, error) {
	dir := sys.stateDir()
	if dir == "" {
		return nil, errors.New("there is no place for the trust store: neither XDG_STATE_HOME nor HOME is an absolute path")
	}
	return trust.Open(filepath.Join(dir, "trust.json")), nil
}

// trustedRegistrations returns the store of the registrations that are trusted, which
// is that of "ahp trust".
func trustedRegistrations(sys System) (*trust.Store, error) {
	dir, err := hooklog.StateDir(sys.home())
	if err != nil {
		return nil, err
	}
	return trust.Open(filepath.Join(dir, "trust.json")), nil
}

// settingsFile and registrationFile are what a workspace can bring.
func settingsFile(workspace string) string { return filepath.Join(workspace, ".abhed", "config.json") }

func registrationFile(workspace string) string {
	return filepath.Join(workspace, ".ahp", "registration.json")
}

// add shows what the workspace brings, asks, and trusts the bytes that were shown.
func (o TrustOptions) add(store *trust.Store, dir string, sys System) int {
	b, err := readBrought(dir, sys)
	var broken *brokenError
	switch {
	case errors.As(err, &broken):
		return sys.fail(ExitUsage, err)
	case err != nil:
		return sys.fail(ExitFailure, err)
	case b.settings == nil && b.registration == nil:
		return sys.fail(ExitUsage, fmt.Errorf("there is nothing to trust in %s: neither .abhed/config.json nor .ahp/registration.json is there", dir))
	}
	registrations, err := trustedRegistrations(sys)
	if err != nil {
		return sys.fail(ExitFailure, err)
	}
	s := b.shown()
	if s.State, err = b.state(store, registrations); err != nil {
		return sys.fail(ExitFailure, err)
	}
	if !o.JSON {
		fmt.Fprint(sys.Stdout, s.text())
	}
	if o.Show || s.State == stateTrusted {
		return o.result(sys, s, "It is "+s.State+".\n", ExitOK)
	}
	if !o.Yes {
		switch yes, err := o.ask(sys); {
		case err != nil:
			return sys.fail(ExitUsage, err)
		case !yes:
			return o.result(sys, s, "Not trusted.\n", ExitNegative)
		}
	}
	if err := b.trust(store, registrations); err != nil {
		return sys.fail(ExitFailure, err)
	}
	s.State = stateTrusted
	return o.result(sys, s, "Trusted, with exactly this content.\n", ExitOK)
}

// ask returns whether the person at the terminal says yes.
func (o TrustOptions) ask(sys System) (bool, error) {
	if !o.Terminal {
		return false, errors.New("standard input is no terminal, so nobody can be asked: read what the workspace brings, and give --yes if it may count")
	}
	fmt.Fprint(sys.Stderr, "May this count when Abhed works here? Type yes: ")
	answer, err := bufio.NewReader(io.LimitReader(sys.Stdin, 1024)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	return strings.TrimSpace(answer) == "yes", nil
}

// result prints what came of it and returns code.
func (o TrustOptions) result(sys System, s broughtShown, text string, code int) int {
	if !o.JSON {
		fmt.Fprint(sys.Stdout, text)
		return code
	}
	return printLine(sys, s, code)
}

// printLine prints one JSON value on a line and returns code.
func printLine(sys System, v any, code int) int {
	b, err := strictjson.Marshal(v)
	if err != nil {
		return sys.fail(ExitFailure, err)
	}
	fmt.Fprintf(sys.Stdout, "%s\n", b)
	return code
}

// removed is the result of --remove in JSON.
type removed struct {
	Workspace string `json:"workspace"`
	Removed   bool   `json:"removed"`
}

// remove ends the trust in what a workspace brings: its settings, the files that
// they name, and its registration.
func (o TrustOptions) remove(store *trust.Store, dir string, sys System) int {
	was, err := store.Remove(settingsFile(dir))
	if err == nil {
		err = forgetFiles(store, dir)
	}
	if err != nil {
		return sys.fail(ExitFailure, err)
	}
	registrations, err := trustedRegistrations(sys)
	if err != nil {
		return sys.fail(ExitFailure, err)
	}
	wasRegistered, err := registrations.Remove(registrationFile(dir))
	if err != nil {
		return sys.fail(ExitFailure, err)
	}
	r := removed{Workspace: dir, Removed: was || wasRegistered}
	code, text := ExitOK, "is trusted no longer"
	if !r.Removed {
		code, text = ExitNegative, "wasn't trusted"
	}
	if o.JSON {
		return printLine(sys, r, code)
	}
	fmt.Fprintf(sys.Stdout, "%s %s.\n", oneLine(dir), text)
	return code
}

// forgetFiles removes the files of a workspace whose settings aren't trusted any
// longer, but not those of a trusted workspace inside it.
func forgetFiles(store *trust.Store, dir string) error {
	entries, err := store.List()
	if err != nil {
		return err
	}
	var inner []string
	for _, e := range entries {
		if root, ok := workspaceOf(e.Path); ok && within(dir, root) {
			inner = append(inner, root)
		}
	}
	for _, e := range entries {
		keep := !within(dir, e.Path)
		for _, root := range inner {
			keep = keep || within(root, e.Path)
		}
		if keep {
			continue
		}
		if _, err := store.Remove(e.Path); err != nil {
			return err
		}
	}
	return nil
}

// workspaceOf returns the workspace whose settings file this is.
func workspaceOf(file string) (string, bool) {
	return strings.CutSuffix(file, string(filepath.Separator)+filepath.Join(".abhed", "config.json"))
}

// within reports whether path is dir or lies below it, both absolute and clean.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// trustedWorkspace is one line of the list.
type trustedWorkspace struct {
	Workspace string `json:"workspace"`
	SHA256    string `json:"sha256"`
	Time      string `json:"time"`
	// Now is "trusted", or says what has changed since.
	Now string `json:"now"`
}

// list prints the workspaces whose settings are trusted, and what is left of it.
func (o TrustOptions) list(store *trust.Store, sys System) int {
	entries, err := store.List()
	if err != nil {
		return sys.fail(ExitFailure, err)
	}
	n := 0
	for _, e := range entries {
		root, ok := workspaceOf(e.Path)
		if !ok {
			continue // a file that settings name
		}
		n++
		w := trustedWorkspace{Workspace: root, SHA256: e.SHA256, Time: e.Time, Now: stateNow(sys, root, e.Path)}
		if !o.JSON {
			fmt.Fprintf(sys.Stdout, "%s  %.12s  %s\n    %s\n", e.Time, e.SHA256, oneLine(root), oneLine(w.Now))
		} else if code := printLine(sys, w, ExitOK); code != ExitOK {
			return code
		}
	}
	if n == 0 && !o.JSON {
		fmt.Fprintln(sys.Stdout, `No workspace's settings are trusted; "ahp trust --list" lists registrations.`)
	}
	return ExitOK
}

// stateNow says what has become of settings that were trusted.
func stateNow(sys System, workspace, file string) string {
	data, err := readIfThere(file)
	if err != nil {
		return err.Error()
	}
	if trusted, why := projectTrust(sys, workspace, data); !trusted {
		return why
	}
	return stateTrusted
}
