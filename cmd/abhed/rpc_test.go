package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/strictjson"
)

// patient is how long a test of abhed rpc waits for what must happen.
const patient = 90 * time.Second

// spoken is one line of the service.
type spoken struct {
	text    string
	at      int // its number
	typ, id string
	members map[string]event.Raw
	event   event.Event // of a line of type event
}

// member returns a member as text: a string's own, else the JSON.
func (l spoken) member(name string) string {
	raw := l.members[name]
	var text string
	if raw.Kind() == '"' && strictjson.Unmarshal(raw, &text, strictjson.Options{MaxBytes: 128 << 20}) == nil {
		return text
	}
	return string(raw)
}

func decodeSpoken(text string) (spoken, error) {
	l := spoken{text: text}
	if err := strictjson.Unmarshal([]byte(text), &l.members, strictjson.Options{MaxBytes: 256 << 20}); err != nil {
		return l, err
	}
	l.typ, l.id = l.member("type"), string(l.members["id"])
	var err error
	if l.typ == "event" {
		l.event, err = event.Decode(l.members["event"])
	}
	return l, err
}

// service is the command abhed rpc as a process, of which the test is the client.
type service struct {
	t     testing.TB
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *os.File
	errs  *bytes.Buffer // of standard error; to be read when it has ended
	asked int           // how many requests got an id

	mu    sync.Mutex
	more  *sync.Cond
	lines []spoken
	ended bool // there will be no more lines
	bad   error
	seen  int // lines before this one were looked at by wait
}

// serve starts abhed rpc and reads all that it says.
func (s *stage) serve(args ...string) *service {
	s.t.Helper()
	c := s.launch(args...)
	go c.read()
	return c
}

// launch starts abhed rpc, of which nobody reads yet.
func (s *stage) launch(args ...string) *service {
	s.t.Helper()
	cmd := s.command(append([]string{"rpc", "-C", s.dir, "--min-tier", "none"}, args...)...)
	c := &service{t: s.t, cmd: cmd, errs: &bytes.Buffer{}}
	c.more = sync.NewCond(&c.mu)
	cmd.Stderr = c.errs
	cmd.WaitDelay = patient
	var err error
	if c.in, err = cmd.StdinPipe(); err != nil {
		s.t.Fatal(err)
	}
	out, w, err := os.Pipe()
	if err != nil {
		s.t.Fatal(err)
	}
	c.out, cmd.Stdout = out, w
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	w.Close()
	s.t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
		out.Close()
	})
	return c
}

// read reads lines until there are no more.
func (c *service) read() {
	lines := bufio.NewReaderSize(c.out, 1<<20)
	for {
		text, err := lines.ReadString('\n')
		if err == nil {
			var l spoken
			l, err = decodeSpoken(strings.TrimSuffix(text, "\n"))
			c.mu.Lock()
			l.at = len(c.lines)
			c.lines = append(c.lines, l)
			c.mu.Unlock()
		}
		c.mu.Lock()
		if err != nil {
			c.ended = true
			if err != io.EOF || text != "" {
				c.bad = fmt.Errorf("the line %.300q: %w", text, err)
			}
		}
		c.more.Broadcast()
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// find returns the first line from number from on for which is is true, and waits for
// it.
func (c *service) find(what string, from int, is func(spoken) bool) spoken {
	c.t.Helper()
	late := false
	alarm := time.AfterFunc(patient, func() { c.mu.Lock(); late = true; c.more.Broadcast(); c.mu.Unlock() })
	defer alarm.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		for ; from < len(c.lines); from++ {
			if is(c.lines[from]) {
				c.seen = max(c.seen, from+1)
				return c.lines[from]
			}
		}
		if c.ended || late {
			var last []string
			for _, l := range c.lines[max(0, len(c.lines)-8):] {
				last = append(last, fmt.Sprintf("%.300s", l.text))
			}
			c.t.Fatalf("waited for %s; ended %v, too late %v, %v; the last lines:\n%s", what, c.ended, late, c.bad, strings.Join(last, "\n"))
		}
		c.more.Wait()
	}
}

// wait returns the next line, of those that no find has passed, for which is is true.
func (c *service) wait(what string, is func(spoken) bool) spoken {
	c.t.Helper()
	return c.find(what, c.seen, is)
}

// event returns the next event of a type.
func (c *service) event(typ event.Type) spoken {
	c.t.Helper()
	return c.wait("the event "+string(typ), is(typ))
}

// is tells the events of a type.
func is(typ event.Type) func(spoken) bool {
	return func(l spoken) bool { return l.typ == "event" && l.event.Payload.Type() == typ }
}

// send sends lines as they are.
func (c *service) send(lines ...string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, strings.Join(lines, "\n")+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

// request sends a request, with its fields as JSON without the braces, and returns its
// id.
func (c *service) request(method, fields string) string {
	c.t.Helper()
	c.asked++
	id := fmt.Sprint(c.asked)
	if fields != "" {
		fields = "," + fields
	}
	c.send(fmt.Sprintf(`{"method":%q,"id":%s%s}`, method, id, fields))
	return id
}

// reply returns the reply to the request with the id, which must be of a type.
func (c *service) reply(id, typ string) spoken {
	c.t.Helper()
	l := c.find("the reply to "+id, 0, func(l spoken) bool { return l.id == id })
	if l.typ != typ {
		c.t.Fatalf("the reply to %s should be %s: %.500s", id, typ, l.text)
	}
	return l
}

// do sends a request and returns the reply.
func (c *service) do(method, fields, typ string) spoken {
	c.t.Helper()
	return c.reply(c.request(method, fields), typ)
}

// begin opens a session and returns its id.
func (c *service) begin(fields string) string {
	c.t.Helper()
	return c.do("start", fields, "ready").member("session_id")
}

// prompt sends a prompt and returns the request's id.
func (c *service) prompt(text string) string {
	c.t.Helper()
	return c.request("prompt", fmt.Sprintf(`"prompt":%q`, text))
}

// exit waits for the end of the process and returns the exit code. What it said must
// have been sound lines.
func (c *service) exit() int {
	c.t.Helper()
	c.mu.Lock()
	alarm := time.AfterFunc(patient, func() { _ = c.cmd.Process.Kill() })
	for !c.ended {
		c.more.Wait()
	}
	if c.bad != nil {
		c.t.Errorf("%v", c.bad)
	}
	c.mu.Unlock()
	_ = c.cmd.Wait()
	if !alarm.Stop() {
		c.t.Fatal("the process did not end")
	}
	return c.cmd.ProcessState.ExitCode()
}

// quit ends the service in order.
func (c *service) quit() {
	c.t.Helper()
	c.do("quit", "", "bye")
	if code := c.exit(); code != 0 {
		c.t.Errorf("exit %d: %s", code, c.errs)
	}
}

// events returns the events that were said so far.
func (c *service) events() []event.Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []event.Event
	for _, l := range c.lines {
		if l.typ == "event" {
			list = append(list, l.event)
		}
	}
	return list
}
