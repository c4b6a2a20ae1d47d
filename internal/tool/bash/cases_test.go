package bash_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/require"
	"github.com/abhed/abhed/internal/sandbox"
	"github.com/abhed/abhed/internal/strictjson"
	"github.com/abhed/abhed/internal/tool"
	"github.com/abhed/abhed/internal/tool/bash"
	"github.com/abhed/abhed/internal/tool/tooltest"
)

// TestLeftBehind: I118 and I119. What a command leaves running neither holds up its
// result, nor adds to it, nor lives on.
func TestLeftBehind(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, p sandbox.Plan) {
		marker := fmt.Sprintf("%d.5625", 700000+os.Getpid())
		for _, tt := range []struct{ id, command, want string }{
			{"I118", "setsid sleep " + marker + " & echo ok", "ok\n"},
			{"I118, beside: both streams of a program that has left the session", "setsid sh -c 'sleep " + marker + " & sleep " + marker + "' & echo ok >&2", "ok\n"},
			{"I119", "(while :; do echo x; sleep .1; done; sleep " + marker + ") & sleep 0.02; echo done", "done\n"},
			{"I119, beside: one that writes without end", "(yes; sleep " + marker + ") | head -c 100000000 >&2 & echo done", "done\n"},
		} {
			begin := time.Now()
			res := run(t, p, bash.Options{}, realDir(t), m{"command": tt.command})
			if took := time.Since(begin); took > 3*time.Second {
				t.Errorf("%s: the call took %v", tt.id, took)
			}
			if res.IsError || !strings.Contains(res.Content, tt.want) || !strings.Contains(res.Content, "still running in the background") || strings.Count(res.Content, "x\n") > 20 {
				t.Errorf("%s: %.300q", tt.id, res.Content)
			}
			ends(t, marker)
		}
	})
}

// TestEndsWhatWillNotEnd: I122 and I124. At the time limit, the model's or the usual one,
// everything is dead within the grace, whatever it did to get away.
func TestEndsWhatWillNotEnd(t *testing.T) {
	t.Parallel()
	marker := fmt.Sprintf("%d.6875", 800000+os.Getpid())
	try := func(t *testing.T, p sandbox.Plan, id, command string, o bash.Options, args m) {
		t.Helper()
		args["command"] = command
		begin := time.Now()
		res := run(t, p, o, realDir(t), args)
		if took := time.Since(begin); !res.TimedOut || !res.IsError || took > 4*time.Second {
			t.Errorf("%s after %v: %+v", id, took, res)
		}
		ends(t, marker)
	}
	both(t, func(t *testing.T, p sandbox.Plan) {
		grace := bash.Options{Grace: 200 * time.Millisecond}
		try(t, p, "I122", `trap "" TERM; sleep `+marker, grace, m{"timeout_ms": 1000})
		try(t, p, "I122, beside: every signal", `trap "" TERM INT HUP QUIT; (trap "" TERM; sleep `+marker+`) & wait; sleep `+marker, grace, m{"timeout_ms": 300})
		try(t, p, "I122, beside: no limit given", `sleep `+marker, bash.Options{Timeout: 300 * time.Millisecond, Grace: grace.Grace}, m{})
		try(t, p, "I124", `setsid sh -c 'sleep `+marker+` & sleep `+marker+`' & wait`, grace, m{"timeout_ms": 300})
		try(t, p, "I124, beside: groups in groups", `set -m; sh -c 'set -m; sleep `+marker+` & wait' & wait`, grace, m{"timeout_ms": 300})
	})
	// One that is orphaned, has left the session and holds no pipe is found by the
	// namespace alone.
	t.Run("process", func(t *testing.T) {
		try(t, plan(t, sandbox.TierProcess), "I124, a daemon", `setsid sh -c '(sleep `+marker+` </dev/null >/dev/null 2>&1 &)'; sleep 60`, bash.Options{}, m{"timeout_ms": 300})
	})
}

// TestAllocatingChild: I123.
func TestAllocatingChild(t *testing.T) {
	t.Parallel()
	require.Path(t, "prlimit")
	p := plan(t, sandbox.TierProcess)
	t.Run("I123: an interrupt", func(t *testing.T) {
		marker := fmt.Sprintf("%d.8125", 900000+os.Getpid())
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var once sync.Once
		var at time.Time
		to := tooltest.Options{WorkDir: realDir(t), Output: func(string) { once.Do(func() { at = time.Now(); cancel() }) }}
		res := runCtx(ctx, t, p, bash.Options{}, to, m{"command": `sleep ` + marker + ` & echo up; x=y; while :; do x="$x$(printf %100000s)"; done`})
		if !res.IsError || !strings.Contains(res.Content, "interrupted") || time.Since(at) > 3*time.Second {
			t.Errorf("%v after the interrupt: %+v", time.Since(at), res)
		}
		ends(t, marker)
	})
	t.Run("I123, beside: a limit of memory", func(t *testing.T) {
		o := bash.Options{Policy: sandbox.Policy{MaxMemory: 64 << 20}}
		begin := time.Now()
		res := run(t, p, o, realDir(t), m{"command": "tail /dev/zero; echo after"})
		if !strings.Contains(res.Content, "after\n") || !strings.Contains(strings.ToLower(res.Content), "memory") || time.Since(begin) > 20*time.Second {
			t.Errorf("%v: %+v", time.Since(begin), res)
		}
	})
}

// TestInterrupt ends commands that run: one that waits, and one in the midst of a long
// line (I129).
func TestInterrupt(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, p sandbox.Plan) {
		for command, want := range map[string]string{
			"echo started; sleep 60":                                         "started\n(interrupted",
			`head -c 1500000 /dev/zero | tr '\0' x; sleep 60`:                "x\n(interrupted",
			`while :; do printf '%s' xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done`: "x\n(interrupted",
		} {
			ctx, cancel := context.WithCancel(t.Context())
			var once sync.Once
			var at atomic.Int64
			to := tooltest.Options{WorkDir: realDir(t), Output: func(string) { once.Do(func() { at.Store(time.Now().UnixNano()); cancel() }) }}
			res := runCtx(ctx, t, p, bash.Options{}, to, m{"command": command})
			if took := time.Since(time.Unix(0, at.Load())); took > 3*time.Second || !res.IsError || res.TimedOut || !strings.Contains(res.Content, want) || len(res.Content) > 34<<10 {
				t.Errorf("%v after the interrupt of %s: %.200q, %d bytes", took, command, res.Content, len(res.Content))
			}
			if res := runCtx(ctx, t, p, bash.Options{}, to, m{"command": "touch made"}); !res.IsError || !strings.Contains(res.Content, "not started") {
				t.Errorf("%+v", res)
			}
			cancel()
		}
	})
}

func TestLongLineAndProgress(t *testing.T) {
	t.Parallel()
	p, dir := plan(t, sandbox.TierNone), realDir(t)
	begin := time.Now()
	res := run(t, p, bash.Options{}, dir, m{"command": `head -c 1500000 /dev/zero | tr '\0' x`})
	if len(res.Content) > 34<<10 || !strings.Contains(res.Content, "bytes left out") || time.Since(begin) > 5*time.Second {
		t.Errorf("%d bytes after %v", len(res.Content), time.Since(begin))
	}
	res = run(t, p, bash.Options{}, dir, m{"command": `awk 'BEGIN { for (i = 1; i <= 25000; i++) printf "progress %d of 25000 ........................................................................................\r", i; print "" }'`})
	if !strings.HasPrefix(res.Content, "progress 25000 of 25000 ....") || strings.Count(res.Content, "progress") != 1 {
		t.Errorf("%d bytes: %.100q", len(res.Content), res.Content)
	}
}

// TestProgressBars: I128. The limits are in bytes, what is overwritten is not shown, and
// the file has it.
func TestProgressBars(t *testing.T) {
	t.Parallel()
	bars := func(n int, end string) m {
		return m{"command": fmt.Sprintf(`awk 'BEGIN { for (i = 1; i <= %d; i++) printf "progress %%d ........................................................................................................%s", i; print "" }'`, n, end)}
	}
	for _, tt := range []struct {
		id   string
		args m
		want []string
	}{
		{"I128", bars(25_000, `\r`), []string{"progress 25000 ."}},
		{"I128, beside: rubbed out and written again", bars(25_000, `\033[2K\r`), []string{"progress 25000 ."}},
		{"I128, beside: lines", bars(25_000, `\n`), []string{"progress 1 .", "progress 25000 .", "bytes left out"}},
	} {
		full := realDir(t)
		res := run(t, noPlan, bash.Options{OutputDir: opened(t, full)}, realDir(t), tt.args)
		if len(res.Content) > 34<<10 || !strings.Contains(tt.id, "lines") && strings.Count(res.Content, "progress") != 1 {
			t.Errorf("%s: %d bytes", tt.id, len(res.Content))
		}
		for _, want := range append(tt.want, "(the full output of 2") {
			if !strings.Contains(res.Content, want) {
				t.Errorf("%s: no %q in %.200q", tt.id, want, res.Content)
			}
		}
		files, _ := filepath.Glob(full + "/*")
		if len(files) != 1 {
			t.Fatalf("%s: files %q", tt.id, files)
		}
		data, err := os.ReadFile(files[0])
		if n := strings.Count(string(data), "progress"); err != nil || n != 25_000 || strings.ContainsAny(string(data), "\r\x1b") {
			t.Errorf("%s: the file has %d of 25000, %v", tt.id, n, err)
		}
	}
	full := realDir(t)
	if res := run(t, noPlan, bash.Options{OutputDir: opened(t, full)}, realDir(t), bars(50, `\r`)); strings.Contains(res.Content, "full output") {
		t.Errorf("a short one was kept: %q", res.Content)
	}
	if files, _ := filepath.Glob(full + "/*"); len(files) > 0 {
		t.Errorf("files %q", files)
	}
}

// TestOutputFitsARequest: I131, I132 and I133. Whatever a command prints, its result and
// what is shown live are valid text without control characters, fit for a line of JSON,
// and nothing is lost silently.
func TestOutputFitsARequest(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ id, command, want string }{
		{"I131", `printf '\xed\xa0\x80'`, `\xed\xa0\x80` + "\n"},
		{"I131, a half in JSON", `printf '%s' '"\ud83d"'`, `"\ud83d"` + "\n"},
		{"I131, beside: both halves by themselves", `printf '\xed\xa0\xbd\xed\xb8\x80'`, `\xed\xa0\xbd\xed\xb8\x80` + "\n"},
		{"I131, beside: a character that is cut", `printf '\xf0\x9f\x98'`, `\xf0\x9f\x98` + "\n"},
		{"I131, beside: past the last character", `printf '\xf4\x90\x80\x80'`, `\xf4\x90\x80\x80` + "\n"},
		{"I132", `printf '\xff\xfe\x00ok'`, `\xff\xfe\x00ok` + "\n"},
		{"I132, beside: UTF-16", `printf 'h\0i\0'`, `h\x00i\x00` + "\n"},
		{"I133", `printf 'a\033[?1003h\033[?2004hb\033]52;c;QUJD\007c'`, "abc\n"},
		{"I133, beside: other strings, and one that never ends", `printf 'a\033]0;title\033\\b\033P1$r\033\\c\033_x\033\\d\n\033]52;c;QUJD'`, "abcd\n" + `\x1b]52;c;QUJD` + "\n"},
		{"I133, beside: as one character", `printf 'a\xc2\x9b?1003h'`, `a\u009b?1003h` + "\n"},
	} {
		var mu sync.Mutex
		var live strings.Builder
		to := tooltest.Options{WorkDir: realDir(t), Output: func(s string) {
			mu.Lock()
			defer mu.Unlock()
			live.WriteString(s)
		}}
		res := runCtx(t.Context(), t, noPlan, bash.Options{}, to, m{"command": tt.command})
		if res.Content != tt.want || strings.TrimSuffix(res.Content, "\n") != strings.TrimSuffix(live.String(), "\n") {
			t.Errorf("%s: %q, live %q, want %q", tt.id, res.Content, live.String(), tt.want)
		}
		fits(t, tt.id, res)
	}
}

// fits checks that a result can be a part of a request and of a record.
func fits(t *testing.T, id string, res tool.Result) {
	t.Helper()
	line, err := strictjson.Marshal(event.ToolResult{CallID: "c", Content: res.Content})
	var back event.ToolResult
	if err == nil {
		err = strictjson.Unmarshal(line, &back, strictjson.Options{})
	}
	if err != nil || back.Content != res.Content || strings.ContainsRune(string(line), '\n') {
		t.Errorf("%s: as JSON %q, %v", id, line, err)
	}
	control := func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }
	if !utf8.ValidString(res.Content) || strings.ContainsFunc(res.Content, control) {
		t.Errorf("%s: %q", id, res.Content)
	}
}

// TestDescription: the model is told what it can't find out.
func TestDescription(t *testing.T) {
	it, err := bash.New(noPlan, bash.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"pipefail is off", "only the working directory is kept", "no input and no terminal", "left in the background end with the call"} {
		if !strings.Contains(it.Spec().Description, want) {
			t.Errorf("the description lacks %q: %s", want, it.Spec().Description)
		}
	}
	for command, fails := range map[string]bool{"false | true": false, "true | false": true, "set -o pipefail; false | true": true} {
		if res := run(t, noPlan, bash.Options{}, realDir(t), m{"command": command}); res.IsError != fails {
			t.Errorf("%s: %+v", command, res)
		}
	}
}
