package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/ahp/transport"
	"github.com/abhed/abhed/ahp/transport/httptransport"
	"github.com/abhed/abhed/internal/ahpconfig"
	"github.com/abhed/abhed/internal/config"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/gate"
	"github.com/abhed/abhed/internal/hooklog"
	"github.com/abhed/abhed/internal/tool"
	"github.com/abhed/abhed/internal/trust"
)

// readRegistrations reads every registration; one at fault refuses everything, and so
// does a workspace's that was trusted and has changed or is gone
// (docs/decisions/0009-registrations-of-projects.md).
func (e *engine) readRegistrations(context.Context) (err error) {
	opts, own := e.registrations(), registrationFile(e.o.loaded.workspace)
	switch {
	case opts.File != "" || opts.Imposed != "": // they count instead of the workspace's
	case opts.Dir == "" && exists(own):
		e.warnings = append(e.warnings, own+" is ignored, because nobody has trusted it: \"abhed trust\" shows what it asks, and trusts it")
	case !e.o.loaded.trusted && !exists(own) && e.onceTrusted(own):
		return fmt.Errorf("%s was trusted and is gone: bring it back, or end the trust with \"abhed trust --remove\"", own)
	}
	e.registered, err = ahpconfig.Load(opts)
	var u *ahpconfig.UntrustedError
	if errors.As(err, &u) {
		return fmt.Errorf("%s was trusted with other content and isn't trusted now: \"abhed trust\" shows it and trusts it again", u.Path)
	}
	if err != nil {
		return err
	}
	for _, s := range e.registered.Sources {
		for _, f := range misplaced(s) {
			e.warnings = append(e.warnings, f.Message)
		}
	}
	return nil
}

// registrations says which files register backends: the managed one first, then the
// one that was named, else the user's and the trusted workspace's (ahp-tool.md
// "Registration"). Nothing takes the place of one that the managed settings name.
func (e *engine) registrations() ahpconfig.Options {
	l := e.o.loaded
	opts := ahpconfig.Options{File: l.registration, Home: e.sys.home()}
	if e.sys.ManagedDir != "" {
		opts.Managed = filepath.Join(e.sys.ManagedDir, "registration.json")
	}
	origin, set := l.Origin("ahp.registration")
	switch {
	case set && origin.Layer == config.Managed:
		opts.Imposed = l.AHP.Registration
	case opts.File == "":
		opts.File = l.AHP.Registration
	}
	if l.trusted { // the workspace as a whole, with whatever it holds
		opts.Dir, opts.Trusted = l.workspace, func(string, []byte) bool { return true }
	} else if store := e.trustStore(); store != nil && store.Known(registrationFile(l.workspace)) {
		opts.Dir, opts.Trusted = l.workspace, store.Trusted // by "ahp trust"; changed since, it stops the start
	}
	return opts
}

// trustStore returns the projects' registrations that "ahp trust" was told of; nil where
// the account has no home.
func (e *engine) trustStore() *trust.Store {
	state, err := hooklog.StateDir(e.sys.home())
	if err != nil {
		return nil
	}
	return trust.Open(filepath.Join(state, "trust.json"))
}

// onceTrusted reports whether a registration that isn't there was trusted.
func (e *engine) onceTrusted(file string) bool {
	store := e.trustStore()
	if store == nil {
		return false
	}
	entries, err := store.List()
	return err == nil && slices.ContainsFunc(entries, func(t trust.Entry) bool { return t.Path == file })
}

// startBackends opens the backends.
func (e *engine) startBackends(context.Context) error {
	r := e.registered
	if r.Registration == nil {
		return nil
	}
	lender := &gate.Lender{}
	h, err := harness.New(r.Registration, harness.Options{
		Manifest: gate.Manifest(), OnDelivery: e.delivered, Telemetry: e.telemetry(), Open: e.open,
		Content: &harness.Content{Open: lender.Open, Receiver: e.receiver},
	})
	if err != nil {
		var read []string
		for _, s := range r.Sources {
			read = append(read, s.Path)
		}
		return fmt.Errorf("%s: %w", strings.Join(read, ", "), err)
	}
	e.onClose(h.Close)
	l := e.o.loaded
	e.backends = gate.NewBackends(h, gate.Identity{
		Source: "urn:abhed:" + e.key.ID(), Session: e.log.ID(), Workspace: l.workspace, Roots: l.roots,
		Model: e.model.Client.Name(), Agent: mainAgent, Version: e.sys.Version, Mode: e.mode().String(),
	}, lender)
	return nil
}

// AHPManifest prints what this program promises to send to backends and to enforce
// of their answers: what session.start carries.
func AHPManifest(sys System) int {
	b, err := gate.Manifest().Encode()
	if err != nil {
		return sys.fail(ExitFailure, err)
	}
	fmt.Fprintf(sys.Stdout, "%s\n", b)
	return ExitOK
}

// open connects to one backend; a relative working directory starts at the folder
// of the registration.
func (e *engine) open(b *ahp.Backend) (transport.Transport, error) {
	if b.Transport.Type == ahp.TransportHTTP {
		opts, err := e.httpOptions(b.ID, b.Authentication)
		if err != nil {
			return nil, err
		}
		return httptransport.New(b, opts)
	}
	return transport.Stdio(b.Transport, transport.StdioOptions{
		Name: b.ID, Dir: filepath.Dir(e.registered.FileOf(b.ID)),
		OnStderr: stderrLines(b.ID, func(p event.Payload) { _, _ = e.log.Append(system(p)) }),
	})
}

// receiver connects to where a subscription has attachments sent.
func (e *engine) receiver(by ahp.SubscriptionID, u *ahp.Upload) (harness.Receiver, error) {
	opts, err := e.httpOptions(by.Backend, u.Auth)
	if err != nil {
		return nil, err
	}
	return httptransport.NewUploader(u, opts)
}

// httpOptions lends what the registration of a backend refers to for auth, once it
// is there.
func (e *engine) httpOptions(backend string, auth *ahp.Authentication) (httptransport.Options, error) {
	c := e.registered.Credentials(backend, func(name string) (string, bool) {
		v := e.sys.Getenv(name)
		return v, v != ""
	})
	return httptransport.Options{ResolveRef: c.Resolve, LookupEnv: c.LookupEnv}, c.Check(auth)
}

// maxFailure bounds what the record has of a failure's text, in bytes.
const maxFailure = 4 << 10

// delivered records an observation that did not arrive.
func (e *engine) delivered(d harness.Delivery) {
	if d.Failure == nil {
		return
	}
	_, _ = e.log.Append(system(&event.BackendFailed{
		Backend: d.By.Backend, Subscription: d.By.Index, EventID: d.EventID, EventType: string(d.Type),
		Class: string(d.Failure.Class), Policy: "none", Detail: tool.Clean(d.Failure.Detail[:min(len(d.Failure.Detail), maxFailure)]),
	}))
}
