//go:build unix

package selfprotect_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed/internal/require"
)

// spellings are ways to name ~/.claude/settings.json, or .claude/settings.json of
// the project: what stands before the command, and the word.
func spellings() [][2]string {
	out := [][2]string{
		{"D=~/.claude; ", "$D/settings.json"}, {"D=.claude; ", "~/$D/settings.json"}, {"F=~/.claude/settings.json; ", "$F"}, {"F=~/.claude/settings.json; ", `"${F}"`},
		{"F=~/.claude/settings.jsonx; ", "${F%x}"}, {"F=x~/.claude/settings.json; G=$HOME; ", "$G/.claude/settings.json"}, {"A=.cl; B=aude; ", "~/$A$B/settings.json"},
		{"a=(x ~/.claude/settings.json); ", "${a[1]}"}, {"a=(~/.claude/settings.json); ", `"${a[@]}"`}, {"set -- ~/.claude/settings.json; ", `"$1"`}, {"set -- ~/.claude/settings.json; ", `"$@"`},
		{"read -r F <<< ~/.claude/settings.json; ", "$F"}, {"printf -v F %s/%s ~/.claude settings.json; ", "$F"}, {"F=~/.CLaude/settings.json; ", "${F,,}"}, {"F=~/.clXude/settings.json; ", "${F/X/a}"},
		{"N=F; F=~/.claude/settings.json; ", "${!N}"}, {"declare -n N=F; F=~/.claude/settings.json; ", "$N"}, {"F=/tmp/nothing; F=~/.claude/settings.json; ", "$F"}, {"F=~/.claude/settings.json; false && F=/tmp/nothing; ", "$F"},
		{"F=; ", "${F:-~/.claude/settings.json}"}, {"", "${NOPE:-$HOME/.claude/settings.json}"}, {"", "${NOPE:=$HOME}/.claude/settings.json"}, {"F=~/.claude/settings; F+=.json; ", "$F"},
		{"F=$(echo ~/.claude/settings.json); ", "$F"}, {"F=`printf %s ~/.claude`; ", "$F/settings.json"}, {"mapfile -t F <<< ~/.claude/settings.json; ", "${F[0]}"}, {"export D=$HOME/.claude; ", "$D/settings.json"},
		{"cd ~/.claude; ", "settings.json"}, {"cd ~/.claude && ", "./settings.json"}, {"cd ~; cd .claude; ", "settings.json"}, {"cd; ", ".claude/settings.json"}, {"pushd ~/.claude >/dev/null; ", "settings.json"},
		{"cd ~/.claude/skills; ", "../settings.json"}, {"cd ~/.cl*; ", "settings.json"}, {"cd link; ", "settings.json"}, {"cd -P link; ", "settings.json"}, {"cd ~/.claude; cd skills; cd ..; ", "settings.json"},
		{"cd sub; ", "../.claude/settings.json"}, {"cd .claude; ", "settings.json"}, {"X=$PWD; cd /; ", "$X/.claude/settings.json"}, {"cd ~/.claude; cd /; ", "$OLDPWD/settings.json"}, {"shopt -s dotglob; ", "~/*laude/settings.json"},
		{"pushd ~/.claude >/dev/null; pushd / >/dev/null; popd >/dev/null; ", "settings.json"}, {"cd ~/.claude; cd /; cd - >/dev/null; ", "settings.json"}, {"CDPATH=~/.claude; cd skills >/dev/null; ", "../settings.json"},
		{"q='*'; ", "~/.claude/sett$q"}, {"F='~/.claude/settings.json'; ", "$(eval echo $F)"}, {"D=$(cd ~/.claude && pwd); ", "$D/settings.json"}, {"while read -r F; do :; break; done <<< ~/.claude/settings.json; ", "$F"}, {"for F in ~/.claude/settings.json; do :; done; ", "$F"},
		{"f() { F=~/.claude/settings.json; }; f; ", "$F"}, {"f() { cd ~/.claude; }; f; ", "settings.json"}, {"alias x=y; cd ~/.claude/; ", "settings.json"}, {"P=.claude/settings.json; ", "~/$P"}, {"case x in x) F=~/.claude/settings.json;; esac; ", "$F"}, {"((1)) && F=~/.claude/settings.json; ", "$F"},
		{"f() { printf %s ~/.claude/settings.json; }; ", "$(f)"}, {"shopt -s extglob; ", "~/.@(claude|x)/settings.json"}, {"IFS=:; F=~/.claude:settings.json; set -- $F; ", "$1/$2"}, {"F=(settings json); ", "~/.claude/${F[0]}.${F[1]}"},
	}
	for _, w := range []string{
		"~/.claude/settings.json", "$HOME/.claude/settings.json", "${HOME}/.claude/settings.json", `"$HOME/.claude/settings.json"`, "@H/.claude/settings.json", "@H/../home/.claude/settings.json",
		"@H//.claude///settings.json", "~/./.claude/./settings.json", "~/.claude/skills/../settings.json", `~/.cla""ude/settings.json`, `~/'.claude'/"settings.json"`, `~/.cl\aude/settings\.json`, `$HOME$'/.claude/settings.json'`,
		`~/$'\x2eclaude/settings.json'`, `~/$'.cl\141ude'/settings.json`, "~/.cl*/settings.json", "~/.c?aude/settings.json", "~/.[c]laude/sett*", "~/.claude/*.json", "~/.claude/[r-t]ettings.json", "~/.claude/{settings,}.json",
		"{~,/nowhere}/.claude/settings.json", ".claude/settings.json", "./.claude/settings.json", "@P/.claude/settings.json", "../project/.claude/settings.json", "sub/../.claude/settings.json", "$PWD/.claude/settings.json",
		"~+/.claude/settings.json", "link/settings.json", "file-link", "./link/../.claude/settings.json", "$(pwd)/.claude/settings.json", "`echo ~`/.claude/settings.json", "$(printf '%s/%s' ~/.claude settings.json)",
		"$(dirname ~/.claude/x)/settings.json", "~/.cla${NOTHING}ude/settings.json", "~/.claude/$(basename /x/settings.json)", "$(realpath ~/.claude)/settings.json", "$(ls -d ~/.claude)/settings.json", "$(cd ~/.claude; pwd)/settings.json",
		"~/.claude/s*n", "~/.*/settings.json", ".cl*/settings.json", "/proc/self/cwd/.claude/settings.json", "$(find ~/.claude -name settings.json)", "$(readlink -f link)/settings.json", "~/.claude/settings.js\"o\"n", "~/.cl{au,}de/settings.json",
	} {
		out = append(out, [2]string{"", w})
	}
	return out
}

// writings are ways to change a file that %s stands for.
func writings() []string {
	return []string{
		"echo x > %s", "echo x >> %s", ": > %s", "echo x >| %s", "echo x &> %s", "rm -f %s", "rm %s", "unlink %s", "cp @P/x.json %s", "mv -f @P/skill.md %s", "tee %s < @P/x.json > /dev/null", "echo x | tee -a %s", "sed -i s/{/x/ %s", "sed -i.bak -e s/{/x/ -- %s",
		"sed -n w%s @P/skill.md", "truncate -s 0 %s", "dd of=%s if=/dev/null 2> /dev/null", "ln -sf @P/x.json %s", "chmod 600 %s", "install -m 600 @P/x.json %s", "mv %s @P/away", "cat @P/skill.md > %s", "perl -pi -e s/{/x/ %s", "exec 7> %s", "cp -f @P/skill.md -T %s",
		"for f in %s; do rm \"$f\"; done", "xargs rm <<< %s", "echo %s | xargs rm -f", "f() { rm \"$1\"; }; f %s", "bash -c 'rm \"$1\"' _ %s", "bash -c 'echo x > \"$0\"' %s", "echo %s | while read -r p; do rm \"$p\"; done", "{ echo x; } > %s", "(echo x) > %s",
		"find %s -delete", "find %s -exec rm {} \\;", "awk '{print > f}' f=%s @P/x.json", "sort -o %s @P/x.json", "python3 -c 'import sys; open(sys.argv[1], \"w\")' %s", "cat > /dev/null <(rm %s); wait", "X=%s; rm $X", "tac @P/x.json | cat > %s", "cmp -s @P/x.json %s; git diff --no-index --output=%s @P/x.json @P/skill.md",
		"set -- %s; rm -- \"$@\"", "diff @P/x.json @P/skill.md > %s", "if true; then rm %s; fi", "case x in x) rm %s;; esac", "rm %s &\nwait", "cat %s > @P/copy.json", "ls %s", "grep -c x %s", "cp %s @P/copy.json", "wc -l < %s",
	}
}

// around are ways to run a command that %s stands for.
func around() []string {
	return []string{
		"%s", "%s", "%s", "(%s)", "{ %s; }", "true && { %s; }", "false || { %s; }", "if true; then %s; fi", "while true; do %s; break; done", "f() { %s; }; f", "x=$(%s)", "bash <<'EOT'\n%s\nEOT", "eval \"$(cat <<'EOT'\n%s\nEOT\n)\"",
		"cat <<'EOT' | bash\n%s\nEOT", "! { %s; }", "time { %s; }", "{ %s; } | cat", "cat /dev/null | { %s; }", "[[ -n $(%s) ]]", "trap '' INT; %s", "set -e\n%s", "# a comment\n%s # another", "X=1; %s; echo done",
	}
}

// watched are the files whose change counts, relative to the base of a world.
func watched() []string {
	return []string{"home/.claude/settings.json", "project/.claude/settings.json", "home/.codex/config.toml", "home/.config/ahp/registration.json", "project/.ahp/registration.json", "project/crush.json"}
}

// state returns what shows whether a watched file was changed.
func state(base string) string {
	var b strings.Builder
	for _, name := range watched() {
		data, err := os.ReadFile(filepath.Join(base, name))
		info, _ := os.Lstat(filepath.Join(base, name))
		mode := os.FileMode(0)
		if info != nil {
			mode = info.Mode()
		}
		fmt.Fprintf(&b, "%s %q %v %v\n", name, data, err != nil, mode)
	}
	return b.String()
}

// TestAgainstRealBash runs random spellings in a real bash with a home that is
// thrown away, and holds that whatever changed a protected file is denied.
func TestAgainstRealBash(t *testing.T) {
	bash := require.Path(t, "bash")
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	fill(t, base)
	w := makeWorld(t)
	names := map[[2]string]bool{}
	random := rand.New(rand.NewPCG(seed(t), 2))
	runs := 240
	if testing.Short() || raced {
		runs = 80
	}
	if n := os.Getenv("SELFPROTECT_RUNS"); n != "" {
		if _, err := fmt.Sscan(n, &runs); err != nil {
			t.Fatal(err)
		}
	}
	changed, spared, before := 0, 0, state(base)
	for range runs {
		s, wr, ar := pick(random, spellings()), pick(random, writings()), pick(random, around())
		line := strings.ReplaceAll(ar, "%s", s[0]+strings.ReplaceAll(wr, "%s", s[1]))
		here := strings.NewReplacer("@H", base+"/home", "@P", base+"/project").Replace(line)
		runBash(t, bash, base, here)
		if state(base) == before {
			spared++
			continue
		}
		changed++
		names[s] = true
		fresh(t, base)
		if w.command(t, w.fillIn(line)) == "" {
			t.Errorf("changed a protected file and isn't denied:\n%s", line)
		}
	}
	t.Logf("%d commands changed a protected file, in %d spellings; %d didn't", changed, len(names), spared)
	if changed < runs/3 {
		t.Errorf("only %d of %d commands changed a file: the test has lost its teeth", changed, runs)
	}
}

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

// seed is fixed, unless the environment says otherwise.
func seed(t *testing.T) uint64 {
	n := uint64(1)
	if s := os.Getenv("SELFPROTECT_SEED"); s != "" {
		if _, err := fmt.Sscan(s, &n); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// fresh makes the world of a base anew.
func fresh(t *testing.T, base string) {
	t.Helper()
	for _, dir := range []string{"home", "project"} {
		if err := os.RemoveAll(filepath.Join(base, dir)); err != nil {
			t.Fatal(err)
		}
	}
	fill(t, base)
}

func runBash(t *testing.T, bash, base, command string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, bash, "-c", command)
	cmd.Dir = base + "/project"
	cmd.Env = []string{"HOME=" + base + "/home", "PATH=/usr/local/bin:/usr/bin:/bin", "TMPDIR=" + base, "GIT_CONFIG_NOSYSTEM=1"}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Second
	_ = cmd.Run() // many fail, and that is fine
	if ctx.Err() != nil {
		t.Fatalf("bash didn't end: %s\n%s", command, out.String())
	}
}

// TestReadingStaysAllowed holds that no spelling makes reading a change.
func TestReadingStaysAllowed(t *testing.T) {
	w := makeWorld(t)
	for _, s := range spellings() {
		for _, read := range []string{"cat %s", "cat %s > /tmp/copy.json", "ls -l %s", "grep -c x %s", "cp %s /tmp/copy.json", "wc -l < %s", "jq .hooks %s | head", "diff %s /tmp/x.json", "sed -n 1,3p %s"} {
			command := w.fillIn(s[0] + strings.ReplaceAll(read, "%s", s[1]))
			if why := w.command(t, command); why != "" {
				t.Errorf("denied: %s\n\t%s", command, why)
			}
		}
	}
}
