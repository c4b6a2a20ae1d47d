package policy

import "testing"

func TestRunners(t *testing.T) {
	w := newWorld(t)
	rs := rules(t, "deny bash(rm *)", "allow bash(ssh *)", "allow bash(ls *)", "allow bash(docker *)")
	for _, c := range []struct {
		command string
		want    Verdict
	}{
		{"ssh host rm x", Deny}, {"ssh -p 22 -i key user@host 'cd x && rm y'", Deny}, {"ssh host -- rm x", Deny}, {"docker exec -it c rm x", Deny}, {"docker exec -u root -w /x c sh -c 'rm x'", Deny}, {"docker exec --user root c rm x", Deny},
		{"ssh host ls /", Allow}, {"ssh host make", Ask}, {"docker exec c ls /", Allow}, {"ssh host $X", Ask}, {"ssh $X rm y", Deny}, {"ssh host", Allow}, {"docker ps", Allow}, {"/usr/bin/ssh host rm x", Deny},
	} {
		in := w.bash(ModeDefault, c.command)
		in.Env.Runners = []string{"ssh", "docker exec"}
		check(t, rs, in, c.want, "")
	}
	// Without the setting an unknown program with such arguments asks.
	for _, c := range []string{"ssh host rm x", "ssh host 'cd y; rm x'", "docker exec c rm x", "kubectl exec p -- rm x", "ssh h \"cd x && rm y\""} {
		check(t, rs, w.bash(ModeBypass, c), Ask, StepUnjudgeable)
	}
	check(t, rules(t), w.bash(ModeBypass, "ssh host 'cd x && rm -rf y'"), Ask, StepUnjudgeable)
}

// TestTricks collects what was found by trying to get around the rules.
func TestTricks(t *testing.T) {
	w := newWorld(t)
	rs := rules(t, "deny bash(rm *)", "deny read(.env)", "allow bash(echo *)")
	for _, c := range []string{
		"time -- rm x", "env --split 'rm x'", "env --split='rm x'", "su --comm 'rm x'", "env --chd sub cat ../.env", "timeout 5 -- rm x", "exec -- rm x", "command -- rm x", "builtin eval 'rm x'", "echo $(<.env)", "echo \"$(< .env)\"", "while read x; do echo $x; done < .env", "rm x\n)", "rm x; fi", "rm x\nif", "((rm x\n)\n)", "! ! rm x",
		"f() { cat .env; }; f", "bash -c 'cat .env'", "env -C sub cat ../.env", "cat < sub/../.env", "exec < .env", "exec 5<.env", "echo x | cat .env -", "case x in x) rm y;& z) ;; esac", "select i in a; do rm x; done", "for i; do rm x; done", "for i in a; { rm x; }", "coproc X { rm x; }",
		"rm() { :; }; rm x", "rm \\\n x", "'rm' x", "\"rm\" x", "r''m x", "$'rm' x", "{rm,x}", "if rm x; then :; fi", "true | rm x", "rm x &", "a=1 rm x", "a=1 b=2 rm x", ">/dev/null rm x", "2>&1 rm x", "{ rm x; } 2>/dev/null", "(((1))) ; rm x",
		"x=$(rm y) echo", "echo ${x:=$(rm y)}", "echo ${x:$(rm y)}", "echo ${x[$(rm y)]}", "[[ a == $(rm y) ]]", "[[ -f $(rm y) ]]", "(( x = $(rm y) ))", "for ((i=$(rm y);;)); do break; done", "let x=$(rm y)", "echo <(rm y)", "echo >(rm y)", "cat <<<\"$(rm y)\"", "declare x=$(rm y)", "local x=$(rm y)", "readonly x=`rm y`", "export x=\"$(rm y)\"", "a=($(rm y))", "declare -A a=([$(rm y)]=1)", "echo $[$(rm y)]", "echo \"${x:-$(rm y)}\"", "echo ${x//$(rm y)/}", "echo ${x^^$(rm y)}", "echo $'\\n'$(rm y)", "cat <<E\n${x:-`rm y`}\nE", "trap -- 'rm y' INT", "bash --posix -c 'rm y'", "bash +e -c 'rm y'", "bash -ic 'rm y'", "dash -c 'rm y'", "/usr/bin/env bash -c 'rm y'", "env -i PATH=/bin rm y", "nohup sh -c 'rm y' >/dev/null &", "git -c user.name=x -C . --no-pager status; rm y",
	} {
		check(t, rs, w.bash(ModeBypass, c), Deny, StepDenyRule)
	}
	for _, c := range []string{
		"let \"a[\\$(rm y)]\"", "(( 'a[$(rm y)]' ))", "echo ${x:'a[$(rm y)]'}", "echo ${a['$(rm y)']}", "[[ x -eq 'a[$(rm y)]' ]]", "for ((i='a[$(rm y)]';;)); do break; done", "declare -i x='a[$(rm y)]'", "x=$'\\x24(rm y)'; echo ${x@P}", "read 'a[$(rm y)]'", "unset 'a[$(rm y)]'",
		"rm${IFS}x", "CDPATH=/x; cd sub; cat .env", "cd() { builtin cd $1; }; cd sub; cat .env", "set -H", "set -o histexpand", "fc -s rm", "shopt -s cdable_vars; cd x; cat .env", "pushd; cat .env", "r${x}m y", "$(echo rm) y", "`echo rm` y", "set -- rm y; \"$@\"", "x=(rm y); \"${x[@]}\"", "IFS=,; x=rm,y; $x", "f() { $1 y; }; f rm", "PATH=/x; $0 y", "r\u200bm y", "rm\r y", "a[0]=1 rm x", "printf 'rm y' | sh", "sh <(echo rm y)", "sh < x", "cat x | bash -s", "bash -c \"$(cat x)\"", "eval \"$x\"", "source <(echo rm y)", "enable -n echo; echo x", "PROMPT_COMMAND=$x bash", "BASH_ENV=/x bash y", "ENV=/x sh y", "env BASH_ENV=/x bash y", "export BASH_ENV=/x", "env -S \"rm\\ty\"",
		"cat ${x}.env", "cat .en[v]", "cat .{env}$x", "cat ./.e\"$x\"", "cd $x; cat .env", "cat $(echo .env)", "cat `echo .env`", "cat ~-/.env", "cat ~+/.env", "cat \"$PWD/.env\"", "cat $PWD/.env", "cat .env$x", "cat .env*", "cat *", "cat .*", "cat ??nv", "tar c $x", "while read f; do cat $f; done < list",
	} {
		got := rs.Evaluate(w.bash(ModeBypass, c))
		if got.Verdict == Allow {
			t.Errorf("%q is allowed\n%s", c, got.Explain())
		}
	}
	// What must not be seen as more than it is.
	for _, c := range []string{
		"echo rm x", "grep -rn 'rm x' .", "git commit -m 'rm x'", "echo 'rm x'", "cat <<'E'\nrm x\nE", "# rm x\ntrue", "echo a # rm x", "true 'rm'", "x='rm y'", "ls *.go", "go test ./... 2>&1 | tail -5", "for f in a b; do go vet $f; done"[:0] + "go vet ./...", "echo $? $# $((1+2)) ${#x}", "[[ -f x && -n y ]]", "((i++))", "if [ -f go.mod ]; then go build; fi", "cd sub && go test", "test -f x || echo no", "python3 -c 'print(1)'", "make -j4 CC=gcc", "export A=b", "A=b make", "command -v rm", "type rm", "which rm", "bash script.sh", "source venv/bin/activate", "sh --version", "git status && git diff --stat", "git log --oneline -5 | cat", "npm run build", "sed -i 's/a/b/' x.go", "find . -name '*.go' -type f", "awk '{print $1}' x", "printf '%s\\n' a", "echo done > out.txt", "mkdir -p a/b && touch a/b/c", "curl -s https://x | jq .", "sleep 1 &", "wait", "kill %1", "docker build -t x .", "trap - EXIT", "echo hi >&2", "time go test", "function f { echo x; }; f",
	} {
		check(t, rs, w.bash(ModeBypass, c), Allow, StepMode)
	}
}

func TestTruncation(t *testing.T) {
	w := newWorld(t)
	runShell(t, w, rules(t), ModeBypass, []shellCase{
		{"> x", Ask, StepDestructive}, {": > x", Ask, StepDestructive}, {"true >| x", Ask, StepDestructive}, {"x=1 > y", Ask, StepDestructive}, {"$(<x)", Ask, StepUnjudgeable}, {">> x", Allow, ""}, {": >> x", Allow, ""}, {"< x", Allow, ""}, {"echo a > x", Allow, ""}, {": > /dev/null", Allow, ""},
	})
}

// TestAllowNeedsEveryPart covers what allow rules must not reach.
func TestAllowNeedsEveryPart(t *testing.T) {
	w := newWorld(t)
	rs := rules(t, "allow bash(go test*)", "allow bash(git log*)", "allow bash(timeout *)", "allow bash(echo *)", "allow bash(cd *)", "allow bash(time *)")
	runShell(t, w, rs, ModeDefault, []shellCase{
		{"go test ./...", Allow, ""}, {"timeout 60 go test ./...", Allow, ""}, {"timeout 60 go build", Ask, ""}, {"nohup go test", Ask, ""}, {"cd sub && go test", Allow, ""}, {"time go test", Allow, ""}, {"go test && git log -1 && echo ok", Allow, ""}, {"go test; go build", Ask, ""},
		{"A=1 go test", Ask, ""}, {"LC_ALL=C go test", Allow, ""}, {"LC_ALL=C", Allow, ""}, {"A=1", Ask, ""}, {"export A=1", Ask, ""}, {"go test $(go env)", Ask, ""}, {"go test <(go build)", Ask, ""}, {"go test ${x:-$(go build)}", Ask, ""}, {"echo `go build`", Ask, ""},
		{"go test $X", Allow, ""}, {"go $X", Ask, ""}, {"GO=x; go test", Ask, ""}, {"bash -c 'go test'", Ask, ""}, {"if go test; then echo ok; fi", Allow, ""}, {"for i in 1 2; do go test; done", Allow, ""}, {"go() { go build; }; go test", Ask, ""}, {"(go test)", Allow, ""}, {"go test & go test", Allow, ""}, {"[[ -f x ]] && go test", Allow, ""},
		{"", Ask, ""}, {"# nothing", Ask, ""}, {"go test \\\n ./...", Allow, ""}, {"/usr/bin/go test", Ask, ""}, {"go\ttest", Allow, ""}, {"'go test' x", Ask, ""}, {"go 'test ./...'", Allow, ""},
	})
	harmless := w.bash(ModeDefault, "CGO_ENABLED=0 go test")
	harmless.Env.EnvHarmless = []string{"CGO_ENABLED"}
	check(t, rs, harmless, Allow, StepAllowRule)
}
