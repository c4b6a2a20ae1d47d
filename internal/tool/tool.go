// Package tool holds the contract between the loop and the tools, and the one
// executor that runs them.
//
// It guarantees that a tool runs only on a Permit that the Authority's Minter
// issued for exactly that call: a Tool's Run takes a Grant, a Grant with content
// comes only from the executor, and the executor makes one only by redeeming a
// permit, atomically and once (gate.md §2 step 7).
//
// Do not assume that arguments are sensible because they fit the schema; and a
// tool must open the place that its Grant holds, not the path in its arguments.
package tool

import (
	"context"
	"fmt"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/strictjson"
)

// Spec describes a tool to the model and to the gate. It doesn't change during
// a session.
type Spec struct {
	// Name is the exact name that the model calls and rules match.
	Name string
	// Version changes when the tool's meaning does; it is part of a call's hash.
	Version     string
	Description string
	// Schema is the JSON Schema (Draft 2020-12) of the arguments, of type object. Fixed
	// says that it is this program's own, so that a registry needs to look at it only
	// when the tool is called.
	Schema []byte
	Fixed  bool
	// ContentMembers lists the string members that may be as large as 16 MiB; all
	// other arguments together are bounded by 1 MiB (gate.md §2 step 1).
	ContentMembers []string
}

// Tool is one thing that a model can ask for. Implementations are used by
// several goroutines at once.
type Tool interface {
	// Spec returns the tool's description, always the same.
	Spec() Spec
	// Declare says what a call with these arguments is about. args is canonical
	// JSON that fits the schema. It does no I/O.
	Declare(args []byte) policy.Declaration
	// Run does the work. It returns an error only if the tool itself is broken; what
	// the model should read about a failed attempt is a Result with IsError.
	// Run ends within a second of ctx's end and leaves no process behind.
	Run(ctx context.Context, g Grant) (Result, error)
}

// Result is what a tool brought.
type Result struct {
	// Content is the text for the model: valid UTF-8 without NUL.
	Content string
	IsError bool
	// Images come with the text where the model takes images. They are dropped if
	// somebody who can only see text changes or withholds the result.
	Images []event.Image
	// TimedOut says that the tool's own time limit ended it.
	TimedOut bool
	// WorkDir, when not empty, is the working directory of the calls that follow.
	WorkDir string
	// Changes lists the files that the call is known to have changed.
	Changes []FileChange
}

// FileChange is one change to one file. The bytes are shared: nobody changes them.
type FileChange struct {
	// Path is absolute.
	Path string
	// Created says that there was no file before.
	Created       bool
	Before, After []byte
}

// OK returns a successful result.
func OK(content string) Result { return Result{Content: content} }

// Fail returns a result that tells the model what went wrong and what to do.
func Fail(content string) Result { return Result{Content: content, IsError: true} }

// Grant is the right to do one call, with everything that was judged. Only the
// executor makes one that has content; reading a zero Grant panics, because a
// tool that runs without a permit is a bug of this program.
type Grant struct {
	body *grant
}

type grant struct {
	call   policy.Call
	place  *policy.Place
	output func(string)
}

func (g Grant) must() *grant {
	if g.body == nil {
		panic("tool: a tool was run without a permit")
	}
	return g.body
}

// Call returns the call as judged; its Args are the final arguments.
func (g Grant) Call() policy.Call { return g.must().call }

// Args returns the final arguments as canonical JSON, not to be changed.
func (g Grant) Args() []byte { return g.must().call.Args }

// Place returns where the call's path truly lands, as judged. ok is false for a
// tool whose subject isn't a path.
func (g Grant) Place() (p policy.Place, ok bool) {
	b := g.must()
	if b.place == nil {
		return policy.Place{}, false
	}
	return *b.place, true
}

// Output passes a piece of output to whoever watches the call; it never blocks
// for long and keeps nothing.
func (g Grant) Output(piece string) {
	if b := g.must(); b.output != nil {
		b.output(piece)
	}
}

// Decode returns the arguments of a call, which have passed the registry's check,
// as a T. Its error is a defect of the tool: T doesn't fit the schema.
func Decode[T any](args []byte) (T, error) {
	var v T
	err := strictjson.Unmarshal(args, &v, strictjson.Options{MaxBytes: maxArgs + maxContent})
	return v, err
}

// Granted returns the arguments of a granted call as a T, and the place of its
// path. Its error is a defect of the tool, or of the gate if there is no place.
func Granted[T any](g Grant) (T, policy.Place, error) {
	v, err := Decode[T](g.Args())
	if err != nil {
		return v, policy.Place{}, err
	}
	place, ok := g.Place()
	if !ok {
		err = fmt.Errorf("a call of %s came without a place", g.Call().Tool)
	}
	return v, place, err
}
