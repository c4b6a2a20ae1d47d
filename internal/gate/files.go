package gate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/agent"
)

const (
	// maxFileText bounds the text of a file that is sent with a change of it, in
	// bytes; of more there is size and hash.
	maxFileText = 256 << 10
	// maxUpload bounds what isn't text, in bytes.
	maxUpload = 16 << 20
	// maxLent bounds what a Lender keeps, in bytes.
	maxLent = 64 << 20
)

// Lender keeps the bytes of attachments while backends may ask for them, the newest
// first: what has been dropped is a gap. Its methods may be called from any
// goroutine. The zero Lender is ready.
type Lender struct {
	mu    sync.Mutex
	held  map[string][]byte
	order []string
	bytes int
}

// keep returns the name of data, which must not be changed any more.
func (l *Lender) keep(data []byte) string {
	name := "sha256:" + sum(string(data))
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, has := l.held[name]; has {
		return name
	}
	if l.held == nil {
		l.held = map[string][]byte{}
	}
	l.held[name] = data
	l.order = append(l.order, name)
	l.bytes += len(data)
	for l.bytes > maxLent {
		l.bytes -= len(l.held[l.order[0]])
		delete(l.held, l.order[0])
		l.order = l.order[1:]
	}
	return name
}

// Open returns the bytes of an attachment, for harness.Content.
func (l *Lender) Open(_ context.Context, _ *ahp.Event, p *ahp.Part) (io.ReadCloser, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	data, has := l.held[p.Body.Ref]
	if !has {
		return nil, errors.New("the bytes are not kept any more")
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

// fileChanges returns what a call changed.
func (g *Gate) fileChanges(o agent.Outcome) []ahp.FileChange {
	var out []ahp.FileChange
	for i, c := range o.Changes {
		id := fmt.Sprintf("%s:file%d", o.Call.ID, i)
		f := ahp.FileChange{Path: c.Path, Change: "modified", After: g.filePart(id+":after", c.After)}
		if c.Created {
			f.Change = "created"
		} else {
			f.Before = g.filePart(id+":before", c.Before)
		}
		out = append(out, f)
	}
	return out
}

// filePart returns the content of a file: its text, or what is to be uploaded, or
// only size and hash of what is too large.
func (g *Gate) filePart(id string, data []byte) *ahp.Part {
	p := ahp.TextPart(id, "")
	p.Text = nil
	switch isText := utf8.Valid(data); {
	case isText && len(data) <= maxFileText:
		text := string(data)
		p.Text = &text
		return &p
	case !isText:
		p.Kind, p.MediaType = ahp.KindAttachment, mediaType(data)
		if l := g.o.Backends.lender; l != nil && len(data) <= maxUpload {
			p.Body = &ahp.BodyRef{Ref: l.keep(data)}
			return &p
		}
	}
	n := int64(len(data))
	p.Selection, p.Size, p.SHA256 = ahp.SelectMetadata, &n, sum(string(data))
	return &p
}

// mediaType says what bytes that aren't UTF-8 are. An attachment is never text.
func mediaType(data []byte) string {
	if t := http.DetectContentType(data); !strings.HasPrefix(t, "text/") {
		return t
	}
	return "application/octet-stream"
}
