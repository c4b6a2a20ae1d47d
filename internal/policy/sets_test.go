package policy

import (
	"strings"
	"testing"
)

// meaningChanges are command lines that give names another meaning in a way that
// no rule can follow.
var meaningChanges = []string{
	"BASH_CMDS[ls]=/bin/rm; ls -rf dir", "printf -v 'BASH_CMDS[cat]' /bin/rm; cat -rf dir", "declare -A 'BASH_CMDS=([date]=/bin/rm)'; date -rf dir", "shopt -s expand_aliases; BASH_ALIASES[zz]='rm -rf dir'\nzz",
	"BASH_CMDS+=([ls]=/bin/rm); ls x", "typeset 'BASH_ALIASES[q]=rm x'", "declare BASH_CMDS[ls]=/bin/rm; ls x", "builtin declare 'BASH_CMDS[ls]=/bin/rm'; ls x", "command export 'BASH_ENV=x'", "f() { local 'BASH_CMDS[ls]=/bin/rm'; ls x; }; f", "readonly BASH_ENV=x",
	"read 'BASH_CMDS[ls]' <<<x; ls", "read -r -a BASH_CMDS <<<x", "echo ${BASH_CMDS[ls]:=/bin/rm}; ls x", "echo \"${BASH_ALIASES[q]=rm x}\"", "cat <<E\n${BASH_CMDS[ls]:=/bin/rm}\nE\nls x", "case ${BASH_CMDS[ls]:=/bin/rm} in x) ;; esac", "[[ ${BASH_CMDS[ls]:=x} ]]", "mapfile BASH_CMDS < x", "readarray -t BASH_CMDS < x",
	"getopts x BASH_ENV", "for BASH_ENV in ./x; do bash y; done", "select ENV in x; do sh y; done", "coproc BASH_CMDS { :; }", "exec {BASH_CMDS[ls]}<x"[:0] + "((BASH_CMDS[ls]=5))", "let 'BASH_CMDS[ls]=5'", "wait -p 'BASH_CMDS[ls]'", "x='BASH_CMDS[ls]=5'; ((x))", "env BASH_ENV=x bash y", "unset SHELLOPTS", "EXECIGNORE='/bin/*'; ls", "BASHOPTS=expand_aliases bash x", "SHELLOPTS=x bash y",
	"eval 'BASH_''CMDS[ls]=/bin/rm'; ls x", "declare \"$x\"", "export \"$x=1\"", "read $x", "printf -v \"$x\" y", "printf -v$x y", "echo ${!x:=y}", "((${x}=5))", "unset $x", "getopts x $y", "mapfile \"$x\"", "local $x", "export $(cat x)", "declare -n x=BASH_CMDS", "local -n x=y", "declare -$x y", "set -k; ls PATH=x", "set -o keyword", "shopt -so keyword", "bash -k -c 'ls PATH=x'", "zsh -c 'aliases[ls]=rm; ls x'", "zsh -c 'commands[ls]=/bin/rm; ls x'", "zsh -c 'path=(./bin); ls'",
	"for PAGER in ./x; do git log; done", "read GIT_EDITOR <<<x", "PS4='$(x)'", "PROMPT_COMMAND=$x", "export GIT_EDITOR=$x", "[[ x == @($(ls)) ]]", "printf -v BASH_ENV x", "echo {BASH_CMDS,x}[a]=b; declare {BASH_CMDS,y}[ls]=/bin/rm", "GIT_CONFIG_COUNT=1 git x", "env GIT_CONFIG_KEY_0=x git y",
}

// turnsOfPath are command lines that change which program a name finds.
var turnsOfPath = []string{
	"for PATH in ./bin; do ls; done", "((PATH=5)); ls", "let PATH=5; ls", "let 'PATH=5'; ls", "select PATH in ./bin; do ls; done <<<1", "echo ${PATH:=./bin}; ls", "echo ${PATH=./bin}; ls", "echo $((PATH=1)); ls", "echo $[PATH=1]; ls", "echo ${a[PATH=1]}; ls", "a[PATH=1]=2; ls", "echo ${x:PATH=1}; ls", "echo ${x:0:PATH=1}; ls", "[[ PATH=1 -eq 1 ]]; ls", "[[ 1 -lt PATH++ ]]; ls", "[[ -v a[PATH=1] ]]; ls", "case $((PATH=1)) in x) ;; esac; ls", "cat <<E\n$((PATH=1))\nE\nls", "cat <<<$((PATH=1)); ls",
	"coproc PATH { ls; }; ls", "exec {PATH}<x; ls", "ls {PATH}</dev/null; ls", "read PATH <<<./bin; ls", "read -r a PATH <<<'x ./bin'; ls", "read -a PATH <<<./bin; ls", "read -raPATH <<<./bin; ls", "getopts x PATH; ls", "mapfile PATH <<<./bin; ls", "readarray -t PATH <<<./bin; ls", "printf -v PATH ./bin; ls", "printf -vPATH ./bin; ls", "wait -p PATH; ls", "for ((PATH=1;;)); do ls; break; done", "((PATH++)); ls", "((x=PATH=5)); ls", "((1?PATH=5:0)); ls", "(('PATH=5')); ls", "((\"PATH=5\")); ls", "((PATH+=5)); ls",
	"export PATH=./bin; ls", "export PATH; ls", "declare PATH=./bin; ls", "declare -x PATH=./bin; ls", "typeset PATH=./bin; ls", "readonly PATH=./bin; ls", "f() { local PATH=./bin; ls; }; f", "f() { local PATH; ls; }; f", "unset PATH; ls", "unset -v PATH; ls", "PATH=./bin ls", "PATH=./bin; ls", "PATH+=:x ls", "PATH=(./bin); ls", "PATH[0]=./bin; ls", "env PATH=./bin ls", "declare 'PATH=./bin'; ls", "builtin export PATH=./bin; ls", "eval 'PA''TH=./bin'; ls", "[ -v 'a[PATH=1]' ]; ls", "test -v 'a[PATH=1]'; ls", "echo {a,$((PATH=1))}; ls", "echo ${x:-$((PATH=1))}; ls", "echo \"${x:-${PATH:=./bin}}\"; ls", "x=$((PATH=1)) ls", "> $((PATH=1)); ls"[:0] + "ls < f$((PATH=1)); ls",
	"LD_PRELOAD=./x.so ls", "export LD_LIBRARY_PATH=.; ls", "for LD_PRELOAD in ./x; do ls; done", "DYLD_INSERT_LIBRARIES=x ls", "read LD_AUDIT <<<x; ls", "GIT_EXEC_PATH=. git status", "BASH_COMPAT=3 ls",
}

// otherVariables are command lines that set what some program may obey.
var otherVariables = []string{
	"for HOME in ./h; do git status; done", "read HOME <<<./h; git status", "echo ${IFS:=x}; ls", "read IFS <<<x; ls", "for CDPATH in /; do cd x; done", "printf -v GLOBIGNORE x; ls", "((GIT_DIR=5)); git status", "read GIT_DIR <<<x; git status", "for GIT_WORK_TREE in x; do git status; done", "export GIT_DIR; git status", "unset GIT_DIR; git status", "declare -x GIT_DIR; git status", "echo $((XDG_CONFIG_HOME=1)); git status", "printf -v NODE_OPTIONS x; ls",
	"set -a; for f in x; do ls; done", "set -o allexport; read x; ls", "export f; for f in x; do ls; done", "read n <<<'PATH=5'; ((n)); ls", "for x in PATH=5; do ((x)); ls; done", "for x in PATH=5; do echo $((x)); ls; done", "for x in PATH=5; do echo ${a[x]}; ls; done", "for x in PATH=5; do [[ $x -eq 1 ]]; ls; done", "echo $(($(echo PATH=5))); ls", "set -- PATH=5; (($1)); ls", "echo $(( ${!x} )); ls", "for x in PATH=5; do echo ${a:x}; ls; done", "printf -v x PATH=5; let x; ls", "read a; echo $((b+${a})); ls",
}

// TestMeaningOfNames holds that a command line can't give names another meaning
// and still be judged by them.
func TestMeaningOfNames(t *testing.T) {
	w := newWorld(t)
	deny := rules(t, "deny bash(rm *)")
	var allow []string
	for _, p := range []string{"ls", "echo", "git status", "cd", "read", "printf", "export", "declare", "set", "unset", "getopts", "mapfile", "readarray", "wait", "typeset", "local", "readonly", "let", "cat", "exec", "test", "[", "builtin", "eval", "env", "f", "cp"} {
		allow = append(allow, "allow bash("+p+" *)", "allow bash("+p+")")
	}
	allowing := rules(t, append(allow, "deny bash(rm *)")...)
	for _, c := range meaningChanges {
		check(t, deny, w.auto(c), Ask, StepUnjudgeable)
		check(t, deny, w.bash(ModeBypass, c), Ask, StepUnjudgeable)
	}
	for _, c := range turnsOfPath {
		check(t, allowing, w.bash(ModeDefault, c), Ask, "")
		check(t, deny, w.auto(c), Ask, "")
	}
	for _, c := range otherVariables {
		check(t, allowing, w.bash(ModeDefault, c), Ask, "")
	}
	// A rule without a pattern is about every command.
	check(t, rules(t, "allow bash"), w.bash(ModeDefault, "PATH=./bin ls"), Allow, StepAllowRule)
	// What only the shell sees is no harm, unless the environment has it too.
	for _, c := range []string{"for f in a b; do ls $f; done", "while read -r line; do echo \"$line\"; done < x", "for ((i=0; i<3; i++)); do echo $i; done", "echo $((1 + 2))", "for i in 1 2 3; do echo $((i * 2)); done", "for i in {1..9}; do echo $((i+1)); done", "echo ${x:=y}", "printf -v out %s x; echo $out", "mapfile -t lines < x; echo ${lines[0]}", "if ((n > 3)); then ls; fi", "[[ $a -eq 3 ]] && ls", "unset LANG; ls", "declare -p PATH", "export -p", "exec {fd}<x; ls", "read -r; ls", "declare -f ls", "((n++)); ls", "let n=n+1; ls"} {
		check(t, allowing, w.bash(ModeDefault, c), Allow, StepAllowRule)
	}
	in := w.bash(ModeDefault, "for f in a b; do ls $f; done")
	in.Env.Getenv = func(name string) string { return strings.Repeat("x", strings.Count("f", name)) }
	check(t, allowing, in, Ask, StepDefault)
	in.Env.EnvHarmless = []string{"f"}
	check(t, allowing, in, Allow, StepAllowRule)
}
