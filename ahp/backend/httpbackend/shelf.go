package httpbackend

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"

	"github.com/abhed/abhed/ahp"
)

// shelf holds the uploads of one scope, the oldest first.
type shelf struct {
	all   []*held
	bytes int64
}

type held struct {
	receipt ahp.Receipt
	data    []byte // nil if it is in a file
}

func (h *held) size() int64 { return h.receipt.Size + overhead }

// find returns the upload, or nil; s may be nil.
func (s *shelf) find(ref string) *held {
	if s == nil {
		return nil
	}
	i := slices.IndexFunc(s.all, func(h *held) bool { return h.receipt.Ref == ref })
	if i < 0 {
		return nil
	}
	return s.all[i]
}

// hold keeps h, and drops the oldest uploads of its scope beyond the bound. It
// returns the status that refuses h, or 0.
func (u *Uploads) hold(scope string, h *held) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.shelves == nil { // closed meanwhile
		u.forget(h)
		return http.StatusServiceUnavailable
	}
	s := u.shelves[scope]
	if s == nil {
		s = &shelf{}
		u.shelves[scope] = s
	}
	s.all = append(s.all, h)
	s.bytes += h.size()
	for s.bytes > u.opts.MaxScopeBytes {
		s.bytes -= s.all[0].size()
		u.forget(s.all[0])
		s.all = slices.Delete(s.all, 0, 1)
	}
	return 0
}

// forget removes the file of h, if it has one.
func (u *Uploads) forget(h *held) {
	if u.files != nil {
		u.files.remove(h.receipt.Ref)
	}
}

// readOnly returns a reader of data that hides it from changes.
func readOnly(data []byte) io.Reader { return struct{ io.Reader }{bytes.NewReader(data)} }

// errFolder is for a folder that can't be written to.
var errFolder = errors.New("the folder of uploads can't be written to")

// folder is the directory of a receiver.
type folder struct{ root *os.Root }

// suffix tells the receiver's files from others.
const suffix = ".upload"

func newFolder(dir string) (*folder, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	f := &folder{root}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if name := e.Name(); len(name) > len(suffix) && name[len(name)-len(suffix):] == suffix {
			err = errors.Join(err, root.Remove(name))
		}
	}
	if err != nil {
		root.Close()
		return nil, err
	}
	return f, nil
}

// write writes a new file and returns what it holds. An error is errFolder or that
// of body.
func (f *folder) write(ref string, body io.Reader) (size int64, hash string, err error) {
	file, err := f.root.OpenFile(ref+suffix, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, "", errFolder
	}
	sum := sha256.New()
	in := &source{Reader: body}
	size, err = io.Copy(io.MultiWriter(file, sum), in)
	closed := file.Close()
	switch {
	case in.err != nil:
		return size, "", in.err
	case err != nil || closed != nil:
		f.remove(ref)
		return size, "", errFolder
	}
	return size, hex.EncodeToString(sum.Sum(nil)), nil
}

func (f *folder) remove(ref string) {
	// Nothing depends on it: the ref is unknown from now on, and the next start
	// removes what is left.
	_ = f.root.Remove(ref + suffix)
}

// source tells errors of reading from those of writing.
type source struct {
	io.Reader
	err error
}

// Read reads from the body.
func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// TokenScopes returns an UploadOptions.Scope that knows the given tokens by their
// scopes, and refuses any other. It doesn't keep the tokens, and takes the same time
// for a nearly right one as for a wrong one.
func TokenScopes(scopes map[string]string) func(ctx context.Context, token string) (string, error) {
	known := make(map[[sha256.Size]byte]string, len(scopes))
	for token, scope := range scopes {
		known[sha256.Sum256([]byte(token))] = scope
	}
	return func(_ context.Context, token string) (string, error) {
		scope, ok := known[sha256.Sum256([]byte(token))]
		if !ok || token == "" {
			return "", ErrToken
		}
		return scope, nil
	}
}
