package hookd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/backend"
	"github.com/abhed/abhed/ahp/transport"
	"github.com/abhed/abhed/ahp/transport/httptransport"
	"github.com/abhed/abhed/internal/backends/rules"
	"github.com/abhed/abhed/internal/proc"
)

// open returns what connects to the backends of p.
func (j *Judge) open(p *plan) func(*ahp.Backend) (transport.Transport, error) {
	return func(b *ahp.Backend) (transport.Transport, error) {
		dir := p.dirOf(b)
		if file := j.rulesFile(b, dir); file != "" {
			return j.rules(file), nil
		}
		if b.Transport.Type == ahp.TransportHTTP {
			c := p.loaded.Credentials(b.ID, j.opts.LookupEnv)
			if err := c.Check(b.Authentication); err != nil {
				return nil, err
			}
			return httptransport.New(b, httptransport.Options{LookupEnv: c.LookupEnv, ResolveRef: c.Resolve})
		}
		return transport.Stdio(b.Transport, transport.StdioOptions{Name: b.ID, Dir: dir, Env: j.environ()})
	}
}

// environ returns what a backend gets in place of those variables of this process that
// say which program a name means and where it finds its own files: an agent's are set by
// the repository that it works in, as npx does, and a service would have those of the
// agent that happened to start it.
func (j *Judge) environ() []string {
	folders := []string{
		filepath.Dir(j.opts.Executable), "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", "/opt/homebrew/bin",
		filepath.Join(j.home, ".local", "bin"),
	}
	out := []string{"PATH=" + strings.Join(folders, string(filepath.ListSeparator)), "HOME=" + j.home}
	for _, kind := range []string{"CONFIG_HOME", "CONFIG_DIRS", "DATA_HOME", "DATA_DIRS", "STATE_HOME", "CACHE_HOME"} {
		out = append(out, "XDG_"+kind+"=") // as if it weren't set
	}
	return out
}

// rulesFile returns the rules of a backend that is this very program with "backend
// rules --rules FILE", "" for any other. It is judged here then, which is the same
// verdict without a process.
func (j *Judge) rulesFile(b *ahp.Backend, dir string) string {
	t := &b.Transport
	if t.Type != ahp.TransportStdio || len(t.Args) != 4 || strings.Join(t.Args[:3], " ") != "backend rules --rules" {
		return ""
	}
	command := t.Command
	if !strings.Contains(command, "/") {
		found, err := proc.LookPath(command, dir, j.environ())
		if err != nil {
			return ""
		}
		command = found
	}
	if t.Cwd != "" {
		dir = join(dir, t.Cwd)
	}
	one, err := os.Stat(join(dir, command))
	if err != nil {
		return ""
	}
	two, err := os.Stat(j.opts.Executable)
	if err != nil || !os.SameFile(one, two) {
		return ""
	}
	return join(dir, t.Args[3])
}

// join returns path as seen from dir.
func join(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// rules judges by a file of rules. One that can't be used is a backend that doesn't
// start.
func (j *Judge) rules(file string) transport.Transport {
	doc, err := rules.ReadFile(file)
	var b *rules.Backend
	if err == nil {
		b, _, err = rules.New(doc, rules.Options{Home: j.home})
	}
	if err != nil {
		return transport.InProcess(func(context.Context, []byte) ([]byte, error) {
			return nil, &ahp.Failure{Class: ahp.FailLaunch, Detail: fmt.Sprintf("the rules can't be used: %v", err), Err: err}
		})
	}
	return directly(backend.New(b, backend.Options{}).Handle)
}
