package repotest

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the lists of linked packages in testdata")

// modules returns the module paths that go.mod requires.
func modules(goMod []byte) []string {
	row := regexp.MustCompile(`(?m)^(?:require)?\s+([a-z0-9.-]+\.[a-z]+/\S+) v\S+`)
	var out []string
	for _, m := range row.FindAllSubmatch(goMod, -1) {
		out = append(out, string(m[1]))
	}
	return out
}

// documented returns the modules of docs/dependencies.md with the cells that
// follow each one's name.
func documented(page []byte) map[string][]string {
	out := map[string][]string{}
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if name, is := strings.CutPrefix(cells[0], "`"); is && strings.HasPrefix(line, "|") && strings.Contains(name, "/") {
			out[strings.TrimSuffix(name, "`")] = cells[1:]
		}
	}
	return out
}

// moduleOf returns the module that a package belongs to: of those whose path
// starts the package's, the longest.
func moduleOf(name string, required []string) string {
	longest := ""
	for _, m := range required {
		if (name == m || strings.HasPrefix(name, m+"/")) && len(m) > len(longest) {
			longest = m
		}
	}
	return longest
}

// direct returns the modules of which our packages, tests included, import
// something.
func direct(pkgs []*pkg, required []string) []string {
	used := map[string]bool{}
	for _, p := range pkgs {
		for _, f := range p.files {
			for _, spec := range f.ast.Imports {
				name, _ := strconv.Unquote(spec.Path.Value)
				if m := moduleOf(name, required); m != "" {
					used[m] = true
				}
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(required), func(m string) bool { return !used[m] })
}

// dependencyViolations compares the page with go.mod and with what is used.
func dependencyViolations(required, used []string, page map[string][]string) []string {
	var out []string
	for _, m := range used {
		if _, is := page[m]; !is {
			out = append(out, fmt.Sprintf("docs/dependencies.md doesn't name %s, which this module imports", m))
		}
	}
	for _, m := range slices.Sorted(func(yield func(string) bool) {
		for m := range page {
			if !yield(m) {
				return
			}
		}
	}) {
		if !slices.Contains(required, m) {
			out = append(out, fmt.Sprintf("docs/dependencies.md names %s, which go.mod doesn't require", m))
		}
		if cells := page[m]; len(cells) < 3 || slices.Contains(cells[:3], "") {
			out = append(out, fmt.Sprintf("docs/dependencies.md says too little of %s: want purpose, why not our own code, and its cost", m))
		}
	}
	return out
}

func TestDependencyPage(t *testing.T) {
	r := repo(t)
	required := modules(r.text["go.mod"])
	if len(required) < 5 {
		t.Fatalf("found %d modules in go.mod: %q", len(required), required)
	}
	report(t, dependencyViolations(required, direct(r.pkgs, required), documented(r.text["docs/dependencies.md"])))
}

func TestDependencyRule(t *testing.T) {
	required := modules([]byte("module x\n\ngo 1.26.0\n\nrequire a.org/one v1.0.0\n\nrequire (\n\tb.org/two/v2 v2.1.0 // indirect\n\tc.org/three v0.1.0\n)\n"))
	if want := []string{"a.org/one", "b.org/two/v2", "c.org/three"}; !slices.Equal(required, want) {
		t.Errorf("modules = %q, want %q", required, want)
	}
	used := direct([]*pkg{fake(t, "a", map[string]string{"a.go": "package a\nimport _ \"a.org/one\"\n", "a_test.go": "package a\nimport _ \"b.org/two/v2/sub\"\n"})}, required)
	if want := []string{"a.org/one", "b.org/two/v2"}; !slices.Equal(used, want) {
		t.Errorf("direct = %q, want %q", used, want)
	}
	if got := moduleOf("d.org/a/b/c", []string{"d.org/a", "d.org/a/b", "d.org/a/b/c/d"}); got != "d.org/a/b" {
		t.Errorf("moduleOf = %q, want the longest that fits", got)
	}
	page := documented([]byte("| module | purpose | why | cost |\n|---|---|---|---|\n| `a.org/one` | x | y | z |\n| `c.org/three` | x | | z |\n| `d.org/four` | x | y | z |\n"))
	wantViolations(t, dependencyViolations(required, used, page), "doesn't name b.org/two/v2", "says too little of c.org/three", "names d.org/four")
}

// goList runs go list for one platform, so that every machine gets the same.
func goList(t *testing.T, root string, args ...string) []string {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOPROXY=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.Fields(string(out))
}

// commands returns the commands that exist: those with a function main.
func commands(r *repository) []string {
	var out []string
	for _, p := range r.pkgs {
		name, is := strings.CutPrefix(p.path, "cmd/")
		if is && slices.ContainsFunc(p.code(), func(f *goFile) bool { return f.ast.Scope.Lookup("main") != nil }) {
			out = append(out, name)
		}
	}
	return out
}

// listed reports whether a linked package belongs in the checked-in list:
// internal packages of the standard library don't, they change with the Go
// version.
func listed(p string) bool {
	first, _, _ := strings.Cut(p, "/")
	if strings.Contains(first, ".") {
		return true
	}
	return first != "vendor" && first != "runtime" && !strings.Contains("/"+p+"/", "/internal/")
}

// TestLinkedPackages compares what each command links with its checked-in list,
// so that growth shows in review. Internal packages of the standard library are
// left out: they change with the Go version.
func TestLinkedPackages(t *testing.T) {
	r := repo(t)
	if len(commands(r)) == 0 {
		t.Fatal("there is no command")
	}
	for _, name := range commands(r) {
		linked := slices.DeleteFunc(goList(t, r.root, "-deps", "./cmd/"+name), func(p string) bool { return !listed(p) })
		slices.Sort(linked)
		file := filepath.Join(r.root, "internal/repotest/testdata/deps-"+name+".txt")
		want, err := os.ReadFile(file)
		got := strings.Join(linked, "\n") + "\n"
		switch {
		case *update:
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		case err != nil:
			t.Errorf("%v; write it with: go test ./internal/repotest -run TestLinkedPackages -update", err)
		case got != string(want):
			more, less := difference(linked, strings.Fields(string(want)))
			t.Errorf("cmd/%s links what %s doesn't say: more %q, less %q; if that is wanted: go test ./internal/repotest -run TestLinkedPackages -update", name, filepath.Base(file), more, less)
		}
	}
}

// difference returns what only a has and what only b has.
func difference(a, b []string) (onlyA, onlyB []string) {
	for _, s := range a {
		if !slices.Contains(b, s) {
			onlyA = append(onlyA, s)
		}
	}
	for _, s := range b {
		if !slices.Contains(a, s) {
			onlyB = append(onlyB, s)
		}
	}
	return onlyA, onlyB
}

// harnessOf returns which of the linked packages belong to the harness alone:
// levels 7 to 13.
func harnessOf(linked []string) []string {
	var out []string
	for _, p := range linked {
		dir, own := strings.CutPrefix(p+"/", modulePath+"/")
		if !own {
			continue
		}
		if l, known := levelOf(strings.TrimSuffix(dir, "/")); known && l.level >= 7 && l.level <= 13 {
			out = append(out, p)
		}
	}
	return out
}

// TestToolkitLinksNoHarness holds that the public packages, and cmd/ahp once there
// is one, are only the protocol's.
func TestToolkitLinksNoHarness(t *testing.T) {
	r := repo(t)
	what := []string{"./ahp/..."}
	if slices.Contains(commands(r), "ahp") {
		what = append(what, "./cmd/ahp")
	}
	linked := goList(t, r.root, append([]string{"-deps"}, what...)...)
	if !slices.Contains(linked, modulePath+"/ahp/harness") {
		t.Fatalf("the list of %v lacks ahp/harness", what)
	}
	for _, p := range harnessOf(linked) {
		t.Errorf("%v links %s, which belongs to the harness", what, p)
	}
}

func TestListedRule(t *testing.T) {
	for p, want := range map[string]bool{"fmt": true, "net/http": true, "internal/abi": false, "net/http/internal": false, "vendor/golang.org/x/net": false,
		"runtime/debug": false, "github.com/a/b": true, modulePath + "/internal/gate": true} {
		if listed(p) != want {
			t.Errorf("listed(%q) = %v", p, !want)
		}
	}
	more, less := difference([]string{"a", "b"}, []string{"b", "c"})
	if !slices.Equal(more, []string{"a"}) || !slices.Equal(less, []string{"c"}) {
		t.Errorf("difference = %q, %q", more, less)
	}
}

func TestToolkitRule(t *testing.T) {
	got := harnessOf([]string{"fmt", modulePath + "/ahp", modulePath + "/internal/hookd", modulePath + "/internal/gate", modulePath, modulePath + "/cmd/ahp"})
	if want := []string{modulePath + "/internal/gate", modulePath}; !slices.Equal(got, want) {
		t.Errorf("harnessOf = %q, want %q", got, want)
	}
}
