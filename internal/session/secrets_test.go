package session

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/strictjson"
)

// encodings are ways in which text reaches a record, beyond those that the
// search was written from.
var encodings = map[string]func(string) string{
	"plain":         func(s string) string { return s },
	"in a sentence": func(s string) string { return "key=" + s + ";" },
	"json": func(s string) string {
		b, _ := json.Marshal(map[string]string{"k": s})
		return string(b)
	},
	"json in json": func(s string) string {
		b, _ := json.Marshal(map[string]string{"k": s})
		b, _ = json.Marshal(string(b))
		return string(b)
	},
	"strict json":   func(s string) string { b, _ := strictjson.Marshal(s); return string(b) },
	"query":         func(s string) string { return "https://x/?a=" + url.QueryEscape(s) + "&b=1" },
	"whole path":    func(s string) string { return "https://x" + (&url.URL{Path: "/" + s}).EscapedPath() },
	"slash kept":    func(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "%2F", "/") },
	"path":          func(s string) string { return "https://x/" + url.PathEscape(s) },
	"lower query":   func(s string) string { return strings.ToLower(url.QueryEscape(s)) },
	"base64":        func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"base64 +1":     func(s string) string { return base64.StdEncoding.EncodeToString([]byte("a" + s + "tail")) },
	"base64 +2":     func(s string) string { return base64.StdEncoding.EncodeToString([]byte("ab" + s)) },
	"base64 url":    func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte("user:" + s)) },
	"base64 broken": func(s string) string { return wrap(base64.StdEncoding.EncodeToString([]byte("xyz"+s+s)), 9) },
	"broken in json": func(s string) string {
		b, _ := json.Marshal(wrap(base64.StdEncoding.EncodeToString([]byte("xy"+s)), 7))
		return string(b)
	},
}

func wrap(s string, n int) string {
	var b strings.Builder
	for i := 0; i < len(s); i += n {
		b.WriteString(s[i:min(len(s), i+n)] + "\n")
	}
	return b.String()
}

var testSecrets = []string{"sk-live-0123456789abcdef", `pa"ss\wo/rd<&>é😀`, "with space+plus%25", "12345678", "multi\nline\nsecret value"}

func TestSecretsNeverEnterTheRecord(t *testing.T) {
	var values [][]byte
	for _, s := range testSecrets {
		values = append(values, []byte("\t"+s+"\n")) // as a file ends
	}
	st := newStore(t, Options{Secrets: values})
	s := create(t, st)
	var told []event.Event
	s.Subscribe(func(e event.Event) { told = append(told, e) })
	raw := func(s string) event.Raw { b, _ := strictjson.Marshal(map[string]any{"a": []string{s}, s: 1}); return b }
	n := 0
	for name, enc := range encodings {
		for i, secret := range testSecrets {
			if name == "lower query" && strings.ToLower(secret) != secret {
				continue
			}
			text := enc(secret)
			filler := ""
			if i == 0 { // long enough to lie beside the file
				filler = strings.Repeat("filler ", 12_000)
			}
			for _, p := range []event.Payload{
				&event.Notice{Text: text},
				&event.ToolEnded{Content: filler + text, Injected: []string{"x", text}},
				&event.Decision{Original: raw(text), ArgsText: text, Final: raw(filler + text)},
				&event.ModelResponded{Message: event.Message{Parts: []event.Part{{ToolCall: &event.ToolCall{ID: "c", Name: text, Args: `{"k":` + mustJSON(text) + `}`}}}}},
				&event.Unknown{Kind: "new", Body: raw(text)},
			} {
				e, err := s.Append(draft(p))
				if err != nil {
					t.Fatalf("%s, secret %d: %v", name, i, err)
				}
				n++
				if !strings.Contains(string(mustLine(t, e)), redacted) {
					t.Errorf("%s, secret %d: %T was recorded without a mark: %.300s", name, i, p, mustLine(t, e))
				}
			}
		}
	}
	mustAppend(t, s, &event.RulesSet{Hash: "h", Rules: event.Raw(`{"n":[12345678,1],"x":12345678.5}`)})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, e := range told {
		checkClean(t, "a subscriber's event", mustLine(t, e))
	}
	files := 0
	err := filepath.WalkDir(st.Dir(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		b, err := os.ReadFile(path)
		checkClean(t, path, b)
		return err
	})
	if err != nil || files < 10 || n < 300 {
		t.Errorf("%v; %d files, %d events", err, files, n)
	}
	if rep, err := Verify(s.Path(), st.Key().Public()); err != nil || !rep.OK {
		t.Errorf("%v %+v", err, rep)
	}
}

func mustJSON(s string) string { b, _ := json.Marshal(s); return string(b) }

func mustLine(t testing.TB, e event.Event) []byte {
	t.Helper()
	b, err := event.Encode(e)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// checkClean looks for each secret by undoing encodings instead of by the search
// under test.
func checkClean(t *testing.T, where string, b []byte) {
	t.Helper()
	for i, s := range testSecrets {
		for name, enc := range encodings {
			for _, pad := range []string{"", "q", "qq"} {
				form := enc(pad + s)
				if strings.HasPrefix(name, "base64") {
					form = strings.NewReplacer("=", "", "\n", "").Replace(form)
					form = form[4 : len(form)-4]
				}
				if len(form) >= minSecret && bytes.Contains(b, []byte(form)) {
					t.Errorf("%s: secret %d as %s is there", where, i, name)
				}
			}
		}
	}
}

func TestShortSecretsAreRefused(t *testing.T) {
	for _, s := range []string{"", "1234567", " 1234567 \n"} {
		if _, err := OpenStore(t.TempDir(), Options{Secrets: [][]byte{[]byte("long enough"), []byte(s)}}); err == nil || !strings.Contains(err.Error(), "secret 2 of 2") || strings.Contains(err.Error(), "1234567") {
			t.Errorf("%q: %v", s, err)
		}
	}
}

// TestSearchFindsEveryPlace compares the search with a plain one.
func TestSearchFindsEveryPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		letters := rapid.SampledFrom([]rune("abAB1"))
		secret := rapid.Custom(func(t *rapid.T) []byte { return []byte(rapid.StringOfN(letters, 8, 20, -1).Draw(t, "s")) })
		values := rapid.SliceOfN(secret, 1, 5).Draw(t, "values")
		m, err := newSecrets(values)
		if err != nil {
			t.Fatal(err)
		}
		text := rapid.StringOfN(letters, 0, 60, -1).Draw(t, "before") + string(rapid.SampledFrom(append(values, nil)).Draw(t, "in")) + rapid.StringOfN(letters, 0, 60, -1).Draw(t, "after")
		want := false
		for _, v := range values {
			want = want || strings.Contains(text, string(v))
		}
		if want && !m.has(text) {
			t.Fatalf("a secret of %q is not found in %q", values, text)
		}
		out := m.replace(text)
		for _, v := range values {
			if strings.Contains(strings.ReplaceAll(out, redacted, "-"), string(v)) {
				t.Fatalf("%q is left in %q", v, out)
			}
		}
		if !m.has(text) && out != text {
			t.Fatalf("nothing is found in %q, which becomes %q", text, out)
		}
	})
}

func TestNothingElseIsReplaced(t *testing.T) {
	m, err := newSecrets([][]byte{[]byte("hunter2hunter2")})
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		"hunter2 hunter2":                  "hunter2 hunter2",
		"a hunter2hunter2 b":               "a [secret] b",
		"hunter2hunter2hunter2hunter2":     "[secret][secret]",
		"line\nhunter2\nhunter2\nline":     "line\n[secret]\nline",
		"x\ny hunter2hunter2\nz hunter2":   "x\ny [secret]\nz hunter2",
		`{"a":"hunter2\nhunter2"}`:         `{"a":"[secret]"}`,
		"":                                 "",
		"aHVudGVyMmh1bnRlcjI= and the end": "[secret]I= and the end",
	} {
		if got := m.replace(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
		if m.has(in) != (in != want) {
			t.Errorf("%q: has says %v", in, m.has(in))
		}
	}
}
