package sandbox

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// What is mounted inside a root is named by a path that another command, which still
// runs there, can make lead elsewhere between our look at it and the mount: to a folder
// outside the root, which the new command would then have. So the first thing that runs
// in the sandbox compares what was mounted with what was meant, before the command does.

// verifier is that: a script for sh whose arguments are the list, in pieces, "--", and
// the command. A line of the list is a place and what must be mounted there, as
// /proc/self/mountinfo has them; "*" is anything. A place may stand in several lines.
const verifier = `nl='
'; want=$nl; left=$1; shift
while [ "$1" != -- ]; do want=$want$1; shift; done; shift
seen=$nl
while read -r _ _ _ root at _; do
case $want in *"$nl$at "*) ;; *) continue;; esac
case $want in *"$nl$at $root$nl"*|*"$nl$at *$nl"*) ;; *) left=-1; break;; esac
case $seen in *"$nl$at$nl"*) continue;; esac
seen=$seen$at$nl; left=$((left-1))
done </proc/self/mountinfo
if [ "$left" != 0 ]; then echo "bwrap: a path in the workspace was replaced while the sandbox was set up, so the command was not run; try again" >&2; exit 125; fi
exec "$@"`

const (
	// verifierShell runs it.
	verifierShell = "/bin/sh"
	// maxPiece bounds one piece of the list, in bytes: the system takes 128 KiB in one
	// argument.
	maxPiece = 64 << 10
)

// meant is what must be mounted at a place inside a root.
type meant struct {
	path string
	any  bool // it doesn't come from the path itself
}

// verified returns what has to come before the command so that it only runs if what is
// meant is mounted, nil if there is nothing to look at.
func verified(list []meant) ([]string, error) {
	if len(list) == 0 {
		return nil, nil
	}
	if _, err := os.Stat(verifierShell); err != nil {
		return nil, &PolicyError{"program", verifierShell, "it is needed to look at what is mounted: " + err.Error()}
	}
	table, err := readMounts()
	if err != nil {
		return nil, &PolicyError{What: "mounts", Reason: err.Error()}
	}
	places, pieces := map[string]bool{}, []string{""}
	for _, m := range list {
		at := mountName(m.path)
		places[at] = true
		roots := []string{"*"}
		if !m.any {
			roots = table.rootsOf(at)
		}
		for _, root := range roots {
			if len(pieces[len(pieces)-1]) > maxPiece {
				pieces = append(pieces, "")
			}
			pieces[len(pieces)-1] += at + " " + root + "\n"
		}
	}
	args := []string{verifierShell, "-c", verifier, "abhed", fmt.Sprint(len(places))}
	return append(append(args, pieces...), "--"), nil
}

// mounts are the mounts of this process, in their order.
type mounts []struct{ root, at string }

func readMounts() (mounts, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var list mounts
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) > 4 {
			list = append(list, struct{ root, at string }{f[3], f[4]})
		}
	}
	return list, nil
}

// rootsOf returns what a bind of a place may have as its root: the place in the file
// system that it lies in, and what is mounted at the place itself.
func (list mounts) rootsOf(at string) []string {
	var roots []string
	longest, root := -1, "/"
	for _, m := range list {
		if m.at == at {
			roots = append(roots, m.root)
		}
		if within(at, m.at) && len(m.at) >= longest {
			longest, root = len(m.at), m.root
		}
	}
	rest := at[min(len(at), max(longest, 0)):]
	whole := strings.TrimSuffix(root, "/") + "/" + strings.Trim(rest, "/")
	if whole != "/" {
		whole = strings.TrimSuffix(whole, "/")
	}
	if !slices.Contains(roots, whole) {
		roots = append(roots, whole)
	}
	return roots
}

// mountName writes a path as the kernel does in the list of mounts.
func mountName(path string) string {
	return strings.NewReplacer(`\`, `\134`, " ", `\040`, "\t", `\011`, "\n", `\012`).Replace(path)
}
