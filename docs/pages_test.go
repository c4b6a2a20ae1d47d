package docs_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/abhed/abhed/internal/config"
	"github.com/abhed/abhed/internal/extension"
	"github.com/abhed/abhed/internal/probe"
	"github.com/abhed/abhed/internal/strictjson"
)

// keys adds the keys below a part of the schema of the settings to out, with their
// defaults: a list's entry is [], a member of any name is *.
func keys(t *testing.T, at map[string]any, path string, out map[string]string) {
	t.Helper()
	below := func(name string) map[string]any {
		m, _ := at[name].(map[string]any)
		return m
	}
	switch {
	case below("properties") != nil:
		for name, m := range below("properties") {
			keys(t, m.(map[string]any), strings.TrimPrefix(path+"."+name, "."), out)
		}
	case below("additionalProperties")["properties"] != nil:
		keys(t, below("additionalProperties"), path+".*", out)
	case below("items")["properties"] != nil:
		keys(t, below("items"), path+"[]", out)
	default:
		out[path] = ""
		if def, there := at["default"]; there {
			text, err := strictjson.Marshal(def)
			if err != nil {
				t.Fatal(err)
			}
			out[path] = string(text)
		}
	}
}

// TestKeys holds the guide's table of settings against the schema: every key once, with
// its default.
func TestKeys(t *testing.T) {
	data, err := config.Schema()
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := strictjson.Unmarshal(data, &schema, strictjson.Options{}); err != nil {
		t.Fatal(err)
	}
	want, page := map[string]string{}, map[string]string{}
	keys(t, schema, "", want)
	for _, row := range table(t, "guide.md", "key", "default") {
		for _, name := range named(row[0]) {
			if _, twice := page[name]; twice {
				t.Errorf("guide.md has %s twice", name)
			}
			page[name] = strings.Trim(row[1], "`")
		}
	}
	if d := cmp.Diff(want, page); d != "" {
		t.Errorf("guide.md (-program +page):\n%s", d)
	}
}

// TestFigures holds figures of the prose against what the program says.
func TestFigures(t *testing.T) {
	if page := text(t, "guide.md"); !strings.Contains(page, fmt.Sprintf("is asked at most %s things", map[int]string{10: "ten"}[probe.MaxRequests])) {
		t.Errorf("guide.md doesn't say that the doctor asks %d things at most", probe.MaxRequests)
	}
	defaults := schemaOf(t, "properties", "http", "properties")
	for name, want := range map[string]string{"retries": "`http.retries` times (%s)", "stall_seconds": "`http.stall_seconds` (%s)"} {
		if want = fmt.Sprintf(want, defaults[name]); !strings.Contains(text(t, "models.md"), want) {
			t.Errorf("models.md doesn't say %q", want)
		}
	}
}

// TestExtensionEvents holds the table of events for authors against the program, in
// order.
func TestExtensionEvents(t *testing.T) {
	var page []string
	for _, row := range table(t, "extensions.md", "event", "when") {
		page = append(page, named(row[0])...)
	}
	if d := cmp.Diff(extension.Events(), page); d != "" {
		t.Errorf("extensions.md (-program +page), in the program's order:\n%s", d)
	}
	var failures []string
	for _, row := range table(t, "extensions.md", "`on_failure`") {
		failures = append(failures, named(row[0])...)
	}
	if want := []string{string(extension.Skip), string(extension.AskPerson), string(extension.Block)}; !slices.Equal(failures, want) {
		t.Errorf("extensions.md has the failures %q, the program %q", failures, want)
	}
}

// TestEmbeddedExample holds that the page on embedding shows what is compiled and run.
func TestEmbeddedExample(t *testing.T) {
	page := text(t, "embedding.md")
	m := regexp.MustCompile("(?s)```go\n(.*?)```").FindStringSubmatch(page)
	if m == nil {
		t.Fatal("embedding.md has no Go")
	}
	shown := regexp.MustCompile(`(?m)^(.)`).ReplaceAllString(m[1], "\t$1")
	if !strings.Contains(text(t, "../example_test.go"), shown) {
		t.Errorf("embedding.md shows what isn't in example_test.go:\n%s", shown)
	}
}

// TestDecisions holds that the index of decisions has each of them, with its title.
func TestDecisions(t *testing.T) {
	want, page := map[string]string{}, map[string]string{}
	files, err := filepath.Glob("decisions/0*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		first, _, _ := strings.Cut(text(t, f), "\n")
		m := regexp.MustCompile(`^# (\d+)\.? (.+)$`).FindStringSubmatch(first)
		if m == nil || !strings.HasSuffix("000"+m[1], filepath.Base(f)[:4]) {
			t.Errorf("%s begins with %q", f, first)
			continue
		}
		want[filepath.Base(f)] = m[2]
	}
	for _, m := range regexp.MustCompile(`(?m)^- \[\d{4}\]\(([^)]+)\) (.+)$`).FindAllStringSubmatch(text(t, "decisions/README.md"), -1) {
		page[m[1]] = m[2]
	}
	if d := cmp.Diff(want, page); d != "" {
		t.Errorf("decisions/README.md (-files +page):\n%s", d)
	}
}

// TestLinks follows every link of the pages to a file, and to a heading where it names
// one.
func TestLinks(t *testing.T) {
	pages := []string{"../README.md", "../CHANGELOG.md", "../examples/rpc/README.md", "../examples/extensions/README.md"}
	for _, pattern := range []string{"*.md", "decisions/*.md"} {
		more, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, more...)
	}
	link := regexp.MustCompile(`\]\(([^)#:\s]*)(#[^)\s]*)?\)`)
	for _, p := range pages {
		for _, m := range link.FindAllStringSubmatch(text(t, p), -1) {
			target := p
			if m[1] != "" {
				target = filepath.Join(filepath.Dir(p), m[1])
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which there is not", p, m[1])
			} else if m[2] != "" && !slices.Contains(headings(text(t, target)), m[2][1:]) {
				t.Errorf("%s links to %s%s, a heading that there is not", p, m[1], m[2])
			}
		}
	}
}

// headings returns the anchors of a page's headings.
func headings(text string) []string {
	anchors := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(text, -1) {
		name := strings.ToLower(regexp.MustCompile(`[^\w\- ]`).ReplaceAllString(m[1], ""))
		anchors[strings.ReplaceAll(name, " ", "-")] = true
	}
	return slices.Collect(maps.Keys(anchors))
}

func text(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
