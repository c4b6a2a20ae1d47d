// Package httpbackend serves an AHP backend over HTTP (§17). It is apart from
// package backend because linking net/http costs every start of a stdio backend
// more than a millisecond; a *backend.Server is the Server that it needs.
//
// It guarantees one message per POST, exact media types and statuses, a bound of
// 16 MiB, and that a notification is answered without a body. Authentication
// compares the bearer token in constant time.
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
}

// Handler returns an http.Handler that answers AHP messages with s.
func Handler(s Server, opts Options) http.Handler {
	return &handler{server: s, token: opts.Token}
}

type handler struct {
	server Server
	token  string
}

// ServeHTTP answers one message.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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
	case errors.As(err, &bad) && bad.Kind == ahp.KindSyntax, reply == nil && err != nil:
		w.WriteHeader(http.StatusBadRequest)
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
	media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset, has := params["charset"]
	if err != nil || media != "application/json" || has && !strings.EqualFold(charset, "utf-8") {
		return http.StatusUnsupportedMediaType
	}
	return 0
}

func (h *handler) authorized(values []string) bool {
	if len(values) != 1 {
		return false
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	// Hashing makes the comparison take the same time whatever the lengths.
	got, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(h.token))
	return ok && strings.EqualFold(scheme, "bearer") && subtle.ConstantTimeCompare(got[:], want[:]) == 1
}
