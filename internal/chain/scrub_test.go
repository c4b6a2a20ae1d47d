package chain

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"github.com/abhed/abhed/internal/strictjson"
)

// plainShapes are the forms of credentials as expressions over a whole text: slow, and
// easy to read. Scrubber must find all that they find.
func plainShapes() []*regexp.Regexp {
	var out []*regexp.Regexp
	for _, s := range []string{
		`()\b(?:sk-|ghp_|gho_|ghs_|ghu_|github_pat_|glpat-|xox[abposr]-|AKIA|ASIA|AIza|npm_|hf_)[A-Za-z0-9_-]{12,}`,
		`()\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`,
		`()-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)`,
		`(?i)(\b(?:bearer|basic)\s+)[A-Za-z0-9+/=._~-]{8,}`,
		`(\b[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@"']*:)[^\s/@"']+(@)`,
		`(?i)(\b[A-Z0-9_-]*(?:password|passwd|secret|token|api[_-]?key|access[_-]?key)\b\\*["']?\s*[=:]\s*\\*["']?)(?:[^\s"'&;,\\]|\\+[^"'\\]){4,}`,
		`(?i)(\s--[A-Z0-9-]*(?:password|passwd|secret|token|api[_-]?key|access[_-]?key)\s+\\*["']?)[^\s"'\\-][^\s"'\\]{3,}`,
	} {
		out = append(out, regexp.MustCompile(s))
	}
	return out
}

func scrubText(t rapid.TB, scrub func([]byte) ([]byte, error), text string) string {
	t.Helper()
	quoted, err := jsontext.AppendQuote(nil, text)
	if err != nil {
		t.Fatal(err)
	}
	out, err := scrub(append(append([]byte(`{"a":`), quoted...), '}'))
	if err != nil {
		t.Fatal(err)
	}
	if !strictjson.IsCanonical(out) {
		t.Fatalf("not canonical: %s", out)
	}
	plain, err := jsontext.AppendUnquote(nil, bytes.TrimSuffix(bytes.TrimPrefix(out, []byte(`{"a":`)), []byte("}")))
	if err != nil {
		t.Fatal(err)
	}
	return string(plain)
}

// TestScrubberFindsWhatThePlainShapesFind composes texts of pieces of credentials.
func TestScrubberFindsWhatThePlainShapesFind(t *testing.T) {
	scrub, err := Scrubber(nil)
	if err != nil {
		t.Fatal(err)
	}
	shapes := plainShapes()
	pieces := []string{
		"sk-", "ghp_", "github_pat_", "xoxb-", "AKIA", "eyJ", "-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----", "Bearer", "bAsic ", "://", "https", "@", "/",
		"password", "PassWd", "secret", "token", "api_key", "ApiKey", "access-key", "DB_", " --", "--", "-", "=", ": ", ":", "'", `"`, `\`, `\\`, " ", "\n", "\t", "abc", "Zz9_", "longvalue1234", ".", "é", "\u2028", "\x01", "_", ",", ";", "&",
	}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 14).Draw(t, "pieces"), "")
		want := text
		for _, s := range shapes {
			want = s.ReplaceAllString(want, "${1}"+removed+"${2}")
		}
		got := scrubText(t, scrub, text)
		// Where a URL has no scheme the scrubber takes more.
		if got != want && !strings.Contains(text, "://") {
			t.Fatalf("%q\ngot  %q\nwant %q", text, got, want)
		}
		for _, s := range shapes {
			if m := s.FindString(got); m != "" && !strings.Contains(m, removed) {
				t.Fatalf("%q: %q is still in %q", text, m, got)
			}
		}
	})
}

func TestScrubberOfNames(t *testing.T) {
	scrub, err := Scrubber([]string{`quo"ted\value`})
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		`{"to\u006ben":"x"}`:                                   `{"to\u006ben":"[removed]"}`,
		`{"Pass.Word":"x","a":"x"}`:                            `{"Pass.Word":"[removed]","a":"x"}`,
		`{"authorization":["x","y",{"a":"z"}],"b":["x"]}`:      `{"authorization":["[removed]","[removed]",{"a":"z"}],"b":["x"]}`,
		`{"token" : {"a":"x"},"c":"y"}`:                        `{"token" : {"a":"x"},"c":"y"}`,
		`{"token":1,"tokens":"x","x":{"cookie":"x"},"y":"x"}`:  `{"token":1,"tokens":"x","x":{"cookie":"[removed]"},"y":"x"}`,
		`["a quo\"ted\\value b","\u0073k-abcdefghijklmnop",1]`: `["a [removed] b","[removed]",1]`,
		`["https:\/\/u:hunter22@h"]`:                           `["https://u:[removed]@h"]`,
		`"plain"`:                                              `"plain"`,
	} {
		if out, err := scrub([]byte(in)); err != nil || string(out) != want {
			t.Errorf("%s: %s, %v; want %s", in, out, err, want)
		}
	}
	for _, in := range []string{`{"a":"b`, `{"a":"b"`, `]`, `["sk-\q"]`, `{"\q":"x","y":"\ud800token"}`} {
		if out, err := scrub([]byte(in)); err == nil {
			t.Errorf("%s became %s", in, out)
		}
	}
}

// TestScrubberIsLinear holds that no text makes it slow: an event comes from a model.
func TestScrubberIsLinear(t *testing.T) {
	scrub, err := Scrubber([]string{"my-own-value"})
	if err != nil {
		t.Fatal(err)
	}
	for _, piece := range []string{"eyJ-", "eyJabcdefghij.", "token", "-token", " --token", "sk-", "bearer ", "://", "://a:", "-----BEGIN ", "-----BEGIN A PRIVATE KEY-----", `token=\`, "api_key: ", "access", "secret '"} {
		event := []byte(`{"a":` + quote(strings.Repeat(piece, 256<<10/len(piece))) + `}`)
		start := time.Now()
		if _, err := scrub(event); err != nil {
			t.Fatal(err)
		}
		// It is some milliseconds; a quadratic search takes minutes.
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("%q: %v for 256 KiB", piece, took)
		}
	}
}

func quote(s string) string {
	q, err := jsontext.AppendQuote(nil, s)
	if err != nil {
		panic(err)
	}
	return string(q)
}

func FuzzScrub(f *testing.F) {
	scrub, err := Scrubber([]string{"my-own-value"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(`{"a":"password=hunter22","token":["x"]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		if strictjson.Check(in, strictjson.Options{}) != nil {
			_, _ = scrub(in) // must not panic
			return
		}
		out, err := scrub(in)
		if err != nil || strictjson.Check(out, strictjson.Options{MaxBytes: 1 << 30}) != nil {
			t.Fatalf("%s became %s, %v", in, out, err)
		}
	})
}
