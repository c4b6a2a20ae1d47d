package app

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/abhed/abhed/internal/session"
	"github.com/abhed/abhed/internal/strictjson"
)

// SessionsOptions says what sessions to list.
type SessionsOptions struct {
	// Dir is the workspace whose sessions are listed; "" means the current
	// directory.
	Dir string
	// All lists those of every workspace; Dir must be "" then.
	All  bool
	JSON bool
}

// Sessions lists sessions that are kept on this machine, the last changed first.
func Sessions(o SessionsOptions, sys System) int {
	if o.All && o.Dir != "" {
		return sys.fail(ExitUsage, errors.New("--all and -C exclude each other: all is every workspace"))
	}
	workspace := ""
	if !o.All {
		var err error
		if workspace, err = realDir(cmp.Or(o.Dir, ".")); err != nil {
			return sys.fail(ExitUsage, fmt.Errorf("the workspace can't be used: %w; --all lists the sessions of workspaces that are gone, too", err))
		}
	}
	store, err := openStore(sys)
	if err != nil {
		return recordFailure(sys, err)
	}
	var infos []session.Info
	if o.All {
		infos, err = store.List()
	} else {
		infos, err = store.ListWorkspace(workspace)
	}
	if err != nil {
		return recordFailure(sys, err)
	}
	for _, i := range infos {
		if err := printSession(sys, i, o); err != nil {
			return sys.fail(ExitFailure, err)
		}
	}
	switch {
	case len(infos) > 0 || o.JSON:
	case o.All:
		fmt.Fprintf(sys.Stderr, "There are no sessions in %s yet.\n", store.Dir())
	default:
		fmt.Fprintf(sys.Stderr, "There are no sessions of the workspace %s yet; --all lists those of every workspace.\n", oneLine(workspace))
	}
	return ExitOK
}

// printSession prints one session. The workspace is said only where it could be
// another one.
func printSession(sys System, i session.Info, o SessionsOptions) error {
	if o.JSON {
		b, err := strictjson.Marshal(listed{i.ID, i.Path, i.Root, i.Model, i.Title, i.Created, i.Modified, i.Size})
		if err == nil {
			_, err = fmt.Fprintf(sys.Stdout, "%s\n", b)
		}
		return err
	}
	about := i.Model
	if o.All {
		about = i.Root
	}
	_, err := fmt.Fprintf(sys.Stdout, "%s  %s  %8d bytes  %s  %s\n", i.ID, i.Modified.Local().Format(time.DateTime), i.Size, oneLine(about), oneLine(i.Title))
	return err
}
