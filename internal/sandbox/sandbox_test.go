package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/abhed/abhed/internal/proc"
	"github.com/abhed/abhed/internal/require"
	"github.com/abhed/abhed/internal/sandbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParseTier(t *testing.T) {
	for _, name := range []string{"none", "process", "container"} {
		tier, err := sandbox.ParseTier(name)
		if err != nil || tier.String() != name {
			t.Errorf("ParseTier(%q) = %v, %v", name, tier, err)
		}
	}
	for _, name := range []string{"", "unset", "Process", "full"} {
		if tier, err := sandbox.ParseTier(name); err == nil {
			t.Errorf("ParseTier(%q) = %v", name, tier)
		}
	}
	if !(sandbox.TierNone < sandbox.TierProcess && sandbox.TierProcess < sandbox.TierContainer) {
		t.Error("the tiers are not ordered")
	}
}

func TestZeroPlanRunsNothing(t *testing.T) {
	_, err := sandbox.Plan{}.Confine(proc.Spec{Path: "true"}, sandbox.Policy{})
	var refused *sandbox.PolicyError
	if !errors.As(err, &refused) {
		t.Fatalf("the zero plan confined: %v", err)
	}
}

func TestNeverADowngrade(t *testing.T) {
	report := sandbox.Detect(context.Background(), sandbox.Memory{})
	_, err := report.Plan(sandbox.TierContainer)
	var missing *sandbox.UnavailableError
	if !errors.As(err, &missing) || !strings.Contains(err.Error(), "--min-tier") || len(missing.Tried) == 0 {
		t.Errorf("container: %v", err)
	}
	if _, err := report.Plan(0); err == nil {
		t.Error("a plan for no tier at all")
	}
	t.Setenv("PATH", t.TempDir())
	report = sandbox.Detect(context.Background(), sandbox.Memory{})
	if _, err := report.Plan(sandbox.TierProcess); err == nil || !strings.Contains(err.Error(), "bwrap is not in PATH") {
		t.Errorf("process without bwrap: %v", err)
	}
	plan, err := report.Plan(sandbox.TierNone)
	if err != nil || plan.Tier() != sandbox.TierNone || plan.Backend() != "none" || len(plan.Gaps()) == 0 {
		t.Errorf("none: %+v, %v", plan, err)
	}
}

func TestDetectSaysWhyATrialFailed(t *testing.T) {
	require.Path(t, "bwrap")
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/bwrap", []byte("#!/bin/sh\necho 'bwrap: no luck' >&2\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	_, err := sandbox.Detect(context.Background(), sandbox.Memory{}).Plan(sandbox.TierProcess)
	if err == nil || !strings.Contains(err.Error(), "no luck") || !strings.Contains(err.Error(), "exit code 1") {
		t.Errorf("error %v", err)
	}
}

// box is a workspace with a plan of tier process.
type box struct {
	t      *testing.T
	plan   sandbox.Plan
	ws     string
	policy sandbox.Policy
	env    []string
}

func newBox(t *testing.T) *box {
	t.Helper()
	require.Path(t, "bwrap")
	plan, err := sandbox.Detect(context.Background(), sandbox.Memory{}).Plan(sandbox.TierProcess)
	if err != nil {
		require.Missing(t, "bwrap", err.Error())
	}
	ws, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &box{t: t, plan: plan, ws: ws, policy: sandbox.Policy{Roots: []string{ws}}, env: proc.Environ(nil)}
}

func (b *box) write(path, content string) string {
	b.t.Helper()
	full := filepath.Join(b.ws, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
		b.t.Fatal(err)
	}
	return full
}

// read returns what the file holds, "" if it can't be read.
func (b *box) read(path string) string {
	data, _ := os.ReadFile(filepath.Join(b.ws, path))
	return string(data)
}

// run runs a script of bash confined and returns its output, both streams.
func (b *box) run(script string) (string, proc.Exit) {
	b.t.Helper()
	spec, err := b.plan.Confine(proc.Spec{Name: "sh", Path: "bash", Args: []string{"-c", script}, Dir: b.ws,
		Env: b.env, MergeStderr: true, NoInput: true}, b.policy)
	if err != nil {
		b.t.Fatal(err)
	}
	c, err := proc.Start(spec)
	if err != nil {
		b.t.Fatal(err)
	}
	defer c.Kill()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var out []byte
	for {
		p, err := c.Read(ctx)
		out = append(out, p...)
		if err == io.EOF {
			break
		}
		if err != nil {
			b.t.Fatalf("after %q: %v", out, err)
		}
	}
	<-c.Done()
	return string(out), c.Exit()
}

func TestConfinedCommandWorks(t *testing.T) {
	b := newBox(t)
	out, exit := b.run(`echo made > new && cat new; pwd; echo $TMPDIR; echo x > /tmp/abhed-private && cat /tmp/abhed-private; exit 7`)
	if want := "made\n" + b.ws + "\n/tmp\nx\n"; out != want || exit.Code != 7 {
		t.Errorf("output %q, %v; want %q", out, exit, want)
	}
	if got := b.read("new"); got != "made\n" {
		t.Errorf("the file in the root holds %q", got)
	}
	if _, err := os.Stat("/tmp/abhed-private"); err == nil {
		t.Error("the private /tmp is the host's")
	}
}

// outsideTmp makes a folder that isn't in /tmp, which the sandbox covers anyway.
func outsideTmp(t *testing.T) string {
	t.Helper()
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(wd, "outside-")
	if err != nil {
		t.Logf("the package's folder can't be written, so /tmp has to do: %v", err)
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// TestAttacks: each script must not do what it tries. broke says what would show
// on the host or in the output.
func TestAttacks(t *testing.T) {
	outside := outsideTmp(t)
	secret := filepath.Join(outside, "secret")
	if err := os.WriteFile(secret, []byte("hunter2"), 0o644); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	port := listener.Addr().(*net.TCPAddr).Port
	home := t.TempDir()
	if err := os.WriteFile(home+"/token", []byte("hunter2"), 0o600); err != nil {
		t.Fatal(err)
	}
	attacks := []struct{ about, script, says string }{
		{"write outside", `echo x > OUT/new || echo held`, "held"},
		{"write outside by a link", `ln -s OUT link; echo x > link/new || echo held`, "held"},
		{"write to the system", `echo x > /etc/abhed-test || echo held; echo x > /usr/bin/abhed-test || echo held`, "held\n"},
		{"remount", `mount -o remount,rw / ; mount -o remount,rw,bind / ; mount --bind OUT /mnt; echo x > OUT/new || echo held`, "held"},
		{"user namespace and remount", `unshare -rm sh -c 'mount -o remount,rw,bind / ; umount -l OUT; echo x > OUT/new'; touch OUT/new || echo held`, "held"},
		{"user namespace", `unshare -U true && echo made || echo held`, "held"},
		{"read a hidden file", `cat OUT/secret || echo held`, "held"},
		{"read a hidden file by a link", `ln -s OUT/secret s; cat s || echo held`, "held"},
		{"read a hidden file by a hard link", `ln OUT/secret s; cat s || echo held`, "held"},
		{"unmount what hides", `umount OUT/secret; umount -l OUT/secret; cat OUT/secret || echo held`, "held"},
		{"read the home", `cat "$HOME/token" || echo held`, "held"},
		{"network", `exec 3<>/dev/tcp/127.0.0.1/PORT || echo held; echo got here`, "got here"},
		{"see the parent", `kill -0 PARENT || echo held`, "held"},
		{"memory of the parent", `cat /proc/PARENT/environ /proc/PARENT/mem || echo held`, "held"},
		{"devices", `cat /dev/mem /dev/sda /dev/vda /dev/kmsg 2>/dev/null || echo held; mknod d b 254 0 || echo held`, "held\n"},
		{"kernel settings", `echo x > /proc/sys/kernel/hostname || echo held; echo b > /proc/sysrq-trigger || echo held`, "held\n"},
		{"chroot", `chroot / true || echo held`, "held"},
		{"sockets of the host", `ls /run | grep -E 'docker|containerd|dbus|user' && exit; echo held`, "held"},
		{"capabilities", `grep -E 'Cap(Eff|Prm|Bnd):\s*0+$' /proc/self/status | wc -l`, "3"},
		{"no new privileges", `grep NoNewPrivs /proc/self/status`, "1"},
	}
	for _, a := range attacks {
		t.Run(a.about, func(t *testing.T) {
			b := newBox(t)
			b.policy.Hidden = []string{secret}
			b.env = proc.Environ([]string{"HOME=" + home})
			script := strings.NewReplacer("OUT", outside, "PORT", fmt.Sprint(port), "PARENT", fmt.Sprint(os.Getpid())).Replace(a.script)
			out, _ := b.run(script)
			if !strings.Contains(out, a.says) {
				t.Errorf("output %q, want %q in it", out, a.says)
			}
			if strings.Contains(out, "hunter2") {
				t.Errorf("the secret was read: %q", out)
			}
			for _, path := range []string{outside + "/new", "/etc/abhed-test", "/usr/bin/abhed-test"} {
				if _, err := os.Stat(path); err == nil {
					os.Remove(path)
					t.Errorf("%s was written", path)
				}
			}
		})
	}
	listener.(*net.TCPListener).SetDeadline(time.Now().Add(50 * time.Millisecond))
	if c, err := listener.Accept(); err == nil {
		c.Close()
		t.Error("a confined command connected to the host")
	}
}

func TestProtectedPathsHold(t *testing.T) {
	for _, script := range []string{
		`echo evil > .git/hooks/pre-commit`,
		`echo evil >> .git/config`,
		`rm -rf .git/hooks; mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit`,
		`mv .git gone; mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit; echo evil > .git/config`,
		`mv .git/hooks gone; mkdir .git/hooks; echo evil > .git/hooks/pre-commit`,
		`cp -r .git .git2; rm -rf .git; mv .git2 .git; echo evil > .git/config`,
		`ln -s .git g; echo evil > g/hooks/pre-commit; echo evil > g/config`,
		`ln .git/config c; echo evil >> c`,
		`sed -i s/good/evil/ .git/config`,
		`mv .git/config c; echo evil > .git/config`,
		`chmod 777 .git/hooks .git/config; echo evil > .git/config`,
		`umount .git/config; umount -l .git; echo evil > .git/config`,
		`mkdir -p .abhed; echo evil > .abhed/config.json; rmdir .abhed; echo evil > .abhed`,
		`mkdir -p deep/.ahp; echo evil > deep/.ahp/registration.json; mv deep d; mkdir -p deep/.ahp; echo evil > deep/.ahp/registration.json`,
		`rm -f missing; echo evil > missing; ln -sf /etc/passwd missing`,
	} {
		t.Run(script, func(t *testing.T) {
			b := newBox(t)
			b.write(".git/hooks/pre-commit", "good")
			b.write(".git/config", "good")
			b.write(".git/objects/x", "x")
			b.write("deep/file", "x")
			for _, p := range []string{".git/hooks", ".git/config", ".abhed/", "deep/.ahp/", "missing"} {
				path := filepath.Join(b.ws, p)
				if strings.HasSuffix(p, "/") {
					path += "/"
				}
				b.policy.Protected = append(b.policy.Protected, path)
			}
			out, _ := b.run(script)
			if b.read(".git/hooks/pre-commit") != "good" || b.read(".git/config") != "good" {
				t.Errorf("changed: hook %q, config %q\n%s", b.read(".git/hooks/pre-commit"), b.read(".git/config"), out)
			}
			for _, p := range []string{".abhed/config.json", ".abhed", "deep/.ahp/registration.json", "missing"} {
				if got := b.read(p); strings.Contains(got, "evil") || strings.Contains(got, "root:") {
					t.Errorf("%s holds %q\n%s", p, got, out)
				}
			}
		})
	}
}

func TestProtectedLeavesTheRestWritable(t *testing.T) {
	b := newBox(t)
	b.write(".git/config", "good")
	b.policy.Protected = []string{b.ws + "/.git/config", b.ws + "/.git/hooks/"}
	out, exit := b.run(`echo ok > .git/index && mkdir -p .git/refs && echo ok > a && cat .git/config`)
	if exit.Code != 0 || b.read(".git/index") != "ok\n" || out != "good" {
		t.Errorf("%v, %q", exit, out)
	}
}

func TestProtectedThroughLinks(t *testing.T) {
	b := newBox(t)
	b.write("real/hooks/pre-commit", "good")
	b.write(".git/config", "x")
	if err := os.Symlink("../real/hooks", b.ws+"/.git/hooks"); err != nil {
		t.Fatal(err)
	}
	b.policy.Protected = []string{b.ws + "/.git/hooks"}
	out, _ := b.run(`echo evil > real/hooks/pre-commit; rm .git/hooks; mkdir .git/hooks; echo evil > .git/hooks/pre-commit; mv real r`)
	if got := b.read(".git/hooks/pre-commit"); got != "good" {
		t.Errorf("the hook behind the link holds %q\n%s", got, out)
	}
	if err := os.Symlink("real", b.ws+"/.abhed"); err != nil {
		t.Fatal(err)
	}
	b.policy.Protected = []string{b.ws + "/.abhed"}
	_, err := b.plan.Confine(proc.Spec{Path: "true", Dir: b.ws, Env: b.env}, b.policy)
	if err == nil || !strings.Contains(err.Error(), "link") {
		t.Errorf("a link directly in the root, which can't be held, gave %v", err)
	}
}

func TestRootIsReachedThroughALink(t *testing.T) {
	b := newBox(t)
	b.write(".git/config", "good")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(b.ws, link); err != nil {
		t.Fatal(err)
	}
	b.policy = sandbox.Policy{Roots: []string{link}, Protected: []string{link + "/.git/config"}}
	out, _ := b.run(`echo evil > .git/config; echo ok > new; cat new`)
	if b.read(".git/config") != "good" || !strings.HasSuffix(out, "ok\n") {
		t.Errorf("config %q, output %q", b.read(".git/config"), out)
	}
}

func TestHiddenFolderAndHomePaths(t *testing.T) {
	b := newBox(t)
	home := t.TempDir()
	for name, content := range map[string]string{"bin/tool": "#!/bin/sh\necho tool\n", "key": "hunter2", ".gitconfig": "name"} {
		path := filepath.Join(home, name)
		os.MkdirAll(filepath.Dir(path), 0o755)
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	hidden := filepath.Dir(b.write("secrets/key", "hunter2"))
	b.env = proc.Environ([]string{"HOME=" + home})
	b.policy.HomePaths = []string{home + "/bin", home + "/.gitconfig", home + "/none"}
	b.policy.Hidden = []string{hidden, home + "/none", "/no/such/place"}
	out, _ := b.run(`"$HOME/bin/tool"; cat "$HOME/.gitconfig"; echo; ls -A "$HOME"; cat "$HOME/key" secrets/key; ls secrets;
		echo x > "$HOME/bin/tool" || echo held; mv secrets s; cat s/key; echo x > secrets/new`)
	if !strings.HasPrefix(out, "tool\nname\n.gitconfig\nbin\n") || !strings.Contains(out, "held") || strings.Contains(out, "hunter2") {
		t.Errorf("output %q", out)
	}
	if b.read("secrets/key") != "hunter2" {
		t.Error("the hidden file was lost")
	}
}

func TestTmpDirLastsBetweenCommands(t *testing.T) {
	b := newBox(t)
	b.policy.TmpDir = t.TempDir()
	b.run(`echo kept > /tmp/note`)
	out, _ := b.run(`cat /tmp/note "$TMPDIR/note"`)
	if out != "kept\nkept\n" {
		t.Errorf("output %q", out)
	}
	data, err := os.ReadFile(b.policy.TmpDir + "/note")
	if err != nil || string(data) != "kept\n" {
		t.Errorf("on the host: %q, %v", data, err)
	}
}

func TestNetworkWhenAllowed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	b := newBox(t)
	b.policy.Network = true
	out, _ := b.run(fmt.Sprintf(`exec 3<>/dev/tcp/127.0.0.1/%d && echo connected`, listener.Addr().(*net.TCPAddr).Port))
	if out != "connected\n" {
		t.Errorf("output %q", out)
	}
}

func TestLimits(t *testing.T) {
	require.Path(t, "prlimit")
	b := newBox(t)
	b.policy.MaxMemory, b.policy.MaxProcesses = 64<<20, 50
	out, _ := b.run(`ulimit -d; ulimit -u; head -c 200000000 /dev/zero | tail -c 190000000 | wc -c`)
	if !strings.HasPrefix(out, "65536\n50\n") || strings.Contains(out, "190000000") {
		t.Errorf("output %q", out)
	}
}

func TestEverythingEndsWithTheCommand(t *testing.T) {
	b := newBox(t)
	marker := fmt.Sprintf("%d.25", 200000+os.Getpid())
	out, exit := b.run(`setsid sleep ` + marker + ` & (sleep ` + marker + ` &) ; echo done`)
	if !strings.HasPrefix(out, "done") || exit.Code != 0 {
		t.Errorf("output %q, %v", out, exit)
	}
	for end := time.Now().Add(3 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if exec.Command("pgrep", "-f", "sleep "+marker).Run() != nil {
			return
		}
		if time.Now().After(end) {
			t.Fatal("a process outlived the sandbox")
		}
	}
}

func TestPolicyErrors(t *testing.T) {
	b := newBox(t)
	file := b.write("file", "x")
	tmp := t.TempDir()
	os.Mkdir(tmp+"/in", 0o755)
	hiddenProgram := filepath.Join(t.TempDir(), "prog")
	if err := os.WriteFile(hiddenProgram, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		about  string
		change func(*sandbox.Policy, *proc.Spec)
		want   string
	}{
		{"relative root", func(p *sandbox.Policy, _ *proc.Spec) { p.Roots = []string{"ws"} }, "must be absolute"},
		{"missing root", func(p *sandbox.Policy, _ *proc.Spec) { p.Roots = []string{"/no/such"} }, "no such file"},
		{"root is a file", func(p *sandbox.Policy, _ *proc.Spec) { p.Roots = []string{file} }, "existing folder"},
		{"root is /", func(p *sandbox.Policy, _ *proc.Spec) { p.Roots = []string{"/"} }, "folder of the system"},
		{"root is the home", func(p *sandbox.Policy, s *proc.Spec) { s.Env = append(slices.Clone(s.Env), "HOME="+b.ws) }, "home folder"},
		{"root is /proc", func(p *sandbox.Policy, _ *proc.Spec) { p.Roots = []string{"/proc/self"} }, "folder of the system"},
		{"root in the temporary folder", func(p *sandbox.Policy, _ *proc.Spec) { p.TmpDir, p.Roots = tmp, []string{tmp + "/in"} }, "temporary folder"},
		{"relative hidden", func(p *sandbox.Policy, _ *proc.Spec) { p.Hidden = []string{"x"} }, "must be absolute"},
		{"hidden in the temporary folder", func(p *sandbox.Policy, _ *proc.Spec) { p.TmpDir, p.Hidden = tmp, []string{tmp + "/in"} }, "two names"},
		{"relative protected", func(p *sandbox.Policy, _ *proc.Spec) { p.Protected = []string{".git"} }, "must be absolute"},
		{"working directory hidden", func(p *sandbox.Policy, _ *proc.Spec) { p.Hidden = []string{b.ws} }, "hidden in the sandbox"},
		{"no such program", func(_ *sandbox.Policy, s *proc.Spec) { s.Path = "no-such-program" }, "no such program"},
		{"program in /tmp", func(_ *sandbox.Policy, s *proc.Spec) { s.Path = hiddenProgram }, "home_paths"},
	} {
		t.Run(tt.about, func(t *testing.T) {
			policy, spec := b.policy, proc.Spec{Path: "true", Dir: b.ws, Env: b.env}
			tt.change(&policy, &spec)
			if out, err := b.plan.Confine(spec, policy); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Confine = %q, %v; want an error with %q", out.Args, err, tt.want)
			}
		})
	}
}

func TestConfineChangesNothingOfItsInput(t *testing.T) {
	b := newBox(t)
	spec := proc.Spec{Path: "true", Args: []string{"a"}, Dir: b.ws, Env: []string{"PATH=/usr/bin:/bin", "TMPDIR=/x", "A=1"}}
	env := slices.Clone(spec.Env)
	out, err := b.plan.Confine(spec, b.policy)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(spec.Env, env) || len(spec.Args) != 1 {
		t.Error("the given spec was changed")
	}
	if !slices.Equal(out.Env, []string{"PATH=/usr/bin:/bin", "A=1", "TMPDIR=/tmp"}) || out.Name != "true" {
		t.Errorf("environment %q, name %q", out.Env, out.Name)
	}
}

func TestTierNoneLeavesTheCommandAlone(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	plan, err := sandbox.Detect(context.Background(), sandbox.Memory{}).Plan(sandbox.TierNone)
	if err != nil {
		t.Fatal(err)
	}
	spec := proc.Spec{Path: "true", Args: []string{"a"}, Env: []string{"A=1"}}
	out, err := plan.Confine(spec, sandbox.Policy{Roots: []string{"/no/such"}})
	if err != nil || out.Path != "true" || !slices.Equal(out.Args, spec.Args) || !slices.Equal(out.Env, spec.Env) {
		t.Errorf("Confine = %+v, %v", out, err)
	}
}

func BenchmarkTrueConfined(b *testing.B) {
	plan, err := sandbox.Detect(context.Background(), sandbox.Memory{}).Plan(sandbox.TierProcess)
	if err != nil {
		b.Skip(err)
	}
	spec, err := plan.Confine(proc.Spec{Path: "true", Dir: "/", Env: proc.Environ(nil), NoInput: true}, sandbox.Policy{})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		c, err := proc.Start(spec)
		if err != nil {
			b.Fatal(err)
		}
		<-c.Done()
		c.Stop()
	}
}

// TestRememberedTrial tries the sandbox once, and not again while nothing changes; a
// mark that isn't known, or a program that changes, has it tried again.
func TestRememberedTrial(t *testing.T) {
	bwrap := require.Path(t, "bwrap")
	kept, tried := "", 0
	memory := sandbox.Memory{Known: func(mark string) bool { return mark == kept }, Worked: func(mark string) { kept = mark; tried++ }}
	detect := func() sandbox.Tier {
		p, err := sandbox.Detect(t.Context(), memory).Plan(sandbox.TierNone)
		if err != nil {
			t.Fatal(err)
		}
		return p.Tier()
	}
	for range 2 {
		if tier := detect(); tier != sandbox.TierProcess || tried != 1 || kept == "" {
			t.Fatalf("tier %s, %d trials, kept %q", tier, tried, kept)
		}
	}
	kept = "another"
	if detect(); tried != 2 {
		t.Errorf("%d trials", tried)
	}
	dir := t.TempDir()
	script := dir + "/bwrap"
	if err := os.WriteFile(script, []byte("#!/bin/sh\nexec "+bwrap+` "$@"`+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	if detect(); tried != 3 {
		t.Errorf("another program: %d trials", tried)
	}
	if err := os.WriteFile(script, []byte("#!/bin/sh\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if tier := detect(); tier != sandbox.TierNone || tried != 3 {
		t.Errorf("a broken one: tier %s, %d trials", tier, tried)
	}
}
