package inspect

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"embed"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/abhed/abhed/ahp/backend/httpbackend"
	"github.com/abhed/abhed/internal/strictjson"
)

//go:embed page
var pageFiles embed.FS

// policy lets the page load its own two files and talk to its own server, and no
// text become script.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// Times of the stream of updates.
const (
	pingEvery   = 15 * time.Second
	writeWithin = 10 * time.Second
)

// Handler serves messages at Path, and the page below PagePath. It answers only
// requests to a loopback name, so that a site whose name was made to mean this
// machine reads nothing.
func (i *Inspector) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle(Path, noBrowser(httpbackend.Handler(i.server, httpbackend.Options{Token: i.opts.Token})))
	mux.HandleFunc("GET /{secret}/{$}", i.secretly(func(w http.ResponseWriter, r *http.Request) { serveFile(w, "index.html") }))
	mux.HandleFunc("GET /{secret}/{file}", i.secretly(func(w http.ResponseWriter, r *http.Request) { serveFile(w, r.PathValue("file")) }))
	mux.HandleFunc("GET /{secret}/about", i.secretly(i.serveAbout))
	mux.HandleFunc("GET /{secret}/updates", i.secretly(i.serveUpdates))
	mux.HandleFunc("GET /{secret}/latency", i.secretly(func(w http.ResponseWriter, r *http.Request) { serveJSON(w, i.log.latencies()) }))
	mux.HandleFunc("GET /{secret}/entry/{seq}", i.secretly(i.serveEntry))
	return loopbackOnly(mux)
}

// loopbackOnly refuses requests to any other name than this machine's own.
func loopbackOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLoopbackHost(r.Host) {
			http.Error(w, "this is served as localhost, 127.0.0.1 or [::1] only", http.StatusMisdirectedRequest)
			return
		}
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		h.Set("Referrer-Policy", "no-referrer") // the path is a secret
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Content-Security-Policy", policy)
		next.ServeHTTP(w, r)
	})
}

// isLoopbackHost judges a Host header.
func isLoopbackHost(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	if strings.EqualFold(name, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(strings.Trim(name, "[]"))
	return err == nil && a.IsLoopback()
}

// noBrowser refuses messages that a web page sends: a harness names no origin.
func noBrowser(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.Header.Values("Origin")) > 0 || len(r.Header.Values("Sec-Fetch-Site")) > 0 {
			http.Error(w, "messages of the protocol come from harnesses, not from web pages", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// secretly serves who knows the secret; to others the path doesn't exist.
func (i *Inspector) secretly(next http.HandlerFunc) http.HandlerFunc {
	want := sha256.Sum256([]byte(i.secret))
	return func(w http.ResponseWriter, r *http.Request) {
		got := sha256.Sum256([]byte(r.PathValue("secret")))
		site := r.Header.Get("Sec-Fetch-Site")
		if subtle.ConstantTimeCompare(got[:], want[:]) != 1 || site == "cross-site" || site == "same-site" {
			http.NotFound(w, r)
			return
		}
		next(w, r)
	}
}

func serveFile(w http.ResponseWriter, name string) {
	data, err := pageFiles.ReadFile("page/" + name)
	if err != nil {
		http.Error(w, "not found", http.StatusNotFound)
		return
	}
	// Not the system's table: with another type the browser would refuse the file.
	types := map[string]string{".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}
	w.Header().Set("Content-Type", types[path.Ext(name)])
	w.Write(data)
}

func serveJSON(w http.ResponseWriter, v any) {
	data, err := strictjson.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(data)
}

// serveAbout tells what stands behind.
func (i *Inspector) serveAbout(w http.ResponseWriter, _ *http.Request) {
	about := struct {
		Backends     []string `json:"backends"`
		Path         string   `json:"path"`
		TimeoutMs    int64    `json:"timeoutMs"`
		NeedsToken   bool     `json:"needsToken"`
		MaxEntries   int      `json:"maxEntries"`
		CaptureBytes int      `json:"captureBytes"`
	}{Backends: []string{}, Path: Path, TimeoutMs: i.deadline().Milliseconds(), NeedsToken: i.opts.Token != "", MaxEntries: i.log.maxEntries, CaptureBytes: maxCapture}
	if i.opts.Registration != nil {
		for _, b := range i.opts.Registration.Hooks {
			about.Backends = append(about.Backends, b.ID)
		}
	}
	serveJSON(w, about)
}

func (i *Inspector) serveEntry(w http.ResponseWriter, r *http.Request) {
	seq, err := strconv.ParseInt(r.PathValue("seq"), 10, 64)
	data, bad := i.log.entry(seq)
	switch {
	case bad != nil:
		http.Error(w, bad.Error(), http.StatusInternalServerError)
	case err != nil || data == nil:
		http.Error(w, "this entry isn't kept any more", http.StatusNotFound)
	default:
		w.Header().Set("Content-Type", "application/json")
		w.Write(data)
	}
}

// serveUpdates sends every entry, and again each that changes, as server-sent
// events. A browser that is dropped comes back by itself and gets all of it anew.
func (i *Inspector) serveUpdates(w http.ResponseWriter, r *http.Request) {
	now, updates, leave := i.log.read()
	if updates == nil {
		http.Error(w, fmt.Sprintf("too many readers: at most %d at a time", maxReaders), http.StatusServiceUnavailable)
		return
	}
	defer leave()
	w.Header().Set("Content-Type", "text/event-stream")
	s := stream{w, http.NewResponseController(w)}
	if s.send("retry: 1000\n\n") != nil || s.entries(now) != nil || s.send("event: current\ndata: {}\n\n") != nil {
		return
	}
	s.follow(r.Context(), updates)
}

// stream writes server-sent events.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func (s stream) send(text string) error {
	if err := s.control.SetWriteDeadline(time.Now().Add(writeWithin)); err != nil {
		return err
	}
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.control.Flush()
}

// entries writes encoded entries; JSON on one line needs no escape here.
func (s stream) entries(list [][]byte) error {
	var b strings.Builder
	for _, msg := range list {
		fmt.Fprintf(&b, "event: entry\ndata: %s\n\n", msg)
	}
	return s.send(b.String())
}

func (s stream) follow(ctx context.Context, r *reader) {
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-r.dropped:
			return
		case <-ping.C:
			err = s.send(": ping\n\n")
		case msg := <-r.updates:
			err = s.entries([][]byte{msg})
		}
		if err != nil {
			return
		}
	}
}
