package inspect_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/abhed/abhed/internal/inspect"
)

// TestDoors holds who is let in: nobody without the secret, no other host name, no
// web page, no message that isn't JSON.
func TestDoors(t *testing.T) {
	s := start(t, inspect.Options{})
	msg := toolBefore("e", "s", "ls")
	tests := []struct {
		name, method, path, host, header string
		want                             int
	}{
		{"the page", "GET", s.PagePath(), "", "", 200},
		{"its script", "GET", s.PagePath() + "page.js", "", "Sec-Fetch-Site: same-origin", 200},
		{"its style", "GET", s.PagePath() + "page.css", "", "", 200},
		{"as localhost", "GET", s.PagePath(), "localhost:99", "", 200},
		{"as ::1", "GET", s.PagePath(), "[::1]:99", "", 200},
		{"without the secret", "GET", "/", "", "", 404},
		{"with another", "GET", "/" + strings.Repeat("A", 26) + "/", "", "", 404},
		{"an entry with another", "GET", "/x/entry/1", "", "", 404},
		{"updates with another", "GET", "/x/updates", "", "", 404},
		{"a file that isn't there", "GET", s.PagePath() + "..%2finspect.go", "", "", 404},
		{"a rebound name", "GET", s.PagePath(), "evil.example", "", 421},
		{"a rebound name that looks local", "GET", s.PagePath(), "localhost.evil.example", "", 421},
		{"an address elsewhere", "GET", s.PagePath(), "192.168.0.1:80", "", 421},
		{"a rebound name for messages", "POST", inspect.Path, "evil.example", "Content-Type: application/json", 421},
		{"from another site", "GET", s.PagePath() + "about", "", "Sec-Fetch-Site: cross-site", 404},
		{"from a neighbour port", "GET", s.PagePath() + "entry/1", "", "Sec-Fetch-Site: same-site", 404},
		{"a change of the page", "POST", s.PagePath(), "", "", 405},
		{"a message", "POST", inspect.Path, "", "Content-Type: application/json", 200},
		{"a message as a form", "POST", inspect.Path, "", "Content-Type: text/plain", 415},
		{"a message of no type", "POST", inspect.Path, "", "", 415},
		{"a message by GET", "GET", inspect.Path, "", "", 405},
		{"a message of a web page", "POST", inspect.Path, "", "Origin: http://127.0.0.1", 403},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := http.NewRequest(tt.method, s.server.URL+tt.path, strings.NewReader(msg))
			if err != nil {
				t.Fatal(err)
			}
			r.Host = tt.host
			if name, value, ok := strings.Cut(tt.header, ": "); ok {
				r.Header.Set(name, value)
			}
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			io.Copy(io.Discard, resp.Body)
			if resp.StatusCode != tt.want {
				t.Errorf("status %d, want %d", resp.StatusCode, tt.want)
			}
			if resp.StatusCode == 200 && (!strings.Contains(resp.Header.Get("Content-Security-Policy"), "default-src 'none'") || resp.Header.Get("Cache-Control") != "no-store" ||
				resp.Header.Get("Referrer-Policy") != "no-referrer" || resp.Header.Get("X-Content-Type-Options") != "nosniff" || resp.Header.Get("Access-Control-Allow-Origin") != "") {
				t.Errorf("headers %v", resp.Header)
			}
		})
	}
}

// TestToken holds that messages need the token where one is asked for.
func TestToken(t *testing.T) {
	s := start(t, inspect.Options{Token: "let me in"})
	if status, _ := s.post(t, toolBefore("e", "s", "ls")); status != 401 {
		t.Errorf("status %d", status)
	}
	if _, about := get(t, s.page("about")); !strings.Contains(about, `"needsToken":true`) || strings.Contains(about, "let me in") {
		t.Error(about)
	}
}

// TestPageIsAlone holds that no file of the page names a resource elsewhere, or has
// a door through which text becomes markup.
func TestPageIsAlone(t *testing.T) {
	s := start(t, inspect.Options{})
	for _, file := range []string{"", "page.js", "page.css"} {
		_, text := get(t, s.page(file))
		if len(text) < 1000 {
			t.Errorf("%q has %d bytes", file, len(text))
		}
		for _, word := range []string{"http:", "https:", "//cdn", "@import", "url(", "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(", "srcdoc", " style=", " onclick="} {
			if strings.Contains(text, word) {
				t.Errorf("%q has %q", file, word)
			}
		}
	}
}

// TestBounds holds that the oldest entries go, by number and by size, and that what
// is kept of one message is cut.
func TestBounds(t *testing.T) {
	s := start(t, inspect.Options{MaxEntries: 10, MaxBytes: 2 << 20})
	for i := range 25 {
		s.post(t, toolBefore(fmt.Sprintf("e%d", i), "s", "ls"))
	}
	for seq, want := range map[int]int{0: 404, 15: 404, 16: 200, 25: 200, 26: 404} {
		if status, _ := get(t, s.page(fmt.Sprintf("entry/%d", seq))); status != want {
			t.Errorf("entry %d: %d, want %d", seq, status, want)
		}
	}
	if status, _ := get(t, s.page("entry/nonsense")); status != 404 {
		t.Error(status)
	}
	for i := range 9 {
		s.post(t, toolBefore(fmt.Sprintf("big%d", i), "s", strings.Repeat("é", 400_000)))
	}
	status, body := get(t, s.page("entry/34"))
	if status != 200 || len(body) > 300<<10 || !strings.Contains(body, `"bytes":800`) {
		t.Errorf("%d, %d bytes", status, len(body))
	}
	if status, _ := get(t, s.page("entry/26")); status != 404 {
		t.Error("more than MaxBytes is kept")
	}
	if status, _ := get(t, s.page("entry/30")); status != 200 {
		t.Error("less than MaxBytes is kept")
	}
}

// TestUpdates holds that a reader gets what is there, and then what happens.
func TestUpdates(t *testing.T) {
	s := start(t, inspect.Options{})
	s.post(t, toolBefore("first", "s", "ls"))
	resp, err := http.Get(s.page("updates"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if ct := resp.Header.Get("Content-Type"); ct != "text/event-stream" {
		t.Error(ct)
	}
	lines := bufio.NewScanner(resp.Body)
	next := func(want string) {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), want) {
				return
			}
		}
		t.Fatalf("%s didn't come: %v", want, lines.Err())
	}
	next(`"id":"first"`)
	next("event: current")
	s.post(t, toolBefore("second", "s", "a\nevent: entry\ndata: {}\n\n"))
	next(`"decision":"pass"`)
	if strings.Contains(lines.Text(), `"request"`) && strings.Contains(lines.Text(), "jsonrpc") {
		t.Error("a list has whole messages")
	}
}

// TestSlowReaders holds that a reader who doesn't read is dropped, that it delays
// nothing, and that there aren't more readers than the bound.
func TestSlowReaders(t *testing.T) {
	s := start(t, inspect.Options{})
	c, err := net.Dial("tcp", s.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "GET %supdates HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", s.PagePath())
	if _, err := io.ReadFull(c, make([]byte, 12)); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("\x01", 280) // six bytes each in JSON, so that it is more than the kernel holds
	began := time.Now()
	for i := range 4000 {
		s.post(t, toolBefore(fmt.Sprintf("e%d", i), long, long))
	}
	t.Logf("4000 messages in %v", time.Since(began))
	// What the reader was sent ends, and it doesn't end with the latest.
	c.SetReadDeadline(time.Now().Add(30 * time.Second))
	all, err := io.ReadAll(c)
	if err != nil {
		t.Fatalf("the reader isn't dropped: %v after %d bytes", err, len(all))
	}
	if strings.Contains(string(all), `"id":"e3999"`) {
		t.Error("the reader got everything, so it wasn't slow: the test shows nothing")
	}
	var open []io.Closer
	for {
		resp, err := http.Get(s.page("updates"))
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, resp.Body)
		if resp.StatusCode == http.StatusServiceUnavailable {
			break
		}
		if len(open) > 100 {
			t.Fatal("any number of readers is served")
		}
	}
	for _, o := range open {
		o.Close()
	}
}

// TestRecord holds how files are shown.
func TestRecord(t *testing.T) {
	s := start(t, inspect.Options{})
	for _, line := range []string{
		toolBefore("e1", "s", "git push"),
		`{"jsonrpc":"2.0","id":"e1","result":{"protocolVersion":"draft","effects":[{"type":"deny","reason":"no"}]}}`,
		`{"jsonrpc":"2.0","id":"e1","result":{"protocolVersion":"draft","effects":[]}}`,
		observed(toolEvent("e2", "s", "ls")),
		`{"seq":1,"prev":"","time":"2026-01-02T00:00:00Z","mode":"intercept","event":` + toolEvent("e3", "s", "cat") + `,"hash":"x"}`,
		`nonsense`,
		observed(`{"id":"e4","source":"urn:test","type":"turn.start","time":"2026-01-01T00:00:00Z","turn":{"id":"t"},"trigger":"user","items":[{"id":"m","role":"user","parts":[{"id":"p","kind":"text","mediaType":"text/plain","selection":"body","text":"fix\n the test"}]}]}`),
	} {
		s.Record([]byte(line))
	}
	want := []string{`"decision":"deny"`, `"problem":"an answer without a request`, `"decision":"observed"`, `"decision":"pass"`, `"decision":"invalid"`, `"subject":"user fix the test"`}
	for i, w := range want {
		status, body := get(t, s.page(fmt.Sprintf("entry/%d", i+1)))
		if status != 200 || !strings.Contains(body, w) || !strings.Contains(body, `"recorded":true`) {
			t.Errorf("entry %d: %d, want %s in %s", i+1, status, w, body)
		}
	}
	if _, body := get(t, s.page("entry/4")); !strings.Contains(body, `"at":1767312000000`) || !strings.Contains(body, "bash cat") {
		t.Error(body)
	}
}

// FuzzMessages holds that whatever comes, by the wire, from a backend behind or from
// a file, is listed and can be read.
func FuzzMessages(f *testing.F) {
	for _, seed := range []string{toolBefore("e", "s", "ls"), observed(toolEvent("e", "s", "ls")), `{"jsonrpc":"2.0","id":"e","result":{"protocolVersion":"draft","effects":[{"type":"deny","reason":"no"}]}}`,
		`{"jsonrpc":"2.0","id":"e","error":{"code":1,"message":"\ud83d\ude00"}}`, `{"seq":1,"event":{}}`, "\xff\xfe", "", "[]", `{"jsonrpc":"2.0","id":"e","result":{"effects":[{"type":"\u0000"}]}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := start(t, inspect.Options{}, hook{id: "com.example.b", policy: "fail-open", more: observing, handler: func(context.Context, []byte) ([]byte, error) { return data, nil }})
		s.post(t, string(data))
		s.post(t, toolBefore("e", "s", "ls"))
		s.Record(data)
		for seq := 1; seq <= 3; seq++ {
			status, body := get(t, s.page(fmt.Sprintf("entry/%d", seq)))
			if status != 200 || !json.Valid([]byte(body)) || !utf8.ValidString(body) {
				t.Errorf("entry %d: %d %q", seq, status, body)
			}
		}
	})
}
