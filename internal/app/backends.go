package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
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
	"github.com/abhed/abhed/internal/strictjson"
)

// source is one place where a registration may stand.
type source struct {
	file string
	must bool // a missing file is an error
}

// registrationSources returns the files that register backends: the managed one
// first, then the one that was named, else the user's and the trusted
// workspace's (ahp-tool.md "Registration").
func (e *engine) registrationSources() []source {
	managed := "/etc/ahp/registration.json"
	if e.sys.ManagedDir != "" {
		managed = filepath.Join(e.sys.ManagedDir, "registration.json")
	}
	out := []source{{managed, false}}
	l := e.o.loaded
	if origin, ok := l.Origin("ahp.registration"); ok && origin.Layer == config.Managed {
		out = append(out, source{l.AHP.Registration, true}) // nothing else takes its place
		if l.registration == "" {
			return out
		}
	}
	switch {
	case l.registration != "":
		out = append(out, source{l.registration, true})
	case l.AHP.Registration != "":
		out = append(out, source{l.AHP.Registration, true})
	default:
		if home := e.sys.home(); home != "" {
			out = append(out, source{filepath.Join(home, ".config", "ahp", "registration.json"), false})
		}
		if l.trusted {
			out = append(out, source{filepath.Join(l.workspace, ".ahp", "registration.json"), false})
		}
	}
	return out
}

// registrations returns the files, for those who must protect them.
func (e *engine) registrations() []string {
	var files []string
	for _, s := range e.registrationSources() {
		files = append(files, s.file)
	}
	return files
}

// registered is what all registrations together name.
type registered struct {
	all ahp.Registration
	// files holds the file that registers a backend, by the backend's id.
	files map[string]string
}

// readRegistrations reads every registration; one at fault refuses everything.
func (e *engine) readRegistrations(context.Context) error {
	r := &registered{all: ahp.Registration{ProtocolVersion: ahp.Version}, files: map[string]string{}}
	seen := map[string]bool{}
	for _, s := range e.registrationSources() {
		if seen[filepath.Clean(s.file)] {
			continue // named twice
		}
		seen[filepath.Clean(s.file)] = true
		data, err := readBounded(s.file, maxSettings)
		if errors.Is(err, fs.ErrNotExist) && !s.must {
			continue
		}
		if err != nil {
			return fmt.Errorf("the AHP registration can't be read: %w", err)
		}
		reg, err := ahp.DecodeRegistration(data)
		if err != nil {
			return fmt.Errorf("%s: %w", place(s.file, data, err), err)
		}
		for _, b := range reg.Hooks {
			if other, dup := r.files[b.ID]; dup {
				return fmt.Errorf("%s: backend %q is registered in %s already", s.file, b.ID, other)
			}
			r.files[b.ID] = s.file
		}
		r.all.Hooks = append(r.all.Hooks, reg.Hooks...)
	}
	e.registered = r
	return nil
}

// startBackends opens the backends.
func (e *engine) startBackends(context.Context) error {
	r := e.registered
	if len(r.all.Hooks) == 0 {
		return nil
	}
	lender := &gate.Lender{}
	dirOf := func(backend string) string { return filepath.Dir(r.files[backend]) }
	h, err := harness.New(&r.all, harness.Options{
		Manifest: gate.Manifest(), OnDelivery: e.delivered, Telemetry: e.telemetry(),
		Open: func(b *ahp.Backend) (transport.Transport, error) { return e.open(b, dirOf(b.ID)) },
		Content: &harness.Content{
			Open: lender.Open,
			Receiver: func(by ahp.SubscriptionID, u *ahp.Upload) (harness.Receiver, error) {
				return e.receiver(u, dirOf(by.Backend))
			},
		},
	})
	if err != nil {
		read := slices.Compact(slices.Sorted(maps.Values(r.files)))
		return fmt.Errorf("%s: %w", strings.Join(read, ", "), err)
	}
	e.onClose(h.Close)
	l := e.o.loaded
	e.backends = gate.NewBackends(h, gate.Identity{
		Source: "urn:abhed:" + e.key.ID(), Session: e.log.ID(), Workspace: l.workspace, Roots: l.roots,
		Model: e.o.model.Name(), Agent: mainAgent, Version: e.sys.Version, Mode: l.Permissions.Mode,
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

// place names the file, with line and column where the error has an offset.
func place(file string, data []byte, err error) string {
	var e *ahp.Error
	if !errors.As(err, &e) || e.Offset < 0 {
		return file
	}
	line, column := strictjson.LineColumn(data, e.Offset)
	return fmt.Sprintf("%s:%d:%d", file, line, column)
}

// open connects to one backend; a relative working directory starts at the folder
// of the registration.
func (e *engine) open(b *ahp.Backend, dir string) (transport.Transport, error) {
	if b.Transport.Type == "http" {
		if err := e.credentials(dir).Check(b.Authentication); err != nil {
			return nil, err
		}
		return httptransport.New(b, e.httpOptions(dir))
	}
	return transport.Stdio(b.Transport, transport.StdioOptions{
		Name: b.ID, Dir: dir,
		OnStderr: func(line string) {
			_, _ = e.log.Append(system(&event.ExtensionLogged{Name: "backend " + b.ID, Level: "log", Line: line}))
		},
	})
}

// receiver connects to where a subscription has attachments sent.
func (e *engine) receiver(u *ahp.Upload, dir string) (harness.Receiver, error) {
	if err := e.credentials(dir).Check(u.Auth); err != nil {
		return nil, err
	}
	return httptransport.NewUploader(u, e.httpOptions(dir))
}

// credentials finds what a registration in dir refers to.
func (e *engine) credentials(dir string) ahpconfig.Credentials {
	return ahpconfig.Credentials{Dir: dir, LookupEnv: func(name string) (string, bool) {
		v := e.sys.Getenv(name)
		return v, v != ""
	}}
}

// httpOptions lends the credentials that a registration in dir names.
func (e *engine) httpOptions(dir string) httptransport.Options {
	c := e.credentials(dir)
	return httptransport.Options{ResolveRef: c.Resolve, LookupEnv: c.LookupEnv}
}

// delivered records an observation that did not arrive.
func (e *engine) delivered(d harness.Delivery) {
	if d.Failure == nil {
		return
	}
	_, _ = e.log.Append(system(&event.BackendFailed{
		Backend: d.By.Backend, Subscription: d.By.Index, EventID: d.EventID, EventType: string(d.Type),
		Class: string(d.Failure.Class), Policy: "none", Detail: d.Failure.Detail,
	}))
}
