package fetch

import (
	"bytes"
	"cmp"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html/charset"

	"github.com/abhed/abhed/internal/tool"
)

// maxErrorText is how much of a page that is an error is shown, in bytes.
const maxErrorText = 4000

// body is what a server sent.
type body struct {
	kind        string // media type; "" if the server didn't say
	contentType string
	data        []byte
	cut         bool
}

// kindOf returns the media type of a header and whether it is none of text.
func kindOf(header string) (kind string, refused bool) {
	if strings.TrimSpace(header) == "" {
		return "", false // the bytes will tell
	}
	kind, _, _ = mime.ParseMediaType(header)
	if kind == "" { // a parameter is broken
		kind = strings.ToLower(strings.TrimSpace(strings.Split(header, ";")[0]))
	}
	return kind, !isText(kind)
}

func isText(kind string) bool {
	main, sub, _ := strings.Cut(kind, "/")
	switch {
	case main == "text":
		return true
	case main != "application" && main != "image": // image/svg+xml is text
		return false
	case strings.HasSuffix(sub, "+json"), strings.HasSuffix(sub, "+xml"), strings.HasSuffix(sub, "+yaml"):
		return true
	}
	return main == "application" && slices.Contains([]string{
		"json", "xml", "javascript", "ecmascript", "x-javascript", "ld+json", "x-ndjson", "jsonl", "json-seq", "yaml", "x-yaml", "toml", "sql", "graphql", "x-sh", "xml-dtd", "x-tex", "typescript",
	}, sub)
}

func isHTML(kind string) bool { return kind == "text/html" || kind == "application/xhtml+xml" }

func sizeOf(n int64) string {
	if n < 0 {
		return "of a size that the server doesn't say"
	}
	return fmt.Sprintf("%d bytes", n)
}

// answer returns the page for the model.
func (t *Tool) answer(u *url.URL, resp *http.Response, b body, a args) tool.Result {
	if b.kind == "" {
		b.kind, _, _ = strings.Cut(http.DetectContentType(b.data), ";")
	}
	content, from := decode(b)
	if i := strings.IndexByte(content, 0); i >= 0 || !isText(b.kind) && len(b.data) > 0 {
		kind, _, _ := strings.Cut(http.DetectContentType(b.data), ";")
		return tool.Fail(fmt.Sprintf("%s is not text: its bytes are %s, %s. Only text, HTML, JSON and XML can be fetched.", u, kind, sizeOf(int64(len(b.data)))))
	}
	limit := min(cmp.Or(a.MaxBytes, t.o.MaxText), t.o.MaxText)
	failed := resp.StatusCode >= 400
	if failed {
		limit = min(limit, maxErrorText)
	}
	var notes []string
	shown, more := "", false
	if isHTML(b.kind) && !a.Raw {
		shown, more = pageText(u, content, limit)
	} else {
		shown, more = clip(visible(content), limit)
	}
	if more {
		notes = append(notes, fmt.Sprintf("cut after %d bytes of text; there is more", len(shown)))
	}
	if b.cut {
		notes = append(notes, fmt.Sprintf("only the first %d bytes of the page were read", len(b.data)))
	}
	if from != "" {
		notes = append(notes, "decoded from "+from)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s (%d %s, %s, %d bytes)\n\n", u, resp.StatusCode, http.StatusText(resp.StatusCode), b.kind, len(b.data))
	if strings.TrimSpace(shown) == "" {
		shown = "(no text)"
	}
	out.WriteString(strings.TrimRight(shown, "\n") + "\n")
	for _, n := range notes {
		fmt.Fprintf(&out, "(%s)\n", n)
	}
	return tool.Result{Content: out.String(), IsError: failed}
}

// decode returns the text of a body, and the name of its encoding if that isn't UTF-8.
func decode(b body) (content, from string) {
	enc, name, certain := charset.DetermineEncoding(b.data[:min(len(b.data), 1024)], b.contentType)
	if name == "utf-8" || !certain && utf8.Valid(b.data) {
		return strings.ToValidUTF8(string(bytes.TrimPrefix(b.data, []byte("\xEF\xBB\xBF"))), "\uFFFD"), ""
	}
	out, err := enc.NewDecoder().Bytes(b.data)
	if err != nil {
		return strings.ToValidUTF8(string(b.data), "\uFFFD"), ""
	}
	return strings.TrimPrefix(string(out), "\uFEFF"), name
}

// visible returns a text with its line endings as newlines and without other control
// characters than tabs, which are written as \uXXXX.
func visible(s string) string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	control := func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }
	if !strings.ContainsFunc(s, control) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if control(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// clip cuts a text at a limit in bytes, between characters.
func clip(s string, limit int) (shown string, more bool) {
	if len(s) <= limit {
		return s, false
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit], true
}
