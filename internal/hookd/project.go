package hookd

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/abhed/abhed/internal/trust"
)

// registrationIn returns where a project's registration stands.
func registrationIn(project string) string {
	return filepath.Join(project, ".ahp", "registration.json")
}

// project returns the folder whose registration holds for the event: the nearest one at
// or above the agent's folder, or one of its roots, that a person has trusted at some time; else that of the
// repository that a worktree is of; else the one that the session was in before. What
// is only there, and was never trusted, doesn't count: anybody can put it there, and so
// can't hide what was trusted. notes name it.
func (x *judgement) project() (project string, notes []string, err error) {
	trusted, err := trust.Open(filepath.Join(x.j.state, "trust.json")).List()
	if err != nil {
		return "", nil, err // what restricts can't be told
	}
	for _, dir := range x.dirs() {
		found, untrusted := lookUp(dir, trusted)
		if untrusted != "" && !slices.Contains(notes, untrusted) {
			notes = append(notes, untrusted)
		}
		if found != "" {
			if len(x.entry.Session) > 0 {
				err = x.stay(found)
			}
			return found, notes, err
		}
	}
	if len(trusted) == 0 || x.entry.Session == "" {
		return "", notes, nil
	}
	project, err = x.state.Project()
	return project, notes, err
}

// maxRoots bounds the roots of a session that are looked at.
const maxRoots = 64

// dirs returns the folders that the agent works in: its own, its roots', the hook's.
func (x *judgement) dirs() (out []string) {
	if s := x.event.AHP.Session; s != nil {
		out = append(append(out, s.Cwd), s.WorkspaceRoots[:min(len(s.WorkspaceRoots), maxRoots)]...)
	}
	return append(out, x.c.Dir)
}

// stay has the session remember its project, once for each judge.
func (x *judgement) stay(project string) error {
	if x.j.stays(x.host.Name+"\x00"+x.entry.Session, project) {
		return nil
	}
	return x.state.SetProject(project)
}

// stays reports whether a session's project is written down already, and notes that it
// is about to be.
func (j *Judge) stays(session, project string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	known := j.projects[session] != ""
	if !known && len(j.projects) < maxSessions {
		j.projects[session] = project
	}
	return known
}

// maxSessions bounds the sessions whose project is known without looking.
const maxSessions = 4096

// lookUp returns the nearest folder at or above dir whose registration was trusted, and
// the nearest registration that never was.
func lookUp(dir string, trusted []trust.Entry) (project, untrusted string) {
	if !filepath.IsAbs(dir) {
		return "", ""
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	main := ""
	for dir = filepath.Clean(dir); ; dir = filepath.Dir(dir) {
		switch found, there := look(dir, trusted); {
		case found:
			return dir, untrusted
		case there && untrusted == "":
			untrusted = registrationIn(dir)
		}
		if main == "" {
			main = mainWorktree(dir)
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	if main != "" {
		if found, _ := look(main, trusted); found {
			return main, untrusted
		}
	}
	return "", untrusted
}

// look reports whether the registration in dir was trusted at some time, whatever is
// there now, and whether there is one.
func look(dir string, trusted []trust.Entry) (known, there bool) {
	file := registrationIn(dir)
	_, err := os.Lstat(file)
	there = err == nil
	if len(trusted) == 0 {
		return false, there
	}
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real
	}
	return slices.ContainsFunc(trusted, func(e trust.Entry) bool { return e.Path == file || e.Path == registrationIn(dir) }), there
}

// mainWorktree returns the folder of the repository that the worktree in dir is linked
// to, "" if dir is none.
func mainWorktree(dir string) string {
	gitdir, is := strings.CutPrefix(strings.TrimSpace(small(filepath.Join(dir, ".git"))), "gitdir: ")
	if !is {
		return ""
	}
	if !filepath.IsAbs(gitdir) {
		gitdir = filepath.Join(dir, gitdir)
	}
	// REPOSITORY/.git/worktrees/NAME
	common := filepath.Dir(filepath.Dir(gitdir))
	if filepath.Base(filepath.Dir(gitdir)) != "worktrees" || filepath.Base(common) != ".git" {
		return ""
	}
	return filepath.Dir(common)
}

// maxSmall bounds what is read of a file of a repository.
const maxSmall = 8 << 10

// small returns the text of a small regular file, "" of anything else: what lies in a
// repository may be a pipe that nobody writes to, or a link to a device without an end.
func small(path string) string {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return "" // opening a device may do something by itself
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // it may have been swapped
	if err != nil {
		return ""
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	text, err := io.ReadAll(io.LimitReader(f, maxSmall+1))
	if err != nil || len(text) > maxSmall {
		return ""
	}
	return string(text)
}
