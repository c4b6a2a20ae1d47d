// Package run owns goroutines: whoever starts a set of them gets their first
// error, their end, and their panics as error values.
//
// It guarantees that Wait returns only after every function has returned, that
// the first failure cancels the context of all others, and that a panic ends
// neither the program nor the other functions unseen: it becomes a *PanicError
// with the stack of the place that panicked.
//
// Do not assume that cancelling ends a function: it must watch its context.
// There is no limit on the number of goroutines and no time-out.
package run

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
)

// Group is a set of goroutines with one owner. Make it with New. Go may be
// called from any goroutine, those of the group included; Wait by the owner.
type Group struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup
	once   sync.Once
	err    error
}

// errDone is the cause of the group's context after Wait.
var errDone = errors.New("run: the group has ended")

// errGoexit is what a function that left by runtime.Goexit counts as.
var errGoexit = errors.New("run: a function of the group called runtime.Goexit")

// New returns an empty group. Its context ends when parent ends, when a
// function of the group fails, and at the end of Wait.
func New(parent context.Context) *Group {
	ctx, cancel := context.WithCancelCause(parent)
	return &Group{ctx: ctx, cancel: cancel}
}

// Go runs f in its own goroutine with the group's context. An error from f, or
// its panic, cancels that context with the error as cause; only the first is
// kept. Go must not be called after Wait has returned.
func (g *Group) Go(f func(ctx context.Context) error) {
	g.wg.Go(func() {
		err := errGoexit
		defer func() {
			if v := recover(); v != nil {
				err = &PanicError{Value: v, Stack: debug.Stack()}
			}
			g.fail(err)
		}()
		err = f(g.ctx)
	})
}

func (g *Group) fail(err error) {
	if err == nil {
		return
	}
	g.once.Do(func() {
		g.err = err
		g.cancel(err)
	})
}

// Wait blocks until every function has returned, then ends the group's context
// and returns the first error, or nil.
func (g *Group) Wait() error {
	g.wg.Wait()
	g.cancel(errDone)
	return g.err
}

// Protect calls f on the caller's goroutine and returns its error; a panic comes
// back as a *PanicError.
func Protect(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return f()
}

// PanicError is a panic carried to the owner of the goroutine that panicked. It
// is always our bug, never a refusal or an operational failure.
type PanicError struct {
	// Value is what was passed to panic.
	Value any
	// Stack is the stack of the goroutine, taken where it panicked.
	Stack []byte
}

// Error returns the value in words, without the stack.
func (e *PanicError) Error() string { return fmt.Sprintf("bug: panic: %v", e.Value) }

// Unwrap returns the value if it is an error, else nil.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
