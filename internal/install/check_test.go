package install

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckBinary(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	binary := executable(t, filepath.Join(dir, "bin/ahp"), "#!/bin/sh\n")
	project := filepath.Join(dir, "project")
	inside := executable(t, filepath.Join(project, "bin/ahp"), "#!/bin/sh\n")
	link := filepath.Join(dir, "link")
	if err := os.Symlink(binary, link); err != nil {
		t.Fatal(err)
	}
	intoProject := filepath.Join(dir, "into")
	if err := os.Symlink(inside, intoProject); err != nil {
		t.Fatal(err)
	}
	if got, err := CheckBinary(link, project); err != nil || got != binary {
		t.Errorf("%s, %v; want %s", got, err, binary)
	}
	if got, err := CheckBinary(inside, ""); err != nil || got != inside {
		t.Errorf("without a project: %s, %v", got, err)
	}
	refused := func(name, path, want string) {
		t.Helper()
		if got, err := CheckBinary(path, project); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %s, %v, want %q", name, got, err, want)
		}
	}
	refused("inside", inside, "lies inside the project")
	refused("a link into the project", intoProject, "lies inside the project")
	refused("missing", filepath.Join(dir, "none"), "no such file")
	refused("folder", dir, "expected an executable file")
	chmod := func(path string, mode os.FileMode) {
		t.Helper()
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	chmod(binary, 0o644)
	refused("not executable", binary, "expected an executable file")
	chmod(binary, 0o757)
	refused("everybody may write the file", binary, "chmod o-w "+binary)
	chmod(binary, 0o755)
	chmod(filepath.Dir(binary), 0o777)
	refused("everybody may write its folder", binary, "chmod o-w "+filepath.Dir(binary))
	chmod(filepath.Dir(binary), 0o777|os.ModeSticky)
	if _, err := CheckBinary(binary, project); err != nil {
		t.Errorf("a folder in which only owners replace: %v", err)
	}
	if os.Getuid() == 0 {
		if err := os.Chown(binary, 1234, 0); err != nil {
			t.Fatal(err)
		}
		refused("somebody else's", binary, "belongs to user 1234")
	}
}
