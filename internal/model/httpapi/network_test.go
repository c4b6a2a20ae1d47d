package httpapi

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/abhed/abhed/internal/model/modeltest"
)

// urlsEnv makes the test binary a program that posts to each URL in it and says
// how that went, because a process reads what it trusts and its proxies once.
const urlsEnv = "HTTPAPI_TEST_URLS"

func TestMain(m *testing.M) {
	if urls := os.Getenv(urlsEnv); urls != "" {
		for u := range strings.SplitSeq(urls, " ") {
			fmt.Println(u, tryPost(u))
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func tryPost(u string) string {
	a, err := New(Config{BaseURL: u, Path: "chat", Model: "m", Name: "test", CAFile: os.Getenv("HTTPAPI_TEST_CA"), StallTimeout: time.Second, Words: Words{API: "x", End: "y", BaseURL: "z"}})
	if err != nil {
		return "refused at start: " + err.Error()
	}
	ans, err := a.Post(context.Background(), [][]byte{[]byte("{}")})
	if err != nil {
		return "failed: " + err.Error()
	}
	ans.Close()
	return "answered"
}

// asProgram runs the test binary as that program.
func asProgram(t *testing.T, urls []string, env ...string) map[string]string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); !strings.HasSuffix(strings.ToUpper(name), "_PROXY") && !strings.HasPrefix(name, "SSL_CERT") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(append(cmd.Env, urlsEnv+"="+strings.Join(urls, " ")), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	said := map[string]string{}
	for line := range strings.Lines(string(out)) {
		u, how, _ := strings.Cut(strings.TrimSpace(line), " ")
		said[u] = how
	}
	return said
}

// authority starts a TLS server whose certificate an authority of its own signed,
// and returns its URL and the authority's PEM file.
func authority(t *testing.T) (url, file string) {
	t.Helper()
	now := time.Now()
	make1 := func(tmpl, parent *x509.Certificate, signer *ecdsa.PrivateKey) ([]byte, *ecdsa.PrivateKey) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if signer == nil {
			parent, signer = tmpl, key
		}
		der, err := x509.CreateCertificate(rand.Reader, tmpl, parent, &key.PublicKey, signer)
		if err != nil {
			t.Fatal(err)
		}
		return der, key
	}
	ca := &x509.Certificate{SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: rand.Text()}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	caDER, caKey := make1(ca, nil, nil)
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), NotBefore: ca.NotBefore, NotAfter: ca.NotAfter, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, key := make1(leaf, ca, caKey)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "data: x\n\n") }))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // the refused handshake is what is tested
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	s.StartTLS()
	t.Cleanup(s.Close)
	file = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER}), 0o600); err != nil {
		t.Fatal(err)
	}
	return s.URL, file
}

// TestAuthoritiesAdd has three servers behind three authorities: the system's, one
// in SSL_CERT_FILE and one in ca_file. Naming one takes none of the others away
// (I197).
func TestAuthoritiesAdd(t *testing.T) {
	system, systemFile := authority(t)
	byEnv, envFile := authority(t)
	byConfig, configFile := authority(t)
	urls := []string{system, byEnv, byConfig}
	// A system that keeps its authorities in a folder.
	dir := "SSL_CERT_DIR=" + filepath.Dir(systemFile)
	none := "SSL_CERT_DIR=" + t.TempDir()
	cases := []struct {
		name string
		env  []string
		want []bool
	}{
		{"neither", []string{dir}, []bool{true, false, false}},
		{"both", []string{dir, "SSL_CERT_FILE=" + envFile, "HTTPAPI_TEST_CA=" + configFile}, []bool{true, true, true}},
		{"both, nothing else", []string{none, "SSL_CERT_FILE=" + envFile, "HTTPAPI_TEST_CA=" + configFile}, []bool{false, true, true}},
	}
	for _, c := range cases {
		said := asProgram(t, urls, c.env...)
		for i, u := range urls {
			if i == 0 && runtime.GOOS != "linux" {
				continue // where the folder isn't the system's
			}
			if got := said[u]; (got == "answered") != c.want[i] || !c.want[i] && !strings.Contains(got, "certificate was not accepted") {
				t.Errorf("%s: server %d: %s", c.name, i, got)
			}
		}
	}
}

// TestWrongAuthorityFiles are errors at the start (I197).
func TestWrongAuthorityFiles(t *testing.T) {
	_, good := authority(t)
	notPEM := filepath.Join(t.TempDir(), "x.pem")
	if err := os.WriteFile(notPEM, []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ env, setting, want string }{
		{"", "", ""}, {good, good, ""},
		{"/nonexistent/ca.pem", "", "$SSL_CERT_FILE: open /nonexistent/ca.pem"},
		{"", "/nonexistent/ca.pem", "ca_file: open /nonexistent/ca.pem"},
		{notPEM, good, "$SSL_CERT_FILE " + notPEM + " holds no PEM certificate"},
		{good, notPEM, "ca_file " + notPEM + " holds no PEM certificate"},
	} {
		t.Setenv("SSL_CERT_FILE", c.env)
		a, err := New(Config{BaseURL: "https://host", Model: "m", Name: "test", CAFile: c.setting})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
		if (a != nil) != (err == nil) {
			t.Errorf("%+v: an API and an error", c)
		}
	}
}

// TestBundleOfTheSystemStays has a system that keeps its authorities in one file,
// which the variable hides from Go's own reading (I197).
func TestBundleOfTheSystemStays(t *testing.T) {
	_, bundle := authority(t)
	_, envFile := authority(t)
	pool, err := authorities{envFile: envFile}.pool([]string{"/nonexistent", bundle})
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{bundle, envFile} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		block, _ := pem.Decode(data)
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := cert.Verify(x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	if pool, err := (authorities{envFile: bundle}).pool([]string{bundle}); err != nil || pool != nil {
		t.Errorf("the system's own bundle in the variable: %v %v", pool, err)
	}
}

// seen is what a proxy was asked for.
type seen struct {
	mu         sync.Mutex
	asked      []string
	authorized int
}

func (s *seen) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, r.Method+" "+r.Host)
	if r.Header.Get("Proxy-Authorization") != "" {
		s.authorized++
	}
	http.Error(w, "no", http.StatusBadGateway)
}

// take returns what was asked since the last call, and how often with a password.
func (s *seen) take() ([]string, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked, n := s.asked, s.authorized
	s.asked, s.authorized = nil, 0
	return asked, n
}

// TestProxyVariables asks for hosts that the proxy serves and hosts that NO_PROXY
// names (I198).
func TestProxyVariables(t *testing.T) {
	var saw seen
	proxy := httptest.NewServer(&saw)
	defer proxy.Close()
	direct := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer direct.Close()
	withPassword := strings.Replace(proxy.URL, "http://", "http://u:secretpass@", 1)
	secure, plain := "https://model.invalid/v1", "http://model.invalid/v1"
	listed := []string{"https://inner.corp/v1", "http://inner.corp/v1", "https://10.255.255.1:9/v1", "https://localhost:9/v1"}
	for _, names := range [][3]string{{"HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"}, {"https_proxy", "http_proxy", "no_proxy"}} {
		said := asProgram(t, append(listed, secure, plain, direct.URL), names[0]+"="+withPassword, names[1]+"="+proxy.URL, names[2]+"=localhost,.corp,10.0.0.0/8")
		asked, authorized := saw.take()
		if !slices.Equal(asked, []string{"CONNECT model.invalid:443", "POST model.invalid"}) || authorized != 1 {
			t.Errorf("%s: the proxy saw %q, %d of them with the password", names[0], asked, authorized)
		}
		if got := said[secure]; !strings.Contains(got, "through the proxy "+proxy.URL) || strings.Contains(got, "secretpass") {
			t.Errorf("%s: %s", names[0], got)
		}
		for _, u := range listed {
			if got := said[u]; !strings.HasPrefix(got, "failed") || strings.Contains(got, "proxy") {
				t.Errorf("%s: %s: %s", names[2], u, got)
			}
		}
		if got := said[direct.URL]; got != "answered" {
			t.Errorf("%s: loopback: %s", names[1], got)
		}
	}
	refused := strings.TrimSuffix(modeltest.RefusedURL(t), "/v1")
	said := asProgram(t, []string{secure, plain}, "HTTPS_PROXY="+strings.Replace(refused, "http://", "http://u:secretpass@", 1), "HTTP_PROXY=http://u:secretpass@a b")
	if got := said[secure]; !strings.Contains(got, "refused") || !strings.Contains(got, "through the proxy "+refused) || strings.Contains(got, "secretpass") {
		t.Error(got)
	}
	if got := said[plain]; !strings.Contains(got, "through the proxy") || strings.Contains(got, "secretpass") {
		t.Error(got)
	}
}
