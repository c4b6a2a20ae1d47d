package ahpconfig

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

// Credentials finds what the references in one registration stand for, tokenRef and
// clientSecretRef: env:NAME is a variable, file:PATH the content of a file without
// white space around it. It is read for each use, so that it may be renewed. No
// error holds what was found. Its methods may be called from any goroutine.
type Credentials struct {
	// Dir is the folder of the registration: where a relative path starts.
	Dir string
	// LookupEnv returns the value of a variable. A variable without a value counts
	// as one that isn't set.
	LookupEnv func(name string) (value string, ok bool)
}

// Credentials returns what finds the credentials of the backend.
func (l *Loaded) Credentials(backend string, lookupEnv func(name string) (string, bool)) Credentials {
	return Credentials{Dir: filepath.Dir(l.FileOf(backend)), LookupEnv: lookupEnv}
}

// Resolve returns the credential that ref stands for.
func (c Credentials) Resolve(_ context.Context, ref string) (string, error) {
	if name, ok := strings.CutPrefix(ref, refEnv); ok {
		value, _ := c.LookupEnv(name)
		if value == "" {
			return "", fmt.Errorf("the variable %s isn't set", name)
		}
		return value, nil
	}
	file, ok := CredentialFile(ref, c.Dir)
	if !ok {
		return "", errors.New("a reference is env:NAME or file:PATH")
	}
	data, err := read(file, "credential", maxCredential)
	if err != nil {
		return "", err
	}
	value := strings.TrimSpace(string(data))
	if value == "" {
		return "", fmt.Errorf("%s is empty", file)
	}
	return value, nil
}

// Check says what is wrong with the references of a, which may be nil: what uses
// them later tells nobody why it failed. The error names the reference.
func (c Credentials) Check(a *ahp.Authentication) error {
	if a == nil {
		return nil
	}
	for _, r := range []struct{ name, ref string }{{"tokenRef", a.TokenRef}, {"clientSecretRef", a.ClientSecretRef}} {
		if r.ref == "" {
			continue
		}
		if _, err := c.Resolve(context.Background(), r.ref); err != nil {
			return fmt.Errorf("%s %q: %w", r.name, r.ref, err)
		}
	}
	return nil
}

// CredentialFile returns the file that a reference in a registration in dir stands
// for, if it stands for one.
func CredentialFile(ref, dir string) (string, bool) {
	file, ok := strings.CutPrefix(ref, refFile)
	if !ok || file == "" {
		return "", false
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(dir, file)
	}
	return filepath.Clean(file), true
}
