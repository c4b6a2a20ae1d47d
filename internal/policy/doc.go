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
//   - Hard links have no name of their own to compare.
//   - A place is where a path landed when it was judged. Whoever opens it follows
//     no link and compares device and inode.
package policy
