package oauth

import (
	"context"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/abhed/abhed/ahp"
)

func TestIsPublic(t *testing.T) {
	for _, s := range strings.Fields(`
		0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 100.100.100.200 127.0.0.1 127.255.255.255 169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.192 192.0.2.1
		192.88.99.1 192.168.1.1 198.18.0.1 198.51.100.1 203.0.113.1 224.0.0.1 239.1.1.1 240.0.0.1 255.255.255.255 168.63.129.16
		:: ::1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 ::10.0.0.1 64:ff9b::a00:1 64:ff9b:1::a00:1 100::1 2001::1 2001:db8::1 2002:a00:1::1
		3fff::1 fc00::1 fd00:ec2::254 fe80::1 fec0::1 ff02::1 fe80::1%eth0 2600::1%eth0`) {
		if isPublic(netip.MustParseAddr(s)) {
			t.Errorf("%s counts as public", s)
		}
	}
	for _, s := range strings.Fields(`1.1.1.1 8.8.8.8 93.184.216.34 100.63.255.255 100.128.0.1 172.32.0.1 192.0.1.1 223.255.255.255 ::ffff:8.8.8.8 2606:4700::1111 2a00::1`) {
		if !isPublic(netip.MustParseAddr(s)) {
			t.Errorf("%s doesn't count as public", s)
		}
	}
	if isPublic(netip.Addr{}) {
		t.Error("no address counts as public")
	}
}

func TestURLRules(t *testing.T) {
	for _, s := range []string{
		"", "x", "/token", "//issuer.example/token", "https:", "https:token", "https:///token", "https://", "https://:443/", "http://issuer.example/", "ftp://issuer.example/", "file:///etc/passwd",
		"javascript:alert(1)", "https://u@issuer.example/", "https://u:p@issuer.example/", "https://issuer.example/#x", "https://issuer.example/#", "https://issuer.example\\@evil.example/",
		"https://[fe80::1%25eth0]/", "https://issuer.example /", "https://issuer.example/\n", "https://issuer.example:x/", "http://127.0.0.1.evil.example/", "http://0x7f000001/", "https://" + strings.Repeat("x", 5000),
	} {
		for _, local := range []bool{false, true} {
			if u, err := (rules{local}).parse(s); err == nil {
				t.Errorf("%.60q is accepted as %v (local: %v)", s, u, local)
			} else if strings.Contains(err.Error(), "u:p") {
				t.Errorf("the error repeats the URL: %v", err)
			}
		}
	}
	for _, s := range []string{"http://127.0.0.1:8/", "http://localhost/x?y", "http://[::1]/"} {
		if _, err := (rules{false}).parse(s); err == nil {
			t.Errorf("%s is accepted for an endpoint elsewhere", s)
		}
		if _, err := (rules{true}).parse(s); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
}

func TestWithin(t *testing.T) {
	for _, tt := range []struct {
		resource, url string
		want          bool
	}{
		{"https://a.example", "https://a.example", true},
		{"https://a.example", "https://A.example:443/x?y=z", true},
		{"https://a.example/", "https://a.example/x", true},
		{"https://a.example/x", "https://a.example/x", true},
		{"https://a.example/x", "https://a.example/x/y", true},
		{"https://a.example/x/", "https://a.example/x", true},
		{"https://a.example/x", "https://a.example/xy", false},
		{"https://a.example/x", "https://a.example/", false},
		{"https://a.example/x", "https://a.example/x/../y", false},
		{"https://a.example/x", "https://a.example/x/%2e%2e/y", false},
		{"https://a.example/x", "https://a.example/x%2fy", false},
		{"https://a.example/x", "https://a.example/x/..%5cy", false}, // some servers take it for a slash
		{"https://a.example/x", "https://a.example//x", false},
		{"https://a.example", "https://a.example:8443/", false},
		{"https://a.example", "http://a.example/", false},
		{"https://a.example", "https://b.a.example/", false},
		{"https://a.example", "https://a.example.evil.example/", false},
		{"https://a.example", "https://a.example@evil.example/", false},
		{"https://[2001:4860::1]", "https://[2001:4860::1]:443/x", true},
	} {
		r, err := url.Parse(tt.resource)
		u, err2 := url.Parse(tt.url)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		if got := within(r, u); got != tt.want {
			t.Errorf("%s within %s: %v", tt.url, tt.resource, got)
		}
	}
}

func TestSameResource(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"https://a.example", "https://a.example", true}, {"https://a.example", "https://a.example/", true}, {"https://a.example/x", "https://a.example/x", true},
		{"https://a.example/x", "https://a.example/x/", false}, {"https://a.example", "https://A.example", false}, {"https://a.example", "https://a.example//", false},
		{"https://a.example", "http://a.example", false}, {"", "", false}, {"/", "", false},
	} {
		if sameResource(tt.a, tt.b) != tt.want || sameResource(tt.b, tt.a) != tt.want {
			t.Errorf("%s, %s: not %v", tt.a, tt.b, tt.want)
		}
	}
}

// silent returns the port of a listener that fails the test if anything connects.
func silent(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Error("something connected")
			c.Close()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

func get(t *testing.T, s *session, at string) (*answer, error) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, at, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.end()
	return s.do(t.Context(), req)
}

// TestNamesAreCheckedWhereTheyLead holds that a name which resolves to this machine
// is refused when it is dialled, before a packet leaves, unless the endpoint is on
// this machine or the local policy allows the address.
func TestNamesAreCheckedWhereTheyLead(t *testing.T) {
	direct := func(*http.Request) (*url.URL, error) { return nil, nil }
	o := &Options{Proxy: direct}
	_, err := get(t, newSession(o, false), "https://localhost:"+silent(t)+"/")
	if f := ahp.AsFailure(err); f == nil || f.Class != ahp.FailAuth || !strings.Contains(f.Detail, "isn't a public address") {
		t.Errorf("got %v", err)
	}

	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("here")) }))
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	at := "https://127.0.0.1:" + port + "/"
	var asked []netip.Addr
	allowing := &Options{Proxy: direct, RootCAs: roots, AllowAddress: func(a netip.Addr) bool {
		asked = append(asked, a)
		return true
	}}
	if a, err := get(t, newSession(allowing, false), at); err != nil || string(a.body) != "here" || len(asked) != 1 || !asked[0].IsLoopback() {
		t.Errorf("allowed: %v, asked about %v", err, asked)
	}
	if _, err := get(t, newSession(&Options{Proxy: direct, RootCAs: roots}, true), at); err != nil {
		t.Errorf("an endpoint on this machine: %v", err)
	}
	_, err = get(t, newSession(&Options{Proxy: direct}, true), at)
	if err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("an unknown authority: %v", err)
	}
	if _, err := get(t, newSession(allowing, true), "http://192.0.2.1/"); err == nil || !strings.Contains(err.Error(), "doesn't lead to this machine") {
		t.Errorf("plain http to elsewhere: %v", err)
	}
}

// TestProxy holds that a proxy is used for https, wherever it stands, and that it
// isn't asked for what is known to be no public address.
func TestProxy(t *testing.T) {
	var asked atomic.Value
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Store(r.Method + " " + r.Host)
		w.WriteHeader(http.StatusBadGateway)
	}))
	defer proxy.Close()
	at, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	o := &Options{Proxy: func(*http.Request) (*url.URL, error) { return at, nil }}
	if _, err := get(t, newSession(o, false), "https://issuer.invalid/"); ahp.AsFailure(err) == nil || asked.Load() != "CONNECT issuer.invalid:443" {
		t.Errorf("%v; the proxy saw %v", err, asked.Load())
	}
	asked.Store("nothing")
	for _, bad := range []string{"https://10.0.0.1/", "https://localhost/", "https://[::ffff:169.254.169.254]/"} {
		_, err := get(t, newSession(o, false), bad)
		if ahp.AsFailure(err) == nil || !strings.Contains(err.Error(), "isn't a public address") || asked.Load() != "nothing" {
			t.Errorf("%s: %v; the proxy saw %v", bad, err, asked.Load())
		}
	}
}

// TestRequestsAreCounted holds the bound on the requests of one acquisition.
func TestRequestsAreCounted(t *testing.T) {
	n := 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { n++ }))
	defer server.Close()
	s := newSession(&Options{}, true)
	var err error
	for range maxRequests + 5 {
		_, err = get(t, s, server.URL)
	}
	if n != maxRequests || ahp.AsFailure(err) == nil {
		t.Errorf("%d requests, %v", n, err)
	}
}

func TestCheckNameEndsWithTheCaller(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (guard{}).checkName(ctx, "issuer.invalid"); err == nil {
		t.Error("a name that wasn't looked up is accepted")
	}
}
