package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/ahp/transport"
	"github.com/abhed/abhed/ahp/transport/httptransport"
	"github.com/abhed/abhed/ahp/validate"
	"github.com/abhed/abhed/internal/ahpconfig"
	"github.com/abhed/abhed/internal/hostconf"
	"github.com/abhed/abhed/internal/install"
	"github.com/abhed/abhed/internal/trust"
)

// registration looks at what decides for the lines of a site.
func (s *site) registration(ctx context.Context) {
	o := ahpconfig.Options{File: s.call.Registration, Home: s.d.o.Roots.Home, Managed: s.d.o.Managed}
	if s.call.Home != "" {
		o.Home = s.call.Home
	}
	store := trust.Open(filepath.Join(s.state(), "trust.json"))
	o.Trusted = store.Trusted
	if s.call.Registration == "" && s.projectRegistration(store) {
		o.Dir = s.d.o.Roots.Project
	}
	s.changed()
	loaded, err := ahpconfig.Load(o)
	var untrusted *ahpconfig.UntrustedError
	switch {
	case errors.As(err, &untrusted):
		s.add(Finding{Level: Wrong, Check: "registration-untrusted", What: "the project's registration was trusted and has changed since: every call in this project is answered by --on-missing", Where: untrusted.Path, Do: "read it, then run ahp trust there; or restore it"})
		return
	case err != nil:
		s.add(Finding{Level: Wrong, Check: "registration", What: "every call is answered by --on-missing " + string(s.call.OnMissing) + ", because the registration can't be used: " + err.Error(), Do: "repair it; ahp validate --as registration FILE tells more"})
		return
	case loaded.Registration == nil:
		s.add(Finding{Level: Wrong, Check: "registration", What: "nothing is registered, so every call is answered by --on-missing " + string(s.call.OnMissing), Where: strings.Join(loaded.Looked, ", "), Do: "write a registration into one of these files"})
		return
	}
	s.lint(loaded)
	for i := range loaded.Registration.Hooks {
		b := &loaded.Registration.Hooks[i]
		s.d.reach(ctx, s, loaded, b)
	}
}

// projectRegistration looks at the project's registration, and reports whether it counts.
func (s *site) projectRegistration(store *trust.Store) bool {
	if s.d.o.Roots.Project == "" {
		return false
	}
	path := filepath.Join(s.d.o.Roots.Project, ".ahp", "registration.json")
	_, err := os.Stat(path)
	list, _ := store.List()
	known := slices.ContainsFunc(list, func(e trust.Entry) bool {
		real, err := filepath.EvalSymlinks(path)
		return e.Path == path || err == nil && e.Path == real
	})
	switch {
	case known && errors.Is(err, fs.ErrNotExist):
		s.add(Finding{Level: Wrong, Check: "registration-gone", What: "the project's registration was trusted and is gone: every call in this project is answered by --on-missing", Where: path, Do: "restore it, or run ahp trust --remove " + path})
	case !known && err == nil:
		s.add(Finding{Level: Warning, Check: "registration-untrusted", What: "the project's registration isn't trusted, and so not in force", Where: path, Do: "read it, then run ahp trust " + path})
	}
	return known && err == nil
}

// changed compares the registrations with those of the installation.
func (s *site) changed() {
	if s.record == nil || s.record.Seen == nil {
		return
	}
	for _, r := range s.record.Seen.Registrations {
		sum, err := install.SumFile(r.Path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			s.add(Finding{Level: Wrong, Check: "registration-changed", What: "a registration that was in force at ahp install is gone", Where: r.Path, Do: "restore it; or, if that is as it should be, " + s.again()})
		case err == nil && sum != r.SHA256:
			s.add(Finding{Level: Wrong, Check: "registration-changed", What: "the registration was changed since ahp install", Where: r.Path, Do: "see that it says what you want; then " + s.again()})
		}
	}
}

// lint says what of the registrations can't hold, or should not be there.
func (s *site) lint(loaded *ahpconfig.Loaded) {
	reg, notes, err := s.d.o.Fit(loaded.Registration, s.dialect.Manifest())
	if err != nil {
		s.add(Finding{Level: Wrong, Check: "registration-fit", What: fmt.Sprintf("every call is answered by --on-missing, because %s can't hold what is registered: %v", s.dialect.Title, err), Where: places(loaded), Do: "change that subscription"})
		return
	}
	for _, text := range notes {
		s.add(Finding{Level: Note, Check: "registration-fit", What: text, Where: places(loaded)})
	}
	for _, src := range loaded.Sources {
		r, err := validate.Message(src.Content, validate.Registration, validate.Options{})
		if err != nil {
			continue // it was read a moment ago
		}
		for i := range r.Warnings {
			s.add(Finding{Level: Warning, Check: "registration-lint", What: r.Warnings[i].String(), Where: src.Path})
		}
	}
	limit := int64(hostconf.LimitMS) * 8 / 10
	for i := range reg.Hooks {
		for j := range reg.Hooks[i].Subscriptions {
			if t := reg.Hooks[i].Subscriptions[j].TimeoutMs; t != nil && int64(*t) > limit {
				s.add(Finding{Level: Warning, Check: "registration-lint", What: fmt.Sprintf("backend %s, subscription %d has %d ms, of which the host's limit leaves %d ms", reg.Hooks[i].ID, j, *t, limit), Where: loaded.FileOf(reg.Hooks[i].ID), Do: "make timeoutMs smaller"})
			}
		}
	}
	s.add(Finding{Level: OK, Check: "registration", What: fmt.Sprintf("%d backends are registered", len(reg.Hooks)), Where: places(loaded)})
}

func places(loaded *ahpconfig.Loaded) string {
	var out []string
	for _, src := range loaded.Sources {
		out = append(out, src.Path)
	}
	return strings.Join(out, ", ")
}

// reach asks a backend for its manifest, once in a run.
func (d *doctor) reach(ctx context.Context, s *site, loaded *ahpconfig.Loaded, b *ahp.Backend) {
	file := loaded.FileOf(b.ID)
	if key := file + "\x00" + b.ID; d.reached[key] {
		return
	} else {
		d.reached[key] = true
	}
	err := d.ask(ctx, loaded, b, filepath.Dir(file))
	var f *ahp.Failure
	if errors.As(err, &f) && f.Class == ahp.FailRPCError {
		err = nil // it lives, and has no manifest
	}
	if err != nil {
		d.add(Finding{Level: Wrong, Check: "backend", What: fmt.Sprintf("backend %s can't be asked: %s", b.ID, failure(err)), Where: file, Do: "start it, or repair its registration"})
		return
	}
	d.add(Finding{Level: OK, Check: "backend", What: "backend " + b.ID + " answers", Where: file})
}

func (d *doctor) ask(ctx context.Context, loaded *ahpconfig.Loaded, b *ahp.Backend, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, d.o.Reach)
	defer cancel()
	var t transport.Transport
	var err error
	if b.Transport.Type == ahp.TransportHTTP {
		c := loaded.Credentials(b.ID, func(name string) (string, bool) { return lookup(d.o.Environ, name) })
		if err := c.Check(b.Authentication); err != nil {
			return err
		}
		t, err = httptransport.New(b, httptransport.Options{LookupEnv: c.LookupEnv, ResolveRef: c.Resolve})
	} else {
		t, err = transport.Stdio(b.Transport, transport.StdioOptions{Name: b.ID, Dir: dir})
	}
	if err != nil {
		return err
	}
	defer t.Close()
	_, err = harness.Discover(ctx, t)
	return err
}
