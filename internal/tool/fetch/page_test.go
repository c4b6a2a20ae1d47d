package fetch

import (
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func converted(t testing.TB, html string, limit int) (string, bool) {
	t.Helper()
	base, err := url.Parse("https://example.org/dir/page")
	if err != nil {
		t.Fatal(err)
	}
	return pageText(base, html, limit)
}

func TestPageText(t *testing.T) {
	for _, tt := range []struct{ html, want string }{
		{"<!doctype html><title> A  title </title><body><h1>Head</h1><p>One\n two</p><p>Three", "Title: A title\n\n# Head\n\nOne two\n\nThree"},
		{"a<br>b<br><br>c", "a\nb\n\nc"},
		{"<h2>T<em>wo</em></h2>text", "## Two\n\ntext"}, {"<h3></h3>text", "text"},
		{`<a href="/x?a=1&amp;b=2">link</a>, more`, "link (https://example.org/x?a=1&b=2), more"},
		{`<a href="y">link</a> more`, "link (https://example.org/dir/y) more"},
		{`<a href="#top">up</a> <a href="javascript:x()">run</a> <a href="data:text/plain,x">data</a>`, "up run data"},
		{`<a href="https://example.org/">https://example.org/</a>`, "https://example.org/"},
		{`<a href="https://user:pass@example.org/">x</a>`, "x (https://user:xxxxx@example.org/)"},
		{`<a href=a>one<a href=b>two</a>`, "one (https://example.org/dir/a)two (https://example.org/dir/b)"},
		{`<a href="x"><img src="i" alt="a picture"></a>`, "[image: a picture] (https://example.org/dir/x)"},
		{`<base href="https://other.example/b/"><a href="c">l</a>`, "l (https://other.example/b/c)"},
		{"<ul><li>a<li>b<ul><li>c</ul><li>d</ul>end", "- a\n- b\n  - c\n- d\n\nend"},
		{"<ol><li>a</li><li>b</li></ol>", "1. a\n2. b"},
		{"x<pre>\n  keep\n\tthis  </pre>y", "x\n\n```\n  keep\n\tthis  \n```\n\ny"},
		{"<pre><code>if a &lt; b {</code></pre>", "```\nif a < b {\n```"},
		{"call <code>f(x)</code>, then", "call `f(x)`, then"}, {"a</code>b", "ab"},
		{"<table><tr><th>A<th>B<tr><td>1<td>2</table>", "A | B\n1 | 2"},
		{"a<script>if (1<2) alert('<b>')</script><style>p{}</style><svg><title>no</title><text>t</text></svg><template><p>x</p></template>b", "ab"},
		{"a<svg/>b<noscript>no</noscript>c", "abc"}, {"<script>never closed <p>x", ""},
		{"<!-- <p>comment</p> -->x", "x"}, {"voil\u00e0 tout", "voil\u00e0 tout"}, {"voil\u00e0<b>x</b>", "voil\u00e0x"}, {"a&nbsp;b", "a b"},
		{"a<hr>b", "a\n---\nb"}, {"\x1b[31mred\x07", `\u001b[31mred\u0007`},
		{"", ""}, {"</p></ul></pre></a>", ""}, {"<pre>open", "```\nopen\n```"},
	} {
		if got, more := converted(t, tt.html, 10_000); got != tt.want || more {
			t.Errorf("%q: %q (more %v), want %q", tt.html, got, more, tt.want)
		}
	}
}

func TestPageTextIsBounded(t *testing.T) {
	long := "https://long.example/" + strings.Repeat("x", 1900) + "/"
	for name, html := range map[string]string{
		"deep":        strings.Repeat("<div>", 200_000) + "x",
		"lists":       strings.Repeat("<ul><li>", 200_000) + "x",
		"links":       `<base href="` + long + `">` + strings.Repeat("<a href=a>b</a>", 100_000),
		"open code":   strings.Repeat("<code>", 200_000),
		"attributes":  "<a " + strings.Repeat("x=y ", 200_000) + ">z</a>",
		"long word":   strings.Repeat("é", 200_000),
		"open script": strings.Repeat("<script>", 200_000),
		"pre":         strings.Repeat("<pre>", 200_000),
	} {
		begin := time.Now()
		text, _ := converted(t, html, 1000)
		if took := time.Since(begin); len(text) > 1000 || !utf8.ValidString(text) || took > 5*time.Second {
			t.Errorf("%s: %d bytes after %v", name, len(text), took)
		}
	}
	if text, more := converted(t, "<p>"+strings.Repeat("é", 1000), 101); len(text) != 100 || !more {
		t.Errorf("%d bytes, more %v: a character was cut, or nothing is said", len(text), more)
	}
}

func TestAnyPageText(t *testing.T) {
	piece := rapid.SampledFrom([]string{"<p>", "</p>", "<pre>", "</pre>", "<a href=x>", "</a>", "<ul>", "<ol>", "<li>", "</ul>", "<script>", "</script>", "<title>", "</title>", "<td>", "<tr>",
		"<code>", "</code>", "<h1>", "</h1>", "<br>", "x", " ", "\n", "é", "&lt;", "<!--", "-->", "<", ">", "<svg/>", "<img alt=y>"})
	rapid.Check(t, func(rt *rapid.T) {
		html := strings.Join(rapid.SliceOfN(piece, 0, 40).Draw(rt, "html"), "")
		limit := rapid.IntRange(1, 200).Draw(rt, "limit")
		text, _ := converted(t, html, limit)
		if len(text) > limit || !utf8.ValidString(text) {
			rt.Fatalf("%q: %q", html, text)
		}
	})
}

func FuzzPageText(f *testing.F) {
	f.Add("<ul><li><pre>x</pre><a href=//y>z", 100)
	f.Fuzz(func(t *testing.T, html string, limit int) {
		limit = max(1, min(limit, 1<<20))
		text, _ := converted(t, html, limit)
		if len(text) > limit || utf8.ValidString(html) && !utf8.ValidString(text) {
			t.Fatalf("%q: %q", html, text)
		}
	})
}
