package ahpconfig_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/ahpconfig"
)

// TestCredentials holds what a reference may stand for, that it is read each time,
// and that no error holds a secret.
func TestCredentials(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"token": " s3cret\n", "empty": " \n", "big": strings.Repeat("s3cret", 20000), "folder/x": "s3cret"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := map[string]string{"TOKEN": "s3cret", "EMPTY": ""}
	c := ahpconfig.Credentials{Dir: dir, LookupEnv: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}
	for ref, says := range map[string]string{
		"env:TOKEN": "", "file:token": "", "file:" + filepath.Join(dir, "token"): "", "file:folder/../token": "",
		"env:EMPTY": "the variable EMPTY isn't set", "env:GONE": "the variable GONE isn't set", "env:": "isn't set",
		"file:gone": "gone", "file:empty": "empty is empty", "file:big": "at most", "file:folder": "regular file",
		"file:": "env:NAME or file:PATH", "token": "env:NAME or file:PATH", "": "env:NAME or file:PATH", "vault:s": "env:NAME or file:PATH", "ENV:TOKEN": "env:NAME or file:PATH",
	} {
		got, err := c.Resolve(t.Context(), ref)
		switch {
		case says == "" && (err != nil || got != "s3cret"):
			t.Errorf("%s: %q, %v", ref, got, err)
		case says != "" && (err == nil || got != "" || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "s3cret")):
			t.Errorf("%s: %q, %v", ref, got, err)
		}
	}
	env["TOKEN"] = "renewed"
	if got, err := c.Resolve(t.Context(), "env:TOKEN"); got != "renewed" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	for _, a := range []*ahp.Authentication{nil, {}, {TokenEnv: "GONE"}, {TokenRef: "env:TOKEN"}, {ClientSecretRef: "file:token"}} {
		if err := c.Check(a); err != nil {
			t.Errorf("%+v: %v", a, err)
		}
	}
	for says, a := range map[string]*ahp.Authentication{`tokenRef "env:GONE": `: {TokenRef: "env:GONE"}, `clientSecretRef "file:gone": `: {ClientSecretRef: "file:gone"}} {
		if err := c.Check(a); err == nil || !strings.HasPrefix(err.Error(), says) {
			t.Errorf("%+v: %v", a, err)
		}
	}
}
