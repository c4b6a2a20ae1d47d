// Package control holds what a user surface may ask of the engine and what it
// hears back. A surface sees nothing of the engine but this package and
// internal/event.
//
// It guarantees that an Answer counts only for the call whose hash it names.
//
// Do not assume that anybody can be asked: a headless run has no Approver.
package control

import (
	"context"

	"github.com/abhed/abhed/internal/event"
)

// Question asks a person about one call. All text is ready to be shown: control,
// bidirectional and zero-width characters are written as escapes, and nothing is
// left out (gate.md §2 step 6).
type Question struct {
	CallID string
	Tool   string
	// Args holds the final arguments, every byte visible or escaped.
	Args string
	// Original holds the model's arguments if somebody rewrote them, else "".
	Original string
	WorkDir  string
	// Hash is the hash of the call; the answer must name it.
	Hash string
	// Why lists who asks and the reasons.
	Why []string
	// SessionOffered says whether the answer may have scope "session".
	SessionOffered bool
}

// Answer is a person's decision on a Question.
type Answer struct {
	Hash  string
	Allow bool
	// Scope is event.ScopeOnce or event.ScopeSession; read only with Allow.
	Scope string
	// By names who answered, for the record.
	By     string
	Reason string
}

// Approver asks a person. Approve blocks until there is an answer or ctx ends;
// any error is a denial. It is used by one goroutine at a time.
type Approver interface {
	Approve(ctx context.Context, q Question) (Answer, error)
}

// Sink hears what happens while it happens. Calls come from several goroutines,
// one at a time, in the order of the record; they must return quickly.
type Sink interface {
	// Event is called for each recorded event, after it was accepted.
	Event(e event.Event)
	// Text is called for each piece of the model's text as soon as it has arrived.
	// It is never recorded: the whole reply is.
	Text(piece string)
}
