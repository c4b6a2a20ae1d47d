package config

import (
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// I197: an authority file that isn't there is an error at the start that names it,
// and so is one that is no such file.
func TestCaseI197AuthorityFile(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	dir := t.TempDir()
	write := func(name string, data []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("good.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	write("text.pem", []byte("no certificate"))
	write("key.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("0123456789")}))
	for name, want := range map[string]string{
		"good.pem":    "",
		"missing.pem": "missing.pem\", which can't be read: open ",
		".":           ", which can't be read: ",
		"text.pem":    "text.pem\", which holds no certificate, expected a PEM file of certificates",
		"key.pem":     "key.pem\", which holds no certificate",
	} {
		src := file(User, `{"http": {"ca_file": "`+name+`"}}`)
		src.Dir = dir
		err := load(t, src).CheckCAFile(os.ReadFile)
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case want != "" && (err == nil || !strings.HasPrefix(err.Error(), "/f/user.json:1:22: http.ca_file: ") || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "0123456789")):
			t.Errorf("%s: %v, want %q in it", name, err, want)
		}
	}
	if err := load(t).CheckCAFile(nil); err != nil {
		t.Errorf("without the setting: %v", err)
	}
}
