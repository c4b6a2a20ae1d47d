package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/abhed/abhed/internal/proc"
)

// maxMounts bounds what bubblewrap is told: it takes at most 9000 arguments.
const maxMounts = 2500

// bubblewrap returns spec as a command of bwrap.
func (p Plan) bubblewrap(spec proc.Spec, policy Policy) (proc.Spec, error) {
	program, err := proc.LookPath(spec.Path, spec.Dir, spec.Env)
	if err != nil {
		return proc.Spec{}, err
	}
	l, err := newLayout(policy, homes(spec.Env))
	if err != nil {
		return proc.Spec{}, err
	}
	dir := spec.Dir
	if dir == "" {
		if dir, err = os.Getwd(); err != nil {
			return proc.Spec{}, &PolicyError{What: "working directory", Reason: err.Error()}
		}
	}
	if dir, err = resolved("working directory", dir); err != nil {
		return proc.Spec{}, err
	}
	if !l.visible(dir) {
		return proc.Spec{}, &PolicyError{"working directory", dir, "it is hidden in the sandbox; use a folder inside a root"}
	}
	if real, err := filepath.EvalSymlinks(program); err == nil && !(l.visible(program) && l.visible(real)) {
		return proc.Spec{}, &PolicyError{"program", program, "it is hidden in the sandbox; list its folder in sandbox.home_paths"}
	}

	verify, err := verified(l.meant)
	if err != nil {
		return proc.Spec{}, err
	}
	args := append(namespaces(policy), l.args...)
	args = append(args, "--chdir", dir, "--")
	args = append(args, verify...)
	args = append(args, p.limits(policy)...)
	args = append(args, program)
	out := spec
	out.Name = spec.Name
	if out.Name == "" {
		out.Name = filepath.Base(program)
	}
	out.Path, out.Args, out.Dir = p.bwrap, append(args, spec.Args...), dir
	out.Env = withTmp(spec.Env, l.tmp)
	return out, nil
}

// namespaces returns what takes the command away from the system. As root,
// bubblewrap would keep every capability, and a remount would undo the rest:
// hence the user namespace of its own, no further one, and no capability.
func namespaces(policy Policy) []string {
	args := []string{"--unshare-user", "--disable-userns", "--unshare-ipc", "--unshare-pid", "--unshare-uts",
		"--unshare-cgroup-try", "--cap-drop", "ALL", "--die-with-parent", "--new-session"}
	if !policy.Network {
		args = append(args, "--unshare-net")
	}
	return args
}

// limits returns the command that sets resource limits and then runs the rest.
// Memory is limited as private writable memory (RLIMIT_DATA), not as address
// space, of which many programs reserve far more than they use. Both are set
// inside the namespaces, where the process count starts at zero.
func (p Plan) limits(policy Policy) []string {
	memory, processes := policy.MaxMemory, policy.MaxProcesses
	if memory == 0 {
		memory = defaultMemory
	}
	if processes == 0 {
		processes = defaultProcesses
	}
	if p.prlimit == "" || (memory < 0 && processes < 0) {
		return nil
	}
	args := []string{p.prlimit, "--core=0"}
	if memory > 0 {
		args = append(args, fmt.Sprintf("--data=%d", memory))
	}
	if processes > 0 {
		args = append(args, fmt.Sprintf("--nproc=%d", processes))
	}
	return append(args, "--")
}

// homes returns the folders that count as somebody's home.
func homes(env []string) []string {
	list := []string{"/home", "/root"}
	if home, err := os.UserHomeDir(); err == nil {
		list = append(list, home)
	}
	for _, entry := range env {
		if home, ok := strings.CutPrefix(entry, "HOME="); ok {
			list = append(list, home)
		}
	}
	return list
}

func withTmp(env []string, tmp string) []string {
	out := slices.DeleteFunc(slices.Clone(env), func(e string) bool { return strings.HasPrefix(e, "TMPDIR=") })
	return append(out, "TMPDIR="+tmp)
}

// resolved returns the path with all links resolved, or an error about what.
func resolved(what, path string) (string, error) {
	if !filepath.IsAbs(path) {
		return "", &PolicyError{what, path, "the path must be absolute"}
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", &PolicyError{what, path, err.Error()}
	}
	return real, nil
}

// within reports whether path is dir or lies in it. Both are absolute and clean.
func within(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}
