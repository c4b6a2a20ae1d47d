package fetch_test

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/tool"
	"github.com/abhed/abhed/internal/tool/fetch"
	"github.com/abhed/abhed/internal/tool/tooltest"
)

type m = map[string]any

// direct is a tool without a proxy, which may go to this machine.
func direct(o fetch.Options) *fetch.Tool {
	o.Private = func(host string) bool { return host == "127.0.0.1" }
	if o.Proxy == nil {
		o.Proxy = func(*url.URL) (*url.URL, error) { return nil, nil }
	}
	return fetch.New(o)
}

func run(t *testing.T, it tool.Tool, args m) tool.Result {
	t.Helper()
	return tooltest.Run(t.Context(), t, it, tooltest.Options{WorkDir: t.TempDir()}, args)
}

// serve starts a server whose pages are made by name.
func serve(t *testing.T, pages map[string]func(http.ResponseWriter, *http.Request)) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	for name, page := range pages {
		mux.HandleFunc(name, page)
	}
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// page sends a body of a type.
func page(kind, body string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = []string{kind}
		if kind == "" {
			w.Header()["Content-Type"] = nil
		}
		io.WriteString(w, body)
	}
}

func TestTypesAndEncodings(t *testing.T) {
	png := "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
	for name, tt := range map[string]struct {
		kind, body, want string
		fails            bool
	}{
		"html":             {"text/html; charset=utf-8", "<h1>Hé</h1><p>x", "# Hé\n\nx\n", false},
		"latin by header":  {"text/html; charset=iso-8859-1", "<p>caf\xe9", "café\n(decoded from windows-1252)\n", false},
		"latin by meta":    {"text/html", `<meta charset="iso-8859-2"><p>` + "\xe8", "č\n(decoded from iso-8859-2)\n", false},
		"japanese by meta": {"text/html", `<meta http-equiv="Content-Type" content="text/html; charset=shift_jis"><p>` + "\x93\xfa\x96\x7b", "日本\n(decoded from shift_jis)\n", false},
		"UTF-16 by mark":   {"text/plain", "\xff\xfeh\x00i\x00", "hi\n(decoded from utf-16le)\n", false},
		"UTF-8 unsaid":     {"text/plain", "日本", "日本\n", false},
		"broken UTF-8":     {"text/plain; charset=utf-8", "a\xffb", "a\uFFFDb\n", false},
		"json":             {"application/json", `{"a":"é"}`, "{\"a\":\"é\"}\n", false},
		"problem+json":     {"application/problem+json", `{}`, "{}\n", false},
		"xml":              {"application/xml", "<a/>", "<a/>\n", false},
		"svg":              {"image/svg+xml", "<svg/>", "<svg/>\n", false},
		"controls":         {"text/plain", "a\x1b]52;c;x\x07\r\nb", "a\\u001b]52;c;x\\u0007\nb\n", false},
		"no type":          {"", "<!DOCTYPE html><p>x", "x\n", false},
		"no type, an image": {
			"", png, "is not text: its bytes are image/png, 16 bytes", true},
		"image":           {"image/png", png, "is not text: it is image/png, 16 bytes", true},
		"pdf":             {"application/pdf", "%PDF-1.7", "is not text: it is application/pdf", true},
		"octets":          {"application/octet-stream", "x", "is not text", true},
		"image as text":   {"text/plain", png, "is not text: its bytes are image/png", true},
		"NUL in html":     {"text/html", "<p>a\x00b", "is not text", true},
		"broken header":   {"text/html; charset", "<p>x", "x\n", false},
		"empty":           {"text/html", "", "(no text)\n", false},
		"unknown charset": {"text/plain; charset=klingon", "abc", "abc\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, map[string]func(http.ResponseWriter, *http.Request){"/": page(tt.kind, tt.body)})
			res := run(t, direct(fetch.Options{}), m{"url": s.URL + "/"})
			_, text, _ := strings.Cut(res.Content, "\n\n")
			if tt.fails {
				text = res.Content
			}
			if res.IsError != tt.fails || text != tt.want && !(tt.fails && strings.Contains(text, tt.want)) || !utf8.ValidString(res.Content) {
				t.Errorf("%q (error %v), want %q", res.Content, res.IsError, tt.want)
			}
		})
	}
}

func TestAnswer(t *testing.T) {
	s := serve(t, map[string]func(http.ResponseWriter, *http.Request){
		"/ok": page("text/html", "<p>x"),
		"/gone": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(410)
			io.WriteString(w, strings.Repeat("it is gone ", 1000))
		},
		"/none": func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(204) },
		"/gzip": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Type", "text/plain")
			z := gzip.NewWriter(w)
			for range 7 {
				io.WriteString(z, strings.Repeat("x", 1<<20))
			}
			z.Close()
		},
		"/cut": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "half")
		},
	})
	it := direct(fetch.Options{})
	if res := run(t, it, m{"url": s.URL + "/ok#part"}); res.Content != s.URL+"/ok (200 OK, text/html, 4 bytes)\n\nx\n" {
		t.Errorf("%q", res.Content)
	}
	if res := run(t, it, m{"url": s.URL + "/ok", "raw": true}); !strings.HasSuffix(res.Content, "\n\n<p>x\n") {
		t.Errorf("%q", res.Content)
	}
	if res := run(t, it, m{"url": s.URL + "/gone"}); !res.IsError || len(res.Content) > 4200 || !strings.Contains(res.Content, "410 Gone") || !strings.Contains(res.Content, "it is gone") {
		t.Errorf("%d bytes: %.100q", len(res.Content), res.Content)
	}
	if res := run(t, it, m{"url": s.URL + "/none"}); res.IsError || !strings.Contains(res.Content, "204 No Content") {
		t.Errorf("%q", res.Content)
	}
	res := run(t, direct(fetch.Options{MaxBytes: 500_000}), m{"url": s.URL + "/gzip"})
	if len(res.Content) > 101_000 || !strings.Contains(res.Content, "only the first 500000 bytes of the page were read") || !strings.Contains(res.Content, "cut after 100000 bytes") {
		t.Errorf("%d bytes ending in %q", len(res.Content), res.Content[len(res.Content)-100:])
	}
	if res := run(t, it, m{"url": s.URL + "/gzip", "max_bytes": 10}); !strings.Contains(res.Content, "\n\nxxxxxxxxxx\n(cut after 10 bytes of text; there is more)\n") {
		t.Errorf("%.200q", res.Content)
	}
	if res := run(t, it, m{"url": s.URL + "/cut"}); !res.IsError || !strings.Contains(res.Content, "unexpected EOF") {
		t.Errorf("a page that ends too early: %+v", res)
	}
}

func TestRequestCarriesNothing(t *testing.T) {
	var got []*http.Request
	s := serve(t, map[string]func(http.ResponseWriter, *http.Request){"/": func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r)
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
		page("text/plain", "x")(w, r)
	}})
	it := direct(fetch.Options{})
	for range 2 {
		run(t, it, m{"url": s.URL + "/?q=1"})
	}
	if len(got) != 2 {
		t.Fatalf("%d requests", len(got))
	}
	for _, r := range got {
		if r.Method != "GET" || r.ContentLength > 0 || r.Header.Get("User-Agent") != "abhed" || r.URL.RawQuery != "q=1" {
			t.Errorf("%s %s %v", r.Method, r.URL, r.Header)
		}
		for _, name := range []string{"Cookie", "Authorization", "Referer"} {
			if r.Header.Get(name) != "" {
				t.Errorf("%s was sent: %v", name, r.Header)
			}
		}
	}
}

func TestRedirectIsANewCall(t *testing.T) {
	var followed atomic.Int64
	s := serve(t, map[string]func(http.ResponseWriter, *http.Request){
		"/": func(w http.ResponseWriter, r *http.Request) {
			w.Header()["Location"] = []string{strings.Replace(r.URL.Query().Get("to"), "LONG", strings.Repeat("x", 10_000), 1)}
			w.WriteHeader(302)
		},
		"/there": func(http.ResponseWriter, *http.Request) { followed.Add(1) },
	})
	it := direct(fetch.Options{})
	for to, want := range map[string]string{
		"/there":                  "redirects (302) to " + s.URL + "/there\n",
		"https://other.example/x": "redirects (302) to https://other.example/x\n",
		"https://u:secret@other/": "redirects (302) to https://u:xxxxx@other/\n",
		"http://[bad":             "to a place that can't be read",
		"LONG":                    "to a place that can't be read",
	} {
		res := run(t, it, m{"url": s.URL + "/?to=" + url.QueryEscape(to)})
		if !strings.Contains(res.Content, want) || strings.Contains(want, "there\n") && !strings.Contains(res.Content, "call fetch with that URL") {
			t.Errorf("%.50s: %.300q, want %q", to, res.Content, want)
		}
	}
	if followed.Load() != 0 {
		t.Error("a redirection was followed")
	}
}

func TestRefusedURLs(t *testing.T) {
	it := direct(fetch.Options{})
	for raw, want := range map[string]string{
		"file:///etc/passwd": "Only http and https", "ftp://example.org/": "Only http and https", "javascript:x": "Only http and https", "/etc/passwd": "Only http", "example.org": "Only http",
		"https://user:pass@example.org/": "user or a password", "https://user@example.org/": "user or a password",
		"http:///x": "names no host", "http:example.org": "names no host", "https://:443/": "names no host",
		"http://example.org/a b": `holds ' '`, "http://example.org\\@evil.example/": `holds '\\'`, "http://example.org/\n": `holds '\n'`,
		"http://ｅxample.org/": "not ASCII", "http://[fe80::1%25eth0]/": "zone", "http://example.org:0/": "port", "http://example.org:65536/": "port",
		"http://example.org/a/../b": `".."`, "http://example.org/a/%2e%2E/b": `".."`, "http://example.org/a/..%2fb": `".."`, "http://example.org/a/..%5cb": `".."`, "http://example.org/./b": `".."`,
		"http://example.org/" + strings.Repeat("x", 9000): "at most 8192",
	} {
		if res := run(t, it, m{"url": raw}); !res.IsError || !strings.Contains(res.Content, want) || strings.Contains(res.Content, "pass@") {
			t.Errorf("%.60s: %q, want %q", raw, res.Content, want)
		}
	}
}

func TestAddressesOutsideThePublicNetwork(t *testing.T) {
	var hits atomic.Int64
	s := serve(t, map[string]func(http.ResponseWriter, *http.Request){"/": func(http.ResponseWriter, *http.Request) { hits.Add(1) }})
	port := s.URL[strings.LastIndexByte(s.URL, ':'):]
	none := func(*url.URL) (*url.URL, error) { return nil, nil }
	it := fetch.New(fetch.Options{Proxy: none})
	for _, host := range []string{"127.0.0.1", "localhost", "localhost.", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "0", "0.0.0.0", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]",
		"10.0.0.1", "172.16.0.1", "192.168.0.1", "169.254.169.254", "100.64.0.1", "[fe80::1]", "[fd00:ec2::254]", "224.0.0.1", "255.255.255.255", "198.18.0.1"} {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		res := tooltest.Run(ctx, t, it, tooltest.Options{WorkDir: t.TempDir()}, m{"url": "http://" + host + port + "/"})
		if ctx.Err() != nil || !res.IsError || !strings.Contains(res.Content, "not an address of the public network") && !strings.Contains(res.Content, "lookup") {
			t.Errorf("%s: %q", host, res.Content)
		}
		cancel()
	}
	if hits.Load() != 0 {
		t.Fatalf("%d requests came through", hits.Load())
	}
	for name, o := range map[string]fetch.Options{"all": {AllowPrivate: true}, "this host": {Private: func(h string) bool { return h == "127.0.0.1" }}} {
		o.Proxy = none
		before := hits.Load()
		if res := run(t, fetch.New(o), m{"url": "http://127.0.0.1" + port + "/"}); res.IsError || hits.Load() != before+1 {
			t.Errorf("%s allowed: %q", name, res.Content)
		}
	}
	other := fetch.New(fetch.Options{Proxy: none, Private: func(h string) bool { return h == "other" }})
	if res := run(t, other, m{"url": s.URL + "/"}); !res.IsError {
		t.Errorf("another host was allowed: %q", res.Content)
	}
}

func TestProxy(t *testing.T) {
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.String())
		page("text/plain", "by the proxy")(w, r)
	}))
	t.Cleanup(s.Close)
	t.Setenv("HTTP_PROXY", s.URL)
	t.Setenv("http_proxy", s.URL)
	t.Setenv("NO_PROXY", "")
	t.Setenv("no_proxy", "")
	it := fetch.New(fetch.Options{})
	if res := run(t, it, m{"url": "http://fetch.invalid/x"}); res.IsError || !strings.Contains(res.Content, "by the proxy") {
		t.Errorf("%q", res.Content)
	}
	through := fetch.New(fetch.Options{Proxy: func(*url.URL) (*url.URL, error) { return url.Parse(s.URL) }})
	for _, host := range []string{"127.0.0.1", "10.1.2.3", "localhost", "a.localhost", "[::1]", "169.254.169.254"} {
		if res := run(t, through, m{"url": "http://" + host + "/"}); !res.IsError || !strings.Contains(res.Content, "public network") {
			t.Errorf("%s: %q", host, res.Content)
		}
	}
	if len(asked) != 1 || asked[0] != "http://fetch.invalid/x" {
		t.Errorf("the proxy was asked for %q", asked)
	}
}

func TestTimeAndInterrupt(t *testing.T) {
	release := make(chan struct{})
	reached := make(chan struct{}, 10)
	s := serve(t, map[string]func(http.ResponseWriter, *http.Request){"/": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprint(w, "begin")
		w.(http.Flusher).Flush()
		reached <- struct{}{}
		<-release
	}})
	t.Cleanup(func() { close(release) })
	res := run(t, direct(fetch.Options{Timeout: 200 * time.Millisecond}), m{"url": s.URL + "/"})
	if !res.IsError || !res.TimedOut || !strings.Contains(res.Content, "within 200ms") {
		t.Errorf("%+v", res)
	}
	<-reached
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-reached; cancel() }()
	begin := time.Now()
	res = tooltest.Run(ctx, t, direct(fetch.Options{}), tooltest.Options{WorkDir: t.TempDir()}, m{"url": s.URL + "/"})
	if took := time.Since(begin); !res.IsError || res.TimedOut || !strings.Contains(res.Content, "interrupted") || took > 3*time.Second {
		t.Errorf("after %v: %+v", took, res)
	}
}

// TestRules: without an allow rule no mode but bypass lets a call run unasked, and a
// rule that allows one place allows no other.
func TestRules(t *testing.T) {
	it := fetch.New(fetch.Options{})
	known := policy.Known{Tools: map[string]policy.SubjectKind{"fetch": policy.SubjectURL}}
	verdict := func(mode policy.Mode, url string, allow ...string) policy.Verdict {
		var lists policy.RuleLists
		for _, text := range allow {
			lists.Allow = append(lists.Allow, policy.RuleText{Text: text})
		}
		rules, problems := policy.Compile(lists, known)
		if rules == nil {
			t.Fatal(problems)
		}
		call, err := policy.Call{Tool: "fetch", WorkDir: "/", Roots: []string{"/"}}.WithArgs([]byte(fmt.Sprintf(`{"url":%q}`, url)))
		if err != nil {
			t.Fatal(err)
		}
		in := policy.Input{Call: call, Declaration: it.Declare(call.Args), Env: policy.Env{Mode: mode, TierProcess: true, NetworkOff: true}}
		return rules.Evaluate(in).Verdict
	}
	const page, rule = "https://docs.example/a/b", "fetch(https://docs.example/**)"
	for mode, want := range map[policy.Mode]policy.Verdict{
		policy.ModePlan: policy.Deny, policy.ModeDefault: policy.Ask, policy.ModeAcceptEdits: policy.Ask, policy.ModeAuto: policy.Ask, policy.ModeBypass: policy.Allow,
	} {
		if got := verdict(mode, page); got != want {
			t.Errorf("mode %v: %v, want %v", mode, got, want)
		}
	}
	if got := verdict(policy.ModeDefault, page, rule); got != policy.Allow {
		t.Errorf("allowed by a rule: %v", got)
	}
	for _, other := range []string{"http://docs.example/a", "https://docs.example.evil.example/", "https://docs.example@evil.example/", "https://evil.example/https://docs.example/", "https://docs.example:444/a"} {
		if got := verdict(policy.ModeDefault, other, rule); got != policy.Ask {
			t.Errorf("%s: %v, want ask", other, got)
		}
	}
}
