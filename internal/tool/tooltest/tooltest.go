// Package tooltest runs a tool in a test as the executor does: arguments checked
// against the schema, the path resolved to its place, a permit minted and redeemed.
//
// It is for tests only: it judges nothing.
package tooltest

import (
	"cmp"
	"context"
	"testing"

	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/strictjson"
	"github.com/abhed/abhed/internal/tool"
)

// Options are the surroundings of a call.
type Options struct {
	// WorkDir is the working directory.
	WorkDir string
	// Root is the only root; empty means WorkDir.
	Root string
	// Output receives live output.
	Output func(string)
	// Judged, if set, is called between the judging of the path and the run.
	Judged func()
}

// Run runs one call with arguments that args encodes to, and fails the test if the
// arguments don't fit the schema or the tool is broken.
func Run(ctx context.Context, t testing.TB, it tool.Tool, o Options, args any) tool.Result {
	t.Helper()
	reg, err := tool.NewRegistry(it)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := strictjson.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	name := it.Spec().Name
	canon, err := reg.Check(name, raw)
	if err != nil {
		t.Fatal(err)
	}
	call := policy.Call{ID: "c1", Tool: name, ToolVersion: it.Spec().Version, Args: canon, WorkDir: o.WorkDir, Roots: []string{cmp.Or(o.Root, o.WorkDir)}}
	var place *policy.Place
	if d := it.Declare(canon); d.Kind == policy.SubjectPath {
		forms, err := policy.Resolve(o.WorkDir, d.Subject, "")
		if err != nil {
			t.Fatal(err)
		}
		place = &forms.Place
	}
	if o.Judged != nil {
		o.Judged()
	}
	minter, verifier := tool.NewAuthority()
	res, err := tool.NewExecutor(reg, verifier).Run(ctx, minter.Mint(call, place), o.Output)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// Check returns what the registry says of arguments, as raw JSON.
func Check(t testing.TB, it tool.Tool, raw string) error {
	t.Helper()
	reg, err := tool.NewRegistry(it)
	if err != nil {
		t.Fatal(err)
	}
	_, err = reg.Check(it.Spec().Name, []byte(raw))
	return err
}
