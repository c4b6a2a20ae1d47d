package rpcmode

import (
	"bufio"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/roletest"
	"github.com/abhed/abhed/internal/strictjson"
)

func TestMain(m *testing.M) {
	roletest.Main(m, play)
}

// patient is how long a test waits for what must happen.
const patient = 30 * time.Second

// reply is one line of the service. Lines are decoded by the strict door, so that a
// line that isn't sound fails the test.
type reply struct {
	line    string
	members map[string]event.Raw
}

func decodeReply(t testing.TB, text string) reply {
	t.Helper()
	r := reply{line: text}
	if err := strictjson.Unmarshal([]byte(text), &r.members, strictjson.Options{MaxBytes: maxLine}); err != nil {
		t.Fatalf("%v in the line %.200s", err, text)
	}
	return r
}

// str returns a member as text: a string's own, else the JSON.
func (r reply) str(name string) string {
	raw := r.members[name]
	if raw.Kind() != '"' {
		return string(raw)
	}
	var s string
	if err := strictjson.Unmarshal(raw, &s, strictjson.Options{}); err != nil {
		return err.Error()
	}
	return s
}

// event returns the event of the line.
func (r reply) event(t testing.TB) event.Event {
	t.Helper()
	e, err := event.Decode(r.members["event"])
	if err != nil {
		t.Fatalf("%v in the line %.200s", err, r.line)
	}
	return e
}

// client talks to a service in this process over real pipes.
type client struct {
	t   testing.TB
	in  *os.File
	out *os.File
	// lines are those that were said; closed at their end.
	lines chan reply
	seen  []reply
	err   chan error
}

// connect starts a service and reads all that it says.
func connect(t testing.TB, engine *fakeEngine, o Options) *client {
	t.Helper()
	c := open(t, engine, o)
	c.readAll()
	return c
}

// readAll reads in the background until the output ends.
func (c *client) readAll() {
	go func() {
		defer close(c.lines)
		s := bufio.NewScanner(c.out)
		s.Buffer(nil, maxLine+1)
		for s.Scan() {
			c.lines <- decodeReply(c.t, s.Text())
		}
	}()
}

// open starts a service of which nobody reads yet.
func open(t testing.TB, engine *fakeEngine, o Options) *client {
	t.Helper()
	inR, inW := pipe(t)
	outR, outW := pipe(t)
	o.In, o.Out = inR, outW
	c := &client{t: t, in: inW, out: outR, lines: make(chan reply, 100_000), err: make(chan error, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		err := Serve(ctx, engine, o)
		outW.Close()
		c.err <- err
	}()
	t.Cleanup(func() {
		cancel()
		inW.Close()
		outR.Close()
	})
	return c
}

func pipe(t testing.TB) (*os.File, *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

func (c *client) send(lines ...string) {
	c.t.Helper()
	for _, l := range lines {
		if _, err := c.in.WriteString(l + "\n"); err != nil {
			c.t.Fatal(err)
		}
	}
}

// until returns the next line for which is is true.
func (c *client) until(what string, is func(reply) bool) reply {
	c.t.Helper()
	deadline := time.After(patient)
	for {
		select {
		case r, ok := <-c.lines:
			if !ok {
				c.t.Fatalf("the service ended before it said %s", what)
			}
			c.seen = append(c.seen, r)
			if is(r) {
				return r
			}
		case <-deadline:
			c.t.Fatalf("waited too long for %s; the last lines: %v", what, c.seen[max(0, len(c.seen)-3):])
		}
	}
}

// reply returns the next line that is no event, which must be of a type.
func (c *client) reply(typ string) reply {
	c.t.Helper()
	r := c.until("a reply "+typ, func(r reply) bool { return r.str("type") != "event" && r.str("type") != "delta" })
	if r.str("type") != typ {
		c.t.Fatalf("expected a reply of type %s, got %.300s", typ, r.line)
	}
	return r
}

// replyTo returns the reply to the request with an id, which must be of a type.
func (c *client) replyTo(id, typ string) reply {
	c.t.Helper()
	r := c.until("the reply to "+id, func(r reply) bool { return string(r.members["id"]) == id })
	if r.str("type") != typ {
		c.t.Fatalf("expected a reply of type %s to %s, got %.300s", typ, id, r.line)
	}
	return r
}

// settledAnswer returns the answer to a prompt that was waiting for what a request
// settles. The two replies come in any order: one of them overtakes.
func (c *client) settledAnswer(request, prompt string) (answer reply) {
	c.t.Helper()
	for left := map[string]string{request: "settled", prompt: "answer"}; len(left) > 0; {
		r := c.until("the replies to "+request+" and "+prompt, func(r reply) bool { return left[string(r.members["id"])] != "" })
		id := string(r.members["id"])
		if r.str("type") != left[id] {
			c.t.Fatalf("expected a reply of type %s to %s, got %.300s", left[id], id, r.line)
		}
		delete(left, id)
		if id == prompt {
			answer = r
		}
	}
	return answer
}

// notice waits for an event with a text.
func (c *client) notice(text string) {
	c.t.Helper()
	c.until("the notice "+text, func(r reply) bool { return strings.Contains(r.str("event"), `"text":"`+text) })
}

// end returns what Serve returned.
func (c *client) end() error {
	c.t.Helper()
	select {
	case err := <-c.err:
		return err
	case <-time.After(patient):
		c.t.Fatal("the service did not end")
		return nil
	}
}

// rest returns the lines until the end of the output.
func (c *client) rest() []reply {
	var out []reply
	for r := range c.lines {
		out = append(out, r)
	}
	return out
}

// leaks fails the test if a goroutine is left when it ends.
func leaks(t *testing.T) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
}
