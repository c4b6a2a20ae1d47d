package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/validate"
	"github.com/abhed/abhed/internal/ahpconfig"
	"github.com/abhed/abhed/internal/trust"
)

// newTrust is "ahp trust".
func newTrust(sys system) *cobra.Command {
	var o trustOptions
	c := &cobra.Command{
		Use:   "trust [FILE]",
		Short: "Let a project's registration decide about your agents",
		Long: `Show what a project's registration runs, asks and is told, check it, and trust exactly
these bytes of it: once the file changes it is trusted no longer. Without FILE it is
.ahp/registration.json of this folder, or of the nearest one above.

What a registration names isn't part of it: a program or a file of rules in the project
can change and stays trusted.

The question is asked on a terminal; elsewhere --yes is needed. AHP_HOME takes the place
of the home folder. Exit codes: 0 trusted, removed or listed, 1 not trusted because the
answer was no, or nothing to remove, 2 wrong use or a registration that can't be used, 3
the store can't be read or written.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return o.run(sys, args) },
	}
	c.Flags().BoolVar(&o.yes, "yes", false, "trust it without a question")
	c.Flags().BoolVar(&o.list, "list", false, "show what is trusted")
	c.Flags().StringVar(&o.remove, "remove", "", "trust this `FILE` no longer")
	c.Flags().BoolVar(&o.json, "json", false, "print one JSON object")
	return c
}

type trustOptions struct {
	yes, list, json bool
	remove          string
}

// trustShown is the result in JSON of trusting and removing.
type trustShown struct {
	Path    string `json:"path"`
	SHA256  string `json:"sha256,omitzero"`
	Trusted bool   `json:"trusted"`
	// Backends is what the file registers, Warnings what is questionable in it.
	Backends []backendShown `json:"backends,omitzero"`
	Warnings []string       `json:"warnings,omitzero"`
}

func (o *trustOptions) run(sys system, args []string) error {
	state, err := sys.state()
	if err != nil {
		return err
	}
	store := trust.Open(filepath.Join(state, "trust.json"))
	switch {
	case o.list && (o.yes || o.remove != "" || len(args) > 0), o.remove != "" && (o.yes || len(args) > 0):
		return failWith(exitUsage, errors.New("trust: expected one of FILE, --list and --remove FILE"))
	case o.list:
		return o.show(sys, store)
	case o.remove != "":
		return o.forget(sys, store)
	}
	file := ""
	if len(args) == 1 {
		file = args[0]
	} else if file, err = projectFile(sys.dir); err != nil {
		return failWith(exitUsage, err)
	}
	return o.add(sys, store, file)
}

// projectFile returns the registration of the project that dir is in.
func projectFile(dir string) (string, error) {
	if dir == "" {
		return "", errors.New("trust: the current folder is unknown: name a FILE")
	}
	for at := dir; ; at = filepath.Dir(at) {
		file := filepath.Join(at, ".ahp", "registration.json")
		if _, err := os.Stat(file); err == nil {
			return file, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("trust: found no .ahp/registration.json in %s or above: name a FILE", dir)
		}
	}
}

// add shows a file, asks, and trusts the bytes that were shown.
func (o *trustOptions) add(sys system, store *trust.Store, file string) error {
	path, err := filepath.Abs(file)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	var content []byte
	if err == nil {
		content, err = readSmall(path)
	}
	if err != nil {
		code := exitFailed
		if errors.Is(err, fs.ErrNotExist) {
			code = exitUsage
		}
		return failWith(code, fmt.Errorf("trust: %w", err))
	}
	reg, err := ahp.DecodeRegistration(content)
	if err != nil {
		return wrong(path, content, err)
	}
	shown := &trustShown{Path: path, SHA256: trust.Sum(content), Backends: showBackends(reg, filepath.Dir(path))}
	report, err := validate.Message(content, validate.Registration, validate.Options{})
	if err != nil {
		return failWith(exitFailed, err)
	}
	for i := range report.Warnings {
		shown.Warnings = append(shown.Warnings, report.Warnings[i].String())
	}
	shown.Warnings = append(shown.Warnings, taken(sys, reg, path)...)
	if base := filepath.Join(".ahp", "registration.json"); !strings.HasSuffix(path, string(filepath.Separator)+base) {
		shown.Warnings = append(shown.Warnings, fmt.Sprintf("only a file %s of a project is looked for: this one counts where a link of that name leads to it", base))
	}
	if !o.json {
		if err := sys.print(shown.text()); err != nil {
			return err
		}
	}
	if !o.yes {
		yes, err := o.ask(sys)
		if err != nil {
			return err
		}
		if !yes {
			return o.result(sys, shown, "Not trusted.\n", exitNegative)
		}
	}
	if err := store.Add(path, content); err != nil {
		return failWith(exitFailed, err)
	}
	shown.Trusted = true
	return o.result(sys, shown, "Trusted, with exactly this content.\n", exitOK)
}

// ask returns whether the person at the terminal says yes.
func (o *trustOptions) ask(sys system) (bool, error) {
	if !isTerminal(sys.stdin) {
		return false, failWith(exitUsage, errors.New("trust: standard input is no terminal, so nobody can be asked: read what the file registers, and give --yes if it may decide about your agents"))
	}
	fmt.Fprint(sys.stderr, "May this decide about your agents? Type yes: ")
	answer, err := bufio.NewReader(io.LimitReader(sys.stdin, 1024)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return false, failWith(exitFailed, fmt.Errorf("trust: %w", err))
	}
	return strings.TrimSpace(answer) == "yes", nil
}

func isTerminal(r io.Reader) bool {
	f, ok := r.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&fs.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

// taken tells which backends are registered elsewhere under the same id: with both in
// force every call would be refused.
func taken(sys system, reg *ahp.Registration, path string) (out []string) {
	loaded, err := ahpconfig.Load(ahpconfig.Options{Home: sys.getenv("AHP_HOME")})
	if err != nil { // "ahp doctor" is for that
		return nil
	}
	for _, b := range reg.Hooks {
		if file := loaded.FileOf(b.ID); file != "" && file != path {
			out = append(out, fmt.Sprintf("%s is registered in %s already, and a backend may be registered once: every call in this project will be refused until one of them has another id", b.ID, file))
		}
	}
	return out
}

// result prints what came of it and returns what ends the command with code.
func (o *trustOptions) result(sys system, shown *trustShown, text string, code int) error {
	var err error
	if o.json {
		err = sys.printJSON(shown)
	} else {
		err = sys.print(text)
	}
	if err != nil {
		return err
	}
	return done(code)
}

func (o *trustOptions) forget(sys system, store *trust.Store) error {
	was, err := store.Remove(o.remove)
	if err != nil {
		return failWith(exitFailed, err)
	}
	path, err := filepath.Abs(o.remove)
	if err != nil {
		return failWith(exitFailed, err)
	}
	if !was {
		return o.result(sys, &trustShown{Path: path}, fmt.Sprintf("%s wasn't trusted.\n", short(path, 4096)), exitNegative)
	}
	return o.result(sys, &trustShown{Path: path}, fmt.Sprintf("%s is trusted no longer.\n", short(path, 4096)), exitOK)
}

// trustedShown is one line of the list.
type trustedShown struct {
	trust.Entry
	// Now is "same", "changed" or "gone": the file is trusted only if it is the same.
	Now string `json:"now"`
}

func (o *trustOptions) show(sys system, store *trust.Store) error {
	entries, err := store.List()
	if err != nil {
		return failWith(exitFailed, err)
	}
	list := []trustedShown{}
	var b strings.Builder
	for _, e := range entries {
		now := "changed"
		data, err := readSmall(e.Path)
		switch {
		case err != nil:
			now = "gone"
		case trust.Sum(data) == e.SHA256:
			now = "same"
		}
		list = append(list, trustedShown{e, now})
		fmt.Fprintf(&b, "%s  %-7s  %.12s  %s\n", localTime(e.Time), now, e.SHA256, short(e.Path, 4096))
	}
	if o.json {
		return sys.printJSON(list)
	}
	if len(list) == 0 {
		b.WriteString("No project's registration is trusted.\n")
	}
	return sys.print(b.String())
}
