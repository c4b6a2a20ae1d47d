package app

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/proc"
	"github.com/abhed/abhed/internal/sandbox"
)

// confineProgram adds to p what a program that the settings name, of an extension or of
// a server, may not read and not change in the folders that it can write: what no tool
// may. What the operator named in the program's own command is the program's to read.
func (e *engine) confineProgram(spec proc.Spec, p *sandbox.Policy) {
	for _, word := range append([]string{spec.Path}, spec.Args...) {
		if file, ok := namesFile(word, spec.Dir); ok {
			p.HomePaths = append(p.HomePaths, file) // which may lie in the home
		}
	}
	guarded := e.protected(p.Roots)
	for _, root := range p.Roots {
		for _, path := range newHolding([]string{root}).held() {
			// What isn't there leaves an empty place, which is taken away again where agents work.
			if !strings.HasSuffix(path, "/") || slices.Contains(e.o.loaded.roots, root) {
				p.Protected = append(p.Protected, path)
			}
		}
	}
	for _, path := range guarded.Write {
		// A folder of the program's own may lie in one that is protected.
		within := inRoots(path, p.Roots) && !slices.Contains(p.Roots, path)
		if within && exists(path) && filepath.Base(path) != ".git" {
			p.Protected = append(p.Protected, path)
		}
	}
	for _, path := range guarded.Read {
		if exists(path) && !slices.Contains(p.HomePaths, path) {
			p.Hidden = append(p.Hidden, path)
		}
	}
}

// deniedPaths lists what the deny rules of read and of write forbid in roots, before the
// rules are compiled for good, which takes the tools that servers bring.
func (e *engine) deniedPaths(roots []string) (unread, unwritten []string, err error) {
	known := policy.Known{Tools: nameableTools()}
	var rules []policy.RuleText
	for _, r := range restrictions(e.o.loaded.Permissions.Deny, e.sys.home()) {
		if set, _ := policy.Compile(policy.RuleLists{Deny: []policy.RuleText{r}}, known); set != nil {
			rules = append(rules, r)
		}
	}
	set, found := policy.Compile(policy.RuleLists{Deny: rules}, known)
	if _, err := problems(found); err != nil {
		return nil, nil, err
	}
	return forbidden(set, roots, e.sys.home())
}
