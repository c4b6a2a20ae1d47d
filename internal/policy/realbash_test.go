//go:build unix

package policy

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/abhed/abhed/internal/require"
	"pgregory.net/rapid"
)

// victimWords are ways to write the word "victim" in a shell.
var victimWords = []string{
	"victim", `vic""tim`, `vic''tim`, `\victim`, `v\ictim`, `$'vic\164im'`, `$'\x76ictim'`, `$'\x{76}ictim'`, `{victim,a}`, `"victim"`, `$"victim"`, `${X:-victim}`, `$(echo victim)`, "`echo victim`", `"$(printf victim)"`, `vi${NOTHING}ctim`, `$V`, `"$V"`, `${V}`,
	`$D/victim`, `../bin/victim`, `./../bin/victim`, `./vict*`, `./v?ctim`, `./[v]ictim`, `./vic["t"]im`, `v{ic,}tim`, `${V/x/y}`, `"${A[@]}"`, `$'\166\151ctim'`, "vic\\\ntim", `~/victim`, `command victim`, `exec victim`, `builtin command victim`, `eval victim`, `time victim`, `! victim`, `time -- victim`, `env victim`, `nohup victim`, `timeout 5 victim`, `nice -n 1 victim`,
	`env -i PATH="$PATH" D="$D" victim`, `env -S victim`, `env -S 'sh -c victim'`, `setsid victim`, `stdbuf -o0 victim`, `echo | xargs victim`, `echo victim | xargs env`, `echo victim | sh`, `sh <<<victim`, `bash -c victim`, `bash -c '"$0"' victim`, `bash -c '$1' x victim`, `f() { victim; }; f`, `f() { "$@"; }; f victim`, `alias q=victim; q`, "shopt -s expand_aliases\nalias q=victim\nq", `trap victim EXIT`,
	`set -- victim; "$@"`, `read x <<<victim; $x`, `printf -v x victim; $x`, `mapfile -t x <<<victim; "${x[0]}"`, `x=victim; ${!x:-$x}`, `x=x; declare -n x=V; $x`, `find . -maxdepth 0 -exec victim \;`, `find . -maxdepth 0 -exec sh -c victim \;`, `. <(echo victim)`, `source /dev/stdin <<<victim`, `coproc victim; wait`, `(victim)`, `{ victim; }`, `((victim)) || (victim)`, `((victim
) )`, `[[ -n $(victim) ]]`, `echo $(( $(victim; echo 1) ))`, `echo <(victim); sleep 0.1`, `echo x > >(victim); sleep 0.1`, `cat <<E
$(victim)
E`, `case x in x) victim;; esac`, `if victim; then :; fi`, `while victim; do break; done`, `until victim; do break; done`, `for i in a; { victim; }`, `for ((;;)); do victim; break; done`, `select i in a; do victim; break; done <<<1`, `x=$(victim)`, `x[$(victim)]=1`, `let x=$(victim)1`, `y='a[$(victim)]'; echo $((y))`, `echo ${y['$(victim)']}`,
	`declare -i z='a[$(victim)]'`, `y='$(victim)'; echo "${y@P}"`, `unset 'y[$(victim)]'`, `test -v 'y[$(victim)]'`, `PS4='$(victim)'; set -x; :`, `PROMPT_COMMAND=victim bash -i -c :`, `BASH_ENV=../bin/victim bash -c :`, `hash -p ../bin/victim q; q`, `cd ../bin && ./victim`, `PATH=../bin:$PATH q=1 victim`, `exec 3< <(victim); sleep 0.1`, `ls | while read x; do victim; break; done`, `git -c alias.q='!victim' q`, `GIT_PAGER=victim git --paginate version`, `victim
)`, `victim; fi`, `! ! victim`, `a[0]=1 victim`, `enable -n echo; victim`, `function g { victim; }; g`, `bash -s <<<victim`, `bash /dev/stdin <<<victim`, `bash <(echo victim)`, `xargs -I{} sh -c '{}' <<<victim`, `sh -c "$(echo victim)"`, `eval "$V"`, `eval 'vic'tim`, `eval eval victim`, `busybox sh -c victim`, `flock x victim`, `flock x -c victim`, `script -qc victim /dev/null`, `su -c victim`, `chroot / victim`, `unshare victim`, `taskset 1 victim`, `ionice victim`, `chrt -o 0 victim`, `setpriv victim`, `prlimit victim`, `watch -n1 -e victim`, `awk 'BEGIN{print 1}'`, `mapfile -C victim -c 1 x <<<a`, `complete -C victim q`, `BASH_CMDS[q]=../bin/victim; q`, `printf -v 'BASH_CMDS[q]' ../bin/victim; q`, `declare -A 'BASH_CMDS=([q]=../bin/victim)'; q`, "shopt -s expand_aliases; BASH_ALIASES[q]=victim\nq", `echo ${BASH_CMDS[q]:=../bin/victim}; q`, `read 'BASH_CMDS[q]' <<<../bin/victim; q`, `[[ x == @($(victim)) ]]`, `x=BASH_CMDS[q]; printf -v "$x" ../bin/victim; q`, `declare -n x=BASH_CMDS; x[q]=../bin/victim; q`, `eval 'BASH_''CMDS[q]=../bin/victim'; q`, `set -k; q BASH_ENV=../bin/victim; bash -c : BASH_ENV=../bin/victim`, `printf '%s\n' victim | bash -s --`,
}

// TestAgainstRealBash runs each spelling, alone and inside random constructs, in a
// real bash with a harmless program of that name, and holds that whenever the
// program ran the command was not judged "allow" under a rule that denies it.
func TestAgainstRealBash(t *testing.T) {
	bash := require.Path(t, "bash")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"bin", "work", "home"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// Each run has a marker of its own, so that a late child of one run isn't taken
	// for the work of the next.
	script := "#!" + bash + "\n: >> \"${MARK:-" + dir + "/ran}\"\n"
	for _, d := range []string{"bin", "work", "home"} {
		if err := os.WriteFile(filepath.Join(dir, d, "victim"), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	rs := rules(t, "deny bash(victim*)")
	w := world{base: dir, root: dir + "/work", home: dir + "/home", bin: "/usr/bin"}
	runs := 0
	run := func(command string) bool {
		runs++
		common, own := filepath.Join(dir, "ran"), filepath.Join(dir, fmt.Sprintf("ran%d", runs))
		if strings.Contains(command, "env -i") {
			_ = os.Remove(common)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		cmd := exec.CommandContext(ctx, bash, "-c", command)
		cmd.Dir = w.root
		cmd.Env = []string{"PATH=" + dir + "/bin:" + os.Getenv("PATH"), "HOME=" + w.home, "V=victim", "D=" + dir + "/bin", "TERM=dumb", "MARK=" + own}
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
		cmd.WaitDelay = 200 * time.Millisecond
		_ = cmd.Run() // whether it succeeds doesn't matter, only whether the program ran
		seen := func() bool {
			_, err := os.Stat(own)
			_, err2 := os.Stat(common)
			return err == nil || err2 == nil && strings.Contains(command, "env -i")
		}
		if !seen() && strings.ContainsAny(command, "&(<") {
			time.Sleep(30 * time.Millisecond) // what runs beside the shell may end after it
		}
		if cmd.Process != nil {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
		return seen()
	}
	ran := 0
	hold := func(t interface{ Errorf(string, ...any) }, command string) {
		got := rs.Evaluate(w.bash(ModeBypass, command))
		if got.Verdict != Allow {
			// Whether it would have run needs no proof.
			return
		}
		if run(command) {
			t.Errorf("bash ran the denied program in %q, which was allowed\n%s", command, got.Explain())
		}
	}
	for _, c := range victimWords {
		if run(c) {
			ran++
			if got := rs.Evaluate(w.bash(ModeBypass, c)); got.Verdict == Allow {
				t.Errorf("bash ran the denied program in %q, which was allowed\n%s", c, got.Explain())
			}
		} else {
			hold(t, c)
		}
	}
	// Most spellings do run it, or the test would show nothing.
	if ran < len(victimWords)/2 {
		t.Errorf("only %d of %d spellings ran the program", ran, len(victimWords))
	}
	soup := []string{"victim", "vic", "tim", " ", " ", "\n", ";", "&", "|", "(", ")", "{ ", "; }", "'", "\"", "\\", "$", "$(", "`", "<<E\n", "\nE\n", "<<'E'\n", "<<-E\n", "<<<", "#", "$'", "{", ",", "}", "!", "[[ ", " ]]", "((", "))", "$((", "echo ", "eval ", "x=", "$V", "if ", " then ", " fi", "for i in a; do ", " done", "case x in x) ", ";;", " esac", "*", "?", "~", "=", "sh -c ", "f() ", "f", "time ", "coproc ", "&&", "||", "\t", "\r", "<(", "@(", "2>&1 ", "</dev/null ", "\\\n", "${V", "function f ", "[", "]", "E", "if", "EOF", "$\"", "a", "while ", "select i in a; do ", "%", "^", ":", "+", "-", "--", "env ", "exec "}
	rapid.Check(t, func(rt *rapid.T) {
		hold(rt, strings.Join(rapid.SliceOfN(rapid.SampledFrom(soup), 1, 14).Draw(rt, "soup"), ""))
	})
	filler := []string{"echo a", "true", "x=1", "cd .", "[[ -n a ]]", "((1))", ": a", "false || true", "echo $V", "cat </dev/null", "f2() { :; }", "echo {a,b}", "export Q=1", "test -f x", "# c"}
	rapid.Check(t, func(rt *rapid.T) {
		c := rapid.SampledFrom(victimWords).Draw(rt, "spelling")
		for range rapid.IntRange(0, 3).Draw(rt, "depth") {
			if rapid.Bool().Draw(rt, "list") {
				c = rapid.SampledFrom(filler).Draw(rt, "filler") + rapid.SampledFrom([]string{"\n", "; ", " && ", " & ", " | "}).Draw(rt, "op") + c
				c = strings.ReplaceAll(c, "# c; ", "# c\n")
			} else {
				c = rapid.SampledFrom(wraps).Draw(rt, "wrap").wrap(c)
			}
		}
		hold(rt, c)
	})
}
