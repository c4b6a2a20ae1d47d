// Package repotest holds the house rules of this repository as tests: import
// levels, forbidden edges, size budgets, comments, package state, dependencies
// and words.
//
// It guarantees that a rule which it states is checked against every Go file of
// the tree, those for other operating systems and those that don't compile yet
// included, and that each rule is itself tested against a small source that
// breaks it. It exports nothing and nothing imports it.
//
// Do not assume that it finds what a compiler or a linter finds: files are
// parsed, not type-checked.
//
// After a wanted change of what a command links, rewrite the checked-in lists:
//
//	go test ./internal/repotest -run TestLinkedPackages -update
package repotest
