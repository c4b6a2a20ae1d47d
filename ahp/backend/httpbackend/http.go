// Package httpbackend serves an AHP backend over HTTP (§17). It is apart from
// package backend because linking net/http costs every start of a stdio backend
// more than a millisecond; a *backend.Server is the Server that it needs.
//
// It guarantees one message per POST, exact media types and statuses, a bound of
// 16 MiB, and that a notification is answered without a body: 202 where it was
// accepted, 400 where not (§29, A14). Requests are answered with 200 and a JSON-RPC
// response, errors included; what isn't JSON, with 400. Authentication comes before
// the body is read: one bearer token, compared in constant time, or the tokens of an
// OAuth issuer. Uploads receives the bytes of attachments (§19) at a place and with
// a credential of its own.
//
// Do not assume that it terminates TLS or limits who may connect: that is the
// http.Server's business around it.
package httpbackend

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/abhed/abhed/ahp"
)

// Server answers one message, as backend.Server does.
type Server interface {
	// Handle returns the response to a request, or nil for a notification.
	Handle(ctx context.Context, msg []byte) (reply []byte, err error)
}

// Options tunes a handler. The zero value is right for tests.
type Options struct {
	// Token is the bearer token that every request must carry; empty asks for none.
	Token string
	// Resource, if set, makes the handler an OAuth resource server instead.
	Resource *Resource
}

// Handler returns an http.Handler that answers AHP messages with s. It panics on
// options that contradict each other or describe no resource.
func Handler(s Server, opts Options) http.Handler {
	h := &handler{server: s, token: opts.Token}
	if opts.Resource == nil {
		return h
	}
	if opts.Token != "" {
		panic("httpbackend: Options has both Token and Resource")
	}
	r, err := newResource(*opts.Resource)
	if err != nil {
		panic(err.Error())
	}
	h.resource = r
	return h
}

type handler struct {
	server   Server
	token    string
	resource *resource // nil: no OAuth
}

// ServeHTTP answers one message.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.resource != nil && r.URL.EscapedPath() == h.resource.metadataPath {
		h.resource.serveMetadata(w, r)
		return
	}
	if status := h.precheck(w, r); status != 0 {
		w.WriteHeader(status)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, ahp.MaxMessageBytes))
	if err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	reply, err := h.server.Handle(r.Context(), body)
	var bad *ahp.Error
	switch {
	case errors.As(err, &bad) && (bad.Kind == ahp.KindSyntax || reply == nil):
		w.WriteHeader(http.StatusBadRequest)
	case reply == nil && err != nil: // the server failed; the notification may be good
		w.WriteHeader(http.StatusInternalServerError)
	case reply == nil:
		w.WriteHeader(http.StatusAccepted)
	default:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusOK)
		w.Write(reply)
	}
}

// precheck returns the status of a request that is refused unread, or 0.
func (h *handler) precheck(w http.ResponseWriter, r *http.Request) int {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return http.StatusMethodNotAllowed
	}
	if h.token != "" && !h.authorized(r.Header.Values("Authorization")) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		return http.StatusUnauthorized
	}
	if h.resource != nil {
		if status := h.resource.authorize(r.Context(), w.Header(), r.Header.Values("Authorization")); status != 0 {
			return status
		}
	}
	media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset, has := params["charset"]
	if err != nil || media != "application/json" || has && !strings.EqualFold(charset, "utf-8") {
		return http.StatusUnsupportedMediaType
	}
	return 0
}

func (h *handler) authorized(values []string) bool {
	token, ok := bearer(values)
	// Hashing makes the comparison take the same time whatever the lengths.
	got, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(h.token))
	return ok && subtle.ConstantTimeCompare(got[:], want[:]) == 1
}
