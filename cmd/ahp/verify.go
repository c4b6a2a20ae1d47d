package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/abhed/abhed/internal/hooklog"
)

// newVerify is "ahp verify".
func newVerify(sys system) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "verify",
		Short: "Check that the decision log is whole",
		Long: `Check every line of the decision log of this account: that none was changed, removed,
inserted or moved, and that each file continues the one before it. That the log was made
by ahp is not shown by that, nor that its newest lines are all there: who can write the
files can compute hashes.

AHP_HOME takes the place of the home folder. Exit codes: 0 whole, 1 something is wrong,
2 wrong use, 3 the log can't be read.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return runVerify(sys, asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

func runVerify(sys system, asJSON bool) error {
	dir, err := sys.logDir()
	if err != nil {
		return err
	}
	r, err := hooklog.Verify(dir, nil)
	if errors.Is(err, fs.ErrNotExist) {
		r, err = &hooklog.Report{Problems: []hooklog.Problem{}}, nil
	}
	if err != nil {
		return failWith(exitFailed, err)
	}
	if asJSON {
		err = sys.printJSON(r)
	} else {
		err = sys.print(verifyText(dir, r))
	}
	if err == nil && !r.OK() {
		err = done(exitNegative)
	}
	return err
}

func verifyText(dir string, r *hooklog.Report) string {
	if r.Files == 0 {
		return fmt.Sprintf("No decision is logged in %s: nothing was decided there yet, or the log was removed.\n", dir)
	}
	var b strings.Builder
	for _, p := range r.Problems {
		fmt.Fprintf(&b, "%s:%d: %s\n", p.File, p.Line, short(p.What, 400))
	}
	fmt.Fprintf(&b, "%s: files: %d, decisions: %d", dir, r.Files, r.Lines)
	if r.OK() {
		b.WriteString(", the chain is whole\n")
	} else {
		fmt.Fprintf(&b, ", faults: %d\nWhat stands in the log before the first fault is as it was written; from there on the log proves nothing.\n", len(r.Problems))
	}
	if r.Missing {
		b.WriteString("It begins in the middle: older files were removed, as the log itself does when it grows beyond its bound.\n")
	}
	if r.Cut > 0 {
		fmt.Fprintf(&b, "Lines half written, and removed since: %d. A process was killed while it wrote; its decision was not acted on.\n", r.Cut)
	}
	if r.Torn > 0 {
		fmt.Fprintf(&b, "The last line is half written (%d bytes): a process was killed while it wrote. The next decision removes it.\n", r.Torn)
	}
	return b.String()
}
