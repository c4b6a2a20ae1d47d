package probe

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed/internal/model/modeltest"
)

// where is an endpoint that can't be reached as it should be.
type where struct {
	name string
	// start returns its base URL and a file of authorities, "" for none.
	start func(t *testing.T) (base, caFile string)
	want  map[string]saw
}

// serve runs a server by TLS whose certificate is valid for 127.0.0.1 until the time
// given, and returns its URL and its authority's file.
func serve(t *testing.T, h http.Handler, until time.Time) (base, file string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Test Authority"}, NotBefore: until.Add(-time.Hour * 24 * 90), NotAfter: until,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // refused handshakes are what is tested
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	s.StartTLS()
	t.Cleanup(s.Close)
	file = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return s.URL + "/v1", file
}

// plainly runs a server without TLS.
func plainly(h http.HandlerFunc) func(t *testing.T) (base, caFile string) {
	return func(t *testing.T) (string, string) {
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		return s.URL + "/v1", ""
	}
}

func clock(ahead time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
		w.WriteHeader(http.StatusNotFound)
	}
}

func nowhere(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }

// silent takes connections and says nothing.
func silent(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

func places() []where {
	const long = 60 * 24 * time.Hour
	blocked := func(why string) saw { return saw{NotTried, why} }
	return []where{
		{"a name that nobody has", func(*testing.T) (string, string) { return "http://no-such-host.invalid/v1", "" }, map[string]saw{
			Name: {No, "check the host"}, Port: blocked("name can't be"), Reply: blocked("name can't be"), Clock: blocked("name can't be")}},
		{"a dead port", func(t *testing.T) (string, string) { return modeltest.RefusedURL(t), "" }, map[string]saw{
			Name: {OK, ""}, Port: {No, "was refused"}, HTTP: blocked("the port"), Reply: blocked("the port"), Cache: blocked("the port")}},
		{"an unknown authority", func(t *testing.T) (string, string) {
			base, _ := serve(t, http.HandlerFunc(nowhere), time.Now().Add(long))
			return base, ""
		}, map[string]saw{Port: {OK, ""}, TLS: {No, `a certificate for "127.0.0.1" by "CN=Test Authority"`}, HTTP: blocked("TLS"), Reply: blocked("TLS")}},
		{"another name", func(t *testing.T) (string, string) {
			base, file := serve(t, http.HandlerFunc(nowhere), time.Now().Add(long))
			return strings.Replace(base, "127.0.0.1", "localhost", 1), file
		}, map[string]saw{TLS: {No, "for other names"}, Name: {OK, "localhost is "}}},
		{"an old certificate", func(t *testing.T) (string, string) {
			return serve(t, http.HandlerFunc(nowhere), time.Now().Add(-time.Hour))
		}, map[string]saw{TLS: {No, "must be renewed"}}},
		{"no TLS", func(t *testing.T) (string, string) {
			base, _ := plainly(nowhere)(t)
			return strings.Replace(base, "http:", "https:", 1), ""
		}, map[string]saw{TLS: {No, "does not speak TLS"}}},
		{"silence at the handshake", func(t *testing.T) (string, string) { return "https://" + silent(t), "" }, map[string]saw{TLS: {No, "in time"}}},
		{"silence", func(t *testing.T) (string, string) { return "http://" + silent(t), "" }, map[string]saw{
			HTTP: {Unclear, "did not answer within"}, Clock: {NotTried, "no answer"}, Reply: {No, "no whole reply"}, ToolCall: blocked("in time")}},
		{"something else than HTTP", func(t *testing.T) (string, string) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = l.Close() })
			go func() {
				for c, err := l.Accept(); err == nil; c, err = l.Accept() {
					_, _ = c.Read(make([]byte, 1)) // the request has come
					_, _ = io.WriteString(c, "SSH-2.0-test\r\n\r\n")
					_, _ = io.Copy(io.Discard, c) // until the client gives up
					_ = c.Close()
				}
			}()
			return "http://" + l.Addr().String(), ""
		}, map[string]saw{HTTP: {Unclear, "failed"}, Reply: {No, ""}}},
		{"redirects", plainly(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://elsewhere.example/v1?key=hidden", http.StatusPermanentRedirect)
		}), map[string]saw{HTTP: {Unclear, "redirects to https://elsewhere.example/v1 (HTTP 308)"}, Reply: {No, "never followed"}}},
		{"a clock behind", plainly(clock(time.Hour)), map[string]saw{Clock: {No, "behind"}, HTTP: {OK, "404"}}},
		{"a clock ahead", plainly(clock(-3 * time.Minute)), map[string]saw{Clock: {No, "ahead"}}},
		{"no date", plainly(func(w http.ResponseWriter, r *http.Request) { w.Header()["Date"] = nil; nowhere(w, r) }), map[string]saw{Clock: {Unclear, "no date"}}},
		{"no authorities", func(t *testing.T) (string, string) { return "https://127.0.0.1:1", "nowhere.pem" }, map[string]saw{
			TLS: {No, "nowhere.pem"}, Port: blocked("authorities"), Reply: blocked("authorities")}},
		{"no URL", func(*testing.T) (string, string) { return "script.json", "" }, map[string]saw{Name: {NotTried, "no http"}, Clock: {NotTried, "no http"}}},
	}
}

func TestNetwork(t *testing.T) {
	for _, w := range places() {
		t.Run(w.name, func(t *testing.T) {
			t.Setenv("SSL_CERT_FILE", "") // it would make less of what is found
			base, caFile := w.start(t)
			o := options(nil, base)
			o.CAFile, o.Timeout = caFile, 2*time.Second
			if strings.HasPrefix(base, "http:") {
				o.Client = connect(t, modeltest.Chat, base, "")
			} else {
				o.Client = connect(t, modeltest.Chat, "http://127.0.0.1:1", "") // must not be asked
			}
			if w.name == "no URL" {
				o.Client = nil
			}
			began := time.Now()
			r := Run(t.Context(), o)
			whole(t, r)
			for name, want := range w.want {
				if p := find(t, r, name); p.Outcome != want.outcome || !strings.Contains(p.Saw+"\n"+p.Do, want.text) {
					t.Errorf("got %+v, want %s with %q", p, want.outcome, want.text)
				}
			}
			if r.Verdict == OK || strings.Contains(r.Text(), "hidden") || time.Since(began) > time.Minute {
				t.Errorf("after %v", time.Since(began))
			}
			if t.Failed() {
				t.Log("\n" + r.Text())
			}
		})
	}
}

// TestTLS: behind a certificate of an authority that is trusted by a file, all works,
// and whose it is is said.
func TestTLS(t *testing.T) {
	t.Parallel()
	s := modeltest.New(t, script()...)
	target, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: target.Host})
	proxy.FlushInterval = -1
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	proxy.Transport = transport
	base, file := serve(t, proxy, time.Now().Add(time.Hour))
	o := options(connect(t, modeltest.Chat, base, file), base)
	o.CAFile = file
	r := Run(t.Context(), o)
	whole(t, r)
	for _, p := range r.Probes {
		if p.Outcome != OK {
			t.Errorf("%+v", p)
		}
	}
	if saw := find(t, r, TLS).Saw; !strings.Contains(saw, "TLS 1.3") || !strings.Contains(saw, "127.0.0.1") || !strings.Contains(saw, "Test Authority") || !strings.Contains(saw, "soon") {
		t.Errorf("%q", saw)
	}
}

// TestSystemAuthorities: with a variable that replaces the system's authorities, which
// clients trust besides, a certificate that is not accepted decides nothing.
func TestSystemAuthorities(t *testing.T) {
	base, file := serve(t, http.HandlerFunc(nowhere), time.Now().Add(60*24*time.Hour))
	t.Setenv("SSL_CERT_FILE", file)
	r := Run(t.Context(), options(connect(t, modeltest.Chat, base, ""), base))
	whole(t, r)
	// The standard library reads the variable once, so that either may come here.
	if p := find(t, r, TLS); p.Outcome != Unclear && p.Outcome != OK || find(t, r, Model).Outcome != No {
		t.Errorf("%s", r.Text())
	}
}

// TestPlainHTTP: a key that goes over the network in the clear is worth a word.
func TestPlainHTTP(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]Outcome{"llm.example": Unclear, "192.0.2.7": Unclear, "127.0.0.9": NotTried, "localhost": NotTried, "::1": NotTried} {
		r := &runner{probes: map[string]*Probe{TLS: {}}, hide: newHider(nil)}
		r.sayTLS(&steps{}, &url.URL{Scheme: "http", Host: net.JoinHostPort(host, "80")}, nil)
		if got := r.probes[TLS]; got.Outcome != want {
			t.Errorf("%s: %+v", host, got)
		}
	}
}

// TestInterrupted: when the caller gives up, the report is whole and counts nothing.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	turns := script()
	turns[atTwo].Before = func(int) { cancel() }
	s := modeltest.New(t, turns...)
	r := Run(ctx, options(connect(t, modeltest.Chat, s.URL, ""), s.URL))
	whole(t, r)
	if find(t, r, ToolResult).Outcome != OK || find(t, r, TwoCalls).Outcome != Unclear || !strings.Contains(find(t, r, Output).Saw, "interrupted") {
		t.Errorf("%s", r.Text())
	}
	r = Run(ctx, options(connect(t, modeltest.Chat, s.URL, ""), s.URL))
	whole(t, r)
	for _, p := range r.Probes {
		if p.Outcome != NotTried || !strings.Contains(p.Saw, "interrupted") {
			t.Errorf("%+v", p)
		}
	}
	if r.Requests != 0 {
		t.Errorf("%d requests", r.Requests)
	}
}

// TestEachProbeCanFail: for every probe there is an endpoint above for which it is not
// ok, and one for which it is not tried and says so.
func TestEachProbeCanFail(t *testing.T) {
	t.Parallel()
	bad := map[string]bool{}
	for _, f := range slices.Concat(entry(), ofTools(), ofExtras()) {
		for name, want := range f.want {
			bad[name] = bad[name] || want.outcome == No || want.outcome == Unclear
		}
	}
	for _, w := range places() {
		for name, want := range w.want {
			bad[name] = bad[name] || want.outcome == No || want.outcome == Unclear
		}
	}
	// That pieces come in one lump is tested in a time of its own (TestLump).
	for _, name := range names() {
		if !bad[name] {
			t.Errorf("no endpoint fails the probe %q", name)
		}
	}
}

// TestProxyIsNamed: a proxy is named by scheme and host, without what may be a password.
func TestProxyIsNamed(t *testing.T) {
	t.Parallel()
	req := httptest.NewRequest(http.MethodGet, "https://llm.example/v1", nil)
	proxied := func(s string) *http.Transport {
		return &http.Transport{Proxy: func(*http.Request) (*url.URL, error) { return url.Parse(s) }}
	}
	if got := through(proxied("http://me:hidden@proxy.example:3128/x?y=hidden"), req); got != " (through the proxy http://proxy.example:3128, set by the environment)" {
		t.Errorf("%q", got)
	}
	for _, none := range []*http.Transport{proxied("http://[bad"), {Proxy: func(*http.Request) (*url.URL, error) { return nil, nil }}} {
		if got := through(none, req); got != "" {
			t.Errorf("%q", got)
		}
	}
}
