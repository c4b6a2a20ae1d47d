package policy

// wrapper describes a program that runs the command in its arguments.
type wrapper struct {
	// short are the option letters that take a value, long the same for long
	// options; an option of neither takes none.
	short string
	long  []string
	// operands is how many words stand between the options and the command.
	operands int
	// assigns reports that NAME=VALUE words may stand before the command.
	assigns bool
	// shell reports that the command is one string, or words that are joined to
	// one, for a shell.
	shell bool
	// command is an option whose value is a command string, or "".
	command string
	// after is an option after which nothing is run, as in `command -v`.
	after string
	// chdir is an option whose value is the directory to run in.
	chdir string
	// permutes reports that options may follow operands.
	permutes bool
	// appends reports that words unknown here are appended, as by xargs.
	appends bool
}

// wrappers are the programs that run other programs, by base name. It is never
// changed.
var wrappers = table[wrapper]{
	{"env", wrapper{short: "uCSa", long: []string{"unset", "chdir", "split-string", "argv0"}, assigns: true, chdir: "C chdir", command: "S split-string"}},
	{"sudo", wrapper{short: "ughpCTrtURDcao", long: []string{"user", "group", "host", "prompt", "close-from", "command-timeout", "role", "type", "other-user", "chroot", "chdir"}, assigns: true, chdir: "D chdir"}},
	{"doas", wrapper{short: "uCa"}},
	{"run0", wrapper{short: "ugD", long: []string{"user", "group", "nice", "chdir", "unit", "property", "description", "slice", "setenv", "background"}, chdir: "D chdir"}},
	{"pkexec", wrapper{long: []string{"user"}}},
	{"nohup", wrapper{}},
	{"setsid", wrapper{}},
	{"nice", wrapper{short: "n", long: []string{"adjustment"}}},
	{"ionice", wrapper{short: "cnpPu", long: []string{"class", "classdata", "pid", "pgid", "uid"}}},
	{"chrt", wrapper{short: "TPDp", long: []string{"sched-runtime", "sched-period", "sched-deadline"}, operands: 1}},
	{"taskset", wrapper{operands: 1}},
	{"stdbuf", wrapper{short: "ioe", long: []string{"input", "output", "error"}}},
	{"timeout", wrapper{short: "ks", long: []string{"kill-after", "signal"}, operands: 1}},
	{"gtimeout", wrapper{short: "ks", long: []string{"kill-after", "signal"}, operands: 1}},
	{"time", wrapper{short: "fo", long: []string{"format", "output"}}},
	{"chroot", wrapper{long: []string{"userspec", "groups"}, operands: 1}},
	{"unshare", wrapper{short: "SGRwl", long: []string{"map-user", "map-group", "map-users", "map-groups", "setuid", "setgid", "root", "wd", "propagation", "setgroups"}}},
	{"nsenter", wrapper{short: "tSGWN", long: []string{"target", "setuid", "setgid", "wdns", "net-socket"}}},
	{"setpriv", wrapper{long: []string{"ambient-caps", "inh-caps", "bounding-set", "ruid", "euid", "rgid", "egid", "reuid", "regid", "groups", "securebits", "pdeathsig", "selinux-label", "apparmor-profile", "landlock-access", "landlock-rule", "seccomp-filter"}}},
	{"prlimit", wrapper{short: "po", long: []string{"pid", "output"}}},
	{"strace", wrapper{short: "abeEoOpPSsuIX", long: []string{"output", "trace", "expr", "user", "attach"}}},
	{"ltrace", wrapper{short: "aAeDFlnopsuwx"}},
	{"fakeroot", wrapper{short: "lsifb", long: []string{"lib", "faked"}}},
	{"faketime", wrapper{short: "f", operands: 1}},
	{"unbuffer", wrapper{}},
	{"rlwrap", wrapper{short: "abcCDefFgHlmMNoOpPqsStwz"}},
	{"catchsegv", wrapper{}},
	{"proxychains", wrapper{short: "f"}},
	{"torsocks", wrapper{short: "uPaip"}},
	{"numactl", wrapper{short: "iNCmpP"}},
	{"systemd-run", wrapper{short: "puEHMGtP", long: []string{"unit", "property", "description", "slice", "setenv", "uid", "gid", "nice", "working-directory", "host", "machine", "on-active", "on-calendar", "timer-property"}, chdir: "working-directory"}},
	{"caffeinate", wrapper{short: "tw"}},
	{"arch", wrapper{short: "e"}},
	{"xvfb-run", wrapper{short: "efnpsw"}},
	{"dbus-run-session", wrapper{long: []string{"config-file", "dbus-daemon"}}},
	{"busybox", wrapper{}},
	{"toybox", wrapper{}},
	{"builtin", wrapper{}},
	{"command", wrapper{after: "v V"}},
	{"exec", wrapper{short: "a"}},
	{"coproc", wrapper{}},
	{"nocorrect", wrapper{}},
	{"noglob", wrapper{}},
	{"xargs", wrapper{short: "adEILnPs", long: []string{"arg-file", "delimiter", "max-lines", "max-args", "max-procs", "max-chars", "process-slot-var"}, appends: true}},
	{"parallel", wrapper{short: "ajnNLPSIdCE", long: []string{"arg-file", "jobs", "max-args", "sshlogin", "delimiter", "colsep", "workdir", "joblog", "results"}, appends: true}},
	{"watch", wrapper{short: "nq", long: []string{"interval", "equexit"}, shell: true}},
	{"su", wrapper{short: "cgGsw", long: []string{"command", "group", "supp-group", "shell", "whitelist-environment", "session-command"}, command: "c command session-command", permutes: true}},
	{"runuser", wrapper{short: "cgGsuw", long: []string{"command", "group", "supp-group", "shell", "user", "whitelist-environment", "session-command"}, command: "c command session-command", permutes: true}},
	{"script", wrapper{short: "cEIOBTmo", long: []string{"command", "echo", "log-in", "log-out", "log-io", "log-timing", "logging-format", "output-limit"}, command: "c command", permutes: true}},
	{"flock", wrapper{short: "cwE", long: []string{"command", "wait", "timeout", "conflict-exit-code"}, operands: 1, command: "c command"}},
	{"sg", wrapper{short: "c", operands: 1, shell: true, command: "c"}},
	{"npx", wrapper{short: "pcw", long: []string{"package", "call", "workspace"}, command: "c call"}},
	{"bunx", wrapper{}},
	{"entr", wrapper{}},
}

// shells read a command string after -c, a file, or their standard input.
var shells = []string{"sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "rbash", "lksh", "yash"}

// foreignShells have a grammar that isn't judged.
var foreignShells = []string{"fish", "csh", "tcsh", "nu", "pwsh", "powershell", "elvish", "xonsh", "rc", "es", "cmd", "cmd.exe", "powershell.exe"}
