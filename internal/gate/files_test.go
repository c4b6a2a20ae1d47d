package gate

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
)

// TestFileParts holds how the content of a file is sent.
func TestFileParts(t *testing.T) {
	lender := &Lender{}
	g := &Gate{o: Options{Backends: &Backends{lender: lender}}}
	png := append([]byte("\x89PNG\r\n\x1a\n"), 0xff, 0xfe)
	tests := []struct {
		name string
		data []byte
		want func(p *ahp.Part) bool
	}{
		{"text", []byte("hello"), func(p *ahp.Part) bool { return *p.Text == "hello" && p.Selection == ahp.SelectBody && p.Size == nil }},
		{"nothing", nil, func(p *ahp.Part) bool { return *p.Text == "" }},
		{"text with a zero", []byte("a\x00b"), func(p *ahp.Part) bool { return *p.Text == "a\x00b" }},
		{"much text", bytes.Repeat([]byte("x"), maxFileText+1), func(p *ahp.Part) bool {
			return p.Selection == ahp.SelectMetadata && *p.Size == maxFileText+1 && len(p.SHA256) == 64
		}},
		{"a picture", png, func(p *ahp.Part) bool { return p.MediaType == "image/png" && strings.HasPrefix(p.Body.Ref, "sha256:") }},
		{"text of another encoding", []byte("\xff\xfea\x00"), func(p *ahp.Part) bool { return p.MediaType == "application/octet-stream" && p.Body != nil }},
		{"a large picture", append(png, make([]byte, maxUpload)...), func(p *ahp.Part) bool { return p.Selection == ahp.SelectMetadata && p.Body == nil }},
	}
	for _, tt := range tests {
		p := g.filePart("id", tt.data)
		if _, err := p.MarshalJSON(); err != nil || !tt.want(p) {
			t.Errorf("%s: %v, %+v", tt.name, err, p)
		}
	}
	g.o.Backends.lender = nil
	if p := g.filePart("id", png); p.Selection != ahp.SelectMetadata || p.Body != nil {
		t.Errorf("with nobody to lend: %+v", p)
	}
}

// TestLenderIsBounded fills a Lender: the oldest bytes go first.
func TestLenderIsBounded(t *testing.T) {
	l := &Lender{}
	var names []string
	for i := range 6 {
		data := make([]byte, maxUpload)
		data[0] = byte(i)
		names = append(names, l.keep(data), l.keep(data))
	}
	if l.bytes > maxLent || len(l.held) != maxLent/maxUpload || len(l.order) != len(l.held) {
		t.Errorf("%d bytes of %d parts", l.bytes, len(l.held))
	}
	open := func(name string) error {
		r, err := l.Open(t.Context(), nil, &ahp.Part{Body: &ahp.BodyRef{Ref: name}})
		if err == nil {
			data, rerr := io.ReadAll(r)
			if rerr != nil || len(data) != maxUpload || data[0] != 5 {
				t.Errorf("%d bytes, %v", len(data), rerr)
			}
		}
		return err
	}
	if open(names[0]) == nil || open(names[len(names)-1]) != nil {
		t.Errorf("oldest: %v, newest: %v", open(names[0]), open(names[len(names)-1]))
	}
}
