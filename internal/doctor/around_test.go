package doctor

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed/internal/hookd"
	"github.com/abhed/abhed/internal/hookline"
	"github.com/abhed/abhed/internal/hooklog"
	"github.com/abhed/abhed/internal/hostconf"
	"github.com/abhed/abhed/internal/trust"
)

// around is what may be wrong around the entries themselves.
func around() []tampering {
	log := "home/.local/state/ahp/log/decisions.jsonl"
	registration := "home/.config/ahp/registration.json"
	return []tampering{
		{name: "binary replaced by exit 40", host: "claude-code", do: func(w *world) { w.program(w.ahp, "#!/bin/sh\ncat >/dev/null\nexit 40\n") },
			want: []want{{Wrong, "binary-replaced", "was replaced since ahp install", "bin/ahp"}, {Wrong, "canary-passed", "ahp's log knows nothing of it", claude}, {Wrong, "canary-log", "something else answers", claude}}},
		{name: "binary deleted", host: "claude-code", do: func(w *world) { w.remove("bin/ahp") },
			want: []want{{Wrong, "binary-missing", "can't be found", "bin/ahp"}, {Wrong, "mass-deny", "the ahp program gave no answer", claude}}},
		{name: "binary that others can write", host: "claude-code", do: func(w *world) {
			w.copy(w.ahp, w.ahp) // the file is not this test's alone
			w.chmod("bin/ahp", 0o777)
		},
			want: []want{{Wrong, "binary", "can be written by everybody", "bin/ahp"}}},
		{name: "binary in a bridge replaced", host: "opencode", do: func(w *world) { w.program(w.ahp, "#!/bin/sh\nexit 40\n") },
			want: []want{{Wrong, "canary-passed", "", "home/.config/opencode/plugin/ahp.js"}}},
		{name: "another ahp", host: "claude-code", mild: true, do: func(w *world) { w.copy(w.ahp, w.ahp+"2"); w.o.Self += "2" },
			want: []want{{Warning, "binary-other", "the line starts another ahp than this one", "bin/ahp"}}},
		{name: "registration edited", host: "claude-code", do: func(w *world) { w.register(`"failurePolicy":"fail-open"`) },
			want: []want{{Wrong, "registration-changed", "was changed since ahp install", registration}}},
		{name: "registration invalid", host: "claude-code", do: func(w *world) { w.append(registration, "}") },
			want: []want{{Wrong, "registration", "registration.json:1:", ""}, {Wrong, "registration-changed", "", registration}, {Wrong, "mass-deny", "could not be checked", claude}}},
		{name: "registration deleted", host: "claude-code", do: func(w *world) { w.remove(registration) },
			want: []want{{Wrong, "registration", "nothing is registered", ""}, {Wrong, "registration-changed", "is gone", registration}}},
		{name: "registration that the host can't hold", host: "goose", do: func(w *world) {
			w.replace(w.path(registration), `["tool.before"]`, `["tool.before","turn.start"]`)
		}, want: []want{{Wrong, "registration-fit", "turn.start", registration}}},
		{name: "deadline beyond the limit", host: "claude-code", do: func(w *world) {
			w.replace(w.path(registration), `"timeoutMs":5000`, `"timeoutMs":55000`)
		}, want: []want{{Warning, "registration-lint", "has 55000 ms, of which the host's limit leaves 48000 ms", registration}}},
		{name: "rules broken", host: "claude-code", do: func(w *world) { w.append("home/rules", "x") },
			want: []want{{Wrong, "backend", "com.example.rules can't be asked: exit: ", registration}}},
		{name: "backend that isn't there", host: "claude-code", do: func(w *world) {
			w.write(w.path(registration), `{"protocolVersion":"draft","hooks":[{"id":"com.example.h","transport":{"type":"http","url":"http://127.0.0.1:1/"},"subscriptions":[{"events":["tool.before"],"mode":"observe","content":{"default":"body"}}]}]}`)
		}, want: []want{{Wrong, "backend", "com.example.h can't be asked: connect: ", registration}}},
		{name: "project's registration", host: "claude-code", mild: true, do: func(w *world) {
			w.write(w.path("project/.ahp/registration.json"), "{}")
		}, want: []want{{Warning, "registration-untrusted", "isn't trusted", "project/.ahp/registration.json"}}},
		{name: "project's registration changed", host: "claude-code", do: func(w *world) {
			path := w.path("project/.ahp/registration.json")
			w.write(path, w.read(w.path(registration)))
			w.trust(path)
			w.append("project/.ahp/registration.json", " ")
		}, want: []want{{Wrong, "registration-untrusted", "has changed since", "project/.ahp/registration.json"}}},
		{name: "project's registration gone", host: "claude-code", do: func(w *world) {
			path := w.path("project/.ahp/registration.json")
			w.write(path, w.read(w.path(registration)))
			w.trust(path)
			w.remove("project/.ahp/registration.json")
		}, want: []want{{Wrong, "registration-gone", "", "project/.ahp/registration.json"}, {Warning, "trust", "is gone", "project/.ahp/registration.json"}}},
		{name: "trust store open", host: "claude-code", do: func(w *world) {
			w.trust(w.path(registration))
			w.chmod("home/.local/state/ahp/trust.json", 0o666)
		}, want: []want{{Wrong, "state", "open to others (mode -rw-rw-rw-)", "home/.local/state/ahp/trust.json"}}},
		{name: "state open", host: "claude-code", do: func(w *world) { w.chmod("home/.local/state/ahp", 0o755) },
			want: []want{{Wrong, "state", "open to others", "home/.local/state/ahp"}}},
		{name: "log's first line cut off", host: "claude-code", do: func(w *world) {
			_, rest, _ := strings.Cut(w.read(w.path(log)), "\n")
			w.write(w.path(log), rest)
		}, want: []want{{Wrong, "log", "lines are missing", log}}},
		{name: "log's last line cut off", host: "claude-code", do: func(w *world) {
			text := strings.TrimSuffix(w.read(w.path(log)), "\n")
			w.write(w.path(log), text[:strings.LastIndex(text, "\n")+1])
		}, want: []want{{Wrong, "log", "decision 2, which was the last at an earlier run", log}}},
		{name: "log gone", host: "claude-code", do: func(w *world) { w.remove(log) },
			want: []want{{Wrong, "log", "is no longer in the log", log}}},
		{name: "log changed", host: "claude-code", do: func(w *world) { w.replace(w.path(log), "ahp_canary_deny", "ahp_canary_dexy") },
			want: []want{{Wrong, "log", "was changed", log}}},
		{name: "log that is no log", host: "claude-code", do: func(w *world) { w.write(w.path(log), "x\n") },
			want: []want{{Wrong, "log", "can be written down", log}, {Wrong, "mass-deny", "", claude}}},
		{name: "record gone", host: "claude-code", mild: true, do: func(w *world) {
			if err := os.RemoveAll(w.path("home/.local/state/ahp/backup/claude-code-user")); err != nil {
				w.t.Fatal(err)
			}
		}, want: []want{{Warning, "record", "nothing remembers", ""}, {OK, "canary", "", ""}}},
		{name: "record broken", host: "claude-code", do: func(w *world) { w.append("home/.local/state/ahp/backup/claude-code-user/manifest.json", "x") },
			want: []want{{Wrong, "record", "manifest.json", ""}}},
	}
}

func (w *world) chmod(rel string, mode os.FileMode) {
	w.t.Helper()
	if err := os.Chmod(w.path(rel), mode); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) trust(path string) {
	w.t.Helper()
	if err := trust.Open(filepath.Join(w.state, "trust.json")).Add(path, []byte(w.read(path))); err != nil {
		w.t.Fatal(err)
	}
}

func TestAround(t *testing.T) {
	t.Parallel()
	for _, c := range around() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.install(c.host, hostconf.User)
			if r := w.run(); r.Wrong {
				t.Fatalf("before: %s", r.Text(true))
			}
			c.do(w)
			r := w.run(c.host)
			if r.Wrong == c.mild {
				t.Errorf("wrong is %v:\n%s", r.Wrong, r.Text(true))
			}
			w.wants(r, c.want...)
			if strings.HasPrefix(c.name, "log") {
				w.wants(w.run(c.host), c.want...) // it isn't forgotten
			}
		})
	}
}

// TestHomeIsTheProject: the user's files aren't looked at a second time as a project's.
func TestHomeIsTheProject(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.install("claude-code", hostconf.User)
	w.o.Roots.Project = w.o.Roots.Home
	if r := w.run("claude-code"); r.Wrong {
		t.Errorf("%s", r.Text(true))
	}
}

// TestWholeLog: with --log what is wrong at the log's begin is found in a long one too.
func TestWholeLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.install("claude-code", hostconf.User)
	l, err := hooklog.Open(hooklog.LogDir(w.state), hooklog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range tailLines + 200 {
		if err := l.Append(&hooklog.Entry{ID: "first", Host: "claude-code", Decision: hooklog.Pass}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(hooklog.LogDir(w.state), hooklog.File)
	w.replace(path, `"first"`, `"other"`)
	r := w.run()
	w.wants(r, want{OK, "log", "the last 1000 lines", ""})
	w.o.WholeLog = true
	w.wants(w.run(), want{Wrong, "log", "", path[len(w.dir)+1:] + ":1"})
	w.wants(r, want{Note, "heartbeat", "the agent asked last", ""})
}

// TestService: a service that runs another program is told of, and its own isn't.
func TestService(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.install("claude-code", hostconf.User)
	w.o.Service = func(ctx context.Context, state string) (*Service, error) {
		st, err := hookd.Control(ctx, hookline.Socket(state), false)
		if err != nil {
			return nil, err
		}
		return &Service{PID: st.PID, Program: st.Program, Changed: st.Changed}, nil
	}
	serve := func(program string) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		ready, ended := make(chan bool), make(chan error, 1)
		go func() {
			ended <- hookd.Serve(ctx, hookd.ServeOptions{Judge: hookd.Options{Home: w.home, Executable: program}, Ready: func() { close(ready) }})
		}()
		select {
		case <-ready:
		case err := <-ended:
			t.Fatal(err)
		case <-time.After(30 * time.Second):
			t.Fatal("the service doesn't start")
		}
		r := w.run()
		if program == w.ahp {
			w.wants(r, want{OK, "service", "from this program", ""})
		} else {
			w.wants(r, want{Warning, "service-other", "runs another ahp, " + program, ""})
		}
		if r.Wrong || len(r.find(OK, "canary")) != 1 {
			t.Errorf("%s", r.Text(true))
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	serve(w.ahp)
	other := w.path("bin/other")
	w.program(other, "#!/bin/sh\n")
	serve(other)
	w.wants(w.run(), want{Warning, "service", "doesn't say how it is", ""})
}

// TestI040: an update after which every call is refused raises an alarm that names the
// agent's version and the hook, and nothing is switched off.
func TestI040(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.install("claude-code", hostconf.User)
	w.program(w.path("npm/bin/claude.js"), "#!/bin/sh\necho 9.9.9\n")
	w.write(w.path("npm/package.json"), `{"name":"@anthropic-ai/claude-code","version":"9.9.8"}`)
	if err := os.Symlink(w.path("npm/bin/claude.js"), w.path("bin/claude")); err != nil {
		t.Fatal(err)
	}
	w.o.Environ = append(w.o.Environ, "PATH="+w.path("bin")+":"+os.Getenv("PATH"))
	w.o.Measured = func(string) []string { return []string{"9.9.7"} }
	r := w.run()
	if r.Wrong {
		t.Fatalf("%s", r.Text(true))
	}
	w.wants(r, want{Note, "version", "version 9.9.8 (" + w.path("npm/package.json") + ") wasn't measured; 9.9.7 was", ""})
	w.o.Versions = true
	w.replaceIn(claude, gate, "{ o=", "echo 'hook exited with code 2' >&2; exit 2; { o=")
	before := w.read(w.path(claude))
	r = w.run()
	w.wants(r, want{Wrong, "mass-deny", "refused at PreToolUse: Claude Code 9.9.9 refuses every call. It is told: hook exited with code 2", claude})
	w.wants(r, want{Note, "version", "version 9.9.9 (", ""})
	if after := w.read(w.path(claude)); after != before {
		t.Errorf("the configuration was changed: %s", after)
	}
}

// TestI014: a hook under the event name of another agent never runs, and isn't left so
// without a word.
func TestI014(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	settings := "home/.gemini/settings.json"
	w.write(w.path(settings), `{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"theirs"}]}]}}`)
	w.install("gemini", hostconf.User)
	w.wants(w.run(), want{Warning, "inert-hook", settings + ":", ""}, want{Warning, "inert-hook", "hooks.PreToolUse is an event of", ""})
	w.replace(w.path(settings), `"BeforeTool"`, `"PreToolUse2"`)
	r := w.run()
	w.wants(r, want{Wrong, "entry-missing", "left for BeforeTool", settings}, want{Wrong, "canary", "no call is checked", ""})
}
