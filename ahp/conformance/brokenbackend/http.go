package brokenbackend

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	"github.com/abhed/abhed/ahp"
)

// bounded answers 413 to more than MaxBytes, and cuts the connection where the
// backend breaks.
func bounded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if v := recover(); v != nil {
				panic(http.ErrAbortHandler)
			}
		}()
		body, err := io.ReadAll(r.Body)
		switch {
		case err != nil:
			w.WriteHeader(http.StatusBadRequest)
			return
		case len(body) > MaxBytes && r.Header.Get("X-Unbounded") == "":
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

// unbounded has no bound.
func unbounded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("X-Unbounded", "yes")
		next.ServeHTTP(w, r)
	})
}

// changing wraps a handler so that change sees the whole response, and the body
// that was sent, before they leave.
func changing(change func(r *http.Request, sent []byte, w *httptest.ResponseRecorder)) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			sent, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(sent))
			rec := httptest.NewRecorder()
			next.ServeHTTP(rec, r)
			change(r, sent, rec)
			for name, values := range rec.Header() {
				w.Header()[name] = values
			}
			w.WriteHeader(rec.Code)
			w.Write(rec.Body.Bytes())
		})
	}
}

// asking wraps a handler so that change may alter the request.
func asking(change func(r *http.Request)) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			change(r)
			next.ServeHTTP(w, r)
		})
	}
}

func httpMutations() []Mutation {
	status := func(from, to int) func(http.Handler) http.Handler {
		return changing(func(_ *http.Request, _ []byte, w *httptest.ResponseRecorder) {
			if w.Code == from {
				w.Code = to
			}
		})
	}
	return []Mutation{
		{Check: "http.status", About: "answers with 201", around: changing(func(_ *http.Request, _ []byte, w *httptest.ResponseRecorder) {
			if strings.Contains(w.Body.String(), `"result"`) {
				w.Code = http.StatusCreated
			}
		})},
		{Check: "http.type", About: "calls an answer text", around: changing(func(_ *http.Request, _ []byte, w *httptest.ResponseRecorder) {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		})},
		{Check: "http.errors", About: "answers with 400 and an error", around: changing(func(_ *http.Request, _ []byte, w *httptest.ResponseRecorder) {
			if strings.Contains(w.Body.String(), `"error"`) {
				w.Code = http.StatusBadRequest
			}
		})},
		{Check: "http.redirect", About: "sends notifications elsewhere", around: changing(func(_ *http.Request, _ []byte, w *httptest.ResponseRecorder) {
			if w.Code == http.StatusAccepted {
				w.Code = http.StatusTemporaryRedirect
				w.Header().Set("Location", "/elsewhere")
			}
		})},
		{Check: "http.notification", About: "answers a notification with 200", around: status(http.StatusAccepted, http.StatusOK)},
		{Check: "http.method", About: "takes any method", around: asking(func(r *http.Request) { r.Method = http.MethodPost })},
		{Check: "http.allow", About: "answers another method with 404", around: status(http.StatusMethodNotAllowed, http.StatusNotFound)},
		{Check: "http.request-type", About: "takes any media type", around: asking(func(r *http.Request) { r.Header.Set("Content-Type", "application/json") })},
		{Check: "http.unsupported", About: "answers another media type with 400", around: status(http.StatusUnsupportedMediaType, http.StatusBadRequest)},
		{Check: "http.charset", About: "knows one spelling of the media type", around: asking(func(r *http.Request) {
			if v := r.Header.Get("Content-Type"); v != "application/json" {
				r.Header.Set("Content-Type", "text/plain")
			}
		})},
		{Check: "http.too-large", About: "answers a large body with 400", around: status(http.StatusRequestEntityTooLarge, http.StatusBadRequest)},
		{Check: "http.connection", About: "closes after each answer", around: changing(func(_ *http.Request, _ []byte, w *httptest.ResponseRecorder) {
			w.Header().Set("Connection", "close")
		})},
		{Check: "http.concurrent", About: "mixes up answers of the same time", around: mixing},
		{Check: "auth.missing", About: "takes a request without a credential", around: lenient},
		{Check: "auth.wrong", About: "looks only whether there is a credential", around: careless},
		{Check: "auth.echo", About: "puts the credential into errors", around: changing(func(r *http.Request, _ []byte, w *httptest.ResponseRecorder) {
			o := parse(w.Body.Bytes())
			if has(o, "error.code") && get(o, "error.code") == float64(ahp.CodeMethodNotFound) {
				w.Body.Reset()
				w.Body.Write(put(o, "error.data", object{"headers": r.Header.Get("Authorization")}))
			}
		})},
	}
}

// mixing gives requests whose ids end in "-together" the id of the one before.
func mixing(next http.Handler) http.Handler {
	var mu sync.Mutex
	var last any
	return changing(func(_ *http.Request, sent []byte, w *httptest.ResponseRecorder) {
		o := parse(sent)
		if id, _ := get(o, "id").(string); strings.HasSuffix(id, "-together") {
			mu.Lock()
			defer mu.Unlock()
			if last != nil {
				reply := put(parse(w.Body.Bytes()), "id", last)
				w.Body.Reset()
				w.Body.Write(reply)
			}
			last = id
		}
	})(next)
}

// lenient serves a request without a credential as if it had one: the suite's test
// server has one token, which the first good request shows.
func lenient(next http.Handler) http.Handler {
	var mu sync.Mutex
	known := ""
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		if v := r.Header.Get("Authorization"); v == "" {
			r.Header.Set("Authorization", known)
		} else if known == "" {
			known = v
		}
		mu.Unlock()
		next.ServeHTTP(w, r)
	})
}

// careless puts the first credential that it saw in the place of any other.
func careless(next http.Handler) http.Handler {
	var mu sync.Mutex
	known := ""
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		if v := r.Header.Get("Authorization"); v != "" {
			if known == "" {
				known = v
			}
			r.Header.Set("Authorization", known)
		}
		mu.Unlock()
		next.ServeHTTP(w, r)
	})
}
