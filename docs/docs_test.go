// Package docs holds the tables of this folder against the program that they
// describe.
//
// It guarantees that the tables of providers, parameters, tools, servers and context
// name what there is, with the defaults that hold. Do not assume that it reads the
// prose.
package docs_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/abhed/abhed/internal/config"
	"github.com/abhed/abhed/internal/sandbox"
	"github.com/abhed/abhed/internal/strictjson"
	"github.com/abhed/abhed/internal/tool"
	"github.com/abhed/abhed/internal/tool/ask"
	"github.com/abhed/abhed/internal/tool/bash"
	"github.com/abhed/abhed/internal/tool/edit"
	"github.com/abhed/abhed/internal/tool/fetch"
	"github.com/abhed/abhed/internal/tool/glob"
	"github.com/abhed/abhed/internal/tool/grep"
	"github.com/abhed/abhed/internal/tool/read"
	"github.com/abhed/abhed/internal/tool/recall"
	"github.com/abhed/abhed/internal/tool/skill"
	"github.com/abhed/abhed/internal/tool/task"
	"github.com/abhed/abhed/internal/tool/todo"
	"github.com/abhed/abhed/internal/tool/write"
	"github.com/abhed/abhed/internal/workspace"
)

// table returns the cells of the table on a page whose header begins with these
// cells, without the header.
func table(t *testing.T, page string, header ...string) [][]string {
	t.Helper()
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	in := false
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			in = false
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case len(cells) >= len(header) && slices.Equal(cells[:len(header)], header):
			in = true
		case in && !strings.HasPrefix(cells[0], "---"):
			rows = append(rows, cells)
		}
	}
	if len(rows) == 0 {
		t.Fatalf("%s has no table with the header %q", page, header)
	}
	return rows
}

var code = regexp.MustCompile("`([^`]+)`")

// named returns the words of a cell that are set as code.
func named(cell string) []string {
	var out []string
	for _, m := range code.FindAllStringSubmatch(cell, -1) {
		out = append(out, m[1])
	}
	return out
}

func TestProviders(t *testing.T) {
	var want [][]string
	ticks := func(words ...string) string {
		if words = slices.DeleteFunc(words, func(s string) bool { return s == "" }); len(words) == 0 {
			return ""
		}
		return "`" + strings.Join(words, "`, `") + "`"
	}
	for _, p := range (&config.Settings{}).Provided() {
		row := []string{ticks(p.Name), ticks(p.API), ticks(p.BaseURL), ticks(p.KeyEnv), ticks(slices.Clone(p.Sampling)...)}
		if p.Missing != "" {
			row[4] = p.Missing
		}
		want = append(want, row)
	}
	if d := cmp.Diff(want, table(t, "models.md", "name", "api", "base URL")); d != "" {
		t.Errorf("models.md (-program +page):\n%s", d)
	}
}

func TestSampling(t *testing.T) {
	page := map[string][]string{}
	for _, row := range table(t, "models.md", "api", "what can be listed") {
		for _, api := range named(row[0]) {
			page[api] = named(row[1])
		}
	}
	want := map[string][]string{}
	for _, api := range config.APIs() {
		want[api] = config.APISampling(api)
	}
	if d := cmp.Diff(want, page); d != "" {
		t.Errorf("models.md (-program +page):\n%s", d)
	}
}

// tools are the program's own.
func tools(t *testing.T) []tool.Tool {
	t.Helper()
	tracker, jobs := workspace.NewTracker(), bash.NewJobs(bash.JobsOptions{})
	shell, err := bash.New(sandbox.Plan{}, bash.Options{Jobs: jobs})
	if err != nil {
		t.Fatal(err)
	}
	return []tool.Tool{
		read.New(tracker, read.Options{}), write.New(tracker), edit.New(tracker), glob.New(glob.Options{}), grep.New(grep.Options{}), shell, bash.NewJobsTool(jobs),
		fetch.New(fetch.Options{}), todo.New(todo.Options{}), task.New(task.Options{}), ask.New(ask.Options{}), skill.New(nil), recall.New(nil),
	}
}

func TestTools(t *testing.T) {
	page := map[string][]string{}
	for _, row := range table(t, "tools.md", "tool", "arguments") {
		for _, name := range named(row[0]) {
			page[name] = named(row[1])
			slices.Sort(page[name])
		}
	}
	want := map[string][]string{}
	for _, it := range tools(t) {
		var schema struct {
			Properties map[string]any `json:"properties"`
		}
		if err := strictjson.Unmarshal(it.Spec().Schema, &schema, strictjson.Options{}); err != nil {
			t.Fatal(err)
		}
		for name := range schema.Properties {
			want[it.Spec().Name] = append(want[it.Spec().Name], name)
		}
		slices.Sort(want[it.Spec().Name])
	}
	if d := cmp.Diff(want, page); d != "" {
		t.Errorf("tools.md (-program +page):\n%s", d)
	}
}

// schemaOf returns the members of a part of the settings, with their defaults.
func schemaOf(t *testing.T, path ...string) map[string]string {
	t.Helper()
	var at map[string]any
	data, err := config.Schema()
	if err == nil {
		err = strictjson.Unmarshal(data, &at, strictjson.Options{})
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range path {
		next, ok := at[name].(map[string]any)
		if !ok {
			t.Fatalf("the schema of the settings has no %q in %q", name, path)
		}
		at = next
	}
	out := map[string]string{}
	for name, member := range at {
		out[name] = ""
		if def, there := member.(map[string]any)["default"]; there {
			text, err := strictjson.Marshal(def)
			if err != nil {
				t.Fatal(err)
			}
			out[name] = string(text)
		}
	}
	return out
}

func TestSettings(t *testing.T) {
	for _, tt := range []struct {
		page, first, prefix string
		path                []string
	}{
		{"mcp.md", "key", "", []string{"properties", "mcp", "additionalProperties", "properties"}},
		{"context.md", "setting", "context.", []string{"properties", "context", "properties"}},
		{"extensions.md", "key", "", []string{"properties", "extensions", "items", "properties"}},
	} {
		page := map[string]string{}
		for _, row := range table(t, tt.page, tt.first, "default") {
			name := strings.TrimPrefix(strings.Trim(row[0], "`"), tt.prefix)
			page[name] = strings.Trim(row[1], "`")
		}
		if d := cmp.Diff(schemaOf(t, tt.path...), page); d != "" {
			t.Errorf("%s (-program +page):\n%s", tt.page, d)
		}
	}
}

// TestFiguresOfTools holds the figures of the prose that a tool says itself.
func TestFiguresOfTools(t *testing.T) {
	data, err := os.ReadFile("tools.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	all := ""
	for _, it := range tools(t) {
		all += it.Spec().Description + string(it.Spec().Schema)
	}
	for figure, said := range map[string]string{
		"2,000 lines": "Up to 2000 lines", "`timeout_ms` up to ten": `"maximum": 600000`, "two minutes": "Default 120000", "up to 5,000": `"maximum": 5000`,
		"100 items": `"maxItems": 100`, "100 KB of text": fmt.Sprintf(`"maximum": %d`, 100_000), "`pipefail` is off": "pipefail is off",
	} {
		if !strings.Contains(page, figure) || !strings.Contains(all, said) {
			t.Errorf("tools.md says %q: %v; a tool says %q: %v", figure, strings.Contains(page, figure), said, strings.Contains(all, said))
		}
	}
}
