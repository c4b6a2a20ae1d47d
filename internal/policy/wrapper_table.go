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
var wrappers = map[string]wrapper{
	"env":              {short: "uCSa", long: []string{"unset", "chdir", "split-string", "argv0"}, assigns: true, chdir: "C chdir", command: "S split-string"},
	"sudo":             {short: "ughpCTrtURDcao", long: []string{"user", "group", "host", "prompt", "close-from", "command-timeout", "role", "type", "other-user", "chroot", "chdir"}, assigns: true, chdir: "D chdir"},
	"doas":             {short: "uCa"},
	"run0":             {short: "ugD", long: []string{"user", "group", "nice", "chdir", "unit", "property", "description", "slice", "setenv", "background"}, chdir: "D chdir"},
	"pkexec":           {long: []string{"user"}},
	"nohup":            {},
	"setsid":           {},
	"nice":             {short: "n", long: []string{"adjustment"}},
	"ionice":           {short: "cnpPu", long: []string{"class", "classdata", "pid", "pgid", "uid"}},
	"chrt":             {short: "TPDp", long: []string{"sched-runtime", "sched-period", "sched-deadline"}, operands: 1},
	"taskset":          {operands: 1},
	"stdbuf":           {short: "ioe", long: []string{"input", "output", "error"}},
	"timeout":          {short: "ks", long: []string{"kill-after", "signal"}, operands: 1},
	"gtimeout":         {short: "ks", long: []string{"kill-after", "signal"}, operands: 1},
	"time":             {short: "fo", long: []string{"format", "output"}},
	"chroot":           {long: []string{"userspec", "groups"}, operands: 1},
	"unshare":          {short: "SGRwl", long: []string{"map-user", "map-group", "map-users", "map-groups", "setuid", "setgid", "root", "wd", "propagation", "setgroups"}},
	"nsenter":          {short: "tSGWN", long: []string{"target", "setuid", "setgid", "wdns", "net-socket"}},
	"setpriv":          {long: []string{"ambient-caps", "inh-caps", "bounding-set", "ruid", "euid", "rgid", "egid", "reuid", "regid", "groups", "securebits", "pdeathsig", "selinux-label", "apparmor-profile", "landlock-access", "landlock-rule", "seccomp-filter"}},
	"prlimit":          {short: "po", long: []string{"pid", "output"}},
	"strace":           {short: "abeEoOpPSsuIX", long: []string{"output", "trace", "expr", "user", "attach"}},
	"ltrace":           {short: "aAeDFlnopsuwx"},
	"fakeroot":         {short: "lsifb", long: []string{"lib", "faked"}},
	"faketime":         {short: "f", operands: 1},
	"unbuffer":         {},
	"rlwrap":           {short: "abcCDefFgHlmMNoOpPqsStwz"},
	"catchsegv":        {},
	"proxychains":      {short: "f"},
	"torsocks":         {short: "uPaip"},
	"numactl":          {short: "iNCmpP"},
	"systemd-run":      {short: "puEHMGtP", long: []string{"unit", "property", "description", "slice", "setenv", "uid", "gid", "nice", "working-directory", "host", "machine", "on-active", "on-calendar", "timer-property"}, chdir: "working-directory"},
	"caffeinate":       {short: "tw"},
	"arch":             {short: "e"},
	"xvfb-run":         {short: "efnpsw"},
	"dbus-run-session": {long: []string{"config-file", "dbus-daemon"}},
	"busybox":          {},
	"toybox":           {},
	"builtin":          {},
	"command":          {after: "v V"},
	"exec":             {short: "a"},
	"coproc":           {},
	"nocorrect":        {},
	"noglob":           {},
	"xargs":            {short: "adEILnPs", long: []string{"arg-file", "delimiter", "max-lines", "max-args", "max-procs", "max-chars", "process-slot-var"}, appends: true},
	"parallel":         {short: "ajnNLPSIdCE", long: []string{"arg-file", "jobs", "max-args", "sshlogin", "delimiter", "colsep", "workdir", "joblog", "results"}, appends: true},
	"watch":            {short: "nq", long: []string{"interval", "equexit"}, shell: true},
	"su":               {short: "cgGsw", long: []string{"command", "group", "supp-group", "shell", "whitelist-environment", "session-command"}, command: "c command session-command", permutes: true},
	"runuser":          {short: "cgGsuw", long: []string{"command", "group", "supp-group", "shell", "user", "whitelist-environment", "session-command"}, command: "c command session-command", permutes: true},
	"script":           {short: "cEIOBTmo", long: []string{"command", "echo", "log-in", "log-out", "log-io", "log-timing", "logging-format", "output-limit"}, command: "c command", permutes: true},
	"flock":            {short: "cwE", long: []string{"command", "wait", "timeout", "conflict-exit-code"}, operands: 1, command: "c command"},
	"sg":               {short: "c", operands: 1, shell: true, command: "c"},
	"npx":              {short: "pcw", long: []string{"package", "call", "workspace"}, command: "c call"},
	"bunx":             {},
	"entr":             {},
}

// shells read a command string after -c, a file, or their standard input.
var shells = []string{"sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "rbash", "lksh", "yash"}

// foreignShells have a grammar that isn't judged.
var foreignShells = []string{"fish", "csh", "tcsh", "nu", "pwsh", "powershell", "elvish", "xonsh", "rc", "es", "cmd", "cmd.exe", "powershell.exe"}
