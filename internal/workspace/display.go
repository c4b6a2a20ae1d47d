package workspace

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/abhed/abhed/internal/policy"
)

// Display returns how to show an absolute path to who works in workdir: relative to
// it where that is shorter and doesn't lead up.
func Display(path, workdir string) string {
	if path == workdir {
		return "."
	}
	if rel, ok := strings.CutPrefix(path, strings.TrimSuffix(workdir, "/")+"/"); ok && workdir != "" {
		return rel
	}
	return path
}

// Suggest returns names beside place that it could have been meant for: equal but
// for case, or one containing the other; at most five, nothing if the directory
// can't be read.
func Suggest(place policy.Place) []string {
	t, err := open("look at", place)
	if err != nil {
		return nil
	}
	defer t.close()
	dir, want := ".", t.rel
	if i := strings.LastIndexByte(t.rel, '/'); i >= 0 {
		dir, want = t.rel[:i], t.rel[i+1:]
	}
	fd, err := openBeneath(t.dir, dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	f := os.NewFile(uintptr(fd), dir)
	defer f.Close()
	names, _ := f.Readdirnames(10_000)
	slices.Sort(names)
	return similar(names, want)
}

func similar(names []string, want string) []string {
	var out []string
	low := strings.ToLower(want)
	stem := strings.TrimSuffix(low, filepath.Ext(low))
	for _, n := range names {
		l := strings.ToLower(n)
		short := strings.TrimSuffix(l, filepath.Ext(l))
		if l == low || (len(stem) >= 3 && strings.Contains(l, stem)) || (len(short) >= 3 && strings.Contains(low, short)) {
			if out = append(out, n); len(out) == 5 {
				break
			}
		}
	}
	return out
}
