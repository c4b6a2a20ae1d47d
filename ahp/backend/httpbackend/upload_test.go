package httpbackend_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/backend/httpbackend"
)

func receiver(t *testing.T, opts httpbackend.UploadOptions) (*httpbackend.Uploads, string) {
	t.Helper()
	u, err := httpbackend.NewUploads(opts)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(u)
	t.Cleanup(func() {
		s.Close()
		u.Close()
	})
	return u, s.Listener.Addr().String()
}

func sumOf(b string) string {
	sum := sha256.Sum256([]byte(b))
	return hex.EncodeToString(sum[:])
}

// say sends a request as it is written here, ends the stream, and returns status
// and body of the answer.
func say(t *testing.T, addr, head, body string) (int, []byte) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, strings.ReplaceAll(head, "\n", "\r\n")+"\r\n"+body)
	c.(*net.TCPConn).CloseWrite()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode == http.StatusCreated && resp.Header.Get("Content-Type") != "application/json" {
		t.Errorf("content type %q", resp.Header.Get("Content-Type"))
	}
	return resp.StatusCode, got
}

// head is a good request for body, but for the lines that edits replace: an entry
// "Name" with "" leaves the line out.
func head(token, body string, edits map[string]string) string {
	lines := [][2]string{{"Host", "x"}, {"Authorization", "Bearer " + token}, {"Content-Type", "application/octet-stream"},
		{"Content-Length", fmt.Sprint(len(body))}, {"AHP-Content-SHA256", sumOf(body)}}
	out := edits["POST"]
	if out == "" {
		out = "POST /up HTTP/1.1"
	}
	for _, l := range lines {
		value, edited := edits[l[0]]
		if !edited {
			value = l[1]
		}
		if value != "" {
			out += "\n" + l[0] + ": " + value
		}
	}
	return out + edits["more"] + "\n"
}

func put(t *testing.T, addr, token, body string) *ahp.Receipt {
	t.Helper()
	status, data := say(t, addr, head(token, body, nil), body)
	r, err := ahp.DecodeReceipt(data)
	if status != http.StatusCreated || err != nil {
		t.Fatalf("status %d, %v", status, err)
	}
	return r
}

func read(u *httpbackend.Uploads, scope, ref string) (string, error) {
	in, _, err := u.Open(scope, ref)
	if err != nil {
		return "", err
	}
	defer in.Close()
	b, err := io.ReadAll(in)
	return string(b), err
}

func TestUploadStatuses(t *testing.T) {
	scopes := httpbackend.TokenScopes(map[string]string{"good": "a"})
	u, addr := receiver(t, httpbackend.UploadOptions{Path: "/up", MaxBytes: 10, Scope: func(ctx context.Context, token string) (string, error) {
		switch token {
		case "narrow":
			return "", httpbackend.ErrScope
		case "broken":
			return "", errors.New("no database")
		}
		return scopes(ctx, token)
	}})
	for _, c := range []struct {
		name, token, body string
		edits             map[string]string
		want              int
	}{
		{"good", "good", "body", nil, 201},
		{"empty", "good", "", nil, 201},
		{"exactly the bound", "good", "0123456789", nil, 201},
		{"one more", "good", "0123456789a", nil, 413},
		{"announced too large, nothing sent", "good", "", map[string]string{"Content-Length": "9223372036854775807"}, 413},
		{"shorter than announced", "good", "body", map[string]string{"Content-Length": "9"}, 400},
		{"longer than announced", "good", "body", map[string]string{"Content-Length": "3"}, 400},
		{"another hash", "good", "body", map[string]string{"AHP-Content-SHA256": strings.Repeat("0", 64)}, 400},
		{"no hash", "good", "body", map[string]string{"AHP-Content-SHA256": ""}, 400},
		{"hash in capitals", "good", "body", map[string]string{"AHP-Content-SHA256": strings.ToUpper(sumOf("body"))}, 400},
		{"two hashes", "good", "body", map[string]string{"more": "\nAHP-Content-SHA256: " + sumOf("body")}, 400},
		{"chunked", "good", "4\r\nbody\r\n0\r\n\r\n", map[string]string{"Content-Length": "", "more": "\nTransfer-Encoding: chunked", "AHP-Content-SHA256": sumOf("body")}, 400},
		{"compressed", "good", "body", map[string]string{"more": "\nContent-Encoding: gzip"}, 400},
		{"JSON", "good", "{}", map[string]string{"Content-Type": "application/json"}, 400},
		{"no type", "good", "body", map[string]string{"Content-Type": ""}, 400},
		{"a parameter", "good", "body", map[string]string{"Content-Type": "application/octet-stream; charset=utf-8"}, 400},
		{"no credential", "good", "body", map[string]string{"Authorization": ""}, 401},
		{"another credential", "bad", "body", nil, 401},
		{"an empty token", "", "body", nil, 401},
		{"another scheme", "good", "body", map[string]string{"Authorization": "Basic good"}, 401},
		{"two credentials", "good", "body", map[string]string{"more": "\nAuthorization: Bearer good"}, 401},
		{"no scope", "narrow", "body", nil, 403},
		{"can't tell", "broken", "body", nil, 503},
		{"another path", "good", "body", map[string]string{"POST": "POST /other HTTP/1.1"}, 404},
		{"another method", "good", "body", map[string]string{"POST": "PUT /up HTTP/1.1"}, 405},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, data := say(t, addr, head(c.token, c.body, c.edits), c.body)
			if status != c.want {
				t.Fatalf("status %d, want %d", status, c.want)
			}
			r, err := ahp.DecodeReceipt(data)
			if (err == nil) != (c.want == 201) {
				t.Fatalf("receipt %q", data)
			}
			if err != nil {
				return
			}
			if r.Size != int64(len(c.body)) || r.SHA256 != sumOf(c.body) || len(r.Ref) < 22 {
				t.Errorf("%+v", r)
			}
			if got, err := read(u, "a", r.Ref); err != nil || got != c.body {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

func TestUploadRefsAreScoped(t *testing.T) {
	for _, dir := range []string{"", t.TempDir()} {
		u, addr := receiver(t, httpbackend.UploadOptions{Dir: dir, Scope: httpbackend.TokenScopes(map[string]string{"one": "a", "two": "b", "also-one": "a"})})
		first, again, other := put(t, addr, "one", "same"), put(t, addr, "one", "same"), put(t, addr, "two", "same")
		if first.Ref == again.Ref || first.Ref == other.Ref {
			t.Error("a ref was given twice")
		}
		for _, c := range []struct {
			scope, ref string
			there      bool
		}{{"a", first.Ref, true}, {"a", again.Ref, true}, {"b", other.Ref, true}, {"b", first.Ref, false}, {"a", other.Ref, false}, {"", first.Ref, false},
			{"a", "", false}, {"a", "../" + first.Ref, false}} {
			got, err := read(u, c.scope, c.ref)
			if (err == nil) != c.there || c.there && got != "same" || !c.there && !errors.Is(err, httpbackend.ErrNoUpload) {
				t.Errorf("dir %q, scope %q: %q, %v", dir, c.scope, got, err)
			}
		}
	}
}

func TestUploadsAreBounded(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "STALE.upload"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "mine.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	u, addr := receiver(t, httpbackend.UploadOptions{Dir: dir, MaxBytes: 1000, MaxScopeBytes: 4096, Scope: httpbackend.TokenScopes(map[string]string{"one": "a", "two": "b"})})
	kept := put(t, addr, "two", "of another scope")
	var refs []string
	for i := range 5 {
		refs = append(refs, put(t, addr, "one", strings.Repeat("x", 900+i)).Ref)
	}
	for i, ref := range refs {
		_, err := read(u, "a", ref)
		if want := i >= 3; (err == nil) != want {
			t.Errorf("upload %d: %v", i, err)
		}
	}
	if _, err := read(u, "b", kept.Ref); err != nil {
		t.Error("one scope pushed another out: ", err)
	}
	if status, _ := say(t, addr, head("one", "short", map[string]string{"Content-Length": "9"}), "short"); status != 400 {
		t.Errorf("status %d", status)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 4 { // two of a, one of b, mine.txt
		t.Errorf("%q, %v", files, err)
	}
	if info, err := os.Stat(filepath.Join(dir, kept.Ref+".upload")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	u.Close()
	if _, err := read(u, "b", kept.Ref); !errors.Is(err, httpbackend.ErrNoUpload) {
		t.Errorf("after Close: %v", err)
	}
	if status, _ := say(t, addr, head("one", "late", nil), "late"); status != 503 {
		t.Errorf("after Close: status %d", status)
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "*")); len(files) != 1 {
		t.Errorf("left: %q", files)
	}
}

func TestUploadsPending(t *testing.T) {
	entered, leave := make(chan bool), make(chan bool)
	_, addr := receiver(t, httpbackend.UploadOptions{MaxPending: 1, MaxWait: 50 * time.Millisecond, Keep: func(context.Context, string, ahp.Receipt, []byte) error {
		entered <- true
		<-leave
		return nil
	}})
	var first sync.WaitGroup
	first.Go(func() {
		if status, _ := say(t, addr, head("", "one", nil), "one"); status != 201 {
			t.Errorf("status %d", status)
		}
	})
	<-entered
	if status, _ := say(t, addr, head("", "two", nil), "two"); status != 503 {
		t.Errorf("status %d while another is pending", status)
	}
	leave <- true
	first.Wait()
	// One that waits gets its turn.
	_, addr = receiver(t, httpbackend.UploadOptions{MaxPending: 1, MaxWait: time.Minute, Keep: func(context.Context, string, ahp.Receipt, []byte) error {
		entered <- true
		<-leave
		return nil
	}})
	var both sync.WaitGroup
	for _, body := range []string{"three", "four"} {
		both.Go(func() {
			if status, _ := say(t, addr, head("", body, nil), body); status != 201 {
				t.Errorf("status %d", status)
			}
		})
	}
	for range 2 {
		<-entered
		leave <- true
	}
	both.Wait()
}

func TestUploadsKeptElsewhere(t *testing.T) {
	var got bytes.Buffer
	fail := errors.New("disk full")
	u, addr := receiver(t, httpbackend.UploadOptions{Scope: httpbackend.TokenScopes(map[string]string{"t": "s"}), Keep: func(_ context.Context, scope string, r ahp.Receipt, body []byte) error {
		if string(body) == "too much" {
			return fail
		}
		fmt.Fprintf(&got, "%s %d %s %s", scope, r.Size, r.SHA256, body)
		return nil
	}})
	r := put(t, addr, "t", "body")
	if want := "s 4 " + sumOf("body") + " body"; got.String() != want {
		t.Errorf("%q, want %q", got.String(), want)
	}
	if _, err := read(u, "s", r.Ref); !errors.Is(err, httpbackend.ErrNoUpload) {
		t.Errorf("held as well: %v", err)
	}
	if status, _ := say(t, addr, head("t", "too much", nil), "too much"); status != 503 {
		t.Errorf("status %d", status)
	}
}

func TestUploadOptionsThatContradict(t *testing.T) {
	for name, o := range map[string]httpbackend.UploadOptions{
		"dir and keep":   {Dir: t.TempDir(), Keep: func(context.Context, string, ahp.Receipt, []byte) error { return nil }},
		"no such dir":    {Dir: filepath.Join(t.TempDir(), "none")},
		"negative bound": {MaxBytes: -1},
		"a bad resource": {Resource: &httpbackend.Resource{ID: "x"}},
	} {
		if u, err := httpbackend.NewUploads(o); err == nil {
			u.Close()
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestUploadsInFilesAreChecked: what isn't what was announced leaves nothing in the
// folder.
func TestUploadsInFilesAreChecked(t *testing.T) {
	dir := t.TempDir()
	u, addr := receiver(t, httpbackend.UploadOptions{Dir: dir})
	for name, edits := range map[string]map[string]string{
		"other bytes": {"AHP-Content-SHA256": sumOf("other")},
		"cut":         {"Content-Length": "9"},
	} {
		if status, answer := say(t, addr, head("t", "bytes", edits), "bytes"); status != http.StatusBadRequest || len(answer) != 0 {
			t.Errorf("%s: status %d, %s", name, status, answer)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
			t.Errorf("%s: the folder holds %v, %v", name, left, err)
		}
	}
	if got, err := read(u, "", put(t, addr, "t", "bytes").Ref); got != "bytes" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// TestNoTokenHasNoScope: a token that was left empty in a configuration lets nobody in
// who has none.
func TestNoTokenHasNoScope(t *testing.T) {
	scopes := httpbackend.TokenScopes(map[string]string{"": "all", "good": "a"})
	if scope, err := scopes(t.Context(), ""); !errors.Is(err, httpbackend.ErrToken) {
		t.Errorf("scope %q, %v", scope, err)
	}
	if scope, err := scopes(t.Context(), "good"); scope != "a" || err != nil {
		t.Errorf("scope %q, %v", scope, err)
	}
}
