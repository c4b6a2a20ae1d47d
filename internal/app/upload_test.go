package app_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/backend/httpbackend"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model/modeltest"
)

// utf16 is text as UTF-16, which isn't text to the protocol.
func utf16(s string) string {
	out := "\xff\xfe"
	for _, r := range s {
		out += string([]byte{byte(r), 0})
	}
	return out
}

// TestFilesThatArentTextAreUploaded edits a file of another encoding: who has a
// receiver of uploads gets its bytes, before it is asked, and nobody else.
func TestFilesThatArentTextAreUploaded(t *testing.T) {
	uploads, err := httpbackend.NewUploads(httpbackend.UploadOptions{Scope: httpbackend.TokenScopes(map[string]string{"the-token-itself": "house"})})
	if err != nil {
		t.Fatal(err)
	}
	defer uploads.Close()
	receiver := httptest.NewServer(uploads)
	defer receiver.Close()
	w := newWorld(t, modeltest.Turn{Calls: []modeltest.Call{{ID: "c1", Name: "edit", Args: `{"path":"a.txt","old_string":"old","new_string":"new"}`}}}, done())
	w.opts.Mode = "accept-edits"
	w.write("a.txt", utf16("old text\n"))
	w.put(filepath.Join(w.home, "token"), "the-token-itself\n")

	var got []string
	read := func(p *ahp.Part) {
		if p == nil || p.Body == nil {
			got = append(got, fmt.Sprintf("%+v", p))
			return
		}
		r, _, err := uploads.Open("house", p.Body.Ref)
		if err != nil {
			t.Error(err)
			return
		}
		data, err := io.ReadAll(r)
		if err != nil || r.Close() != nil {
			t.Error(err)
		}
		got = append(got, p.MediaType+" "+string(data))
	}
	with := &listener{judge: func(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
		read(q.Event.FileChanges[0].Before)
		read(q.Event.FileChanges[0].After)
		return nil, nil
	}}
	without := &listener{}
	sub := strings.TrimSuffix(intercept(ahp.ToolAfter, "fail-closed"), "}") +
		fmt.Sprintf(`,"upload":{"endpoint":%q,"timeoutMs":20000,"maxBytes":1000000,"auth":{"type":"bearer","tokenRef":"file:token"}}}`, receiver.URL)
	w.hooks("org.test.with", with.serve(t), sub, "org.test.without", without.serve(t), intercept(ahp.ToolAfter, "fail-closed"))
	r := w.run(t.Context())
	data, err := os.ReadFile(filepath.Join(w.dir, "a.txt"))
	if err != nil || r.code != 0 || string(data) != utf16("new text\n") {
		t.Fatalf("exit %d, the file has %q, %v\n%s", r.code, data, err, r.err)
	}
	want := []string{"application/octet-stream " + utf16("old text\n"), "application/octet-stream " + utf16("new text\n")}
	if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("uploaded %q, want %q", got, want)
	}
	events := without.of(ahp.ToolAfter)
	if len(events) != 1 || events[0].FileChanges[0].After.Body != nil || events[0].FileChanges[0].After.Gap == nil {
		t.Errorf("who has no receiver was sent %+v", events)
	}
	for _, e := range w.events(r) {
		if p, ok := e.Payload.(*event.BackendFailed); ok {
			t.Errorf("failed: %+v", p)
		}
	}
	record, err := os.ReadFile(r.record)
	if err != nil || bytes.Contains(record, []byte("the-token-itself")) {
		t.Errorf("the record: %v, or it has the token", err)
	}
}

// TestLargeFilesAreNoFailure writes more text than is sent along: who judges results
// and is fail-closed is told its size and hash, and the result goes on.
func TestLargeFilesAreNoFailure(t *testing.T) {
	w := newWorld(t, call("write", fmt.Sprintf(`{"path":"marker","content":%q}`, strings.Repeat("line of text\n", 25_000)), modeltest.WholeCalls()), done())
	w.opts.Mode = "accept-edits"
	l := &listener{}
	w.hooks("org.test.judge", l.serve(t), intercept(ahp.ToolAfter, "fail-closed")+","+strings.Replace(observeAll, "*", "file.changed", 1))
	r := w.run(t.Context())
	after, changed := l.of(ahp.ToolAfter), l.of(ahp.FileChanged)
	if r.code != 0 || len(after) != 1 || len(changed) != 1 || !strings.Contains(strings.Join(sent(w.server.Requests()[1]), "\n"), "Created marker") {
		t.Fatalf("exit %d, asked %d times, told %d times\n%s", r.code, len(after), len(changed), r.err)
	}
	for _, p := range []*ahp.Part{after[0].FileChanges[0].After, changed[0].Changes[0].After} {
		if p.Text != nil || p.Selection != ahp.SelectMetadata || *p.Size != 13*25_000 || len(p.SHA256) != 64 {
			t.Errorf("sent %+v", p)
		}
	}
}
