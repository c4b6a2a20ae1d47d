package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/hosts"
	"github.com/abhed/abhed/internal/hookd"
	"github.com/abhed/abhed/internal/hooklog"
	owned "github.com/abhed/abhed/internal/run"
)

// hookLine is the command line of "ahp hook".
type hookLine struct {
	call      hookd.Call
	noService bool
}

// parseHook reads the arguments behind "hook". It is read by hand: an agent starts this
// program for every tool call, and the line was written by "ahp install".
func parseHook(args []string) (l hookLine, err error) {
	for i := 0; i < len(args); i++ {
		name, value, has := strings.Cut(args[i], "=")
		take := func() string {
			if !has {
				if i++; i >= len(args) {
					err = fmt.Errorf("ahp hook: %s is missing its value", name)
					return ""
				}
				value = args[i]
			}
			return value
		}
		switch name {
		case "--event":
			l.call.Native = take()
		case "--registration":
			l.call.Registration = take()
		case "--home":
			l.call.Home = take()
		case "--limit":
			ms, bad := strconv.ParseInt(take(), 10, 32)
			if err == nil && (bad != nil || ms <= 0) {
				err = fmt.Errorf("ahp hook: --limit %s: expected milliseconds, 1 or more", value)
			}
			l.call.Limit = time.Duration(ms) * time.Millisecond
		case "--on-missing":
			switch take() {
			case "allow":
				l.call.Open = true
			case "deny":
				l.call.Open = false
			default:
				err = errors.Join(err, fmt.Errorf("ahp hook: --on-missing %s: expected deny or allow", value))
			}
		case "--no-service":
			l.noService = true
		case "--no-self-protect":
			l.call.Unprotected = true
		default:
			if strings.HasPrefix(name, "-") || l.call.Host != "" {
				err = errors.Join(err, fmt.Errorf("ahp hook: found %q, expected HOST and the flags that \"ahp install\" writes", args[i]))
				continue
			}
			l.call.Host = args[i]
		}
	}
	for _, path := range []string{l.call.Registration, l.call.Home} {
		if path != "" && !filepath.IsAbs(path) {
			err = errors.Join(err, fmt.Errorf("ahp hook: found the relative path %s, expected an absolute one", path))
		}
	}
	return l, err
}

// hook is "ahp hook": it answers one native event and returns the exit code. Whatever
// goes wrong is answered by policy.
func hook(ctx context.Context, args []string, sys system) int {
	l, err := parseHook(args)
	var a hookd.Answer
	if err == nil {
		bad := owned.Protect(func() error {
			a, err = l.answer(ctx, sys)
			return nil
		})
		if bad != nil {
			err = bad
		}
	}
	if err != nil {
		a = hookd.ByPolicy(hosts.Lookup(l.call.Host), &l.call, l.call.Native, "Refused: this call could not be checked. "+adapter.Clean(err.Error()))
	}
	if a.Code == hookd.ExitDeliver && len(a.Stdout) == 0 || a.Code == hookd.ExitDeny && len(a.Stdout)+len(a.Stderr) == 0 {
		return exitFailed
	}
	if _, err := sys.stdout.Write(a.Stdout); err != nil {
		return exitFailed
	}
	if _, err := sys.stderr.Write(a.Stderr); err != nil {
		return exitFailed
	}
	return a.Code
}

// answer reads the event and has it judged, by the service where there is one.
func (l *hookLine) answer(ctx context.Context, sys system) (hookd.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, l.call.Budget()+l.call.Budget()/20)
	defer cancel()
	h := hosts.Lookup(l.call.Host)
	if h == nil {
		return hookd.Answer{}, fmt.Errorf("the host %.60q isn't known; \"ahp hosts\" lists those that are", l.call.Host)
	}
	for _, name := range h.Markers {
		if v, is := sys.lookupEnv(name); is {
			if l.call.Markers == nil {
				l.call.Markers = map[string]string{}
			}
			l.call.Markers[name] = v
		}
	}
	l.call.Dir = sys.dir
	data, err := readEvent(ctx, sys.stdin)
	if err != nil {
		return hookd.Answer{}, err
	}
	l.call.Data = data
	if l.noService {
		return l.here(ctx)
	}
	state, err := hooklog.StateDir(l.call.Home)
	if err != nil {
		return hookd.Answer{}, err
	}
	exe, err := os.Executable()
	if err != nil {
		return hookd.Answer{}, err
	}
	id, err := hookd.IdentityOf(exe)
	if err != nil {
		return hookd.Answer{}, err
	}
	a, err := hookd.Ask(ctx, hookd.Socket(state), &l.call, id)
	if err == nil {
		return a, nil
	}
	if ctx.Err() != nil {
		return a, errors.New("the service didn't answer in time")
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		_ = hookd.Start(exe, l.call.Home) // for the next call; this one doesn't depend on it
	}
	return l.here(ctx)
}

// readEvent reads standard input within the bounds of bytes and time.
func readEvent(ctx context.Context, in io.Reader) ([]byte, error) {
	type read struct {
		data []byte
		err  error
	}
	done := make(chan read, 1)
	go func() {
		data, err := io.ReadAll(io.LimitReader(in, hookd.MaxEvent+1))
		done <- read{data, err}
	}()
	select {
	case r := <-done:
		switch {
		case r.err != nil:
			return nil, fmt.Errorf("standard input can't be read: %w", r.err)
		case len(r.data) > hookd.MaxEvent:
			return nil, fmt.Errorf("the native event has more than %d bytes", hookd.MaxEvent)
		}
		return r.data, nil
	case <-ctx.Done():
		return nil, errors.New("standard input didn't end in time: expected one JSON document and its end")
	}
}

// here judges in this process.
func (l *hookLine) here(ctx context.Context) (a hookd.Answer, err error) {
	j, err := hookd.New(judgeOptions(l.call.Home))
	if err != nil {
		return a, err
	}
	defer j.Close()
	return j.Do(ctx, &l.call)
}

// judgeOptions is what this program judges with, in a hook and in the service alike.
func judgeOptions(home string) hookd.Options { return hookd.Options{Home: home} }
