package extension_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/abhed/abhed/internal/extension"
	"github.com/abhed/abhed/internal/policy"
)

// told returns the events and contents that a fake logged, without list_tools.
func told(t testing.TB, log string) []string {
	t.Helper()
	var out []string
	for _, l := range logLines(t, log) {
		ev, _, _ := strings.Cut(strings.TrimPrefix(l, `{"event":"`), `"`)
		if _, content, ok := strings.Cut(l, `"content":"`); ok {
			content, _, _ = strings.Cut(content, `"`)
			ev += " " + content
		}
		if ev != "list_tools" {
			out = append(out, ev)
		}
	}
	return out
}

// TestI001 registers one extension before tools, one after them and one at the
// stop: each runs once, in that order, and none takes another's place.
func TestI001(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	on := func(name string, events ...string) extension.Config {
		return with(fakeExt(t, name, nil), func(c *extension.Config) {
			c.Events = events
			c.Env = append(c.Env, fakeLog+"="+log)
		})
	}
	round := func(h *extension.Host) {
		h.PolicyHook(context.Background(), extension.ToolCall{Call: call(t, "bash", `{}`), Round: 1})
		h.ToolResult(context.Background(), call(t, "bash", `{}`), policy.Declaration{}, "out", false)
		h.TurnEnd(context.Background(), main1(), "answer")
		h.SessionEnd(context.Background(), "completed")
		h.Close()
	}
	round(start(t, nil, on("post", "tool_result"), on("stop", "turn_end"), on("pre", "tool_call")))
	if d := cmp.Diff([]string{"tool_call", "tool_result out", "turn_end answer"}, told(t, log)); d != "" {
		t.Errorf("what ran (-want +got):\n%s", d)
	}
	// A sibling: one that names an event twice, beside others in other cases.
	if err := os.Remove(log); err != nil {
		t.Fatal(err)
	}
	round(start(t, nil, on("twice", "tool_call", "turn_end", "tool_call")))
	if d := cmp.Diff([]string{"tool_call", "turn_end answer"}, told(t, log)); d != "" {
		t.Errorf("an event named twice (-want +got):\n%s", d)
	}
}

// TestNoticesWaitForNobody: a slow observer holds up neither the caller nor another
// extension, and gets everything in order, before what it is asked later.
func TestNoticesWaitForNobody(t *testing.T) {
	t.Parallel()
	path, release := fifo(t)
	dir := t.TempDir()
	logged := func(c extension.Config) extension.Config {
		return with(c, func(c *extension.Config) { c.Env = append(c.Env, fakeLog+"="+filepath.Join(dir, c.Name)) })
	}
	h := start(t, nil, logged(fakeExt(t, "slow", actions{"notification": "@wait " + path + " && {}"})), logged(fakeExt(t, "quick", nil)))
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // an interrupted run has an end too
	h.Notification(ctx, main1(), "one", "bash")
	for i := range 5 {
		h.SubagentEnd(ctx, main1(), fmt.Sprint(i))
	}
	h.TurnEnd(ctx, main1(), "last")
	want := []string{"notification one", "subagent_end 0", "subagent_end 1", "subagent_end 2", "subagent_end 3", "subagent_end 4", "turn_end last"}
	eventually(t, "the quick one has all", func() bool { return len(told(t, filepath.Join(dir, "quick"))) == len(want) })
	if d := cmp.Diff(want, told(t, filepath.Join(dir, "quick"))); d != "" {
		t.Errorf("the quick one (-want +got):\n%s", d)
	}
	eventually(t, "the slow one has the first", func() bool { return len(told(t, filepath.Join(dir, "slow"))) > 0 })
	if got := told(t, filepath.Join(dir, "slow")); len(got) != 1 {
		t.Errorf("the slow one was told %v before it had answered the first", got)
	}
	// Who is asked meanwhile and interrupted leaves nothing behind.
	asking, stop := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer stop()
	if got := h.PromptSubmit(asking, main1(), "interrupted"); !got.Refused || got.Asked[1].Failure != "interrupted" {
		t.Errorf("asked behind the notices: %+v", got)
	}
	go release()
	if got := h.PromptSubmit(context.Background(), main1(), "asked"); got.Refused {
		t.Errorf("got %+v", got)
	}
	h.SessionEnd(context.Background(), "completed")
	want = append(want, "user_prompt_submit asked", "session_end")
	if d := cmp.Diff(want, told(t, filepath.Join(dir, "slow"))); d != "" {
		t.Errorf("the slow one (-want +got):\n%s", d)
	}
	if s := state(t, h, "slow"); s.State != extension.StateStarted || s.LastError != "" {
		t.Errorf("state %+v", s)
	}
}

// TestNoticesAreBounded: 1,000 may wait, and the rest is dropped and said so once.
func TestNoticesAreBounded(t *testing.T) {
	t.Parallel()
	path, release := fifo(t)
	log := filepath.Join(t.TempDir(), "log")
	rec := &record{}
	h := start(t, rec, with(fakeExt(t, "a", actions{"notification": "@wait " + path + " && {}"}), func(c *extension.Config) {
		c.Env = append(c.Env, fakeLog+"="+log)
	}))
	h.Notification(context.Background(), main1(), "first", "")
	eventually(t, "the first", func() bool { return len(told(t, log)) == 1 })
	for i := range 1010 {
		h.TurnEnd(context.Background(), main1(), fmt.Sprint(i))
	}
	if w := rec.lines("a", "warning"); len(w) != 1 || !strings.Contains(w[0], "1000 notices wait") {
		t.Errorf("warnings %q", w)
	}
	go release()
	h.SessionEnd(context.Background(), "completed")
	got := told(t, log)
	if len(got) != 1002 || got[1] != "turn_end 0" || got[1000] != "turn_end 999" || got[1001] != "session_end" {
		t.Errorf("%d were told, the last of them %q", len(got), got[max(len(got)-2, 0):])
	}
}

// TestCloseDrainsNotices: what was told before Close still arrives, and one that
// doesn't answer holds Close up for no longer than the two graces.
func TestCloseDrainsNotices(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	logged := with(fakeExt(t, "a", nil), func(c *extension.Config) { c.Env = append(c.Env, fakeLog+"="+log) })
	rec := &record{}
	h := start(t, rec, logged, fakeExt(t, "hangs", actions{"turn_end": "@hang"}))
	for i := range 20 {
		h.TurnEnd(context.Background(), main1(), fmt.Sprint(i))
	}
	begin := time.Now()
	h.Close()
	if took := time.Since(begin); took > 8*time.Second { // its time-out is 30 s
		t.Errorf("Close took %v", took)
	}
	if got := told(t, log); len(got) != 20 {
		t.Errorf("%d of 20 were told", len(got))
	}
	if n := len(rec.changes("hangs", "ended")); n != 1 {
		t.Errorf("the end of the one that hangs was recorded %d times", n)
	}
	h.TurnEnd(context.Background(), main1(), "too late")
	if got := told(t, log); len(got) != 20 {
		t.Errorf("told after Close: %q", got[20:])
	}
}

// TestNoticesOfTheDead: a death among notices is recorded once, and ends them.
func TestNoticesOfTheDead(t *testing.T) {
	t.Parallel()
	rec := &record{}
	h := start(t, rec, fakeExt(t, "a", actions{"turn_end": `{"log":5}`, "notification": `{"log":"noted","block":true}`}))
	h.Notification(context.Background(), main1(), "x", "")
	for range 3 {
		h.TurnEnd(context.Background(), main1(), "x")
	}
	h.SessionEnd(context.Background(), "completed")
	if d := rec.changes("a", "dead"); len(d) != 1 || !strings.Contains(d[0].Cause, `"log" can't be used`) {
		t.Errorf("recorded %+v", d)
	}
	if l := rec.lines("a", "log"); len(l) != 1 || l[0] != "noted" {
		t.Errorf("log %q", l)
	}
	if w := rec.lines("a", "warning"); len(w) != 1 || !strings.Contains(w[0], `a reply to notification has "block", which has no effect there`) {
		t.Errorf("warnings %q", w)
	}
}
