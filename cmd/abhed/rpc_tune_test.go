package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model/modeltest"
)

// number returns a member as a number; names lead through objects.
func (l spoken) number(t *testing.T, names ...string) float64 {
	t.Helper()
	at := l
	for _, n := range names[:len(names)-1] {
		inner, err := decodeSpoken(string(at.members[n]))
		if err != nil {
			t.Fatalf("%v in %s", err, l.text)
		}
		at = inner
	}
	n, err := strconv.ParseFloat(at.member(names[len(names)-1]), 64)
	if err != nil {
		t.Fatalf("%v in %s", err, l.text)
	}
	return n
}

// TestRPCSetMode: a mode can be narrowed, in the middle of a prompt too, and widened
// again up to what the session was started with, never beyond.
func TestRPCSetMode(t *testing.T) {
	t.Parallel()
	put := func(id, name string) modeltest.Turn {
		return asked(id, "write", fmt.Sprintf(`{"path":%q,"content":"x"}`, name))
	}
	s := newStage(t, put("c1", "one"), asked("c2", "read", `{"path":"one"}`), modeltest.Turn{Text: "done"}, put("c3", "three"), modeltest.Turn{Text: "done"},
		put("c4", "four"), modeltest.Turn{Text: "done"})
	c := s.serve("--mode", "auto")
	session := c.begin(`"mode":"accept-edits","ask":["read"],"approve":"client"`)
	prompt := c.prompt("work")
	q := c.question() // about c2: the prompt stands here
	for _, wider := range []string{"auto", "bypass"} {
		if l := c.do("set_mode", fmt.Sprintf(`"mode":%q`, wider), "error"); l.member("code") != "usage" || !strings.Contains(l.text, "can only become stricter") {
			t.Errorf("%s", l.text)
		}
	}
	c.do("set_mode", `"mode":"nothing"`, "error")
	if l := c.do("set_mode", `"mode":"plan"`, "ready"); l.member("mode") != "plan" || l.member("session_id") != session {
		t.Errorf("%s", l.text)
	}
	c.settle("approve", q, "")
	c.reply(prompt, "answer")
	c.reply(c.prompt("more"), "answer")
	if exists(s.in("three")) {
		t.Error("a file was written in mode plan")
	}
	if l := c.do("set_mode", `"mode":"accept-edits"`, "ready"); l.member("mode") != "accept-edits" {
		t.Errorf("%s", l.text)
	}
	c.reply(c.prompt("more"), "answer")
	if !exists(s.in("four")) {
		t.Error("no file was written in the mode of the start")
	}
	// A fork has the mode that the session has, and the bound of its start.
	c.do("set_mode", `"mode":"default"`, "ready")
	if l := c.do("fork", "", "ready"); l.member("mode") != "default" {
		t.Errorf("%s", l.text)
	}
	c.do("set_mode", `"mode":"auto"`, "error")
	c.do("set_mode", `"mode":"accept-edits"`, "ready")
	c.quit()
	var changes []string
	for _, e := range s.recorded(session) {
		if m, is := e.Payload.(*event.ModeChanged); is {
			changes = append(changes, m.From+" "+m.To)
		}
	}
	if !slices.Equal(changes, []string{"accept-edits plan", "plan accept-edits", "accept-edits default"}) {
		t.Errorf("in the record: %q", changes)
	}
}

// TestRPCSetModel changes the provider, its API too, while a command runs: the next
// request goes to the other server, with all that was said.
func TestRPCSetModel(t *testing.T) {
	t.Parallel()
	for _, api := range []string{"openai", "anthropic"} {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, modeltest.Turn{Text: "zero"}, asked("c1", "bash", `{"command":"while [ ! -e go ]; do sleep 0.05; done; echo gone"}`), modeltest.Turn{Text: "back"})
			other := newStage(t, modeltest.Turn{Text: "one"}, modeltest.Turn{Text: "two"})
			s.settings(`{"custom_providers":[{"name":"other","api":%q,"base_url":%q}]}`, api, other.server.URL)
			c := s.serve("--mode", "bypass")
			session := c.begin("")
			c.reply(c.prompt("first"), "answer")
			prompt := c.prompt("second")
			c.event(event.TypeToolStarted)
			if l := c.do("set_model", `"model":"nobody/large"`, "error"); l.member("code") != "config" || !strings.Contains(l.text, "nobody") {
				t.Errorf("%s", l.text)
			}
			if l := c.do("set_model", `"model":"other/large"`, "ready"); l.member("model") != "other/large" {
				t.Errorf("%s", l.text)
			}
			s.put(s.in("go"), "")
			if l := c.reply(prompt, "answer"); l.member("answer") != "one" {
				t.Errorf("%s", l.text)
			}
			got := other.said(0)
			if want := []string{"user: first", "assistant: zero", "user: second", "assistant:  c1", "tool: *gone*"}; !same(got, want) || other.server.Requests()[0].Model != "large" {
				t.Errorf("the other model %q was sent %q", other.server.Requests()[0].Model, got)
			}
			c.reply(c.prompt("third"), "answer")
			c.do("set_model", `"model":"env/test"`, "ready")
			c.reply(c.prompt("fourth"), "answer")
			if got := s.said(2); got[len(got)-2] != "assistant: two" || got[len(got)-1] != "user: fourth" {
				t.Errorf("the first model was sent %q", got)
			}
			c.quit()
			s.verified(session)
		})
	}
}

// TestRPCCompactAndUsage: the figures are those that the servers reported, and a
// compaction makes the context smaller; one that is interrupted changes nothing.
func TestRPCCompactAndUsage(t *testing.T) {
	t.Parallel()
	used := func(turn modeltest.Turn) modeltest.Turn {
		turn.Usage = &modeltest.Usage{Prompt: 1000, Cached: 400, Completion: 10}
		return turn
	}
	turns := []modeltest.Turn{}
	for i := range 8 {
		turns = append(turns, used(modeltest.Turn{Text: fmt.Sprintf("answer %d ", i) + strings.Repeat("long ", 500)}))
	}
	turns = append(turns, hung(modeltest.Turn{}, modeltest.StallHeaders()), used(modeltest.Turn{Text: "SUMMARY of it"}), used(modeltest.Turn{Text: "last"}))
	s := newStage(t, turns...)
	s.settings(`{"models":{"env/test":{"context_window":100000,"price":{"input":10,"output":100,"cache_read":1}}}}`)
	c := s.serve()
	session := c.begin("")
	for i := range 8 {
		c.reply(c.prompt(fmt.Sprintf("question %d", i)), "answer")
	}
	u := c.do("usage", "", "usage")
	cost := 8 * (600*10 + 400*1 + 10*100) / 1e6
	if u.number(t, "turns") != 8 || u.number(t, "tokens", "input") != 8*600 || u.number(t, "tokens", "output") != 80 ||
		u.number(t, "tokens", "cache_read") != 8*400 || u.number(t, "context_window") != 100000 || abs(u.number(t, "cost_usd")-cost) > 1e-9 {
		t.Errorf("%s; want a cost of %g", u.text, cost)
	}
	before := u.number(t, "context_tokens")

	compact := c.request("compact", "")
	s.reached(9)
	c.do("interrupt", "", "interrupted")
	if l := c.reply(compact, "error"); l.member("code") != "interrupted" {
		t.Errorf("%s", l.text)
	}
	if after := c.do("usage", "", "usage").number(t, "context_tokens"); abs(after-before) > before/20 {
		t.Errorf("an interrupted compaction made %g of %g", after, before)
	}
	l := c.do("compact", "", "ready")
	if l.member("session_id") != session || l.number(t, "compacted", "before_tokens") <= l.number(t, "compacted", "after_tokens") || l.number(t, "compacted", "after_tokens") <= 0 {
		t.Errorf("%s", l.text)
	}
	u = c.do("usage", "", "usage")
	if after := u.number(t, "context_tokens"); after >= before || u.number(t, "tokens", "output") != 90 {
		t.Errorf("context of %g before; %s", before, u.text)
	}
	c.reply(c.prompt("and now"), "answer")
	got := s.said(10)
	if len(got) != 13 || got[0] != "user: question 0" || !strings.Contains(got[1], "SUMMARY of it") || got[len(got)-1] != "user: and now" {
		t.Errorf("after the compaction: %d messages %.200q", len(got), got)
	}
	c.quit()
	s.verified(session)
}

func abs(x float64) float64 { return max(x, -x) }

// TestRPCExport: jsonl is the record as it is, html a page in which nothing of the
// record is markup.
func TestRPCExport(t *testing.T) {
	t.Parallel()
	const evil = `</pre><script>alert(1)</script><img src=x onerror="alert(2)">&lt;'`
	s := newStage(t, asked("c1", "bash", `{"command":"echo '</pre><script>alert(3)</script>'"}`), modeltest.Turn{Text: evil})
	c := s.serve("--mode", "bypass")
	session := c.begin("")
	c.reply(c.request("prompt", fmt.Sprintf(`"prompt":%s`, strconv.Quote(evil))), "answer")
	page := c.do("export", `"format":"html"`, "export").member("content")
	for _, bad := range []string{"<script", "<img", "onerror=\"", "javascript:"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	for _, want := range []string{"&lt;/pre&gt;&lt;script&gt;alert(1)", "alert(3)&lt;/script&gt;", "&amp;lt;&#39;", "default-src 'none'", session} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	lines := c.do("export", "", "export").member("content")
	c.quit()
	record, err := os.ReadFile(s.record(session))
	if err != nil || !strings.HasPrefix(string(record), lines) || strings.Count(lines, "\n") < 10 {
		t.Errorf("%v; the export of %d bytes isn't the begin of the record of %d", err, len(lines), len(record))
	}
	for _, e := range c.events() {
		if n := strings.Count(lines, `"id":"`+e.ID+`"`); n != 1 && e.Seq <= int64(strings.Count(lines, "\n")) {
			t.Errorf("event %d is %d times in the export", e.Seq, n)
		}
	}
}
