package workspace

import (
	"fmt"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

const (
	// maxGlob bounds a pattern, in bytes, maxAlternatives what its braces stand for and
	// maxStars how often it may leave the length open: all three bound the time that
	// matching takes.
	maxGlob         = 1000
	maxAlternatives = 256
	maxStars        = 32
)

// Glob is a checked pattern for paths below the top of a walk. "*" and "?" don't
// cross "/", "**" does, "{a,b}" is either. A pattern without "/" is compared with
// the name alone. Make it with ParseGlob; the zero Glob matches nothing.
type Glob struct {
	pattern  string
	nameOnly bool
	fixed    string // the folders that every match lies in; "" is the top
	hidden   bool
}

// ParseGlob checks a pattern. Its errors are made for the model.
func ParseGlob(pattern string) (Glob, error) {
	clean := strings.TrimPrefix(pattern, "./")
	switch {
	case clean == "":
		return Glob{}, fmt.Errorf("the pattern is empty; *.go would find the Go files in all folders")
	case len(clean) > maxGlob:
		return Glob{}, fmt.Errorf("the pattern has %d bytes; at most %d are possible", len(clean), maxGlob)
	case strings.HasPrefix(clean, "/"), strings.HasPrefix(clean, "~"):
		return Glob{}, fmt.Errorf("the pattern %q is absolute; give the folder as path and the rest as pattern", pattern)
	case !doublestar.ValidatePattern(clean):
		return Glob{}, fmt.Errorf("the pattern %q is malformed: a bracket, a brace or a backslash is left open", pattern)
	}
	if n := alternatives(clean); n > maxAlternatives {
		return Glob{}, fmt.Errorf("the braces of the pattern %q stand for more than %d alternatives; search for a part of them at a time", pattern, maxAlternatives)
	}
	if strings.Count(clean, "*") > maxStars {
		return Glob{}, fmt.Errorf("the pattern %q has more than %d stars", pattern, maxStars)
	}
	g := Glob{pattern: clean, nameOnly: !strings.Contains(clean, "/")}
	for part := range strings.SplitSeq(clean, "/") {
		if part == ".." {
			return Glob{}, fmt.Errorf("the pattern %q leads up; give the folder as path", pattern)
		}
		g.hidden = g.hidden || strings.HasPrefix(part, ".") || strings.HasPrefix(part, "{.")
	}
	if !g.nameOnly {
		if base, _ := doublestar.SplitPattern(clean); base != "." {
			g.fixed = path.Clean(base)
		}
	}
	return g, nil
}

// alternatives is an upper bound of what the braces of a pattern stand for together. It
// stops counting above maxAlternatives.
func alternatives(pattern string) int {
	product, open, here := 1, 0, 1
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '\\':
			i++
		case '{':
			open++
		case ',':
			if open > 0 {
				here++
			}
		case '}':
			if open--; open == 0 {
				if product *= here; product > maxAlternatives {
					return product
				}
				here = 1
			}
		}
	}
	return product
}

// Match reports whether the path of a file, below the top of the walk, matches.
func (g Glob) Match(rel string) bool {
	if g.nameOnly {
		rel = path.Base(rel)
	}
	ok, err := doublestar.Match(g.pattern, rel)
	return ok && err == nil
}

// Hidden reports whether the pattern names hidden files.
func (g Glob) Hidden() bool { return g.hidden }

// MayContain reports whether a folder below the top could hold a match.
func (g Glob) MayContain(rel string) bool {
	return g.fixed == "" || rel == g.fixed ||
		strings.HasPrefix(rel, g.fixed+"/") || strings.HasPrefix(g.fixed, rel+"/")
}
