// Package policy holds the rules that judge a tool call, and the values that a
// judgement is made of.
//
// It guarantees that an Objection can't grant anything, that joining never
// lowers a Verdict, and that evaluating a call runs nothing: shell commands are
// parsed, paths and programs are looked up, and that is all. The time of an
// evaluation is bounded by the bounds on a command (64 KiB, 1,024 parts). A
// Ruleset is immutable and safe for concurrent use. Adding a deny or an ask rule,
// wrapping a command, or choosing a stricter mode never makes a verdict less
// strict.
//
// # How a command is judged
//
// A command line becomes parts: every simple command that may run, those behind
// wrappers, in command strings and in substitutions included. A word that isn't
// known before the command runs is carried as an unknown stretch, and a rule
// either matches it whatever it becomes, or may match it, which makes the command
// unjudgeable. Redirections are judged as files, words that name files are
// compared with the rules of read and write, and the directory is followed
// through literal "cd".
//
// Variables are followed as far as they change what is judged. What gives names
// another meaning (BASH_CMDS, BASH_ENV) is unjudgeable; what decides which program
// a name means (PATH, LD_*) is covered by no mode below bypass; and no allow rule
// with a pattern covers a line that sets any other variable which programs may see.
// Options, settings and scripts of well-known programs that hold commands
// (`git -c core.pager`, `tar --to-command`, `sed e`) are judged as commands, or are
// unjudgeable where they aren't literal. The work is bounded besides the bounds on
// the text: 512 words for a program whose arguments may be run, 1,024 files.
//
// A backslash in a path is an ordinary character on this system; a deny or ask
// rule also sees the path with "/" in its place.
//
// # What not to assume
//
//   - "Allow" here doesn't mean that a tool may run: the gate joins it with the
//     objections of extensions and backends and issues the permit.
//   - What a program does with its arguments is not known. A script, an
//     interpreter's one-liner, a file written earlier and run later, a program
//     copied to another name, a directory named whole: no rule about commands sees
//     into them. The bound for those is the sandbox.
//   - Hard links have no name of their own to compare: a second name of a file, made
//     in a place where no rule forbids it, is that file under a name that no rule
//     knows. Neither evaluation nor Hidden and Frozen find it; a sandbox that can't
//     write outside the roots can't make one across file systems, but within one it
//     can.
//   - A place is where a path landed when it was judged. Whoever opens it follows
//     no link and compares device and inode.
package policy
