package app

import (
	"path/filepath"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/ahpconfig"
)

// backendFiles lists what belongs to the backends: their programs, which are not the
// agent's to change, and their credentials, which are not the agent's to read.
func (e *engine) backendFiles() (programs, credentials []string) {
	if e.registered.Registration == nil {
		return nil, nil
	}
	for i := range e.registered.Registration.Hooks {
		b := &e.registered.Registration.Hooks[i]
		dir := filepath.Dir(e.registered.FileOf(b.ID))
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
				if file, ok := ahpconfig.CredentialFile(ref, dir); ok {
					credentials = append(credentials, file)
				}
			}
		}
	}
	return programs, credentials
}
