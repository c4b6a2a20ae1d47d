package ahpconfig_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/ahpconfig"
)

// TestOwner holds that a registration which somebody else can write is refused,
// where nobody named it and nobody trusted its bytes.
func TestOwner(t *testing.T) {
	const other = 54321
	tests := []struct {
		name string
		// change is applied to path, relative to the machine's folder.
		path   string
		change func(path string) error
		want   []string // nil: accepted
		root   bool     // only root can set it up
	}{
		{"as it should be", userFile, func(string) error { return nil }, nil, false},
		{"readable by all", userFile, func(p string) error { return os.Chmod(p, 0o644) }, nil, false},
		{"the user's writable by the group", userFile, func(p string) error { return os.Chmod(p, 0o664) }, []string{userFile, "mode 0664", "chmod go-w"}, false},
		{"the user's writable by all", userFile, func(p string) error { return os.Chmod(p, 0o602) }, []string{userFile, "mode 0602"}, false},
		{"the managed writable by all", "managed.json", func(p string) error { return os.Chmod(p, 0o666) }, []string{"managed.json", "mode 0666"}, false},
		{"the folder writable by all", filepath.Dir(userFile), func(p string) error { return os.Chmod(p, 0o777) }, []string{filepath.Dir(userFile) + ":", "mode 0777"}, false},
		{"the target of a link", userFile, func(p string) error {
			if err := os.Chmod(p, 0o666); err != nil {
				return err
			}
			target := filepath.Join(filepath.Dir(p), "target.json")
			if err := os.Rename(p, target); err != nil {
				return err
			}
			return os.Symlink(target, p)
		}, []string{"target.json", "mode 0666"}, false},
		{"a link out of an open folder", userFile, func(p string) error {
			dir := filepath.Dir(p)
			closed := filepath.Join(dir, "closed")
			if err := os.Mkdir(closed, 0o700); err != nil {
				return err
			}
			if err := os.Rename(p, filepath.Join(closed, "r.json")); err != nil {
				return err
			}
			if err := os.Symlink(filepath.Join(closed, "r.json"), p); err != nil {
				return err
			}
			return os.Chmod(dir, 0o777)
		}, []string{filepath.Dir(userFile) + ":", "mode 0777"}, false},
		{"the user's owned by another", userFile, func(p string) error { return os.Chown(p, other, -1) }, []string{userFile, "account 54321", "expected root or account"}, true},
		{"the managed owned by another", "managed.json", func(p string) error { return os.Chown(p, other, -1) }, []string{"managed.json", "account 54321"}, true},
		{"the folder owned by another", filepath.Dir(userFile), func(p string) error { return os.Chown(p, other, -1) }, []string{filepath.Dir(userFile) + ":", "account 54321"}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.root && os.Geteuid() != 0 {
				t.Skip("only root can give a file away")
			}
			dir, opts := machine(t, map[string]string{"managed.json": registration("com.example.m"), userFile: registration("com.example.u")})
			opts.Dir = ""
			if err := tt.change(filepath.Join(dir, tt.path)); err != nil {
				t.Fatal(err)
			}
			l, err := ahpconfig.Load(opts)
			if tt.want == nil {
				if err != nil || len(l.Sources) != 2 {
					t.Errorf("refused: %v", err)
				}
				return
			}
			if err == nil {
				t.Fatal("accepted")
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q doesn't say %q", err, part)
				}
			}
			// The same file by name is its user's business.
			if tt.path == userFile {
				opts.File = filepath.Join(dir, userFile)
				if _, err := ahpconfig.Load(opts); err != nil {
					t.Errorf("a named file: %v", err)
				}
			}
		})
	}
}

// TestOwnerOfAnImposedFile holds that what an administrator's settings name is held to
// what holds for the managed file.
func TestOwnerOfAnImposedFile(t *testing.T) {
	dir, opts := machine(t, map[string]string{"given.json": registration("com.example.g")})
	opts.Imposed = filepath.Join(dir, "given.json")
	if _, err := ahpconfig.Load(opts); err != nil {
		t.Error(err)
	}
	if err := os.Chmod(opts.Imposed, 0o620); err != nil {
		t.Fatal(err)
	}
	if _, err := ahpconfig.Load(opts); err == nil || !strings.Contains(err.Error(), "given.json: found mode 0620") {
		t.Errorf("got %v", err)
	}
}
