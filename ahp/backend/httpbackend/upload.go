package httpbackend

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"sync"
	"time"

	"github.com/abhed/abhed/ahp"
)

// UploadOptions tunes a receiver of uploads. The zero value takes uploads from
// anybody into one scope: right for tests alone.
type UploadOptions struct {
	// Scope returns the authorisation scope of a bearer token, which is "" where the
	// request has none. A scope is any text; what is uploaded in one is there in no
	// other. ErrToken is answered with 401, ErrScope with 403, another error with 503.
	// It is called from many goroutines. Nil puts everything into the scope "".
	Scope func(ctx context.Context, token string) (scope string, err error)
	// Resource, if set, makes the receiver an OAuth resource server: its Verify comes
	// before Scope.
	Resource *Resource
	// Path is the only path that is served, others get 404; empty serves all.
	Path string
	// MaxBytes bounds one upload; zero means 16 MiB. Larger ones get 413.
	MaxBytes int64
	// MaxScopeBytes bounds what is held of one scope, each upload counting 1 KiB more
	// than its bytes; zero means 64 MiB. The oldest are dropped for new ones. It is at
	// least MaxBytes and 1 KiB.
	MaxScopeBytes int64
	// MaxPending bounds the uploads that are being received at a time; zero means 8.
	// Others wait for MaxWait, of which zero means 2 s, and then get 503.
	MaxPending int
	MaxWait    time.Duration
	// Dir is where the bytes are kept, in files whose names are the refs; empty keeps
	// them in memory. It must exist, and be the receiver's own. What an earlier run left
	// there is removed.
	Dir string
	// Keep, if set, is given each upload instead, and nothing is held here: Open finds
	// nothing. An error of it refuses the upload with 503. body is Keep's. It is called
	// from many goroutines.
	Keep func(ctx context.Context, scope string, r ahp.Receipt, body []byte) error
}

// ErrNoUpload is what Open returns for a ref that is unknown, dropped, or of
// another scope: these are not told apart.
var ErrNoUpload = errors.New("no such upload")

// Uploads receives the bytes of attachments (§19), as an http.Handler that shares
// nothing with the one of events. A ref is chosen here, can't be guessed, stands
// for the same bytes for ever, and means something only in the scope of the
// credential that it was uploaded with: the same bytes give another ref each time.
//
// It answers 201 with a receipt once all bytes are there and are those that were
// announced, and 400, 401, 403, 404, 405, 413 or 503 otherwise. How long a client
// may take to send is for the http.Server's ReadTimeout. Its methods may be called
// from any goroutine.
type Uploads struct {
	opts     UploadOptions
	resource *resource
	pending  chan struct{}
	files    *folder // nil: in memory

	mu      sync.Mutex
	shelves map[string]*shelf // by scope
}

// overhead is what an upload counts beyond its bytes, so that empty ones are
// bounded too.
const overhead = 1 << 10

// NewUploads returns a receiver.
func NewUploads(opts UploadOptions) (*Uploads, error) {
	if opts.MaxBytes == 0 {
		opts.MaxBytes = 16 << 20
	}
	if opts.MaxScopeBytes == 0 {
		opts.MaxScopeBytes = 64 << 20
	}
	if opts.MaxPending == 0 {
		opts.MaxPending = 8
	}
	if opts.MaxWait == 0 {
		opts.MaxWait = 2 * time.Second
	}
	if opts.MaxBytes < 0 || opts.MaxScopeBytes < 0 || opts.MaxPending < 0 || opts.MaxWait < 0 {
		return nil, errors.New("httpbackend: a bound of uploads is negative")
	}
	if opts.Dir != "" && opts.Keep != nil {
		return nil, errors.New("httpbackend: UploadOptions has both Dir and Keep")
	}
	opts.MaxScopeBytes = max(opts.MaxScopeBytes, opts.MaxBytes+overhead)
	u := &Uploads{opts: opts, pending: make(chan struct{}, opts.MaxPending), shelves: map[string]*shelf{}}
	if opts.Resource != nil {
		r, err := newResource(*opts.Resource)
		if err != nil {
			return nil, err
		}
		u.resource = r
	}
	if opts.Dir != "" {
		f, err := newFolder(opts.Dir)
		if err != nil {
			return nil, fmt.Errorf("httpbackend: the folder of uploads: %w", err)
		}
		u.files = f
	}
	return u, nil
}

// ServeHTTP receives one upload.
func (u *Uploads) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if u.resource != nil && r.URL.EscapedPath() == u.resource.metadataPath {
		u.resource.serveMetadata(w, r)
		return
	}
	scope, status := u.admit(w, r)
	if status == 0 {
		status = u.announced(r)
	}
	if status == 0 && !u.turn(r.Context()) {
		status = http.StatusServiceUnavailable
	} else if status == 0 {
		defer func() { <-u.pending }()
	}
	if status != 0 {
		w.WriteHeader(status)
		return
	}
	receipt, status := u.receive(w, r, scope)
	if status != 0 {
		w.WriteHeader(status)
		return
	}
	body, err := receipt.Encode()
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	w.Write(body)
}

// turn waits until another upload may be received, and reports whether it may.
func (u *Uploads) turn(ctx context.Context) bool {
	wait := time.NewTimer(u.opts.MaxWait)
	defer wait.Stop()
	select {
	case u.pending <- struct{}{}:
		return true
	case <-wait.C:
	case <-ctx.Done():
	}
	return false
}

// admit returns the scope of a request, or the status that refuses it.
func (u *Uploads) admit(w http.ResponseWriter, r *http.Request) (scope string, status int) {
	if u.opts.Path != "" && r.URL.Path != u.opts.Path {
		return "", http.StatusNotFound
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return "", http.StatusMethodNotAllowed
	}
	values := r.Header.Values("Authorization")
	if u.resource != nil {
		if status := u.resource.authorize(r.Context(), w.Header(), values); status != 0 {
			return "", status
		}
	}
	if u.opts.Scope == nil {
		return "", 0
	}
	token, ok := bearer(values)
	if len(values) > 0 && !ok {
		w.Header().Set("WWW-Authenticate", "Bearer")
		return "", http.StatusUnauthorized
	}
	scope, err := u.opts.Scope(r.Context(), token)
	switch {
	case err == nil:
		return scope, 0
	case errors.Is(err, ErrToken):
		w.Header().Set("WWW-Authenticate", "Bearer")
		return "", http.StatusUnauthorized
	case errors.Is(err, ErrScope):
		return "", http.StatusForbidden
	}
	return "", http.StatusServiceUnavailable
}

// announced checks what the headers say before any byte is read.
func (u *Uploads) announced(r *http.Request) int {
	media, hash := r.Header.Values("Content-Type"), r.Header.Values("AHP-Content-SHA256")
	kind, params := "", map[string]string(nil)
	if len(media) == 1 {
		kind, params, _ = mime.ParseMediaType(media[0])
	}
	switch {
	case kind != "application/octet-stream", len(params) > 0, len(hash) != 1, len(r.Header.Values("Content-Encoding")) > 0:
		return http.StatusBadRequest
	case r.ContentLength < 0 || len(r.TransferEncoding) > 0:
		return http.StatusBadRequest // chunked: the length isn't announced
	case r.ContentLength > u.opts.MaxBytes:
		return http.StatusRequestEntityTooLarge
	}
	if _, err := (&ahp.Receipt{Ref: "-", SHA256: hash[0]}).Encode(); err != nil {
		return http.StatusBadRequest // no hash
	}
	return 0
}

// receive reads the bytes and keeps them.
func (u *Uploads) receive(w http.ResponseWriter, r *http.Request, scope string) (*ahp.Receipt, int) {
	receipt := &ahp.Receipt{Ref: rand.Text(), Size: r.ContentLength, SHA256: r.Header.Get("AHP-Content-SHA256")}
	body := http.MaxBytesReader(w, r.Body, r.ContentLength)
	if u.files != nil {
		return u.receiveFile(body, scope, receipt)
	}
	data, err := io.ReadAll(body)
	sum := sha256.Sum256(data)
	if err != nil || int64(len(data)) != receipt.Size || hex.EncodeToString(sum[:]) != receipt.SHA256 {
		return nil, http.StatusBadRequest
	}
	if u.opts.Keep != nil {
		if err := u.opts.Keep(r.Context(), scope, *receipt, data); err != nil {
			return nil, http.StatusServiceUnavailable
		}
		return receipt, 0
	}
	return receipt, u.hold(scope, &held{receipt: *receipt, data: data})
}

func (u *Uploads) receiveFile(body io.Reader, scope string, receipt *ahp.Receipt) (*ahp.Receipt, int) {
	size, hash, err := u.files.write(receipt.Ref, body)
	switch {
	case errors.Is(err, errFolder):
		return nil, http.StatusServiceUnavailable
	case err != nil || size != receipt.Size || hash != receipt.SHA256:
		u.files.remove(receipt.Ref)
		return nil, http.StatusBadRequest
	}
	return receipt, u.hold(scope, &held{receipt: *receipt})
}

// Open returns the bytes of ref and its receipt to somebody with a credential of
// the scope. It is ErrNoUpload if there are none. The caller closes the reader.
func (u *Uploads) Open(scope, ref string) (io.ReadCloser, ahp.Receipt, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	h := u.shelves[scope].find(ref)
	if h == nil {
		return nil, ahp.Receipt{}, ErrNoUpload
	}
	if u.files == nil {
		return io.NopCloser(readOnly(h.data)), h.receipt, nil
	}
	f, err := u.files.root.Open(ref + suffix)
	if err != nil {
		return nil, ahp.Receipt{}, fmt.Errorf("httpbackend: the upload is lost: %w", err)
	}
	return f, h.receipt, nil
}

// Close removes what is held. Open finds nothing afterwards, and what is uploaded
// still is refused.
func (u *Uploads) Close() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, s := range u.shelves {
		for _, h := range s.all {
			u.forget(h)
		}
	}
	u.shelves = nil
	if u.files == nil {
		return nil
	}
	return u.files.root.Close()
}
