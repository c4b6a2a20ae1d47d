// Package bench measures whole processes beside a peer in the same run. Nothing
// here is a timed test: run it with
//
//	go test ./bench -run '^$' -bench .
package bench

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/abhed/abhed/internal/require"
)

// build compiles a main package of this module, or a file, and returns the
// program's path.
func build(b *testing.B, what string) string {
	b.Helper()
	out := filepath.Join(b.TempDir(), "program")
	cmd := exec.Command("go", "build", "-o", out, what)
	cmd.Dir = require.Root(b)
	if msg, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("go build %s: %v\n%s", what, err, msg)
	}
	return out
}

// hello is the least program that Go can build.
func hello(b *testing.B) string {
	b.Helper()
	file := filepath.Join(b.TempDir(), "hello.go")
	if err := os.WriteFile(file, []byte("package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"hello\") }\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	return build(b, file)
}

// BenchmarkStart compares the wall time of `abhed --version` with that of a
// hello-world. The limit is seven times.
func BenchmarkStart(b *testing.B) {
	for _, p := range []struct {
		name string
		argv []string
	}{
		{"hello", []string{hello(b)}},
		{"abhed-version", []string{build(b, "./cmd/abhed"), "--version"}},
	} {
		b.Run(p.name, func(b *testing.B) {
			for b.Loop() {
				if err := exec.Command(p.argv[0], p.argv[1:]...).Run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
