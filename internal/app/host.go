package app

import (
	"context"
	"errors"

	"github.com/abhed/abhed/internal/control"
	"github.com/abhed/abhed/internal/gate"
	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/session"
	"github.com/abhed/abhed/internal/tool"
)

// HostOptions is what all sessions of a Host have in common.
type HostOptions struct {
	SettingsOptions
	SystemAppend string
	// AcceptUnsigned and AcceptBroken let a session go on whose record doesn't verify.
	AcceptUnsigned, AcceptBroken bool
	// Model, Tools and Hooks are compiled into the program. A nil Model is the
	// configured one. Tools pass the gate like any other.
	Model model.Client
	Tools []tool.Tool
	Hooks []gate.Hook
}

// Host opens sessions: the engine behind every surface.
type Host struct {
	o   HostOptions
	sys System
}

var _ control.Engine = (*Host)(nil)

// NewHost returns a host. Settings are read when a session starts.
func NewHost(o HostOptions, sys System) *Host { return &Host{o, sys} }

// Start opens a session (see control.Engine).
func (h *Host) Start(ctx context.Context, s control.Start) (control.Session, error) {
	c, err := h.open(ctx, s)
	if err != nil {
		return nil, err
	}
	if refused := c.e.refused; refused != nil {
		_ = c.Close() // what it says is in the record
		return nil, &control.Error{Code: control.CodeFailed, Msg: refusedText(refused)}
	}
	return c, nil
}

// open opens a session even if its start was refused: no prompt of it will be run.
// The error is a *control.Error.
func (h *Host) open(ctx context.Context, s control.Start) (*conversation, error) {
	o, err := h.options(s)
	if err != nil {
		return nil, &control.Error{Code: control.CodeConfig, Msg: err.Error()}
	}
	e, err := build(ctx, o, h.sys)
	if err != nil {
		return nil, &control.Error{Code: codeOf(err), Msg: err.Error()}
	}
	c := newConversation(e)
	e.startSession(ctx)
	return c, nil
}

// options reads the settings of one session.
func (h *Host) options(s control.Start) (buildOptions, error) {
	settings := h.o.SettingsOptions
	if s.Workspace != "" {
		settings.Dir = s.Workspace
	}
	if s.Mode != "" {
		settings.Mode = s.Mode
	}
	if s.Model != "" {
		settings.Model = s.Model
	}
	settings.Allow = append(settings.Allow[:len(settings.Allow):len(settings.Allow)], s.Allow...)
	settings.Ask = append(settings.Ask[:len(settings.Ask):len(settings.Ask)], s.Ask...)
	settings.Deny = append(settings.Deny[:len(settings.Deny):len(settings.Deny)], s.Deny...)
	switch {
	case s.Resume != "" && s.Continue:
		return buildOptions{}, errors.New("a session to resume was named, and the newest one was asked for: only one of them is possible")
	case (s.Fork || s.ForkAt != 0) && s.Resume == "" && !s.Continue:
		return buildOptions{}, errors.New("a fork needs the session that it is of")
	}
	l, err := loadSettings(settings, h.sys)
	if err != nil {
		return buildOptions{}, err
	}
	more := h.o.SystemAppend
	if more != "" && s.SystemAppend != "" {
		more += "\n\n"
	}
	return buildOptions{
		loaded: l, model: h.o.Model, tools: h.o.Tools, hooks: h.o.Hooks, systemAppend: more + s.SystemAppend, output: s.Output,
		sink: s.Sink, approver: s.Approver, asker: s.Asker, resume: s.Resume, resumeNewest: s.Continue, fork: s.Fork || s.ForkAt != 0, forkAt: s.ForkAt,
		acceptUnsigned: h.o.AcceptUnsigned, acceptBroken: h.o.AcceptBroken,
	}, nil
}

// codeOf sorts why a session could not be opened.
func codeOf(err error) control.Code {
	var missing *session.NotFoundError
	var ops *operationalError
	switch {
	case errors.As(err, &missing):
		return control.CodeNotFound
	case errors.As(err, &ops):
		return control.CodeFailed
	}
	return control.CodeConfig
}

// Providers lists the providers that the settings know (see control.Engine).
func (h *Host) Providers(workspace string) ([]control.Provider, error) {
	settings := h.o.SettingsOptions
	if workspace != "" {
		settings.Dir = workspace
	}
	l, err := loadSettings(settings, h.sys)
	if err != nil {
		return nil, &control.Error{Code: control.CodeConfig, Msg: err.Error()}
	}
	return providers(l, h.sys), nil
}
