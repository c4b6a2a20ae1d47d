package policy

import (
	"path"
	"slices"
	"strings"
)

// The rows of destructive.go that need more than a line.

func gitPush(c *commandView) hit {
	push := c.is("push", "send-pack", "http-push")
	if push == hitNo {
		return hitNo
	}
	o := scanAll(c.rest, "o", "repo", "receive-pack", "exec", "push-option")
	force := o.has("fd", "force", "force-with-lease", "force-if-includes", "mirror", "delete", "prune")
	for _, w := range o.rest {
		// "+ref" forces, ":ref" deletes.
		switch {
		case strings.HasPrefix(w.text, "+") || strings.HasPrefix(w.text, ":"):
			force = hitYes
		case w.unknown && w.text[0] <= anyName:
			force = either(force, hitMaybe)
		}
	}
	return both(push, force)
}

func gitDiscard(c *commandView) hit {
	o := scanAll(c.rest, "")
	out := both(c.is("reset"), o.has("", "hard", "merge"))
	out = either(out, both(c.is("checkout", "switch"), o.has("fB", "force", "discard-changes")))
	// "checkout -- path", "checkout .": overwrites work with what is committed.
	out = either(out, both(c.is("checkout"), anyWord(c.rest, "--", ".", "./", ":/", "*")))
	staged := o.has("S", "staged")
	if staged != hitYes || o.has("W", "worktree") != hitNo {
		out = either(out, c.is("restore"))
	}
	out = either(out, both(c.is("read-tree"), o.has("", "reset")))
	return either(out, c.is("checkout-index"))
}

func gitClean(c *commandView) hit {
	if scanAll(c.rest, "e").has("n", "dry-run") == hitYes {
		return hitNo
	}
	return c.is("clean")
}

func gitHistory(c *commandView) hit {
	if c.program != "git" {
		return hitYes
	}
	o := scanAll(c.rest, "mFCc")
	out := c.is("filter-branch", "filter-repo", "replace", "fast-import", "prune")
	out = either(out, both(c.is("commit"), o.has("", "amend")))
	out = either(out, both(c.is("reflog"), anyWord(c.rest, "expire", "delete")))
	out = either(out, both(c.is("gc"), o.has("", "prune")))
	harmless := anyWord(c.rest, "--abort", "--quit", "--show-current-patch")
	if harmless != hitYes {
		out = either(out, c.is("rebase"))
	}
	return out
}

func gitDelete(c *commandView) hit {
	o := scanAll(c.rest, "u")
	out := both(c.is("branch"), o.has("dDfMC", "delete", "force"))
	out = either(out, both(c.is("tag"), o.has("df", "delete", "force")))
	out = either(out, both(c.is("update-ref"), o.has("d", "stdin")))
	out = either(out, both(c.is("symbolic-ref"), o.has("d", "delete")))
	out = either(out, both(c.is("worktree"), anyWord(c.rest, "remove", "prune")))
	out = either(out, both(c.is("stash"), anyWord(c.rest, "drop", "clear")))
	return either(out, both(c.is("rm"), o.has("rf", "force")))
}

func diskTool(c *commandView) hit {
	informs := scanAll(c.args, "").has("", "help", "version")
	switch c.program {
	case "zfs", "zpool":
		return c.is("destroy", "create", "rollback", "labelclear", "remove", "detach", "offline", "split", "add", "replace", "attach")
	case "diskutil":
		if h := c.is("list", "info", "activity"); h == hitYes {
			return hitNo
		}
	case "cryptsetup":
		if h := c.is("status", "luksDump", "isLuks"); h == hitYes {
			return hitNo
		}
	case "fdisk", "sfdisk", "parted", "gdisk", "sgdisk", "losetup":
		if scanAll(c.args, "").has("lpa", "list", "list-free", "all") == hitYes && len(c.args) == 1 {
			return hitNo
		}
	}
	if informs == hitYes {
		return hitNo
	}
	return hitYes
}

// devices are files in /dev that are safe to write.
var safeDevices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/stdout", "/dev/stderr", "/dev/stdin", "/dev/tty", "/dev/random", "/dev/urandom"}

// rawDevice says whether a path is a device whose writing does harm.
func rawDevice(w word) hit {
	p := w.text
	if !strings.ContainsAny(p, unknownBytes) {
		p = path.Clean(p)
	}
	if slices.Contains(safeDevices, p) {
		return hitNo
	}
	for _, ok := range []string{"/dev/fd/", "/dev/pts/", "/dev/shm/", "/dev/tty", "/dev/tcp/", "/dev/udp/", "/dev/mqueue/"} {
		if strings.HasPrefix(p, ok) {
			return hitNo
		}
	}
	switch {
	case strings.HasPrefix(p, "/dev/") || strings.HasPrefix(p, `\\.\`) || p == "/proc/sysrq-trigger" || strings.HasPrefix(p, "/sys/"):
		return hitYes
	case strings.HasSuffix(p, "/../dev") || strings.Contains(p, "/dev/") && strings.Contains(p, ".."):
		return hitMaybe
	}
	return hitNo
}

func deviceWrite(c *commandView) hit {
	out := hitNo
	reads := c.program == "cat" || c.program == "pv"
	for i, w := range c.args {
		name, value, eq := strings.Cut(w.text, "=")
		switch {
		case c.program == "dd":
			if w.unknown && w.text[0] <= anyName {
				out = either(out, hitMaybe)
			}
			// Any output file of dd is overwritten without a question.
			if eq && name == "of" && !slices.Contains(safeDevices, value) {
				return hitYes
			}
		case reads:
		case c.program == "tee" || i == len(c.args)-1 || c.program == "ddrescue":
			out = either(out, rawDevice(w))
		case eq:
			out = either(out, rawDevice(word{text: value, unknown: w.unknown}))
		}
	}
	return out
}

// wideTargets are directories whose mode nobody changes by the way.
func wideTarget(w word) bool {
	p := w.text
	if strings.ContainsAny(p, unknownBytes) {
		return strings.HasPrefix(p, "/\x02") || strings.HasPrefix(p, "~")
	}
	p = path.Clean(p)
	return p == "/" || p == "." || p == ".." || p == "~" || path.IsAbs(p) && strings.Count(p, "/") == 1
}

func wideMode(c *commandView) hit {
	o := scanAll(c.args, "", "reference", "from")
	out := o.has("R", "recursive")
	if c.program == "icacls" {
		out = anyWord(c.args, "/t", "/T", "/reset")
	}
	if c.program == "setfacl" {
		out = either(out, o.has("bk", "remove-all", "restore"))
	}
	for _, w := range o.rest {
		if wideTarget(w) {
			return hitYes
		}
	}
	return out
}

func powerState(c *commandView) hit {
	switch c.program {
	case "systemctl", "loginctl":
		return c.is("poweroff", "reboot", "halt", "kexec", "suspend", "hibernate", "hybrid-sleep", "suspend-then-hibernate", "soft-reboot", "rescue", "emergency", "isolate", "exit")
	case "init", "telinit":
		return anyWord(c.args, "0", "1", "6", "s", "S", "q", "u")
	}
	if scanAll(c.args, "").has("", "help", "version") == hitYes {
		return hitNo
	}
	return hitYes
}

func publication(c *commandView) hit {
	dry := scanAll(c.rest, "").has("", "dry-run") == hitYes
	var out hit
	switch c.program {
	case "docker", "podman":
		out = either(c.is("push"), both(c.is("image", "manifest", "compose", "plugin"), anyWord(c.rest, "push")))
		out = either(out, both(c.is("buildx", "build"), scanAll(c.rest, "").has("", "push")))
	case "gh":
		out = both(c.is("release", "gist", "repo"), anyWord(c.rest, "create", "upload", "delete", "delete-asset", "edit", "archive"))
	case "twine", "skopeo", "crane", "oras", "conan":
		out = c.is("upload", "copy", "push", "sync", "delete", "attach")
	case "mvn", "gradle", "gradlew", "lerna", "goreleaser":
		out = either(anyWord(c.args, "deploy", "publish", "release", "release:perform", "release:prepare", "uploadArchives", "deploy:deploy", "version"), hitNo)
		if c.program == "mvn" && anyWord(c.args, "-version", "version") == hitYes && anyWord(c.args, "deploy") == hitNo {
			out = hitNo
		}
		for _, w := range c.args {
			if c.program != "mvn" && strings.Contains(w.text, "publish") {
				out = hitYes
			}
		}
	case "dotnet", "nuget":
		out = either(both(c.is("nuget"), anyWord(c.rest, "push", "delete")), both(c.is("push", "delete"), hitYes))
	case "mix":
		out = c.is("hex.publish")
	case "dart":
		out = both(c.is("pub"), anyWord(c.rest, "publish", "lish"))
	case "pod":
		out = both(c.is("trunk", "repo"), anyWord(c.rest, "push"))
	case "yarn":
		out = either(c.is("publish"), both(c.is("npm"), anyWord(c.rest, "publish")))
	case "gem", "helm", "luarocks":
		out = c.is("push", "yank", "upload")
	default:
		out = either(c.is("publish", "unpublish", "yank", "deprecate", "dist-tag", "upload"),
			both(c.is("run", "exec"), anyWord(c.rest, "publish")))
	}
	if dry && c.program != "docker" {
		return hitNo
	}
	return out
}
