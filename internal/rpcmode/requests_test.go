package rpcmode

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/abhed/abhed/internal/strictjson"
)

// TestLinesThatAreNoRequests is I206: each is answered by an error line, with the id
// where that can be read, and the service goes on.
func TestLinesThatAreNoRequests(t *testing.T) {
	c := connect(t, &fakeEngine{}, Options{})
	for _, row := range []struct{ line, id, want string }{
		{"hello", "", "not valid JSON"},
		{strings.Repeat("x", 10<<20), "", "not valid JSON"},
		{"{\"id\":1,\"method\":\"usage\",\"x\":\"\xff\"}", "1", "invalid UTF-8"},
		{"{\"id\":\"\xff\",\"method\":\"usage\"}", "", "invalid UTF-8"},
		{"\xef\xbb\xbf{\"method\":\"usage\",\"id\":1}", "", "byte order mark"},
		{`{"id":7,"method":"usage","method":"quit"}`, "7", "the same member name twice"},
		{`{"id":7,"id":8,"method":"usage"}`, "", "the same member name twice"},
		{`{"method":"usage","id":"a\n","x":}`, `"a\n"`, "not valid JSON"},
		{`{"method":"prompt","prompt":{"id":3},"id":4,"x":`, "4", "too early"},
		{`{"method":"usage","id":4`, "", "too early"}, // it may have been cut within the number
		{`{"method":"usage","id":"4"`, `"4"`, "too early"},
		{`{"method":"prompt","prompt":"\"id\":3`, "", "too early"},
		{`{"id":7,"method":"usage"} {"id":8,"method":"quit"}`, "7", "not valid JSON"},
		{`[{"id":7,"method":"usage"}]`, "", "found a list, expected an object"},
		{`"id"`, "", "found a string, expected an object"},
		{`null`, "", "found null, expected an object"},
		{strings.Repeat("[", 200), "", "nested deeper"},
		{`{"id":5,"x":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`, "5", "nested deeper"},
		{`{"id":true,"method":"usage"}`, "", "found a boolean, expected a string or a number (at /id)"},
		{`{"id":["a"],"method":"usage"}`, "", "(at /id)"},
		{`{"id":"` + strings.Repeat("a", maxID) + `","method":"usage"}`, "", "the limit is 65536 (at /id)"},
		{`{"id":6}`, "6", `no member "method"`},
		{`{"id":6,"method":5}`, "6", "found a number, expected a string (at /method)"},
		{`{"id":6,"method":""}`, "6", "(at /method)"},
		{`{"id":6,"Method":"usage"}`, "6", `no member "method"`},
		{`{"id":6,"method":"promt"}`, "6", `did you mean "prompt"?`},
		{`{"id":6,"method":"setmode"}`, "6", `did you mean "set_mode"?`},
		{`{"id":6,"method":"start","mdoe":"plan"}`, "6", `unknown field "mdoe", expected one of workspace, mode, model`},
		{`{"id":6,"method":"start","mdoe":"plan"}`, "6", `did you mean "mode"?) (at /mdoe)`},
		{`{"id":6,"method":"interrupt","a/b":1}`, "6", `unknown field "a/b", expected none (at /a~1b)`},
		{`{"id":6,"method":"start","deny":"bash"}`, "6", "start: found a string, expected a list (at /deny)"},
		{`{"id":6,"method":"start","deny":["a",5]}`, "6", "start: found a number, expected a string (at /deny/1)"},
		{`{"id":6,"method":"start","deny":null}`, "6", "start: found null, expected a list (at /deny)"},
		{`{"id":6,"method":"start","approve":"yes"}`, "6", "(at /approve)"},
		{`{"id":6,"method":"start","fork_at":3}`, "6", "(at /fork_at)"},
		{`{"id":6,"method":"start","fork_at":0,"resume":"x"}`, "6", "(at /fork_at)"},
		{`{"id":6,"method":"prompt"}`, "6", "(at /prompt)"},
		{`{"id":6,"method":"prompt","prompt":" "}`, "6", "(at /prompt)"},
		{`{"id":6,"method":"steer"}`, "6", "(at /prompt)"},
		{`{"id":6,"method":"set_mode"}`, "6", "(at /mode)"},
		{`{"id":6,"method":"set_model","model":""}`, "6", "(at /model)"},
		{`{"id":6,"method":"export","format":"pdf"}`, "6", "(at /format)"},
		{`{"id":6,"method":"cancel_task"}`, "6", "(at /task_id)"},
		{`{"id":6,"method":"quit","now":true}`, "6", "(at /now)"},
	} {
		c.send("", " \t", "\r", row.line) // the first three are passed over
		r := c.reply("error")
		if r.str("code") != "usage" || !strings.Contains(r.str("error"), row.want) || string(r.members["id"]) != row.id {
			t.Errorf("%.80q: %.300s; want the id %q and %q", row.line, r.line, row.id, row.want)
		}
	}
	c.send(`{"method":"start","id":1}`)
	c.replyTo("1", "ready")
}

// TestIDsComeBackAsTheyCame: byte for byte, whatever number or text it is.
func TestIDsComeBackAsTheyCame(t *testing.T) {
	c := connect(t, &fakeEngine{}, Options{})
	for _, id := range []string{
		"1", `"1"`, "1e2", "1E+2", "-0", "0.50", "12345678901234567890", "1e999", `""`, `"\u0041"`, `"a\/b"`, "\"\u2028\u2029\"", `"😀"`, `"\ud83d\ude00"`,
	} {
		c.send(`{"method":"interrupt","id":` + id + `}`)
		c.replyTo(id, "interrupted")
		c.send(`{"id" : ` + id + ` , "method":"interrupt" , }`)
		c.replyTo(id, "error")
	}
	for _, none := range []string{`{"method":"interrupt"}`, `{"method":"interrupt","id":null}`} {
		c.send(none + "\r") // a CR before the LF doesn't count
		if r := c.reply("interrupted"); r.line != `{"type":"interrupted","running":false}` {
			t.Errorf("%s: %s", none, r.line)
		}
	}
}

// TestLineTooLong: it is answered, with the id if that stands at its beginning, and
// passed over without being kept.
func TestLineTooLong(t *testing.T) {
	const limit = 1 << 20
	pad := strings.Repeat("y", 300<<20/64)
	r := io.MultiReader(
		strings.NewReader(`{"id":"big","method":"prompt","prompt":"`), repeated(pad, 64), strings.NewReader("\"}\n"+`{"method":"usage"}`+"\n"+strings.Repeat("z", limit)+"\n"),
	)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	lines := newLineReader(r, limit)
	l, err := lines.next()
	runtime.ReadMemStats(&after)
	if err != nil || !l.long || l.size < 300<<20-64 || len(l.text) != headSize {
		t.Fatalf("%d bytes, %d kept, long %v, %v", l.size, len(l.text), l.long, err)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 16<<20 {
		t.Errorf("%d bytes were allocated for a line that is passed over", grown)
	}
	req, fault := parse(l)
	if fault == nil || string(req.id) != `"big"` {
		t.Errorf("id %s, %v", req.id, fault)
	}
	if l, err = lines.next(); string(l.text) != `{"method":"usage"}` {
		t.Errorf("the line behind it is %q, %v", l.text, err)
	}
	if l, err = lines.next(); l.long || len(l.text) != limit || err != nil {
		t.Errorf("a line of just the limit: %d bytes, long %v, %v", len(l.text), l.long, err)
	}
	if _, err = lines.next(); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
}

// repeated reads text n times.
func repeated(text string, n int) io.Reader {
	var list []io.Reader
	for range n {
		list = append(list, strings.NewReader(text))
	}
	return io.MultiReader(list...)
}

func TestReadError(t *testing.T) {
	lines := newLineReader(io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(io.ErrClosedPipe)), 100)
	if l, err := lines.next(); string(l.text) != "a" || err != nil {
		t.Errorf("%q, %v", l.text, err)
	}
	if l, err := lines.next(); err != io.ErrClosedPipe {
		t.Errorf("%q, %v: half a line before an error is none", l.text, err)
	}
}

// FuzzLines holds that lines are cut as bytes.Split cuts them, however the stream
// arrives, and that whatever stands in them is answered soundly.
func FuzzLines(f *testing.F) {
	for _, s := range []string{"a\nb\r\n\n\r\n{}", "{\"id\":1}\n\xff\u2028", `{"id":1e2,"method":"usage","x":[{"a":"\"}]"}]`, strings.Repeat("long ", 30) + "\nx", `{"id":"\ud800"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		const limit = 100
		var want, got []string
		for i, part := range bytes.Split(data, []byte("\n")) {
			ended := i < bytes.Count(data, []byte("\n"))
			switch {
			case !ended && len(part) == 0:
				continue
			case len(part) > limit:
				want = append(want, "long "+strconv.Itoa(len(part)))
				continue
			case ended:
				part = bytes.TrimSuffix(part, []byte("\r"))
			}
			want = append(want, string(part))
		}
		lines := newLineReader(iotest.OneByteReader(bytes.NewReader(data)), limit)
		for {
			l, err := lines.next()
			if err != nil {
				break
			}
			judge(t, l)
			if l.long {
				got = append(got, "long "+strconv.FormatInt(l.size, 10))
				continue
			}
			got = append(got, string(l.text))
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("lines %q, want %q", got, want)
		}
	})
}

// judge holds that what answers a line is a sound line itself.
func judge(t *testing.T, l line) {
	r, fault := parse(l)
	if fault == nil {
		if r.method != "" && strictjson.Check(l.text, strictjson.Options{}) != nil {
			t.Errorf("%q is taken for a request", l.text)
		}
		fault = usagef("%s", unknown("method", r.method, methodNames(methods())))
	}
	text := encodeError(r.id, fault)
	if bytes.Count(text, []byte("\n")) != 1 || text[len(text)-1] != '\n' {
		t.Errorf("%q is not one line", text)
	}
	var members struct {
		ID   any    `json:"id"`
		Type string `json:"type"`
	}
	if err := strictjson.Unmarshal(text, &members, strictjson.Options{}); err != nil && !strings.Contains(err.Error(), "/id") || err == nil && members.Type != "error" {
		t.Errorf("%q: %v", text, err)
	}
	if r.id != nil && !bytes.Contains(l.text, r.id) {
		t.Errorf("the id %s is not in %q", r.id, l.text)
	}
}
