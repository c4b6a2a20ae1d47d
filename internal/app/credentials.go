package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/abhed/abhed/ahp"
)

// maxCredential bounds a file that holds one credential, in bytes.
const maxCredential = 64 << 10

// The forms of a reference to a credential in a registration.
const (
	refEnv  = "env:"
	refFile = "file:"
)

// reference returns what finds the credentials that a registration in dir refers to:
// env:NAME is a variable, file:PATH the content of a file without white space
// around it. It is read for each use, so that it may be renewed. No error holds
// what was found.
func (e *engine) reference(dir string) func(context.Context, string) (string, error) {
	return func(_ context.Context, ref string) (string, error) {
		value := ""
		if name, ok := strings.CutPrefix(ref, refEnv); ok {
			if value = e.sys.Getenv(name); value == "" {
				return "", fmt.Errorf("the variable %s isn't set", name)
			}
			return value, nil
		}
		file, ok := refersToFile(ref, dir)
		if !ok {
			return "", errors.New("a reference is env:NAME or file:PATH")
		}
		data, err := readBounded(file, maxCredential)
		if err != nil {
			return "", err
		}
		if value = strings.TrimSpace(string(data)); value == "" {
			return "", fmt.Errorf("%s is empty", file)
		}
		return value, nil
	}
}

// checkReferences says at the start what is wrong with a reference; what uses it
// later tells nobody why it failed.
func (e *engine) checkReferences(a *ahp.Authentication, dir string) error {
	if a == nil {
		return nil
	}
	for name, ref := range map[string]string{"tokenRef": a.TokenRef, "clientSecretRef": a.ClientSecretRef} {
		if ref == "" {
			continue
		}
		if _, err := e.reference(dir)(context.Background(), ref); err != nil {
			return fmt.Errorf("%s %q: %w", name, ref, err)
		}
	}
	return nil
}

// refersToFile returns the file that a reference in a registration in dir names.
func refersToFile(ref, dir string) (string, bool) {
	file, ok := strings.CutPrefix(ref, refFile)
	if !ok || file == "" {
		return "", false
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(dir, file)
	}
	return filepath.Clean(file), true
}

// backendFiles lists what belongs to the backends: their programs, which are not the
// agent's to change, and their credentials, which are not the agent's to read.
func (e *engine) backendFiles() (programs, credentials []string) {
	for i := range e.registered.all.Hooks {
		b := &e.registered.all.Hooks[i]
		dir := filepath.Dir(e.registered.files[b.ID])
		work := dir
		if b.Transport.Cwd != "" {
			work = filepath.Join(dir, b.Transport.Cwd)
			if filepath.IsAbs(b.Transport.Cwd) {
				work = b.Transport.Cwd
			}
		}
		for _, word := range append([]string{b.Transport.Command}, b.Transport.Args...) {
			if file, ok := namesFile(word, work); ok {
				programs = append(programs, file)
			}
		}
		auths := []*ahp.Authentication{b.Authentication}
		for j := range b.Subscriptions {
			if u := b.Subscriptions[j].Upload; u != nil {
				auths = append(auths, u.Auth)
			}
		}
		for _, a := range auths {
			if a == nil {
				continue
			}
			for _, ref := range []string{a.TokenRef, a.ClientSecretRef} {
				if file, ok := refersToFile(ref, dir); ok {
					credentials = append(credentials, file)
				}
			}
		}
	}
	return programs, credentials
}
