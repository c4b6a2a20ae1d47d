package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model/modeltest"
	"github.com/abhed/abhed/internal/require"
	"github.com/abhed/abhed/internal/strictjson"
)

// ticked returns the words of a text that stand in backquotes.
func ticked(text string) (words []string) {
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(text, -1) {
		words = append(words, m[1])
	}
	return words
}

// expected returns the names that an error says were expected.
func expected(l spoken) []string {
	_, list, _ := strings.Cut(l.member("error"), ", expected ")
	list, _, _ = strings.Cut(list, " (")
	if list == "none" {
		return nil
	}
	return strings.Split(strings.TrimPrefix(list, "one of "), ", ")
}

// TestRPCPageMethods holds that the page has the methods that there are, with their
// fields and the types of their replies.
func TestRPCPageMethods(t *testing.T) {
	t.Parallel()
	s := newStage(t, modeltest.Turn{Text: "done"}, asked("c1", "bash", `{"command":"sleep 600","background":true}`), modeltest.Turn{Text: "done"})
	c := s.serve("--mode", "bypass")
	_, table, _ := strings.Cut(page(t, "docs/rpc.md"), "|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	fields, replies := map[string][]string{}, map[string][]string{}
	for _, row := range strings.Split(table, "\n") {
		cells := strings.Split(row, "|")
		for _, method := range ticked(cells[1]) {
			fields[method], replies[method] = ticked(cells[2]), ticked(cells[3])
		}
	}
	methods := expected(c.do("nothing", "", "error"))
	if len(methods) != 18 || len(fields) != len(methods) {
		t.Errorf("%d methods are in the page, there are %d", len(fields), len(methods))
	}
	for _, method := range methods {
		got := expected(c.do(method, `"nothing":1`, "error"))
		want := fields[method]
		if slices.Sort(want); !slices.Equal(slices.Sorted(slices.Values(got)), want) {
			t.Errorf("%s has the fields %q, in the page %q", method, got, want)
		}
	}
	// One good request of each method that has no part in another test of types.
	for _, r := range [][2]string{
		{"providers", ""}, {"start", ""}, {"steer", `"prompt":"x"`}, {"prompt", `"prompt":"x"`}, {"interrupt", ""}, {"usage", ""}, {"tools", ""}, {"tasks", ""},
		{"prompt", `"prompt":"begin a job"`}, {"cancel_task", `"task_id":"job1"`}, {"set_model", `"model":"env/test"`}, {"set_mode", `"mode":"plan"`}, {"export", ""},
		{"fork", ""}, {"compact", ""}, {"quit", ""},
	} {
		id := c.request(r[0], r[1])
		l := c.find("a reply to "+r[0], 0, func(l spoken) bool { return l.id == id })
		if !slices.Contains(replies[r[0]], l.typ) {
			t.Errorf("%s is answered by %.200s, in the page by %q", r[0], l.text, replies[r[0]])
		}
	}
	if code := c.exit(); code != 0 {
		t.Errorf("exit %d", code)
	}
}

// TestRPCPageTranscript sends the requests of the page's transcript; each of its
// replies must come, in that order, with what the page says of it.
func TestRPCPageTranscript(t *testing.T) {
	t.Parallel()
	steered := make(chan struct{})
	s := newStage(t, modeltest.Turn{Text: "half", Before: func(int) { <-steered }}, modeltest.Turn{Text: "fixed"})
	c := s.serve()
	at := 0
	for _, line := range strings.Split(strings.TrimSpace(block(t, page(t, "docs/rpc.md"), "", `"method":"start"`)), "\n") {
		if request, is := strings.CutPrefix(line, "> "); is {
			c.send(request)
			continue
		}
		want := strings.TrimPrefix(line, "< ")
		sound := strings.NewReplacer(",…", "", "{…}", "{}", ":…", `:"…"`).Replace(want)
		l := c.find(want, at, func(l spoken) bool { return holds(t, event.Raw(l.text), event.Raw(sound)) })
		at = l.at + 1
		if l.typ == "steered" {
			close(steered)
		}
	}
	if code := c.exit(); code != 0 {
		t.Errorf("exit %d", code)
	}
}

// holds reports whether a JSON value has all that another one has, in which "…" is
// anything.
func holds(t *testing.T, got, want event.Raw) bool {
	t.Helper()
	if want.Kind() != '{' {
		return string(want) == `"…"` && got != nil || string(got) == string(want)
	}
	var g, w map[string]event.Raw
	if err := strictjson.Unmarshal(want, &w, strictjson.Options{}); err != nil {
		t.Fatalf("%v in %s", err, want)
	}
	if got.Kind() != '{' || strictjson.Unmarshal(got, &g, strictjson.Options{}) != nil {
		return false
	}
	for name, value := range w {
		if !holds(t, g[name], value) {
			return false
		}
	}
	return true
}

// TestRPCPageErrors: the codes of the page, each by what it is for.
func TestRPCPageErrors(t *testing.T) {
	t.Parallel()
	refuses := hung(modeltest.Turn{}, modeltest.Status(401, `{"error":{"message":"no"}}`))
	s := newStage(t, asked("c1", "read", `{"path":"f"}`), refuses, hung(modeltest.Turn{}, modeltest.StallHeaders()), refuses)
	_, list, _ := strings.Cut(page(t, "docs/rpc.md"), "The codes are ")
	list, _, _ = strings.Cut(list, "\n\n")
	codes := map[string]bool{}
	for _, code := range ticked(list) {
		codes[code] = false
	}
	seen := func(l spoken, code, more string) {
		t.Helper()
		if l.member("code") != code || !strings.Contains(l.text, more) {
			t.Errorf("%s; want the code %s and %s", l.text, code, more)
		}
		if _, known := codes[code]; !known {
			t.Errorf("the page has no code %s: %v", code, codes)
		}
		codes[code] = true
	}
	c := s.serve("--max-turns", "1")
	defer func() {
		for _, code := range []string{"refused", "closed"} { // TestRPCRefused, TestRPCEndOfInput
			delete(codes, code)
		}
		for code, came := range codes {
			if !came {
				t.Errorf("the code %s of the page did not come", code)
			}
		}
	}()
	seen(c.do("usage", "", "error"), "usage", "start")
	seen(c.do("start", `"mode":"sleepy"`, "error"), "config", "sleepy")
	seen(c.do("start", `"resume":"01890000-0000-7000-8000-000000000000"`, "error"), "not_found", "")
	c.begin("")
	seen(c.reply(c.prompt("work"), "error"), "limit", `"reason":"max_turns"`)
	// A provider's refusal is a failure, never an answer (I203).
	seen(c.reply(c.prompt("work"), "error"), "failed", `"reason":"error"`)
	prompt := c.prompt("hang")
	s.reached(3)
	seen(c.do("fork", "", "error"), "busy", "")
	waiting := c.prompt("wait")
	c.do("interrupt", "", "interrupted")
	seen(c.reply(prompt, "error"), "interrupted", `"reason":"user_interrupt"`)
	// The one that waited is not interrupted: the server refuses it.
	seen(c.reply(waiting, "error"), "failed", "401")
	c.quit()
}

// TestRPCRefused: a prompt that an extension refuses.
func TestRPCRefused(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.settings(`{"extensions":[{"name":"no","command":%q,"args":["-c","while read -r line; do echo '{\"block\":true,\"reason\":\"not today\"}'; done"],"events":["user_prompt_submit"]}]}`, require.Path(t, "sh"))
	c := s.serve()
	c.begin("")
	if l := c.reply(c.prompt("work"), "error"); l.member("code") != "refused" || l.member("reason") != "prompt_refused" || !strings.Contains(l.text, "not today") {
		t.Errorf("%s", l.text)
	}
	c.quit()
}

// TestRPCBurstOfPrompts: 256 prompts may wait, and each is answered, in order. The record
// has each turn whole before the next begins (I216).
func TestRPCBurstOfPrompts(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	turns := []modeltest.Turn{{Text: "0", Before: func(int) { <-release }}}
	for n := range 256 {
		turns = append(turns, modeltest.Turn{Text: fmt.Sprint(n + 1)})
	}
	s := newStage(t, turns...)
	c := s.serve()
	c.begin("")
	ids := []string{c.prompt("0")}
	s.reached(1)
	for n := range 256 {
		ids = append(ids, c.prompt(fmt.Sprint(n+1)))
	}
	if l := c.reply(c.prompt("one too many"), "error"); l.member("code") != "busy" {
		t.Errorf("%s", l.text)
	}
	close(release)
	for n, id := range ids {
		if l := c.reply(id, "answer"); l.member("answer") != fmt.Sprint(n) {
			t.Errorf("prompt %d: %s", n, l.text)
		}
	}
	c.quit()
	var told []string
	for _, e := range s.recorded("*") {
		switch p := e.Payload.(type) {
		case *event.UserMessage:
			told = append(told, "asked "+p.Text)
		case *event.ModelResponded:
			told = append(told, "answered "+p.Message.Text())
		}
	}
	for n := range ids {
		if i := 2 * n; len(told) != 2*len(ids) || told[i] != fmt.Sprint("asked ", n) || told[i+1] != fmt.Sprint("answered ", n) {
			t.Fatalf("%d entries, and at turn %d %q", len(told), n, told[min(i, len(told)):min(i+2, len(told))])
		}
	}
}
