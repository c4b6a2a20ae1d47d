package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/hosts"
	"github.com/abhed/abhed/internal/hooklog"
	"github.com/abhed/abhed/internal/hostconf"
	"github.com/abhed/abhed/internal/install"
	"github.com/abhed/abhed/internal/proc"
)

// canaryPrefix begins the id of a canary.
const canaryPrefix = "canary-"

// canaries sends two calls through each installed line of the event before a tool: one
// has to be refused and one to pass.
func (s *site) canaries(ctx context.Context) {
	sent := 0
	for _, t := range s.host.In(s.scope) {
		for _, native := range gates(s.host.Name, t) {
			for _, k := range s.lines {
				if !s.carries(t, k, native) {
					continue
				}
				sent++
				good := s.canary(ctx, k, native, true)
				if s.canary(ctx, k, native, false) && good {
					s.add(Finding{Level: OK, Check: "canary", What: "through the line for " + native + " one canary was refused and one passed", Where: at(k.path, k.line)})
				}
			}
		}
	}
	if sent == 0 {
		s.add(Finding{Level: Wrong, Check: "canary", What: "there is no line for the event before a tool call: no call is checked", Do: s.again()})
	}
}

// carries reports whether a hook of ours is the one for an event in a target.
func (s *site) carries(t hostconf.Target, k hook, native string) bool {
	if !slices.Contains(expand(s.d.o.Roots, t.File), k.path) {
		return false
	}
	return k.bridge != nil || k.event == native
}

// ran is what a line did.
type ran struct {
	exit           proc.Exit
	stdout, stderr string
	input          []byte
	entry          *hooklog.Entry
}

// canary sends one call, and reports whether all is well.
func (s *site) canary(ctx context.Context, k hook, native string, refuse bool) bool {
	bad := func(check, what, do string) bool {
		s.add(Finding{Level: Wrong, Check: check, What: what, Where: at(k.path, k.line), Do: do})
		return false
	}
	r, err := s.send(ctx, k, native, refuse)
	if err != nil {
		return bad("canary", "the canary could not be sent: "+err.Error(), "")
	}
	row := s.dialect.Row(native)
	d := s.dialect.Delivery(row)
	said, other, pass := r.stdout, r.stderr, r.exit.Code == 0
	if d.Stream == adapter.Stderr {
		said, other = other, said
	}
	if k.bridge != nil { // the bridge takes the answer itself
		pass, d = r.exit.Code == install.ExitPass, adapter.Delivery{Exit: install.ExitDeny}
	}
	blank := strings.TrimSpace(string(s.dialect.Blank(native)))
	silent := pass && strings.TrimSpace(r.stdout) == blank && strings.TrimSpace(r.stderr) == ""
	switch {
	case refuse && silent:
		return bad("canary-passed", "the canary that has to be refused passed at "+native+": nothing holds a call here"+s.noLog(r), s.why(k))
	case !refuse && !silent && r.exit.Code == d.Exit && (d.Exit != 0 || strings.TrimSpace(said) != ""):
		return bad("mass-deny", fmt.Sprintf("the canary that has to pass is refused at %s: %s %s refuses every call. It is told: %s", native, s.dialect.Title, s.d.versionOf(ctx, s.host), short(said+" "+other, 300)), "find the cause with ahp log --denied; nothing was switched off")
	case !refuse && !silent:
		return bad("canary-form", fmt.Sprintf("the canary that has to pass was answered with %s and %q, %q", r.exit, short(r.stdout, 100), short(r.stderr, 100)), s.why(k))
	case r.entry == nil:
		return bad("canary-log", "the line answered, and ahp's log has no decision on the canary: something else answers in its place, or ahp could judge nothing, which is told above then", s.why(k))
	case refuse:
		want, err := s.refusal(native, r)
		if err != nil {
			return bad("canary", err.Error(), "")
		}
		if r.exit.Code != d.Exit || strings.TrimSpace(said) != want || strings.TrimSpace(other) != "" {
			return bad("canary-form", fmt.Sprintf("the refusal isn't in the form of %s: %s, %q and %q", s.dialect.Title, r.exit, short(r.stdout, 100), short(r.stderr, 100)), s.why(k))
		}
	}
	return true
}

// refusal is what the host has to be told, as the log has the reason.
func (s *site) refusal(native string, r *ran) (string, error) {
	e, err := hosts.Read(s.dialect, adapter.Input{Data: r.input, Native: native})
	if err != nil {
		return "", err
	}
	text, err := s.dialect.Write(e, &adapter.Verdict{Deny: r.entry.Reason})
	return strings.TrimSpace(string(text)), err
}

func (s *site) noLog(r *ran) string {
	if r.entry == nil {
		return ", and ahp's log knows nothing of it"
	}
	return ""
}

// why is the advice for a line that doesn't do as it should.
func (s *site) why(hook) string {
	return "look at the other findings; if there are none, " + s.again()
}

// send runs a line as the host would.
func (s *site) send(ctx context.Context, k hook, native string, refuse bool) (*ran, error) {
	id := canaryPrefix + uuid.NewString()
	state := s.state()
	withdraw, err := s.d.o.Announce(state, id)
	if err != nil {
		return nil, err
	}
	defer withdraw()
	dir, err := os.MkdirTemp("", "ahp-doctor-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	tool := s.d.o.CanaryPass
	if refuse {
		tool = s.d.o.CanaryDeny
	}
	spec := proc.Spec{Name: "the installed line", Path: shell(s.host.Name), Args: []string{"-c", k.command}, Dir: dir, Env: s.environ(), StderrTail: 16 << 10}
	switch {
	case k.bridge != nil:
		spec.Path, spec.Args = k.bridge.Binary, k.bridge.Args
	case k.script:
		spec.Path, spec.Args = k.path, nil
	}
	input := payload(s.host.Name, native, tool, id, dir)
	r, err := start(ctx, spec, input, s.d.o.Timeout)
	if err != nil {
		return nil, err
	}
	r.input = input
	list, err := hooklog.Last(hooklog.LogDir(state), 1, func(e *hooklog.Entry) bool { return e.ID == id && e.Host == s.host.Name && e.Native == native })
	if err == nil && len(list) == 1 {
		r.entry = list[0]
	}
	return r, nil
}

// environ is what a host gives a hook, without the signs of another host.
func (s *site) environ() []string {
	var out []string
	for _, e := range s.d.o.Environ {
		name, _, _ := strings.Cut(e, "=")
		if !slices.Contains(hosts.Markers(), name) {
			out = append(out, e)
		}
	}
	return out
}

// maxAnswer bounds what is read of a line.
const maxAnswer = 1 << 20

// start runs a command with input and returns what it did.
func start(ctx context.Context, spec proc.Spec, input []byte, limit time.Duration) (*ran, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	c, err := proc.Start(spec)
	if err != nil {
		return nil, err
	}
	defer c.Kill()
	go func() { // ends with the child at the latest: what doesn't read its input is no fault
		_ = c.Write(ctx, input)
		_ = c.CloseInput()
	}()
	var out bytes.Buffer
	for out.Len() < maxAnswer {
		chunk, err := c.Read(ctx)
		out.Write(chunk)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("no answer within %v", limit)
		}
	}
	select {
	case <-c.Done():
	case <-ctx.Done():
		return nil, fmt.Errorf("no end within %v", limit)
	}
	exit := c.Stop() // all of standard error is read then
	return &ran{exit: exit, stdout: out.String(), stderr: c.StderrTail()}, nil
}
