package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/backend"
	"github.com/abhed/abhed/ahp/backend/httpbackend"
	"github.com/abhed/abhed/ahp/oauth"
)

// certificate writes the certificate of a server to a file.
func certificate(t *testing.T, s *ahptest.OAuthServer) string {
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
	file := filepath.Join(t.TempDir(), "ca.pem")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: conn.ConnectionState().PeerCertificates[0].Raw}
	if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestSendWithClientCredentials sends an event by the built command to a backend that
// wants a token of an OAuth server: the client's secret is where the registration
// says, and never in what the command shows.
func TestSendWithClientCredentials(t *testing.T) {
	judge := backend.Func(func(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
		return backend.Answer(q, &ahp.Deny{Reason: "said behind a token"})
	})
	s := ahptest.NewOAuthServer(t, ahptest.OAuthOptions{TLS: true, Handler: judge, Scopes: []string{"ahp.intercept"}})
	ca := certificate(t, s)
	for _, tt := range []struct {
		name, ref string
		code      int
		says      string
		tokens    int // requests for one
	}{
		{"a variable", "env:CLIENT_SECRET", exitNegative, "said behind a token", 1},
		{"a file beside the registration", "file:secret", exitNegative, "said behind a token", 1},
		{"no variable", "env:NOTHING", exitUsage, `clientSecretRef "env:NOTHING": the variable NOTHING isn't set`, 0},
		{"no file", "file:nothing", exitUsage, `clientSecretRef "file:nothing": `, 0},
		{"another store", "vault:x", exitUsage, "a reference is env:NAME or file:PATH", 0},
		{"another secret", "env:OTHER_SECRET", exitFailed, "invalid_client", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := s.Backend(oauth.ClientCredentials)
			b.Authentication.ClientSecretRef = tt.ref
			b.Subscriptions = []ahp.Subscription{ahptest.Intercept(ahp.FailOpen, 20e9, "tool.before")}
			dir := t.TempDir()
			write := func(name string, content []byte) string {
				file := filepath.Join(dir, name)
				if err := os.WriteFile(file, content, 0o600); err != nil {
					t.Fatal(err)
				}
				return file
			}
			write("secret", []byte(ahptest.OAuthSecret+"\n"))
			reg, err := (&ahp.Registration{ProtocolVersion: ahp.Version, Hooks: []ahp.Backend{*b}}).Encode()
			if err != nil {
				t.Fatal(err)
			}
			before := s.Count("client_credentials")
			cmd := exec.CommandContext(t.Context(), "ahp", "send", "--json", "--registration", write("registration.json", reg), write("event.json", []byte(toolEvent)))
			cmd.Env = append(ahptest.ChildEnv(), "PATH="+os.Getenv("PATH"), "AHP_HOME="+dir, "SSL_CERT_FILE="+ca, "SSL_CERT_DIR="+dir,
				"CLIENT_SECRET="+ahptest.OAuthSecret, "OTHER_SECRET=another-secret")
			var out, errs bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &errs
			if err := cmd.Run(); cmd.ProcessState == nil {
				t.Fatal(err)
			}
			all := out.String() + errs.String()
			if code := cmd.ProcessState.ExitCode(); code != tt.code || !strings.Contains(strings.ReplaceAll(all, `\"`, `"`), tt.says) {
				t.Errorf("exit %d, want %d and %q\n%s", code, tt.code, tt.says, all)
			}
			if n := s.Count("client_credentials") - before; n != tt.tokens {
				t.Errorf("%d requests for a token: %q", n, s.Requests())
			}
			for _, secret := range append(bearers(s), ahptest.OAuthSecret, "another-secret") {
				if strings.Contains(all, secret) {
					t.Errorf("the secret %q is shown: %s", secret, all)
				}
			}
			if tt.code == exitFailed && !strings.Contains(all, `"class":"auth"`) {
				t.Errorf("another failure: %s", all)
			}
		})
	}
	if got := bearers(s); len(got) != 2 {
		t.Errorf("the endpoint saw the tokens %q", got)
	}
}

// bearers returns the tokens that reached the endpoint.
func bearers(s *ahptest.OAuthServer) []string {
	var out []string
	for _, header := range s.Authorizations() {
		if token, is := strings.CutPrefix(header, "Bearer "); is {
			out = append(out, token)
		}
	}
	return out
}

// TestSendWithTokenRef sends with a bearer token that the registration refers to.
func TestSendWithTokenRef(t *testing.T) {
	url := denyingBehind(t, "s3cret-value")
	for ref, want := range map[string]int{"env:TEST_TOKEN": exitNegative, "file:token": exitNegative, "env:GONE": exitUsage} {
		file := httpRegistration(t, url)
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Replace(string(data), `"tokenEnv":"TEST_TOKEN"`, fmt.Sprintf(`"tokenRef":%q`, ref), 1)
		for name, content := range map[string]string{file: text, filepath.Join(filepath.Dir(file), "token"): "s3cret-value"} {
			if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		r, s := sendEvent(t.Context(), t, file)
		if r.code != want || want == exitNegative && s.Outcome.Decision != "deny" {
			t.Errorf("%s: %+v", ref, r)
		}
	}
}

// denyingBehind serves a backend that wants the token and denies.
func denyingBehind(t *testing.T, token string) string {
	t.Helper()
	judge := backend.Func(func(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
		return backend.Answer(q, &ahp.Deny{Reason: "no"})
	})
	server := httptest.NewServer(httpbackend.Handler(backend.New(judge, backend.Options{}), httpbackend.Options{Token: token}))
	t.Cleanup(server.Close)
	return server.URL
}
