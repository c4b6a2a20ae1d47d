package policy

import (
	"slices"
	"strings"
)

// This file is the table of what is destructive: what asks in every mode, even
// where a rule allows it (gate.md §3). A row is about programs by base name,
// wherever they stand in a command; Match says whether the arguments make it
// destructive. A row that can't tell, because a word is unknown, makes the
// command unjudgeable, which asks too.

// destructiveRow is one row of the table.
type destructiveRow struct {
	// name is the cause that is shown and recorded.
	name string
	// doc says what the row is about, for people.
	doc string
	// programs are the base names that the row looks at.
	programs []string
	match    func(c *commandView) hit
}

// commandView is a command as the rows see it.
type commandView struct {
	program string
	// args are all words after the program.
	args []word
	// sub and rest are the subcommand of programs that have one, past global
	// options, and what follows it.
	sub  word
	rest []word
}

func always(*commandView) hit { return hitYes }

// destructiveRows is the table. It is never changed.
var destructiveRows = []destructiveRow{
	{"recursive or forced removal", "rm with -r, -R or -f", []string{"rm", "srm", "grm", "del", "rimraf", "trash"}, removal},
	{"removal of everything but one copy", "rsync and rclone that delete at the target", []string{"rsync", "rclone"}, syncDelete},
	{"removal by find", "find -delete; also fd and find -exec rm, which is judged as rm", []string{"find", "gfind", "bfs"}, findDelete},
	{"forced push", "git push that overwrites or deletes what the remote has", []string{"git"}, gitPush},
	{"hard reset", "git reset, restore, checkout or switch that drops work", []string{"git"}, gitDiscard},
	{"forced clean", "git clean that isn't a dry run", []string{"git"}, gitClean},
	{"history rewriting", "git rebase, filter-branch, filter-repo, commit --amend, reflog expire, gc --prune", []string{"git", "git-filter-repo", "bfg"}, gitHistory},
	{"branch deletion", "git branch -d, tag -d, update-ref -d, worktree remove, stash drop", []string{"git"}, gitDelete},
	{"disk tool", "programs that make, change or erase file systems and partitions", []string{
		"fdisk", "sfdisk", "cfdisk", "gdisk", "sgdisk", "parted", "wipefs", "blkdiscard", "mkswap", "hdparm", "nvme", "diskutil",
		"pvcreate", "pvremove", "vgremove", "lvremove", "cryptsetup", "zpool", "zfs", "mdadm", "badblocks", "tune2fs", "debugfs", "losetup", "newfs"}, diskTool},
	{"making a file system", "mkfs and its kinds", []string{"mkfs*", "newfs_*", "mke2fs"}, always},
	{"raw device write", "dd, cp, tee and others onto a device; dd overwrites without asking", []string{"dd", "cp", "tee", "mv", "install", "ddrescue", "cat", "pv"}, deviceWrite},
	{"wide change of mode or owner", "chmod, chown, chgrp with -R, or on a root of trees", []string{"chmod", "chown", "chgrp", "setfacl", "chattr", "icacls"}, wideMode},
	{"shredding", "programs that overwrite so that nothing can be restored", []string{"shred", "wipe", "scrub", "sfill", "sdmem", "sswap", "nwipe"}, always},
	{"truncation", "truncate, and a redirection without a command", []string{"truncate"}, always},
	{"power state", "shutdown, reboot and their like", []string{"shutdown", "reboot", "halt", "poweroff", "pm-suspend", "pm-hibernate", "init", "telinit", "systemctl", "loginctl"}, powerState},
	{"package publication", "publishing to a registry", []string{
		"npm", "pnpm", "yarn", "bun", "cargo", "twine", "gem", "poetry", "uv", "flit", "hatch", "pdm", "mvn", "gradle", "gradlew", "dotnet", "nuget",
		"docker", "podman", "helm", "vsce", "ovsx", "lerna", "goreleaser", "mix", "dart", "pod", "luarocks", "conan", "oras", "skopeo", "crane", "gh"}, publication},
	{"credential read", "printing secrets out of their stores", []string{
		"gh", "gcloud", "aws", "az", "security", "pass", "op", "bw", "kubectl", "vault", "git", "secret-tool", "gpg", "ssh-add", "doppler", "heroku", "npm", "glab", "lpass", "keyring", "docker-credential-*", "git-credential-*"}, credentialRead},
}

// about reports whether the row is about a program. A name that ends in a star is the
// beginning of several.
func (r *destructiveRow) about(program string) bool {
	for _, p := range r.programs {
		if p == program {
			return true
		}
		if last := len(p) - 1; p[last] == '*' && strings.HasPrefix(program, p[:last]) {
			return true
		}
	}
	return false
}

// isDestructiveProgram reports whether the table has a row about a program.
func isDestructiveProgram(w word) bool {
	if w.unknown {
		return false
	}
	program := programName(w)
	for i := range destructiveRows {
		if destructiveRows[i].about(program) {
			return true
		}
	}
	return false
}

// programName returns the base name that the table compares.
func programName(w word) string {
	program := base(w.text)
	if programFold {
		program = strings.ToLower(program)
	}
	return strings.TrimSuffix(program, ".exe")
}

// destructive returns the strongest hit of the table on the command in words,
// and its row.
func destructive(words []word) (hit, *destructiveRow) {
	if len(words) == 0 || words[0].unknown {
		return hitNo, nil
	}
	program := programName(words[0])
	var view *commandView
	best, found := hitNo, (*destructiveRow)(nil)
	for i := range destructiveRows {
		r := &destructiveRows[i]
		if !r.about(program) {
			continue
		}
		if view == nil {
			view = &commandView{program: program, args: words[1:]}
			view.sub, view.rest = subcommand(program, view.args)
		}
		if h := r.match(view); h > best {
			best, found = h, r
		}
	}
	return best, found
}

// globalOptions are the options before the subcommand that take a value. It is
// never changed.
var globalOptions = table[[]string]{
	{"git", gitGlobals},
	{"kubectl", []string{"-n", "--namespace", "--context", "--cluster", "--kubeconfig", "-s", "--server", "--user", "--as"}},
	{"docker", []string{"-H", "--host", "-c", "--context", "--config", "-l", "--log-level"}},
	{"helm", []string{"-n", "--namespace", "--kube-context", "--kubeconfig"}},
	{"npm", []string{"--prefix", "-C", "--registry", "-w", "--workspace", "--userconfig"}},
	{"yarn", []string{"--cwd"}},
	{"pnpm", []string{"-C", "--dir", "--filter", "-F"}},
	{"cargo", []string{"--manifest-path", "--config", "-C", "-Z", "--color"}},
	{"gh", []string{"-R", "--repo", "--hostname"}},
	{"aws", []string{"--profile", "--region", "--endpoint-url", "--output"}},
	{"gcloud", []string{"--project", "--account", "--configuration"}},
	{"systemctl", []string{"-H", "--host", "-M", "--machine", "-t", "--type"}},
	{"terraform", []string{}},
	{"poetry", []string{"-C", "--directory", "-P", "--project"}},
	{"zfs", []string{}},
}

// subcommand returns the first operand and the words after it. An unknown word
// in its place is returned as it is.
func subcommand(program string, args []word) (sub word, rest []word) {
	takes, _ := globalOptions.row(program)
	for i := 0; i < len(args); i++ {
		t := args[i].text
		switch {
		case strings.HasPrefix(t, "-") && slices.Contains(takes, t):
			i++
		case strings.HasPrefix(t, "-") || program == "cargo" && strings.HasPrefix(t, "+"):
		default:
			return args[i], args[i+1:]
		}
	}
	return word{}, nil
}

// is says whether the subcommand is one of names.
func (c *commandView) is(names ...string) hit {
	if c.sub.unknown {
		for _, n := range names {
			if compileText(n).possible(c.sub.text) {
				return hitMaybe
			}
		}
		return hitNo
	}
	if slices.Contains(names, c.sub.text) {
		return hitYes
	}
	return hitNo
}

func both(a, b hit) hit   { return min(a, b) }
func either(a, b hit) hit { return max(a, b) }

// anyWord says whether some word is one of names, or may be.
func anyWord(words []word, names ...string) hit {
	out := hitNo
	for _, w := range words {
		if slices.Contains(names, w.text) {
			return hitYes
		}
		if out == hitNo && w.unknown && slices.ContainsFunc(names, func(n string) bool { return compileText(n).possible(w.text) }) {
			out = hitMaybe
		}
	}
	return out
}

func removal(c *commandView) hit {
	return scanAll(c.args, "").has("rRf", "recursive", "force", "no-preserve-root")
}

func syncDelete(c *commandView) hit {
	if c.program == "rclone" {
		return c.is("delete", "purge", "sync", "deletefile", "rmdirs", "cleanup")
	}
	return scanAll(c.args, "eBfTM").has("", "delete", "delete-after", "delete-before", "delete-excluded", "remove-source-files")
}

func findDelete(c *commandView) hit {
	return anyWord(c.args, "-delete")
}
