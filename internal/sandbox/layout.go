package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// layout is the file system that the command will see, as arguments for bwrap.
// Later mounts cover earlier ones.
type layout struct {
	args   []string
	shows  []show
	tmp    string // what TMPDIR will be
	tmpDir string // the folder behind it, or ""
	roots  []string
	homes  []string
	held   map[string]bool // mounted read-only or as its own place
	mounts int
	meant  []meant // what must be mounted in the roots
}

// show says that a folder and what is in it is visible, or not. The last that
// covers a path counts.
type show struct {
	path    string
	visible bool
}

// scratch is the size of a temporary file system, in bytes.
const scratch = "2147483648"

func newLayout(policy Policy, homes []string) (*layout, error) {
	l := &layout{held: map[string]bool{}, shows: []show{{"/", true}}}
	steps := []func() error{
		func() error { return l.system(policy.Network) },
		func() error { return l.temporary(policy.TmpDir) },
		func() error { return l.home(homes, policy.HomePaths) },
		l.ownTemporary,
		func() error { return l.writable(policy.Roots) },
		func() error { return l.protect(policy.Protected) },
		func() error { return l.hide(policy.Hidden) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	if l.mounts > maxMounts {
		return nil, &PolicyError{What: "paths", Reason: "too many protected, hidden and home paths; name folders instead of the files in them"}
	}
	return l, nil
}

// add appends one mount.
func (l *layout) add(args ...string) {
	l.args = append(l.args, args...)
	l.mounts++
}

func (l *layout) visible(path string) bool {
	v := true
	for _, s := range l.shows {
		if within(path, s.path) {
			v = s.visible
		}
	}
	return v
}

// kernelPaths are the parts of /proc that change the running system.
var kernelPaths = [...]string{
	"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/acpi", "/proc/scsi", "/proc/driver", "/proc/mtrr",
	"/proc/pressure", "/proc/timer_stats", "/proc/latency_stats", "/proc/sched_debug", "/proc/dynamic_debug", "/proc/kmsg", "/proc/kcore", "/proc/kpagecount", "/proc/kpageflags",
}

// system shows the system read-only, with devices and processes of its own and
// without the folder of sockets that lead to the services of the host.
func (l *layout) system(network bool) error {
	l.add("--ro-bind", "/", "/")
	l.add("--dev", "/dev")
	l.add("--proc", "/proc")
	// Much of /proc belongs to the kernel, not to a process, and the files of root
	// are root's to write, capabilities or none.
	for _, path := range kernelPaths {
		if _, err := os.Lstat(path); err == nil {
			l.add("--ro-bind", path, path)
		}
	}
	for _, dir := range []string{"/run", "/var/run"} {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() { // /var/run is usually a link to /run
			continue
		}
		l.add("--size", scratch, "--tmpfs", dir)
		l.shows = append(l.shows, show{dir, false})
	}
	keep := []string{"/run/current-system", "/run/opengl-driver"}
	if network {
		keep = append(keep, "/run/systemd/resolve/resolv.conf", "/run/systemd/resolve/stub-resolv.conf", "/run/resolvconf")
	}
	for _, path := range keep {
		if _, err := os.Stat(path); err == nil {
			l.add("--ro-bind", path, path)
			l.shows = append(l.shows, show{path, true})
		}
	}
	return nil
}

// temporary gives the command a /tmp that nothing else uses.
func (l *layout) temporary(dir string) error {
	l.tmp = "/tmp"
	if dir != "" {
		real, err := resolved("temporary folder", dir)
		if err != nil {
			return err
		}
		if real == "/" {
			return &PolicyError{"temporary folder", dir, "it can't be the root of the file system"}
		}
		l.tmp, l.tmpDir = real, real
	}
	for _, place := range []string{"/tmp", "/var/tmp"} {
		info, err := os.Lstat(place)
		if err != nil || !info.IsDir() {
			continue
		}
		if l.tmpDir != "" {
			l.add("--bind", l.tmpDir, place)
		} else {
			l.add("--size", scratch, "--perms", "1777", "--tmpfs", place)
		}
		l.shows = append(l.shows, show{place, false})
	}
	return nil
}

// ownTemporary shows the temporary folder under its own path too, which may lie in
// the home: so it comes after that.
func (l *layout) ownTemporary() error {
	if l.tmpDir != "" {
		l.add("--bind", l.tmpDir, l.tmpDir)
		l.shows = append(l.shows, show{l.tmpDir, true})
	}
	return nil
}

// home covers every home with an empty one and shows the listed paths in it.
func (l *layout) home(homes, allowed []string) error {
	var dirs []string
	for _, h := range homes {
		if !filepath.IsAbs(h) {
			continue
		}
		if real, err := filepath.EvalSymlinks(h); err == nil && real != "/" {
			dirs = append(dirs, real)
		}
	}
	slices.Sort(dirs)
	dirs = slices.Compact(dirs)
	l.homes = dirs
	for _, dir := range dirs {
		if !l.visible(dir) { // in another home or in /tmp: an empty one will do
			l.add("--perms", "0700", "--dir", dir)
			continue
		}
		l.add("--size", scratch, "--perms", "0755", "--tmpfs", dir)
		l.shows = append(l.shows, show{dir, false})
	}
	for _, path := range allowed {
		if !filepath.IsAbs(path) {
			return &PolicyError{"home path", path, "the path must be absolute"}
		}
		path = filepath.Clean(path)
		if path == "/" {
			return &PolicyError{"home path", path, "it can't be the root of the file system"}
		}
		real, err := filepath.EvalSymlinks(path)
		if err != nil || l.visible(path) {
			continue
		}
		// Seen under both names: the file itself may be reached by other links.
		for _, place := range slices.Compact([]string{path, real}) {
			l.add("--ro-bind", real, place)
			l.shows = append(l.shows, show{place, true})
		}
	}
	return nil
}

// writable binds the roots, outer ones first.
func (l *layout) writable(roots []string) error {
	for _, root := range roots {
		real, err := resolved("root", root)
		if err != nil {
			return err
		}
		info, err := os.Stat(real)
		if err != nil || !info.IsDir() {
			return &PolicyError{"root", root, "it must be an existing folder"}
		}
		if real == "/" || real == "/run" || within(real, "/proc") || within(real, "/dev") || within(real, "/sys") {
			return &PolicyError{"root", root, "a folder of the system can't be made writable; start in a project folder"}
		}
		if slices.Contains(l.homes, real) {
			return &PolicyError{"root", root, "it is a home folder, which the sandbox is to hide; start in a folder inside it"}
		}
		if l.tmpDir != "" && real != l.tmpDir && within(real, l.tmpDir) {
			return &PolicyError{"root", root, "it lies in the temporary folder, where nothing could be protected"}
		}
		l.roots = append(l.roots, real)
	}
	slices.Sort(l.roots)
	l.roots = slices.Compact(l.roots)
	for _, root := range l.roots {
		l.add("--bind", root, root)
		l.meant = append(l.meant, meant{path: root})
		l.shows = append(l.shows, show{root, true})
		l.held[root] = true
	}
	return nil
}

// hide covers files and folders so that nobody can read them.
func (l *layout) hide(paths []string) error {
	for _, path := range paths {
		if !filepath.IsAbs(path) {
			return &PolicyError{"hidden path", path, "the path must be absolute"}
		}
		real, err := filepath.EvalSymlinks(path)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || strings.Contains(path, "\x00") {
			continue // what this user can't reach, the command can't either
		}
		if err != nil {
			return &PolicyError{"hidden path", path, err.Error()}
		}
		if real == "/" {
			return &PolicyError{"hidden path", path, "all of the file system can't be hidden"}
		}
		if l.tmpDir != "" && within(real, l.tmpDir) {
			return &PolicyError{"hidden path", path, "it lies in the temporary folder, which has two names"}
		}
		if !l.visible(real) {
			continue
		}
		info, err := os.Stat(real)
		if err != nil {
			return &PolicyError{"hidden path", path, err.Error()}
		}
		l.pinAbove(real)
		if root, _ := l.rootOf(real); root != "" {
			l.meant = append(l.meant, meant{real, true})
		}
		if info.IsDir() {
			l.add("--perms", "0000", "--tmpfs", real, "--remount-ro", real)
		} else {
			// A device on a mount without devices: opening it fails.
			l.add("--ro-bind", "/dev/null", real)
		}
		l.shows = append(l.shows, show{real, false})
	}
	return nil
}
