package httptransport_test

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp/backend"
	"github.com/abhed/abhed/ahp/backend/httpbackend"
	"github.com/abhed/abhed/ahp/transport/httptransport"
)

// askVariable makes the test binary send one request to the URL that it holds, with
// the proxies and certificate authorities of its environment, and print the outcome.
const askVariable = "HTTPTRANSPORT_TEST_ASK"

// askIfChild does that and ends the program, if it is such a child.
func askIfChild() {
	url := os.Getenv(askVariable)
	if url == "" {
		return
	}
	link, err := httptransport.New(withToken(backendAt(url)), httptransport.Options{LookupEnv: func(string) (string, bool) { return "t0k3n", true }})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	reply, err := link.Exchange(ctx, []byte(`{"jsonrpc":"2.0","id":1,"method":"hooks/nothing","params":{}}`))
	fmt.Printf("%s %v", reply, err)
	link.Close()
	os.Exit(0)
}

func ask(t *testing.T, url string, env ...string) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append([]string{askVariable + "=" + url, "GORACE=atexit_sleep_ms=0"}, env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// tunnel is a proxy that leads every CONNECT to one place, if it knows the user.
type tunnel struct {
	to   string
	mu   sync.Mutex
	seen []string
}

func (p *tunnel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.seen = append(p.seen, r.Method+" "+r.Host+" "+r.Header.Get("Authorization"))
	p.mu.Unlock()
	if r.Method != http.MethodConnect || !strings.HasPrefix(r.Header.Get("Proxy-Authorization"), "Basic dXNlcjpwNHNz") { // user:p4ss
		w.WriteHeader(http.StatusProxyAuthRequired)
		return
	}
	there, err := net.Dial("tcp", p.to)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer there.Close()
	here, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer here.Close()
	io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n")
	done := make(chan struct{})
	go func() {
		defer close(done)
		io.Copy(there, here)
		there.Close()
	}()
	io.Copy(here, there)
	here.Close()
	<-done
}

func (p *tunnel) take() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := p.seen
	p.seen = nil
	return out
}

// TestProxyOfTheEnvironment holds, in processes of their own, that https goes
// through the proxy of the environment, but for the hosts that it excepts; that
// plain http to this machine doesn't; that the platform's certificate authorities
// count; that the proxy sees no token; and that no failure shows its password.
func TestProxyOfTheEnvironment(t *testing.T) {
	h := httpbackend.Handler(backend.New(backend.Func(allowAll), backend.Options{}), httpbackend.Options{Token: "t0k3n"})
	secure, plain := httptest.NewTLSServer(h), httptest.NewServer(h)
	defer secure.Close()
	defer plain.Close()
	p := &tunnel{to: secure.Listener.Addr().String()}
	proxy := httptest.NewServer(p)
	defer proxy.Close()
	authority := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	trust := "SSL_CERT_FILE=" + authority
	at := strings.TrimPrefix(proxy.URL, "http://")
	const answered, through = `"code":-32601`, "CONNECT example.com:443 "
	for name, tt := range map[string]struct {
		url  string
		env  []string
		want string
		seen string
	}{
		"through the proxy":            {"https://example.com/", []string{trust, "HTTPS_PROXY=http://user:p4ss@" + at}, answered, through},
		"by the name in lower case":    {"https://example.com/", []string{trust, "https_proxy=http://user:p4ss@" + at}, answered, through},
		"an authority that is missing": {"https://example.com/", []string{"SSL_CERT_FILE=" + os.DevNull, "SSL_CERT_DIR=" + t.TempDir(), "HTTPS_PROXY=http://user:p4ss@" + at}, "certificate", through},
		"a proxy that refuses":         {"https://example.com/", []string{trust, "HTTPS_PROXY=http://user:wr0ng@" + at}, "Proxy Authentication Required", through},
		"a host that is excepted":      {"https://policy.invalid/", []string{trust, "HTTPS_PROXY=http://user:p4ss@" + at, "NO_PROXY=.invalid"}, "policy.invalid", ""},
		"plain http":                   {plain.URL, []string{"HTTP_PROXY=http://user:p4ss@" + at, "HTTPS_PROXY=http://user:p4ss@" + at}, answered, ""},
		"a proxy that is gone":         {"https://example.com/", []string{trust, "HTTPS_PROXY=http://user:p4ss@127.0.0.1:1"}, "proxy", ""},
	} {
		out := ask(t, tt.url, tt.env...)
		if !strings.Contains(out, tt.want) || strings.Contains(out, "p4ss") || strings.Contains(out, "wr0ng") || strings.Contains(out, "t0k3n") {
			t.Errorf("%s: %s, want %q", name, out, tt.want)
		}
		seen := strings.Join(p.take(), "; ")
		if seen != tt.seen {
			t.Errorf("%s: the proxy saw %q, want %q", name, seen, tt.seen)
		}
	}
}
