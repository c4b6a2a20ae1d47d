package repotest

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// nameViolations refuses package names that say nothing.
func nameViolations(p *pkg) []string {
	vague := []string{"util", "utils", "common", "helper", "helpers", "misc", "shared", "base"}
	if slices.Contains(vague, p.name) || slices.Contains(vague, path.Base(p.path)) {
		return []string{fmt.Sprintf("package %q: a package is named after what it provides, not %q", p.path, p.name)}
	}
	return nil
}

// forbiddenWords are expressions that no text file of the repository contains.
// They are put together from halves so that this file passes itself.
func forbiddenWords() []*regexp.Regexp {
	return []*regexp.Regexp{
		regexp.MustCompile(`\bTO` + `DO\b`),
		regexp.MustCompile(`\bFIX` + `ME\b`),
		regexp.MustCompile(`/Us` + `ers/[a-z]+/`),
		regexp.MustCompile(`[A-Z]:\\\\?Us` + `ers\\`),
		regexp.MustCompile(`/go/pkg/m` + `od/`),
	}
}

// placeOf matches the folder itself that the tests run in, as whole path
// elements; nil for a folder too close to the root to be told from an example.
func placeOf(dir string) *regexp.Regexp {
	dir = filepath.ToSlash(filepath.Clean(dir))
	if strings.Count(dir, "/") < 2 {
		return nil
	}
	return regexp.MustCompile(regexp.QuoteMeta(dir) + `($|[^A-Za-z0-9_.-])`)
}

// wordViolations finds forbidden expressions in a text.
func wordViolations(file string, text []byte, forbidden []*regexp.Regexp) []string {
	var out []string
	for _, re := range forbidden {
		for _, at := range re.FindAllIndex(text, -1) {
			line := 1 + strings.Count(string(text[:at[0]]), "\n")
			out = append(out, fmt.Sprintf("%s:%d: %q", file, line, text[at[0]:at[1]]))
		}
	}
	return out
}

func TestNamesAndWords(t *testing.T) {
	r := repo(t)
	for _, p := range r.pkgs {
		report(t, nameViolations(p))
	}
	forbidden := forbiddenWords()
	places := []string{r.root, filepath.Join(filepath.Dir(r.root), "shared")}
	if home, err := os.UserHomeDir(); err == nil {
		places = append(places, home)
	}
	for _, dir := range places {
		if re := placeOf(dir); re != nil {
			forbidden = append(forbidden, re)
		}
	}
	for file, text := range r.text {
		report(t, wordViolations(file, text, forbidden))
	}
}

func TestWordRules(t *testing.T) {
	wantViolations(t, nameViolations(fake(t, "internal/util", map[string]string{"a.go": "package util\n"})), `package "internal/util"`)
	wantViolations(t, nameViolations(fake(t, "internal/common/x", map[string]string{"a.go": "package x\n"})))
	forbidden := append(forbiddenWords(), placeOf("/src/checkout"))
	wantViolations(t, wordViolations("f", []byte("a todo tool\n/src/checkouts\n"), forbidden))
	wantViolations(t, wordViolations("f", []byte("x\n// TO"+"DO: y\n"), forbidden), `f:2: "TO`)
	wantViolations(t, wordViolations("f", []byte("cd /src/checkout/a && ls /src/checkout"), forbidden), "f:1: ", "f:1: ")
	if placeOf("/src") != nil || placeOf("/") != nil {
		t.Error("a folder at the root is no place to look for")
	}
}
