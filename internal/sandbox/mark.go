package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"

	"github.com/abhed/abhed/internal/proc"
)

// mark identifies everything that the trial of a plan depends on: the command, the
// programs as they are, the boot, the user and the namespaces. It is "" where that can't
// be told.
func (p Plan) mark(trial proc.Spec) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %d\n", trial.Path, trial.Args, os.Geteuid())
	for _, file := range []string{p.bwrap, p.prlimit} {
		if file == "" {
			continue
		}
		info, err := os.Stat(file)
		if err != nil {
			return ""
		}
		fmt.Fprintf(h, "%q %d %d %o\n", file, info.Size(), info.ModTime().UnixNano(), info.Mode())
	}
	for _, file := range []string{"/proc/sys/kernel/random/boot_id", "/proc/sys/user/max_user_namespaces", "/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "/proc/self/attr/current"} {
		data, err := os.ReadFile(file)
		if err != nil && strings.HasSuffix(file, "boot_id") {
			return "" // another kernel may run tomorrow
		}
		fmt.Fprintf(h, "%q\n", data)
	}
	for _, ns := range []string{"user", "mnt", "pid", "net"} {
		where, err := os.Readlink("/proc/self/ns/" + ns)
		if err != nil {
			return ""
		}
		fmt.Fprintf(h, "%q\n", where)
	}
	return hex.EncodeToString(h.Sum(nil))
}
