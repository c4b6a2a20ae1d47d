package backend

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/run"
)

// maxLogged bounds the text of an error in the log, in bytes.
const maxLogged = 400

// logAnswer records one decision, without what the event holds.
func (s *Server) logAnswer(e *ahp.Event, effects []ahp.Effect, took time.Duration) {
	if s.opts.Logger == nil || !s.opts.Logger.Enabled(context.Background(), slog.LevelInfo) {
		return
	}
	names := make([]string, len(effects))
	for i, effect := range effects {
		names[i] = string(effect.EffectType())
	}
	s.opts.Logger.Info("answered", "type", string(e.Type), "event", clip(e.ID), "source", clip(e.Source), "effects", names, "ms", took.Milliseconds())
}

// logFailure records why a message was refused or a handler failed.
func (s *Server) logFailure(err error) {
	if s.opts.Logger == nil {
		return
	}
	var bad *ahp.Error
	var panicked *run.PanicError
	switch {
	case errors.As(err, &panicked):
		// What was thrown may quote an event; where is what helps.
		s.opts.Logger.Error("the handler panicked", "stack", string(panicked.Stack[:min(len(panicked.Stack), 4<<10)]))
	case errors.As(err, &bad):
		// Found is left out: it quotes the message.
		s.opts.Logger.Warn("refused", "kind", bad.Kind.String(), "pointer", clip(bad.Pointer), "offset", bad.Offset, "expected", bad.Expected, "requirement", bad.Requirement)
	default:
		s.opts.Logger.Error("failed", "error", clip(err.Error()))
	}
}

func clip(s string) string { return s[:min(len(s), maxLogged)] }
