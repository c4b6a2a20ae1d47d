package httptransport_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/oauth"
	"github.com/abhed/abhed/ahp/transport/httptransport"
)

func uploader(t *testing.T, cfg *ahp.Upload, opts httptransport.Options) *httptransport.Uploader {
	t.Helper()
	u, err := httptransport.NewUploader(cfg, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { u.Close() })
	return u
}

func env(vars map[string]string) httptransport.Options {
	return httptransport.Options{LookupEnv: func(name string) (string, bool) { v, ok := vars[name]; return v, ok }}
}

func hashOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// TestUploadOnTheWire reads the bytes of the request themselves.
func TestUploadOnTheWire(t *testing.T) {
	for _, body := range [][]byte{[]byte("\x00\xff\r\n{}"), {}} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		type request struct {
			line   string
			header textproto.MIMEHeader
			names  []string
			rest   []byte
		}
		came := make(chan request, 1)
		go func() {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			var raw bytes.Buffer
			in := textproto.NewReader(bufio.NewReader(io.TeeReader(c, &raw)))
			var r request
			r.line, _ = in.ReadLine()
			r.header, _ = in.ReadMIMEHeader()
			r.rest = make([]byte, len(body))
			io.ReadFull(in.R, r.rest)
			for _, line := range strings.Split(raw.String(), "\r\n") {
				name, _, _ := strings.Cut(line, ":")
				r.names = append(r.names, name)
			}
			receipt := `{"ref":"r","size":` + strconv.Itoa(len(body)) + `,"sha256":"` + hashOf(body) + `"}`
			io.WriteString(c, "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: "+strconv.Itoa(len(receipt))+"\r\n\r\n"+receipt)
			came <- r
		}()
		u := uploader(t, &ahp.Upload{Endpoint: "http://" + l.Addr().String() + "/up?k=v", TimeoutMs: 5000, MaxBytes: 100}, httptransport.Options{})
		got, err := u.Upload(t.Context(), body)
		l.Close()
		if err != nil || *got != (ahp.Receipt{Ref: "r", Size: int64(len(body)), SHA256: hashOf(body)}) {
			t.Fatalf("%v, %v", got, err)
		}
		r := <-came
		if r.line != "POST /up?k=v HTTP/1.1" || !bytes.Equal(r.rest, body) {
			t.Errorf("%q with %q", r.line, r.rest)
		}
		for name, want := range map[string]string{"Content-Type": "application/octet-stream", "Content-Length": strconv.Itoa(len(body)), "Ahp-Content-Sha256": hashOf(body),
			"Authorization": "", "Transfer-Encoding": "", "Content-Encoding": "", "Cookie": "", "Expect": ""} {
			if got := strings.Join(r.header[name], "|"); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
		if !strings.Contains(strings.Join(r.names, " "), "AHP-Content-SHA256") {
			t.Errorf("the header isn't spelled as the protocol does: %q", r.names)
		}
	}
}

func TestUploadFaults(t *testing.T) {
	secret := "tok-" + strings.Repeat("x", 20)
	for _, f := range ahptest.UploadFaults() {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			s := ahptest.NewUploadServer(t, ahptest.UploadOptions{Fault: f, Tokens: map[string]string{secret: "a"}})
			cfg := s.Config("UPLOAD")
			if f.Class == ahp.FailDeadline {
				cfg.TimeoutMs = 100
			}
			_, err := uploader(t, cfg, env(map[string]string{"UPLOAD": secret})).Upload(t.Context(), []byte("body"))
			failure := ahp.AsFailure(err)
			if failure == nil || failure.Class != f.Class {
				t.Fatalf("%v, want class %s", err, f.Class)
			}
			if strings.Contains(err.Error(), secret) {
				t.Error("the error has the secret")
			}
			if n := len(s.Requests()); n != 1 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

func TestUploadCredentialIsItsOwn(t *testing.T) {
	s := ahptest.NewUploadServer(t, ahptest.UploadOptions{Tokens: map[string]string{"upload-token": "a"}, Forbidden: []string{"known"}})
	vars := env(map[string]string{"UPLOAD": "upload-token", "EVENTS": "event-token", "KNOWN": "known", "SPLIT": "a\r\nX: y"})
	// A trusted client of the backend isn't one of the receiver.
	vars.Trust = []oauth.Client{{Resource: s.URL, Issuer: "https://issuer.example", ClientID: "c", Flow: oauth.ClientCredentials}}
	for _, c := range []struct {
		env    string
		class  ahp.FailureClass
		status int // of the receiver; 0: it wasn't asked
	}{{"UPLOAD", "", 201}, {"", ahp.FailAuth, 401}, {"EVENTS", ahp.FailAuth, 401}, {"KNOWN", ahp.FailAuth, 403}, {"SPLIT", ahp.FailAuth, 0}, {"MISSING", ahp.FailAuth, 0}} {
		before := len(s.Requests())
		_, err := uploader(t, s.Config(c.env), vars).Upload(t.Context(), []byte("x"))
		var got ahp.FailureClass
		if f := ahp.AsFailure(err); f != nil {
			got = f.Class
		}
		if got != c.class || (err == nil) != (c.class == "") {
			t.Errorf("%q: %v", c.env, err)
		}
		asked := s.Requests()[before:]
		if len(asked) > 1 || (len(asked) == 1) != (c.status != 0) || len(asked) == 1 && asked[0].Status != c.status {
			t.Errorf("%q: %+v", c.env, asked)
		}
		if c.env == "" && asked[0].Header.Get("Authorization") != "" {
			t.Error("a credential was sent where none is configured")
		}
	}
}

// TestUploadByOAuth uploads to a resource of OAuth that takes messages alone: with a
// token it refuses the media type, without one the request.
func TestUploadByOAuth(t *testing.T) {
	s := ahptest.NewOAuthServer(t, ahptest.OAuthOptions{})
	opts := httptransport.Options{OAuth: s.Options(), Trust: []oauth.Client{s.Client(oauth.ClientCredentials)}}
	cfg := &ahp.Upload{Endpoint: s.Endpoint, TimeoutMs: 5000, MaxBytes: 10}
	_, err := uploader(t, cfg, opts).Upload(t.Context(), []byte("x"))
	if f := ahp.AsFailure(err); f == nil || f.Class != ahp.FailAuth || len(s.Requests()) != 0 {
		t.Errorf("without authentication: %v after %q", err, s.Requests())
	}
	cfg.Auth = s.Backend(oauth.ClientCredentials).Authentication
	u := uploader(t, cfg, opts)
	for range 2 {
		_, err = u.Upload(t.Context(), []byte("x"))
		if f := ahp.AsFailure(err); f == nil || f.Class != ahp.FailHTTPStatus || f.Status != http.StatusUnsupportedMediaType {
			t.Errorf("with a token: %v", err)
		}
	}
	s.Revoke(false)
	_, err = u.Upload(t.Context(), []byte("x"))
	if f := ahp.AsFailure(err); f == nil || f.Status != http.StatusUnsupportedMediaType {
		t.Errorf("with a renewed token: %v", err)
	}
}

func TestUploadBounds(t *testing.T) {
	s := ahptest.NewUploadServer(t, ahptest.UploadOptions{Hold: make(chan struct{})})
	cfg := s.Config("")
	cfg.MaxBytes = 3
	cfg.TimeoutMs = 50
	u := uploader(t, cfg, httptransport.Options{})
	if _, err := u.Upload(t.Context(), []byte("four")); ahp.AsFailure(err) == nil || ahp.AsFailure(err).Class != ahp.FailContent || len(s.Requests()) != 0 {
		t.Errorf("too large: %v, %d requests", err, len(s.Requests()))
	}
	// The receiver never answers: the configuration's own budget ends it.
	if _, err := u.Upload(t.Context(), []byte("abc")); ahp.AsFailure(err) == nil || ahp.AsFailure(err).Class != ahp.FailDeadline {
		t.Errorf("budget: %v", err)
	}
	cfg.TimeoutMs = 60_000
	u = uploader(t, cfg, httptransport.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := u.Upload(ctx, []byte("abc")); !errors.Is(err, context.Canceled) || ahp.AsFailure(err) != nil {
		t.Errorf("cancelled: %v", err)
	}
	time.AfterFunc(20*time.Millisecond, func() { u.Close() })
	if _, err := u.Upload(t.Context(), []byte("abc")); ahp.AsFailure(err) == nil || ahp.AsFailure(err).Class != ahp.FailShutdown {
		t.Errorf("closed: %v", err)
	}
}

func TestUploadConfigurations(t *testing.T) {
	for name, cfg := range map[string]ahp.Upload{
		"plain http to elsewhere": {Endpoint: "http://receiver.example/", TimeoutMs: 1, MaxBytes: 1},
		"a user in the URL":       {Endpoint: "https://u:p@receiver.example/", TimeoutMs: 1, MaxBytes: 1},
		"a line feed":             {Endpoint: "http://127.0.0.1/\r\nX: y", TimeoutMs: 1, MaxBytes: 1},
		"no time":                 {Endpoint: "http://127.0.0.1/", MaxBytes: 1},
		"a negative bound":        {Endpoint: "http://127.0.0.1/", TimeoutMs: 1, MaxBytes: -1},
		"another kind":            {Endpoint: "http://127.0.0.1/", TimeoutMs: 1, MaxBytes: 1, Auth: &ahp.Authentication{Type: "mtls"}},
		"an unresolved reference": {Endpoint: "http://127.0.0.1/", TimeoutMs: 1, MaxBytes: 1, Auth: &ahp.Authentication{Type: "bearer", TokenRef: "r"}},
	} {
		if u, err := httptransport.NewUploader(&cfg, httptransport.Options{}); err == nil {
			u.Close()
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestUploadAnswers: a receipt in a content encoding is none, and a proxy that wants
// its own credential is a failure of the authentication, as for events.
func TestUploadAnswers(t *testing.T) {
	body := []byte("bytes")
	receipt := `{"ref":"r","size":5,"sha256":"` + hashOf(body) + `"}`
	for name, tt := range map[string]struct {
		status   int
		encoding string
		class    ahp.FailureClass
	}{
		"as it is":       {http.StatusCreated, "", ""},
		"no encoding":    {http.StatusCreated, "identity", ""},
		"encoded":        {http.StatusCreated, "br", ahp.FailMalformed},
		"a proxy's word": {http.StatusProxyAuthRequired, "", ahp.FailAuth},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if tt.encoding != "" {
					w.Header().Set("Content-Encoding", tt.encoding)
				}
				w.WriteHeader(tt.status)
				io.WriteString(w, receipt)
			}))
			defer s.Close()
			u := uploader(t, &ahp.Upload{Endpoint: s.URL, TimeoutMs: 5000, MaxBytes: 100}, httptransport.Options{})
			got, err := u.Upload(t.Context(), body)
			switch f := ahp.AsFailure(err); {
			case tt.class == "" && (err != nil || got.Ref != "r"):
				t.Errorf("%+v, %v", got, err)
			case tt.class != "" && (f == nil || f.Class != tt.class || got != nil):
				t.Errorf("%+v, %v, want %s", got, err, tt.class)
			}
		})
	}
}
