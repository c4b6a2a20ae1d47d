// Command gen writes the JSON Schemas of package schema from the description that
// package ahp gives of its own types and tables.
//
// It guarantees that the same description gives the same bytes, and that a rule of
// a type that no longer exists is an error. Do not assume that it knows the rules
// that span members: those are written here a second time, as JSON Schema, and the
// tests of package schema compare both.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/abhed/abhed/ahp"
)

func main() {
	dir := flag.String("o", ahp.Version, "the folder to write to")
	flag.Parse()
	if err := write(*dir); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// write replaces the schemas in dir.
func write(dir string) error {
	files, err := generate()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// generate returns every schema by its file's name.
func generate() (map[string][]byte, error) {
	g := newGenerator(ahp.Describe())
	g.all()
	if err := errors.Join(g.errs...); err != nil {
		return nil, err
	}
	all := append(messages(), newFile("definitions", "Definitions", "What the messages of the Agent Hooks Protocol are made of.", object{"$defs", g.defs}))
	out := map[string][]byte{}
	for _, f := range all {
		data, err := encode(f.schema)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		out[f.name+".json"] = data
	}
	return out, nil
}
