package main

import (
	"io"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/model/modeltest"
)

// TestRPCLines sends the command what is no request, or an odd one (I206): each line
// is answered, with its id where there is one, and the process lives on.
func TestRPCLines(t *testing.T) {
	t.Parallel()
	s := newStage(t, modeltest.Turn{Text: "a\u2028b\u2029c\r\nd"})
	c := s.serve()
	c.asked = 1000 // its ids are no others of this test
	for _, row := range []struct{ line, id, code, says string }{
		{`hello`, "", "usage", "no request"},
		{`{"id":1,"method":"usage"`, "1", "usage", "no request"},
		{`[{"id":1,"method":"usage"}]`, "", "usage", "object"},
		{`{"id":"a"}`, `"a"`, "usage", `no member \"method\"`},
		{`{"id":1e3,"method":"nothing"}`, "1e3", "usage", "unknown method"},
		{`{"id":1.0,"method":"stear","prompt":"x"}`, "1.0", "usage", `did you mean \"steer\"?`},
		{`{"id":123456789012345678901234567890.5,"method":"usage","x":1}`, "123456789012345678901234567890.5", "usage", "unknown field"},
		{`{"id":7,"method":"usage","method":"quit"}`, "7", "usage", "method"},
		{`{"id":7,"id":8,"method":"usage"}`, "", "usage", "id"},
		{"{\"id\":2,\"method\":\"usage\xff\"}", "2", "usage", "UTF-8"},
		{"{\"id\":3,\"method\":\"us\x00age\"}", "3", "usage", "no request"},
		{`{"id":4,"method":"steer","prompt":"\ud800"}`, "4", "usage", ""},
		{`{"id":5,"method":"usage"}` + "\r", "5", "usage", "start"},
		{`{"id":[1],"method":"usage"}`, "", "usage", "/id"},
		{`{"id":"x","method":"prompt","prompt":5}`, `"x"`, "usage", "/prompt"},
		{`{"id":"p","method":"prompt","params":{"id":8},"prompt":"x"}`, `"p"`, "usage", "params"},
		{`{"id":"` + strings.Repeat("n", 70<<10) + `","method":"usage"}`, "", "usage", "the id has"},
	} {
		c.send("", "\r", " \t ", row.line)
		l := c.wait("an answer to "+row.line[:min(len(row.line), 60)], func(spoken) bool { return true })
		if l.typ != "error" || l.id != row.id || l.member("code") != row.code || !strings.Contains(l.text, row.says) {
			t.Errorf("%.80q: %.300s; want the id %q and %q", row.line, l.text, row.id, row.says)
		}
	}
	// 64 MiB and more is passed over, though it is sound.
	for _, part := range []string{`{"id":"huge","method":"prompt","prompt":"`, strings.Repeat("y", 64<<20), "\"}\n"} {
		if _, err := io.WriteString(c.in, part); err != nil {
			t.Fatal(err)
		}
	}
	if l := c.reply(`"huge"`, "error"); l.member("code") != "usage" || !strings.Contains(l.text, "67108864") {
		t.Errorf("%.300s", l.text)
	}
	// A large one that isn't too large is taken: here until the prompt is judged.
	c.begin("")
	c.send(`{"id":"large","method":"steer","prompt":"` + strings.Repeat("y", 60<<20) + `"}`)
	if l := c.reply(`"large"`, "error"); !strings.Contains(l.text, "too much") {
		t.Errorf("%.300s", l.text)
	}
	// U+2028 and U+2029 are data both ways, and so is what JSON escapes.
	id := c.request("prompt", "\"prompt\":\"one\u2028two\u2029three\\u2028\\r\\n\\u0000\U0001F600\"")
	if l := c.reply(id, "answer"); l.member("answer") != "a\u2028b\u2029c\r\nd" {
		t.Errorf("%s", l.text)
	}
	if got := s.said(0)[0]; !strings.Contains(got, "one\u2028two\u2029three\u2028\r\n") || !strings.HasSuffix(got, "\U0001F600") {
		t.Errorf("the model was sent %q", got)
	}
	// The last line needs no LF.
	if _, err := io.WriteString(c.in, `{"method":"quit","id":"end"}`); err != nil {
		t.Fatal(err)
	}
	c.in.Close()
	c.reply(`"end"`, "bye")
	if code := c.exit(); code != 0 {
		t.Errorf("exit %d: %s", code, c.errs)
	}
}

// TestRPCIDsInFlight: requests in flight together keep their ids apart, 1 and "1"
// among them (I188).
func TestRPCIDsInFlight(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	c := s.serve()
	c.begin("")
	ids := []string{"11", `"11"`, "11.0", "1.1e1", "9007199254740993", "9007199254740992", "-0", "0", `""`, `"\u0031"`}
	methods := []string{"usage", "tools", "tasks", "providers", "interrupt"}
	var lines []string
	for i, id := range ids {
		lines = append(lines, `{"id":`+id+`,"method":"`+methods[i%len(methods)]+`"}`)
	}
	c.send(lines...)
	for i, id := range ids {
		want := methods[i%len(methods)]
		if want == "interrupt" {
			want = "interrupted"
		}
		c.reply(id, want)
	}
	c.quit()
}
