package httptransport_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/transport/httptransport"
	"github.com/abhed/abhed/internal/require"
)

// TestURLHoldsNoCredential holds that a credential in the URL is refused, since
// portable authentication is bearer or OAuth alone, and that no error repeats the
// URL, whose query may hold one.
func TestURLHoldsNoCredential(t *testing.T) {
	for _, url := range []string{"https://user@policy.example.com/", "http://user:pass@localhost:1/"} {
		_, err := httptransport.New(backendAt(url), httptransport.Options{})
		if err == nil || strings.Contains(err.Error(), "user") && strings.Contains(err.Error(), "pass@") {
			t.Errorf("%s: %v", url, err)
		}
	}
	s := httptest.NewServer(nil)
	url := s.URL
	s.Close()
	_, err := open(t, backendAt(url+"/?key=s3cret"), httptransport.Options{}).Exchange(t.Context(), []byte(`{}`))
	if f := ahp.AsFailure(err); f == nil || f.Class != ahp.FailConnect || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("got %v", err)
	}
}

// raw serves each connection with the given bytes as the response.
func raw(t *testing.T, response string) string {
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
			if req, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				req.Body.Close()
				fmt.Fprint(c, response)
			}
			c.Close()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	return "http://" + l.Addr().String() + "/"
}

func TestResponses(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	z.Write([]byte("{}"))
	z.Close()
	for name, tt := range map[string]struct {
		response string
		class    ahp.FailureClass
	}{
		"good":                  {ok + "Content-Length: 2\r\n\r\n{}", ""},
		"compressed":            {ok + "Content-Encoding: gzip\r\nConnection: close\r\n\r\n" + zipped.String(), ahp.FailMalformed},
		"huge headers":          {ok + "X: " + strings.Repeat("x", 128<<10) + "\r\n\r\n{}", ahp.FailConnect},
		"no type":               {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", ahp.FailMalformed},
		"another charset":       {"HTTP/1.1 200 OK\r\nContent-Type: application/json; charset=latin1\r\nContent-Length: 2\r\n\r\n{}", ahp.FailMalformed},
		"two types":             {ok + "Content-Type: text/html\r\nContent-Length: 2\r\n\r\n{}", ahp.FailMalformed},
		"cut short":             {ok + "Content-Length: 9\r\n\r\n{}", ahp.FailConnect},
		"no HTTP":               {"hello\r\n\r\n", ahp.FailConnect},
		"an endless prelude":    {strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 2000), ahp.FailConnect},
		"another authorization": {"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=x\r\nContent-Length: 0\r\n\r\n", ahp.FailAuth},
	} {
		_, err := open(t, backendAt(raw(t, tt.response)), httptransport.Options{}).Exchange(t.Context(), []byte(`{}`))
		got := ahp.FailureClass("")
		if f := ahp.AsFailure(err); f != nil {
			got = f.Class
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got != tt.class {
			t.Errorf("%s: class %q, want %q: %v", name, got, tt.class, err)
		}
	}
	for name, response := range map[string]string{
		"204 with a body": "HTTP/1.1 204 No Content\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}",
		"202 with a body": "HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\n{}",
		"202 chunked":     "HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
	} {
		err := open(t, backendAt(raw(t, response)), httptransport.Options{}).Notify(t.Context(), []byte(`{}`))
		if f := ahp.AsFailure(err); f == nil || f.Class != ahp.FailMalformed {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestUntrustedCertificate holds that TLS is validated, and that the failure is an
// operational one.
func TestUntrustedCertificate(t *testing.T) {
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	s.Config.ErrorLog = nil
	_, err := open(t, backendAt(s.URL), httptransport.Options{}).Exchange(t.Context(), []byte(`{}`))
	if f := ahp.AsFailure(err); f == nil || f.Class != ahp.FailConnect || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("got %v", err)
	}
}

// TestLoopbackOnly holds which hosts plain http may go to.
func TestLoopbackOnly(t *testing.T) {
	for url, want := range map[string]bool{
		"http://localhost/": true, "http://LOCALHOST:8/": true, "http://127.255.0.1/": true, "http://[::1]/": true,
		"http://localhost./": false, "http://localhost.example/": false, "http://127.1/": false, "http://0x7f000001/": false, "http://2130706433/": false,
		"http://0.0.0.0/": false, "http://[::]/": false, "http://127.0.0.1.example/": false, "http://%6cocalhost/": false, "http://[::2]/": false,
		"http://example@localhost.evil/": false, "http://127.0.0.1@evil.example/": false,
	} {
		if got := ahp.IsLoopbackURL(url); got != want {
			t.Errorf("%s: %v", url, got)
		}
	}
}

// TestReuseAfterErrors holds that a refused request spoils nothing for the next one
// on the same connection, over TLS as well.
func TestReuseAfterErrors(t *testing.T) {
	n := 0
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n++; n%2 == 1 {
			http.Error(w, strings.Repeat("no ", 10000), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"n":%d,"auth":%q}`, n, r.Header.Get("Authorization"))
	})
	plain, secure := httptest.NewServer(h), httptest.NewTLSServer(h)
	defer plain.Close()
	defer secure.Close()
	for _, s := range []*httptest.Server{plain, secure} {
		n = 0
		opts := httptransport.Options{LookupEnv: func(string) (string, bool) { return "t0k3n", true }}
		if s == secure {
			opts.Client = s.Client()
		}
		link := open(t, withToken(backendAt(s.URL)), opts)
		for range 3 {
			_, err := link.Exchange(t.Context(), []byte(`{}`))
			if f := ahp.AsFailure(err); f == nil || f.Class != ahp.FailHTTPStatus || strings.Contains(err.Error(), "t0k3n") {
				t.Errorf("got %v", err)
			}
			out, err := link.Exchange(t.Context(), []byte(`{}`))
			if err != nil || string(out) != fmt.Sprintf(`{"n":%d,"auth":"Bearer t0k3n"}`, n) {
				t.Errorf("%s, %v", out, err)
			}
		}
	}
}

func TestIPv6Loopback(t *testing.T) {
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		require.Missing(t, "ipv6", err.Error())
	}
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) })}}
	s.Start()
	defer s.Close()
	if err := open(t, backendAt(s.URL), httptransport.Options{}).Notify(t.Context(), []byte(`{}`)); err != nil {
		t.Error(err)
	}
}
