package extension

import (
	"bytes"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/strictjson"
)

func TestRequestLine(t *testing.T) {
	t.Parallel()
	r := newRequest(eventToolCall, "s-1")
	c := policy.Call{ID: "c-1", Tool: "bash", Turn: 3, Agent: policy.Agent{ID: "sub", Depth: 1},
		Args: []byte(`{"z":1.50, "command":"a/b <c>\n"}`)}
	r.call(c)
	if err := r.subject(c); err != nil {
		t.Fatal(err)
	}
	r.num("round", 2)
	r.flag("final", true)
	want := `{"event":"tool_call","session_id":"s-1","seq":7,"call_id":"c-1","turn":3,"agent":{"id":"sub","depth":1},` +
		`"tool":"bash","args":{"command":"a/b <c>\n","z":1.50},"round":2,"final":true}` + "\n"
	if got := string(r.line(7)); got != want {
		t.Errorf("got  %swant %s", got, want)
	}
	bare := newRequest(eventListTools, "s")
	bare.call(policy.Call{})
	if got, want := string(bare.line(1)), "{\"event\":\"list_tools\",\"session_id\":\"s\",\"seq\":1}\n"; got != want {
		t.Errorf("got  %swant %s", got, want)
	}
}

func TestRequestRefusesBrokenArgs(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"", "{", `{"a":1,"a":2}`, "{}\n{}"} {
		r := newRequest(eventToolCall, "s")
		if err := r.subject(policy.Call{Tool: "bash", Args: []byte(args)}); err == nil {
			t.Errorf("arguments %q were taken", args)
		}
	}
}

func TestHideEvents(t *testing.T) {
	t.Parallel()
	tests := []struct{ in, want string }{
		{`{}`, `{}`},
		{`{"event":"x"}`, `{"\u0065vent":"x"}`},
		{`{"x\"event":1}`, `{"x\"\u0065vent":1}`},
		{`{"myevent":1,"events":2,"evented":3}`, `{"my\u0065vent":1,"events":2,"evented":3}`},
		{`{"eventevent":1}`, `{"event\u0065vent":1}`},
		{`{"a":{"b":[{"event":{"event":1}}]}}`, `{"a":{"b":[{"\u0065vent":{"\u0065vent":1}}]}}`},
		// A value is no name, and a quote inside a string has a backslash before it.
		{`{"a":"event","b":"\"event\":"}`, `{"a":"event","b":"\"event\":"}`},
		// Here the "e" belongs to an escape: the name ends in U+000E and "vent".
		{`{"\u000event":1}`, `{"\u000event":1}`},
		{`{"\\event":1,"\bevent":2}`, `{"\\\u0065vent":1,"\b\u0065vent":2}`},
		{`{"vent":1,"":{"event":2}}`, `{"vent":1,"":{"\u0065vent":2}}`},
	}
	for _, tt := range tests {
		if got := string(hideEvents([]byte(tt.in))); got != tt.want {
			t.Errorf("hideEvents(%s) = %s, want %s", tt.in, got, tt.want)
		}
		if !strictjson.Equal(hideEvents([]byte(tt.in)), []byte(tt.in)) {
			t.Errorf("hideEvents(%s) changed the value", tt.in)
		}
	}
}

// FuzzRequest holds that a request is one line, decodes to the arguments that
// went in, and holds the text "event": once.
func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"event":"list_tools","x\"event":{"event":[]}}`), "bash")
	f.Add([]byte(`{"\u000event":"\"event\":","a":"\u2028</script>"}`), `x"event":"y`)
	f.Add([]byte(`{"\\\"event":1,"\\\\event":{"\u0065vent":"event"}}`), "\x00\n\xff")
	f.Fuzz(func(t *testing.T, args []byte, name string) {
		canon, err := strictjson.Canonical(args)
		if err != nil || len(canon) == 0 || canon[0] != '{' {
			return // no arguments
		}
		r := newRequest(eventToolCall, name)
		c := policy.Call{ID: name, Tool: name, Args: canon, Agent: policy.Agent{ID: name}}
		r.call(c)
		if err := r.subject(c); err != nil {
			t.Fatal(err)
		}
		r.str("content", name)
		line := r.line(1)
		if n := bytes.Count(line, []byte(`"event":`)); n != 1 {
			t.Fatalf("the text \"event\": occurs %d times in %s", n, line)
		}
		if bytes.IndexByte(line, '\n') != len(line)-1 || !bytes.HasPrefix(line, []byte(`{"event":"tool_call",`)) {
			t.Fatalf("not one line that begins with the event: %q", line)
		}
		var got struct {
			Args rawJSON `json:"args"`
		}
		if err := strictjson.Unmarshal(line, &got, strictjson.Options{MaxDepth: replyDepth}); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if !strictjson.Equal(got.Args, canon) {
			t.Fatalf("arguments %s came out as %s", canon, got.Args)
		}
	})
}

func TestRequestHoldsCleanText(t *testing.T) {
	t.Parallel()
	r := newRequest(eventToolResult, "s")
	r.str("content", "a\x00b\xffc")
	if line := string(r.line(1)); !strings.Contains(line, `"content":"a\\x00b\\xffc"`) {
		t.Errorf("got %s", line)
	}
}
