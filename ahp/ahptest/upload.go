package ahptest

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/backend/httpbackend"
)

// UploadFault is a way in which a receiver of uploads misbehaves. The zero fault is
// none.
type UploadFault struct {
	// Name says what the receiver does, in words with dashes.
	Name string
	// Class is how an upload to it must fail.
	Class ahp.FailureClass
	// answer writes the response; good is the receiver's own.
	answer func(w http.ResponseWriter, r *http.Request, good *httptest.ResponseRecorder)
}

// UploadFaults returns the menu of faults. None of them may be taken for a
// confirmation (§19).
func UploadFaults() []UploadFault {
	status := func(code int) func(http.ResponseWriter, *http.Request, *httptest.ResponseRecorder) {
		return func(w http.ResponseWriter, _ *http.Request, good *httptest.ResponseRecorder) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			if code != http.StatusNoContent {
				w.Write(good.Body.Bytes())
			}
		}
	}
	body := func(mediaType string, edit func(receipt string) string) func(http.ResponseWriter, *http.Request, *httptest.ResponseRecorder) {
		return func(w http.ResponseWriter, _ *http.Request, good *httptest.ResponseRecorder) {
			w.Header().Set("Content-Type", mediaType)
			w.WriteHeader(http.StatusCreated)
			io.WriteString(w, edit(good.Body.String()))
		}
	}
	same := func(s string) string { return s }
	swap := func(old, new string) func(string) string {
		return func(s string) string { return strings.Replace(s, old, new, 1) }
	}
	const json = "application/json"
	return []UploadFault{
		{"ok-200", ahp.FailHTTPStatus, status(http.StatusOK)},
		{"accepted-202", ahp.FailHTTPStatus, status(http.StatusAccepted)},
		{"no-content-204", ahp.FailHTTPStatus, status(http.StatusNoContent)},
		{"bad-request-400", ahp.FailHTTPStatus, status(http.StatusBadRequest)},
		{"unauthorized-401", ahp.FailAuth, status(http.StatusUnauthorized)},
		{"forbidden-403", ahp.FailAuth, status(http.StatusForbidden)},
		{"not-found-404", ahp.FailHTTPStatus, status(http.StatusNotFound)},
		{"too-large-413", ahp.FailHTTPStatus, status(http.StatusRequestEntityTooLarge)},
		{"error-500", ahp.FailHTTPStatus, status(http.StatusInternalServerError)},
		{"redirect-307", ahp.FailHTTPStatus, func(w http.ResponseWriter, r *http.Request, _ *httptest.ResponseRecorder) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}},
		{"media-type-text", ahp.FailMalformed, body("text/plain", same)},
		{"media-type-missing", ahp.FailMalformed, body("", same)},
		{"receipt-empty", ahp.FailMalformed, body(json, func(string) string { return "" })},
		{"receipt-no-json", ahp.FailMalformed, body(json, func(string) string { return "stored" })},
		{"receipt-extra-member", ahp.FailMalformed, body(json, swap("{", `{"url":"x",`))},
		{"receipt-member-twice", ahp.FailMalformed, body(json, swap("{", `{"size":0,`))},
		{"receipt-empty-ref", ahp.FailMalformed, body(json, func(s string) string { return `{"ref":""` + s[strings.IndexByte(s, ','):] })},
		{"receipt-other-size", ahp.FailMalformed, body(json, swap(`"size":`, `"size":1`))},
		{"receipt-other-hash", ahp.FailMalformed, body(json, func(s string) string {
			i := strings.Index(s, `"sha256":"`) + len(`"sha256":"`)
			return s[:i] + strings.Repeat("0", 64) + s[i+64:]
		})},
		{"receipt-huge", ahp.FailMalformed, body(json, func(s string) string { return s + strings.Repeat(" ", 1<<20) })},
		{"connection-lost", ahp.FailConnect, func(http.ResponseWriter, *http.Request, *httptest.ResponseRecorder) { panic(http.ErrAbortHandler) }},
		{"no-answer", ahp.FailDeadline, func(_ http.ResponseWriter, r *http.Request, _ *httptest.ResponseRecorder) { <-r.Context().Done() }},
	}
}

// UploadOptions tunes an UploadServer. The zero value takes uploads from anybody.
type UploadOptions struct {
	Fault UploadFault
	// Tokens are the bearer tokens that are accepted, with their scopes; nil accepts
	// anybody.
	Tokens map[string]string
	// Forbidden are tokens that are known and may not upload.
	Forbidden []string
	// Hold, if set, delays every answer until it is closed.
	Hold <-chan struct{}
	// MaxBytes bounds one upload; zero means 16 MiB.
	MaxBytes int64
	// Path is the only path that is served; empty serves all.
	Path string
}

// UploadRequest is one request as it came.
type UploadRequest struct {
	Method, Path     string
	Header           http.Header
	ContentLength    int64
	TransferEncoding []string
	Body             []byte
	// Status is that of the receiver's own answer, whatever the fault made of it.
	Status int
	// Ref is what the receiver called the bytes, if it took them.
	Ref string
}

// UploadServer is a real receiver of uploads at a port of this machine. Its methods
// may be called from any goroutine.
type UploadServer struct {
	// URL is the endpoint.
	URL string
	// Receiver has what was taken.
	Receiver *httpbackend.Uploads

	o        UploadOptions
	mu       sync.Mutex
	requests []UploadRequest
}

// NewUploadServer starts a receiver; it ends with the test.
func NewUploadServer(t testing.TB, o UploadOptions) *UploadServer {
	t.Helper()
	opts := httpbackend.UploadOptions{MaxBytes: o.MaxBytes, Path: o.Path}
	if o.Tokens != nil {
		known := httpbackend.TokenScopes(o.Tokens)
		opts.Scope = func(ctx context.Context, token string) (string, error) {
			for _, f := range o.Forbidden {
				if token == f {
					return "", httpbackend.ErrScope
				}
			}
			return known(ctx, token)
		}
	}
	receiver, err := httpbackend.NewUploads(opts)
	if err != nil {
		t.Fatal(err)
	}
	s := &UploadServer{Receiver: receiver, o: o}
	ctx, cancel := context.WithCancel(context.Background())
	server := httptest.NewUnstartedServer(s)
	server.Config.BaseContext = func(net.Listener) context.Context { return ctx }
	server.Start()
	s.URL = server.URL + o.Path
	t.Cleanup(func() {
		cancel()
		server.Close()
		receiver.Close()
	})
	return s
}

// ServeHTTP answers with the receiver, and with the fault.
func (s *UploadServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body bytes.Buffer
	r.Body = io.NopCloser(io.TeeReader(r.Body, &body))
	good := httptest.NewRecorder()
	s.Receiver.ServeHTTP(good, r)
	got := UploadRequest{Method: r.Method, Path: r.URL.Path, Header: r.Header.Clone(), ContentLength: r.ContentLength,
		TransferEncoding: r.TransferEncoding, Body: body.Bytes(), Status: good.Code}
	if receipt, err := ahp.DecodeReceipt(good.Body.Bytes()); err == nil {
		got.Ref = receipt.Ref
	}
	s.mu.Lock()
	s.requests = append(s.requests, got)
	s.mu.Unlock()
	if s.o.Hold != nil {
		select {
		case <-s.o.Hold:
		case <-r.Context().Done():
			return
		}
	}
	if s.o.Fault.answer != nil {
		s.o.Fault.answer(w, r, good)
		return
	}
	for name, values := range good.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(good.Code)
	w.Write(good.Body.Bytes())
}

// Requests returns what came so far, in order.
func (s *UploadServer) Requests() []UploadRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]UploadRequest(nil), s.requests...)
}

// Config returns the upload member of a subscription. Without a variable for the
// token nothing is sent to authenticate.
func (s *UploadServer) Config(tokenEnv string) *ahp.Upload {
	u := &ahp.Upload{Endpoint: s.URL, TimeoutMs: 5000, MaxBytes: 1 << 20}
	if tokenEnv != "" {
		u.Auth = &ahp.Authentication{Type: "bearer", TokenEnv: tokenEnv}
	}
	return u
}
