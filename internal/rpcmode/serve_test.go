package rpcmode

import (
	"context"
	"encoding/base64"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/abhed/abhed/internal/control"
	"github.com/abhed/abhed/internal/event"
)

func TestStartPromptQuit(t *testing.T) {
	leaks(t)
	engine := &fakeEngine{}
	c := connect(t, engine, Options{})
	c.send(`{"method":"start","id":1,"mode":"auto","model":"m","workspace":"/w","allow":["read"],"ask":["bash"],"deny":["write"],"resume":"x","fork_at":3}`)
	ready := c.replyTo("1", "ready")
	for name, want := range map[string]string{
		"session_id": "s-1", "model": "m", "mode": "auto", "tools": `["bash","read"]`, "extensions": "[]", "trust": "untrusted", "sandbox": "process", "protocol": "1",
		"record": "/state/s-1\uFFFD.jsonl", "network": "false",
	} {
		if got := ready.str(name); got != want {
			t.Errorf("ready: %s is %q, want %q", name, got, want)
		}
	}
	o := engine.starts[0]
	if o.Mode != "auto" || o.Model != "m" || o.Workspace != "/w" || o.Allow[0] != "read" || o.Ask[0] != "bash" || o.Deny[0] != "write" || o.Resume != "x" || o.ForkAt != 3 || o.Approver != nil || o.Asker != nil {
		t.Errorf("the engine was started with %+v", o)
	}
	c.send(`{"method":"prompt","id":"p","prompt":"say hello"}`)
	a := c.replyTo(`"p"`, "answer")
	if a.str("answer") != "hello" || a.str("reason") != "completed" || a.str("usage") != `{"input":1}` || a.str("turns") != "1" || a.str("cost_usd") != "null" {
		t.Errorf("answer %s", a.line)
	}
	c.send(`{"method":"quit","id":2}`)
	if err := c.end(); err != nil {
		t.Fatal(err)
	}
	rest := c.rest()
	if last := rest[len(rest)-1].line; last != `{"type":"bye","id":2}` {
		t.Errorf("the last line is %s", last)
	}
	if !engine.session(0).isClosed() {
		t.Error("the session was not closed")
	}
	want := int64(0)
	for _, r := range append(c.seen, rest...) {
		if r.str("type") == "delta" {
			t.Errorf("a delta that nobody asked for: %s", r.line)
		}
		if r.str("type") == "event" {
			if want++; r.event(t).Seq != want {
				t.Errorf("event %d came where %d was expected", r.event(t).Seq, want)
			}
		}
	}
	if want != 4 {
		t.Errorf("%d events, want 4", want)
	}
}

func TestDeltas(t *testing.T) {
	c := connect(t, &fakeEngine{}, Options{})
	c.send(`{"method":"start","deltas":true}`, "{\"method\":\"prompt\",\"id\":1,\"prompt\":\"say a\u2028b\u2029c\"}")
	c.replyTo("1", "answer")
	got := ""
	for _, r := range c.seen {
		if r.str("type") == "delta" {
			got += r.line
		}
	}
	if want := "{\"type\":\"delta\",\"kind\":\"text\",\"text\":\"a\u2028b\u2029c\"}"; got != want {
		t.Errorf("deltas %q, want %q", got, want)
	}
}

// TestPromptWithoutStart: it is refused, because the start that a client sent before it
// may be the line that could not be read, with the rules that were to hold.
func TestPromptWithoutStart(t *testing.T) {
	engine := &fakeEngine{hold: make(chan struct{})}
	c := connect(t, engine, Options{})
	c.send(`{"method":"start","id":0,"deny":["bash"],}`, `{"method":"prompt","id":1,"prompt":"say one"}`)
	c.replyTo("0", "error")
	if r := c.replyTo("1", "error"); r.str("error") != "no session is open: send start first" {
		t.Errorf("prompt: %s", r.line)
	}
	// Prompts wait for a start that is being done.
	c.send(`{"method":"start","id":0}`, `{"method":"prompt","id":1,"prompt":"say one"}`, `{"method":"prompt","id":2,"prompt":"say two"}`)
	close(engine.hold)
	c.replyTo("0", "ready")
	if r := c.reply("answer"); r.str("id") != "1" || r.str("answer") != "one" {
		t.Errorf("answer %s", r.line)
	}
	if r := c.reply("answer"); r.str("id") != "2" || r.str("answer") != "two" {
		t.Errorf("answer %s", r.line)
	}
	if len(engine.starts) != 1 {
		t.Errorf("%d sessions were started", len(engine.starts))
	}
	c.send(`{"method":"start","id":3}`)
	if r := c.replyTo("3", "error"); !strings.Contains(r.str("error"), "s-1 is open already") {
		t.Errorf("a second start: %s", r.line)
	}
}

func TestStartFails(t *testing.T) {
	engine := &fakeEngine{refuse: &control.Error{Code: control.CodeConfig, Msg: "the settings are broken"}}
	c := connect(t, engine, Options{})
	c.send(`{"method":"start","id":1}`, `{"method":"prompt","id":2,"prompt":"say x"}`, `{"method":"usage","id":3}`)
	if r := c.replyTo("1", "error"); r.str("code") != "config" || r.str("error") != "the settings are broken" {
		t.Errorf("start: %s", r.line)
	}
	var two, three reply
	c.until("both", func(r reply) bool {
		switch r.str("id") {
		case "2":
			two = r
		case "3":
			three = r
		}
		return two.line != "" && three.line != ""
	})
	for _, r := range []reply{two, three} {
		if r.str("type") != "error" || !strings.Contains(r.str("error"), "the last start failed: the settings are broken") {
			t.Errorf("after it: %s", r.line)
		}
	}
	c.send(`{"method":"start","id":4}`, `{"method":"prompt","id":5,"prompt":"say x"}`)
	c.replyTo("4", "ready")
	c.replyTo("5", "answer")
}

// TestFailedPromptIsNoAnswer is I203: whatever a prompt ended with, only what the
// model answered is an answer.
func TestFailedPromptIsNoAnswer(t *testing.T) {
	c := connect(t, &fakeEngine{}, Options{})
	c.send(`{"method":"start"}`)
	for prompt, want := range map[string]map[string]string{
		"fail half a":   {"code": "failed", "reason": "error", "error": "the provider answered 401 Unauthorized", "answer": "half a"},
		"fail":          {"code": "failed", "reason": "error", "answer": ""},
		"limit":         {"code": "limit", "reason": "max_turns", "turns": "7", "error": "the prompt was not answered: max_turns"},
		"refused":       {"code": "failed", "reason": "", "error": "the record can't be written"},
		"what is this?": {"code": "failed", "reason": "error"},
	} {
		c.send(`{"method":"prompt","id":1,"prompt":"` + prompt + `"}`)
		r := c.replyTo("1", "error")
		for name, text := range want {
			if r.str(name) != text {
				t.Errorf("%s: %s is %q, want %q", prompt, name, r.str(name), text)
			}
		}
	}
}

// TestTwoPromptsQueue is like I216: they run one after the other, and their events
// don't mix.
func TestTwoPromptsQueue(t *testing.T) {
	c := connect(t, &fakeEngine{}, Options{})
	c.send(`{"method":"start"}`, `{"method":"prompt","id":1,"prompt":"steer"}`, `{"method":"prompt","id":2,"prompt":"say two"}`)
	c.notice("steerable")
	c.send(`{"method":"steer","id":3,"prompt":"one"}`)
	c.replyTo("3", "steered")
	c.replyTo("2", "answer")
	var order []string
	for _, r := range c.seen {
		switch {
		case r.str("type") == "answer":
			order = append(order, "answer "+r.str("id"))
		case r.str("type") == "event":
			if m, is := r.event(t).Payload.(*event.UserMessage); is {
				order = append(order, m.Text)
			}
		}
	}
	if got := strings.Join(order, ", "); got != "steer, answer 1, say two, answer 2" {
		t.Errorf("order: %s", got)
	}
}

func TestQueueIsBounded(t *testing.T) {
	c := connect(t, &fakeEngine{}, Options{})
	c.send(`{"method":"start"}`, `{"method":"prompt","id":"first","prompt":"steer"}`)
	c.notice("steerable")
	for range maxQueued {
		c.send(`{"method":"prompt","prompt":"say again"}`)
	}
	c.send(`{"method":"prompt","id":"late","prompt":"say late"}`)
	if r := c.replyTo(`"late"`, "error"); r.str("code") != "busy" {
		t.Errorf("one too many: %s", r.line)
	}
	c.send(`{"method":"steer","prompt":"done"}`)
	for n := 0; n <= maxQueued; {
		if r := c.until("answers", func(r reply) bool { return r.str("type") == "answer" }); r.line != "" {
			n++
		}
	}
	// The bytes that wait are bounded too, but one request may have any size.
	l := newLane(nil)
	for _, size := range []int64{maxWaiting + 1, 1} {
		if got := l.add(t.Context(), &job{size: size}) != nil; got != (size > 1) {
			t.Errorf("a job of %d bytes: taken %v", size, got)
		}
	}
}

func TestSteerAndInterrupt(t *testing.T) {
	engine := &fakeEngine{}
	c := connect(t, engine, Options{})
	c.send(`{"method":"steer","id":0,"prompt":"early"}`)
	if r := c.replyTo("0", "error"); !strings.Contains(r.str("error"), "send start first") {
		t.Errorf("steer without a session: %s", r.line)
	}
	c.send(`{"method":"start"}`, `{"method":"steer","id":1,"prompt":"later"}`)
	c.replyTo("1", "queued")
	if engine.session(0).waiting != "later" {
		t.Errorf("the session has %q", engine.session(0).waiting)
	}
	c.send(`{"method":"interrupt","id":2}`)
	if r := c.replyTo("2", "interrupted"); r.str("running") != "false" {
		t.Errorf("nothing runs: %s", r.line)
	}
	c.send(`{"method":"prompt","id":3,"prompt":"hang"}`, `{"method":"prompt","id":4,"prompt":"say next"}`)
	c.notice("hanging")
	start := time.Now()
	c.send(`{"method":"interrupt","id":5}`)
	if r := c.replyTo("5", "interrupted"); r.str("running") != "true" {
		t.Errorf("one runs: %s", r.line)
	}
	// The promise is 200 ms; a loaded machine gets more.
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("the interrupt was answered after %s", took)
	}
	if r := c.replyTo("3", "error"); r.str("reason") != "user_interrupt" || r.str("code") != "interrupted" {
		t.Errorf("interrupted: %s", r.line)
	}
	c.replyTo("4", "answer")
}

// TestInterruptBeforeTheRun: a prompt that has been taken is interrupted although the
// engine doesn't know of it yet.
func TestInterruptBeforeTheRun(t *testing.T) {
	engine := &fakeEngine{hold: make(chan struct{})}
	c := connect(t, engine, Options{})
	c.send(`{"method":"start"}`, `{"method":"prompt","id":1,"prompt":"hang"}`, `{"method":"interrupt","id":2}`)
	if r := c.replyTo("2", "interrupted"); r.str("running") != "true" {
		t.Errorf("one waits: %s", r.line)
	}
	close(engine.hold)
	if r := c.replyTo("1", "error"); r.str("reason") != "user_interrupt" {
		t.Errorf("interrupted: %s", r.line)
	}

	engine = &fakeEngine{hold: make(chan struct{})}
	c = connect(t, engine, Options{})
	c.send(`{"method":"start"}`, `{"method":"compact","id":1}`, `{"method":"interrupt","id":2}`)
	c.replyTo("2", "interrupted")
	close(engine.hold)
	if r := c.replyTo("1", "error"); r.str("code") != "interrupted" {
		t.Errorf("interrupted: %s", r.line)
	}
}

func TestTuneAndLook(t *testing.T) {
	c := connect(t, &fakeEngine{}, Options{})
	c.send(`{"method":"start"}`)
	for _, row := range []struct{ request, typ, name, want string }{
		{`"set_model","model":"fake/two"`, "ready", "model", "fake/two"},
		{`"set_mode","mode":"bypass"`, "error", "code", "usage"},
		{`"compact"`, "ready", "compacted", `{"done":true,"before_tokens":100,"after_tokens":10}`},
		{`"usage"`, "usage", "context_tokens", "12"},
		{`"tools"`, "tools", "tools", `[{"name":"bash","description":"runs a command","schema":{"type":"object"}}]`},
		{`"providers"`, "providers", "providers", `[{"name":"fake","api":"script","base_url":"/w","has_key":false,"sampling":[]}]`},
		{`"tasks"`, "tasks", "tasks", `[{"task_id":"t1","kind":"command","title":"make","state":"running"}]`},
		{`"cancel_task","task_id":"t1"`, "cancelled", "task_id", "t1"},
		{`"cancel_task","task_id":"t2"`, "error", "code", "not_found"},
		{`"export"`, "export", "content", "jsonl\nthe record"},
		{`"export","format":"html"`, "export", "content", "html\nthe record"},
		{`"set_mode","mode":"plan"`, "ready", "mode", "plan"},
		{`"export"`, "error", "code", "failed"}, // in this mode it is too large
	} {
		c.send(`{"id":9,"method":` + row.request + `}`)
		if r := c.replyTo("9", row.typ); r.str(row.name) != row.want {
			t.Errorf("%s: %s is %q, want %q", row.request, row.name, r.str(row.name), row.want)
		}
	}
}

func TestAttachments(t *testing.T) {
	engine := &fakeEngine{}
	c := connect(t, engine, Options{})
	data := func(n int) string { return base64.StdEncoding.EncodeToString(make([]byte, n)) }
	c.send(`{"method":"start"}`)
	image := func(typ, data string) string { return `{"media_type":"` + typ + `","data":"` + data + `"}` }
	send := func(list string) reply {
		c.send(`{"method":"prompt","id":1,"prompt":"say x","attachments":[` + list + `]}`)
		return c.until("a reply", func(r reply) bool { return r.str("id") == "1" })
	}
	if r := send(image("image/png", data(3)) + "," + image("image/webp", data(4))); r.str("type") != "answer" {
		t.Fatalf("two images: %.200s", r.line)
	}
	if got := engine.session(0).prompts[0].Images; len(got) != 2 || got[0] != (event.Image{MediaType: "image/png", Data: data(3)}) {
		t.Errorf("the engine got %d images", len(got))
	}
	for list, want := range map[string]string{
		image("image/tiff", data(3)):  "/attachments/0/media_type",
		image("image/png", "AAA"):     "/attachments/0/data",
		image("image/png", "AA\\nAA"): "/attachments/0/data",
		image("image/png", ""):        "the image is empty",
		`{"path":"x.png"}`:            `unknown member "path", expected an object with media_type and data`,
		`3`:                           "/attachments/0",
		strings.Repeat(image("image/png", data(3))+",", maxImages) + image("image/png", data(3)): "21 attachments, the limit is 20",
	} {
		if r := send(list); r.str("type") != "error" || !strings.Contains(r.str("error"), want) {
			t.Errorf("%.60s: %.300s, want %q", list, r.line, want)
		}
	}
}

func TestImageSizes(t *testing.T) {
	t.Parallel()
	for _, n := range []int{maxImage, maxImage + 1} {
		raw := `{"media_type":"image/png","data":"` + base64.StdEncoding.EncodeToString(make([]byte, n)) + `"}`
		if _, fault := imagesOf([]event.Raw{event.Raw(raw)}); (fault != nil) != (n > maxImage) {
			t.Errorf("%d bytes: %v", n, fault)
		}
	}
}

// TestEndOfInput: the running prompt ends, then those that wait, then the session.
func TestEndOfInput(t *testing.T) {
	leaks(t)
	engine := &fakeEngine{}
	c := connect(t, engine, Options{})
	c.send(`{"method":"start"}`, `{"method":"prompt","id":1,"prompt":"hang"}`, `{"method":"prompt","id":2,"prompt":"say never"}`)
	c.notice("hanging")
	c.in.Close()
	for _, id := range []string{"1", "2"} {
		if r := c.replyTo(id, "error"); r.str("reason") != "shutdown" || r.str("code") != "closed" {
			t.Errorf("prompt %s: %s", id, r.line)
		}
	}
	if err := c.end(); err != nil {
		t.Fatal(err)
	}
	if !engine.session(0).isClosed() || len(engine.session(0).prompts) != 1 {
		t.Error("the session is open, or had the prompt that waited")
	}
}

// TestLastLineWithoutLF: what stands behind the last line feed is a request too.
func TestLastLineWithoutLF(t *testing.T) {
	c := connect(t, &fakeEngine{}, Options{})
	if _, err := c.in.WriteString(`{"method":"quit"}`); err != nil {
		t.Fatal(err)
	}
	c.in.Close()
	c.reply("bye")
	if err := c.end(); err != nil {
		t.Fatal(err)
	}
}

func TestQuitEndsTheRun(t *testing.T) {
	c := connect(t, &fakeEngine{}, Options{})
	c.send(`{"method":"start"}`, `{"method":"prompt","id":1,"prompt":"hang"}`)
	c.notice("hanging")
	c.send(`{"method":"quit","id":2}`)
	c.replyTo("1", "error")
	c.replyTo("2", "bye")
	if err := c.end(); err != nil {
		t.Fatal(err)
	}
}

// TestContextEnds: the end of the context counts as a signal.
func TestContextEnds(t *testing.T) {
	for cause, want := range map[error]struct {
		code   int
		reason string
	}{
		errors.New("any"): {143, "shutdown"},
		&control.Interrupted{Reason: "user_interrupt"}: {130, "user_interrupt"},
		&control.Interrupted{Reason: "shutdown"}:       {143, "shutdown"},
	} {
		engine := &fakeEngine{}
		inR, inW := pipe(t)
		outR, outW := pipe(t)
		ctx, cancel := context.WithCancelCause(context.Background())
		c := &client{t: t, in: inW, out: outR, lines: make(chan reply, 100), err: make(chan error, 1)}
		go func() { c.err <- Serve(ctx, engine, Options{In: inR, Out: outW}); outW.Close() }()
		c.readAll()
		c.send(`{"method":"start"}`, `{"method":"prompt","id":1,"prompt":"hang"}`)
		c.notice("hanging")
		cancel(cause)
		if r := c.replyTo("1", "error"); r.str("reason") != want.reason {
			t.Errorf("%v: %s", cause, r.line)
		}
		if err := c.end(); ExitCode(err) != want.code {
			t.Errorf("%v: exit %d (%v), want %d", cause, ExitCode(err), err, want.code)
		}
	}
}

func TestSignalOption(t *testing.T) {
	signals := make(chan os.Signal, 1)
	c := connect(t, &fakeEngine{}, Options{Signals: signals})
	c.send(`{"method":"start","id":1}`)
	c.replyTo("1", "ready")
	signals <- syscall.SIGHUP
	if err := c.end(); ExitCode(err) != 129 {
		t.Errorf("exit %d (%v)", ExitCode(err), err)
	}
}

// TestBugEndsTheService: a panic in the engine is answered by the end, with what the
// engine has open closed.
func TestBugEndsTheService(t *testing.T) {
	engine := &fakeEngine{}
	c := connect(t, engine, Options{})
	c.send(`{"method":"start"}`, `{"method":"prompt","id":1,"prompt":"panic"}`, `{"method":"prompt","id":2,"prompt":"say x"}`)
	err := c.end()
	if ExitCode(err) != 1 || !strings.Contains(err.Error(), "a bug of the fake") {
		t.Errorf("exit %d: %v", ExitCode(err), err)
	}
	if !engine.session(0).isClosed() {
		t.Error("the session is open")
	}
}
