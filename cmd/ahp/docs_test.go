package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/abhed/abhed/internal/require"
)

// block is a fenced block of a page.
type block struct {
	line       int
	kind, file string // file is named by the line before the block
	lines      []string
}

// blocks returns the fenced blocks of a page.
func blocks(t *testing.T, page string) []block {
	t.Helper()
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("^`([~a-z./-]+)`:$")
	var out []block
	var in *block
	file := ""
	for i, line := range strings.Split(string(data), "\n") {
		fence, is := strings.CutPrefix(line, "```")
		switch {
		case is && in == nil:
			in = &block{line: i + 1, kind: fence, file: file}
			file = ""
		case is:
			out, in = append(out, *in), nil
		case in != nil:
			in.lines = append(in.lines, line)
		case line != "":
			file = ""
			if m := named.FindStringSubmatch(line); m != nil {
				file = m[1]
			}
		}
	}
	if in != nil {
		t.Fatalf("%s:%d: the block doesn't end", page, in.line)
	}
	return out
}

// step is one command of a transcript, with what it prints.
type step struct {
	line    int
	command string
	want    []string
	exit    string
}

func (b *block) steps() []step {
	var out []step
	for i, line := range b.lines {
		if command, is := strings.CutPrefix(line, "$ "); is {
			out = append(out, step{line: b.line + i + 1, command: command, exit: "0"})
			continue
		}
		last := &out[len(out)-1]
		if m := regexp.MustCompile(`^\[exit (\d+)\]$`).FindStringSubmatch(line); m != nil {
			last.exit = m[1]
			continue
		}
		last.want = append(last.want, line)
	}
	return out
}

// matches compares output with what a page says, where … is anything in a line.
func matches(got, want string) bool {
	parts := strings.Split(want, "…")
	for i, p := range parts {
		parts[i] = regexp.QuoteMeta(p)
	}
	return regexp.MustCompile(`^` + strings.Join(parts, `[^\n]*`) + `$`).MatchString(got)
}

// guide is a page whose transcripts are run: in one folder and in their order, with
// the built command, in a shell.
type guide struct {
	page, dir string
	// stands holds what the page has in place of what is so on the machine of the test.
	stands map[string]string
	// command changes what is typed.
	command func(string) string
	env     []string
	// atLeast is how many commands are run, skipped how many aren't.
	atLeast, skipped int
}

// local returns a text of the page as it is on this machine.
func (g *guide) local(s string) string {
	for from, to := range g.stands {
		s = strings.ReplaceAll(s, from, to)
	}
	return s
}

// TestGuide runs the transcripts of docs/ahp.md.
func TestGuide(t *testing.T) {
	exe, dir := builtAHP(t), t.TempDir()
	(&guide{
		page: "../../docs/ahp.md", dir: dir, atLeast: 15, skipped: 1,
		stands: map[string]string{"7878": freePort(t), "7879": freePort(t)},
		env:    []string{"PATH=" + filepath.Dir(exe) + ":" + os.Getenv("PATH"), "AHP_HOME=" + dir},
	}).run(t)
}

// TestAgentsGuide runs the transcripts of docs/agents.md in the home folder of nobody:
// "ahp hook" takes that from its line alone, and so its line says it here.
func TestAgentsGuide(t *testing.T) {
	exe, home := builtAHP(t), t.TempDir()
	env := []string{"PATH=" + filepath.Dir(exe) + ":" + os.Getenv("PATH"), "AHP_HOME=" + home, "HOME=" + home}
	t.Cleanup(func() {
		stop := exec.Command(exe, "daemon", "stop")
		stop.Env = env
		if out, _ := stop.CombinedOutput(); string(out) != "no service runs\n" {
			t.Errorf("the page leaves a service behind:\n%s", out)
		}
	})
	(&guide{
		page: "../../docs/agents.md", dir: home, atLeast: 40, skipped: 1,
		stands:  map[string]string{"/home/ada": home, "/usr/local/bin/ahp": exe},
		command: func(s string) string { return strings.ReplaceAll(s, "ahp hook ", "ahp hook --home "+home+" ") },
		env:     env,
	}).run(t)
}

func (g *guide) run(t *testing.T) {
	sh := require.Path(t, "sh")
	ran, skipped := 0, 0
	for _, b := range blocks(t, g.page) {
		switch {
		case b.file != "" && (b.kind == "json" || b.kind == "sh"):
			g.write(t, &b)
			continue
		case b.kind != "console" || b.file != "":
			t.Fatalf("%s:%d: found a block that is neither a file nor a transcript, which no test would run", g.page, b.line)
		}
		for _, s := range b.steps() {
			if strings.HasPrefix(s.command, "go install ") {
				skipped++ // it needs the network
				continue
			}
			ran++
			s.command = g.local(s.command)
			if g.command != nil {
				s.command = g.command(s.command)
			}
			want := g.local(strings.Join(s.want, "\n"))
			cmd := exec.Command(sh, "-c", strings.TrimSuffix(s.command, " &"))
			cmd.Dir, cmd.Env = g.dir, append(os.Environ(), g.env...)
			if strings.HasSuffix(s.command, " &") {
				g.background(t, s, cmd, want)
				continue
			}
			got, exit := foreground(t, cmd)
			if exit != s.exit || !matches(got, want) {
				t.Errorf("%s:%d: $ %s\ngot, with exit %s:\n%s\nthe page says, with exit %s:\n%s", g.page, s.line, s.command, exit, got, s.exit, want)
			}
		}
	}
	if ran < g.atLeast || skipped != g.skipped {
		t.Errorf("%s: %d commands were run and %d skipped; the page has more, so the reader misses them", g.page, ran, skipped)
	}
}

// write makes the file that a block is.
func (g *guide) write(t *testing.T, b *block) {
	t.Helper()
	path := filepath.Join(g.dir, strings.TrimPrefix(b.file, "~/"))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(g.local(strings.Join(b.lines, "\n"))+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// foreground runs a command to its end.
func foreground(t *testing.T, cmd *exec.Cmd) (output, exit string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	bounded := exec.CommandContext(ctx, cmd.Path, cmd.Args[1:]...)
	bounded.Dir, bounded.Env = cmd.Dir, cmd.Env
	out, err := bounded.CombinedOutput()
	if bounded.ProcessState == nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(string(out), "\n"), fmt.Sprint(bounded.ProcessState.ExitCode())
}

// background starts a command, which is ended with the test, and waits for the lines
// that it is to print.
func (g *guide) background(t *testing.T, s step, cmd *exec.Cmd, want string) {
	t.Helper()
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end := func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	bound := time.AfterFunc(time.Minute, end)
	t.Cleanup(func() {
		bound.Stop()
		end()
		_ = cmd.Wait()
	})
	var got []string
	lines := bufio.NewScanner(out)
	for range s.want {
		if !lines.Scan() {
			break
		}
		got = append(got, lines.Text())
	}
	if text := strings.Join(got, "\n"); !matches(text, want) {
		t.Errorf("%s:%d: $ %s\ngot:\n%s\nthe page says:\n%s", g.page, s.line, s.command, text, want)
	}
}

// freePort returns a port that nobody listens on right now.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}
