package main

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/backend"
	"github.com/abhed/abhed/internal/model/modeltest"
)

// certificate writes what verifies the server into a file.
func certificate(t *testing.T, s *ahptest.OAuthServer, file string) {
	t.Helper()
	u, err := url.Parse(s.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := tls.Dial("tcp", u.Host, &tls.Config{RootCAs: s.RootCAs()})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	data := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: conn.ConnectionState().PeerCertificates[0].Raw})
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestBackendWithOAuth runs the command with a backend that wants a token, which the
// command gets as a client with a secret. Without the secret the run doesn't start,
// and a flow that needs a person is refused.
func TestBackendWithOAuth(t *testing.T) {
	deny := backend.Func(func(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
		return backend.Answer(q, &ahp.Deny{Reason: "said behind a token"})
	})
	s := ahptest.NewOAuthServer(t, ahptest.OAuthOptions{TLS: true, Handler: deny})
	for name, tt := range map[string]struct {
		secret, flow string
		code         int
		says         string
	}{
		"secret":    {ahptest.OAuthSecret, "client_credentials", 0, "said behind a token"},
		"no secret": {"", "client_credentials", 2, "secret"},
		"a person":  {ahptest.OAuthSecret, "authorization_code_pkce", 2, "org.example.policy"},
	} {
		t.Run(name, func(t *testing.T) {
			home, dir := t.TempDir(), t.TempDir()
			certificate(t, s, filepath.Join(home, "ca.pem"))
			registration := fmt.Sprintf(`{"protocolVersion":"draft","hooks":[{"id":"org.example.policy","transport":{"type":"http","url":%q},
				"authentication":{"type":"oauth","resource":%q,"issuer":%q,"clientId":"harness","flow":%q,"clientSecretRef":"file:secret"},
				"subscriptions":[{"events":["tool.before"],"mode":"intercept","timeoutMs":20000,"failurePolicy":"fail-closed","content":{"default":"body"}}]}]}`,
				s.Endpoint, s.Endpoint, s.Issuer, tt.flow)
			for file, content := range map[string]string{"hooks.json": registration, "secret": tt.secret + "\n"} {
				if err := os.WriteFile(filepath.Join(home, file), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			model := modeltest.Start(modeltest.Options{Turns: []modeltest.Turn{
				{Calls: []modeltest.Call{{ID: "c1", Name: "write", Args: `{"path":"made","content":""}`}, {ID: "c2", Name: "read", Args: fmt.Sprintf(`{"path":%q}`, filepath.Join(home, "secret"))}}}, {Text: "done"}}})
			defer model.Close()
			cmd := command(t, home, model.URL, "-p", "do it", "-C", dir, "--mode", "accept-edits", "--min-tier", "none", "--ahp", filepath.Join(home, "hooks.json"))
			cmd.Env = append(cmd.Env, "SSL_CERT_FILE="+filepath.Join(home, "ca.pem"))
			out, _ := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != tt.code || !strings.Contains(string(out), tt.says) {
				t.Errorf("exit %d, want %d; want %q in\n%s", code, tt.code, tt.says, out)
			}
			if strings.Contains(string(out), ahptest.OAuthSecret) {
				t.Errorf("the secret was printed:\n%s", out)
			}
			if _, err := os.Stat(filepath.Join(dir, "made")); err == nil {
				t.Error("the call ran")
			}
			if tt.code == 0 && s.Count("POST") == 0 {
				t.Errorf("no token was asked for: %v", s.Requests())
			}
		})
	}
}
