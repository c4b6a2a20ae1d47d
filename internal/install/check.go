package install

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// CheckBinary returns the path of ahp that is written into a line: without links, and
// absolute. It is an error if the program lies inside the project, or if somebody
// else can change it: whoever can decides what is allowed.
func CheckBinary(path, project string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return "", fmt.Errorf("%s: found %s, expected an executable file", path, info.Mode())
	}
	const advice = "; put ahp where only an administrator or you can write, such as /usr/local/bin or ~/.local/bin, and run that one"
	if project != "" {
		inside, err := within(path, project)
		if err != nil {
			return "", err
		}
		if inside {
			return "", fmt.Errorf("%s lies inside the project %s, whose contents the agent can change%s", path, project, advice)
		}
	}
	for at := path; ; at = filepath.Dir(at) {
		info, err := os.Lstat(at)
		if err != nil {
			return "", err
		}
		owner, _ := info.Sys().(*syscall.Stat_t)
		if owner != nil && owner.Uid != 0 && int(owner.Uid) != os.Getuid() {
			return "", fmt.Errorf("%s belongs to user %d, who could replace ahp%s", at, owner.Uid, advice)
		}
		// In a folder like /tmp only the owner of what lies in it can replace it.
		sticky := info.Mode()&fs.ModeSticky != 0 && info.IsDir()
		if info.Mode()&0o002 != 0 && !sticky {
			return "", fmt.Errorf("%s can be written by everybody (%s), who could replace ahp: chmod o-w %s, or%s", at, info.Mode(), at, strings.TrimPrefix(advice, ";"))
		}
		if at == filepath.Dir(at) {
			return path, nil
		}
	}
}

// within reports whether a path, links followed, lies in a folder.
func within(path, folder string) (bool, error) {
	folder, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return false, err
	}
	rel, err := filepath.Rel(folder, path)
	if err != nil {
		return false, err
	}
	return rel == "." || rel != ".." && !strings.HasPrefix(rel, "../"), nil
}

// checkInProject refuses a project's file that links lead out of the project.
func checkInProject(path, project string) error {
	at := path
	for {
		real, err := filepath.EvalSymlinks(at)
		if errors.Is(err, fs.ErrNotExist) {
			// A link to nothing would be followed when the file is made.
			if info, lerr := os.Lstat(at); lerr == nil && info.Mode()&fs.ModeSymlink != 0 {
				return fmt.Errorf("%s is a link to nothing; remove it first", at)
			}
			if at == filepath.Dir(at) {
				return err
			}
			at = filepath.Dir(at)
			continue
		}
		if err != nil {
			return err
		}
		inside, err := within(real, project)
		if err != nil {
			return err
		}
		if !inside {
			return fmt.Errorf("%s leads out of the project, to %s; nothing was written: install in the user scope, or replace the link by a file", at, real)
		}
		return nil
	}
}
