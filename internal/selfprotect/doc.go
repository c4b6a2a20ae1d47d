// Package selfprotect denies an agent's own changes of what holds the hooks that
// watch it: every host's hook configuration in every scope, and AHP's registration,
// trust store, log, socket and binary. It judges the tool calls of any host before
// they run.
//
// It guarantees that a call is denied which names such a file in a tool that writes,
// edits, patches, moves or deletes, in a command of the shell that isn't plainly
// reading, or in a text that an interpreter is given to run, however the name is
// spelled: with "~" or a variable, over "..", "//" or a symbolic link, quoted,
// as a glob or a brace expansion, after "cd" or in a tool's own directory, put
// together from variables of the same command, or as a file URL; that a call is
// denied which tells AHP to uninstall, install, trust or stop, kills its service, or
// starts an agent with its hooks turned off; and that reading stays allowed, as does
// everything that it has no opinion about. A command that can't be parsed is denied
// where it mentions the parts of a protected name, and else left alone. A project's
// hook configuration is protected in every folder, for an agent can be started in
// any. What a folder holds that only a whole tree names ("rm -rf ~") counts as far
// as it exists.
//
// Do not assume that it sees:
//   - what a program does that was written in an earlier call: only the text of this
//     call is judged, not the files that it runs; archives that are unpacked in a
//     project; patches that aren't there yet or have more than 1 MiB;
//   - names that are computed: encoded (base64, character codes), reversed, fetched,
//     or read from a file or from a variable that the command doesn't set, unless
//     enough of the name stands there ("$X/.claude/settings.json" is seen,
//     "$X/settings.json" isn't);
//   - hard links, bind mounts and open descriptors that were made before;
//   - programs that are called like one that reads and aren't it (PATH, hash -p),
//     and what a program that only reads writes by its own configuration;
//   - files found by what is in them ("grep -l … | xargs sed -i"), and git where it
//     changes a whole tree without naming a file (checkout, reset, pull);
//   - a tree that is copied to a folder that is no home and none of the session's
//     roots, for an agent to be started in later;
//   - what PowerShell and cmd do, beyond the names in their text;
//   - the start-up files of a shell, services and jobs that run later, another
//     account's files by its own names, other machines;
//   - case: it is ignored only on macOS and Windows, or where Options.Fold says so.
//
// It looks at the file system that it runs on, which must be the harness's, and the
// file system can change after the judgement. It is a guard against an agent that
// goes astray, not a sandbox: only the managed scope and file permissions bind a
// determined program.
package selfprotect
