package workspace

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// deeper returns the level with the ignore files of a folder added.
func deeper(up *level, rel string, fd int, entries []fs.DirEntry) *level {
	git, own := false, false
	for _, e := range entries {
		git = git || e.Name() == ".gitignore"
		own = own || e.Name() == ".ignore"
	}
	if !git && !own {
		return up
	}
	text := ""
	if git {
		text = ignoreFile(fd, ".gitignore")
	}
	if own { // after the other, and so over it
		text += "\n" + ignoreFile(fd, ".ignore")
	}
	if r := parseRules(text); len(r.list) > 0 {
		return &level{up: up, base: rel, rules: r}
	}
	return up
}

// ignoreFile returns what an ignore file holds, "" if it can't be used.
func ignoreFile(dir int, name string) string {
	f, info, err := openRegular(dir, name)
	if err != nil {
		return ""
	}
	defer f.Close()
	if info.Size > maxIgnoreFile {
		return ""
	}
	data := make([]byte, info.Size)
	n, _ := f.ReadAt(data, 0)
	return string(data[:n])
}

// levelsAbove returns the rules that hold at the top of a walk: the user's, the
// repository's own, and those of the folders from the repository's to the top's
// parent. If they ignore the top itself, it was asked for nevertheless, and they
// don't count.
func levelsAbove(top, global string) *level {
	repo, dirs := repository(top)
	lowest := &level{above: relative(top, repo), rules: parseRules(global)}
	if repo == "" {
		lowest.above = ""
		return lowest // what lies above the top has no say
	}
	l := &level{up: lowest, above: relative(top, repo), rules: parseRules(fileIn(filepath.Join(repo, ".git", "info"), "exclude"))}
	for i := len(dirs) - 1; i >= 0; i-- {
		text := fileIn(dirs[i], ".gitignore") + "\n" + fileIn(dirs[i], ".ignore")
		l = &level{up: l, above: relative(top, dirs[i]), rules: parseRules(text)}
		// Is the next folder on the way down, in the end the top, ignored?
		below := top
		if i > 0 {
			below = dirs[i-1]
		}
		if l.ignoresAbove(top, below) {
			return lowest
		}
	}
	return l
}

// repository returns the folder of the git repository that top lies in, or "", and
// the folders from the top's parent up to it.
func repository(top string) (repo string, above []string) {
	for dir := top; ; dir = filepath.Dir(dir) {
		if dir != top {
			above = append(above, dir)
		}
		if isRepository(filepath.Join(dir, ".git")) {
			return dir, above
		}
		if dir == "/" {
			return "", nil
		}
	}
}

// isRepository reports whether .git is that of a repository: a file that names
// another place, or a folder with a HEAD. An empty folder, as a sandbox may leave
// one, is none to git either.
func isRepository(git string) bool {
	info, err := os.Lstat(git)
	if err != nil || info.Mode().IsRegular() {
		return err == nil
	}
	_, err = os.Lstat(filepath.Join(git, "HEAD"))
	return err == nil
}

// relative returns how paths below top begin as seen from dir: "" or "a/b/".
func relative(top, dir string) string {
	rel := strings.TrimPrefix(strings.TrimPrefix(top, dir), "/")
	if rel == "" {
		return ""
	}
	return rel + "/"
}

// ignoresAbove reports whether a folder on the way from the repository to the top,
// or the top itself, is ignored by the levels so far.
func (l *level) ignoresAbove(top, folder string) bool {
	for ; l != nil; l = l.up {
		base := strings.TrimSuffix(strings.TrimSuffix(top, strings.TrimSuffix(l.above, "/")), "/")
		rel := strings.TrimPrefix(strings.TrimPrefix(folder, base), "/")
		if v := l.rules.judge(rel, filepath.Base(folder), true); v != silent {
			return v == ignored
		}
	}
	return false
}

// fileIn returns an ignore file of a folder above the walk.
func fileIn(dir, name string) string {
	fd, err := openDirectory(dir)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	return ignoreFile(fd, name)
}
