package chain

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzKeyFile holds that a damaged key file is an error, and that a key that is
// read signs what it verifies.
func FuzzKeyFile(f *testing.F) {
	good := filepath.Join(f.TempDir(), "key")
	if _, err := LoadKey(good); err != nil {
		f.Fatal(err)
	}
	text, err := os.ReadFile(good)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		k, err := readKey(path)
		if err != nil {
			return
		}
		h := Head{Seq: 1}
		if !VerifyHead(k.Public(), h, k.Sign(h)) || VerifyHead(k.Public(), Head{Seq: 2}, k.Sign(h)) {
			t.Fatalf("the key of %q doesn't sign", data)
		}
	})
}
