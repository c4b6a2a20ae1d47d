package rpcmode

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed/internal/control"
)

func started(t *testing.T) (*client, *fakeEngine) {
	t.Helper()
	engine := &fakeEngine{}
	c := connect(t, engine, Options{})
	c.send(`{"method":"start","id":0,"approve":"client"}`)
	c.replyTo("0", "ready")
	return c, engine
}

func TestApprovals(t *testing.T) {
	t.Parallel()
	hash := strings.Repeat("b", 64)
	for name, row := range map[string]struct{ verb, kind, fields, want string }{
		"once":           {"approve", "plain", "", "true once "},
		"with a comment": {"approve", "plain", `,"comment":"fine"`, "true once fine"},
		"session":        {"approve", "session", `,"scope":"session"`, "true session "},
		"denied":         {"deny", "plain", `,"comment":"no"`, "false once no"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _ := started(t)
			c.send(`{"method":"prompt","id":1,"prompt":"approve ` + row.kind + `"}`)
			asked := c.until("the question", func(r reply) bool { return strings.Contains(r.line, "approval.requested") })
			if !strings.Contains(asked.line, hash) {
				t.Fatalf("asked without the hash: %s", asked.line)
			}
			tail := `,"request":"r-` + row.kind + `","hash":"` + hash + `"` + row.fields + `}`
			c.send(`{"id":2,"method":"` + row.verb + `"` + tail)
			if r := c.settledAnswer("2", "1"); r.str("answer") != row.want {
				t.Errorf("the engine was told %q, want %q", r.str("answer"), row.want)
			}
			// Once it is answered it is over, whoever answers again.
			c.send(`{"id":3,"method":"` + row.verb + `"` + tail)
			if r := c.replyTo("3", "error"); r.str("code") != "not_found" {
				t.Errorf("answered again: %s", r.line)
			}
		})
	}
}

// TestAnswersThatDontCount: the question stays open, and a sound answer still counts.
func TestAnswersThatDontCount(t *testing.T) {
	t.Parallel()
	c, engine := started(t)
	hash := strings.Repeat("b", 64)
	c.send(`{"method":"prompt","id":1,"prompt":"approve early"}`)
	c.until("the question", func(r reply) bool { return strings.Contains(r.line, "approval.requested") })
	for _, row := range []struct{ request, code, want string }{
		{`"approve","request":"r-early","hash":"` + strings.Repeat("c", 64) + `"`, "usage", "the hash is not that of"},
		{`"approve","request":"r-early","hash":"` + hash[1:] + `"`, "usage", "the hash is not that of"},
		{`"deny","request":"r-early","hash":"x"`, "usage", "the hash is not that of"},
		{`"approve","request":"r-early"`, "usage", "no hash"},
		{`"approve","hash":"` + hash + `"`, "usage", "no request"},
		{`"approve","request":"r-other","hash":"` + hash + `"`, "not_found", "r-other"},
		{`"approve","request":"r-early","hash":"` + hash + `","scope":"session"`, "usage", "can't be approved for the session"},
		{`"approve","request":"r-early","hash":"` + hash + `","scope":"ever"`, "usage", "(at /scope)"},
		{`"answer","request":"r-early","text":"yes"`, "usage", "use approve or deny"},
	} {
		c.send(`{"id":2,"method":` + row.request + `}`)
		if r := c.replyTo("2", "error"); r.str("code") != row.code || !strings.Contains(r.str("error"), row.want) {
			t.Errorf("%s: %s", row.request, r.line)
		}
	}
	// The client may answer before the engine has come to ask.
	c.send(`{"id":3,"method":"approve","request":"r-early","hash":"` + hash + `"}`)
	c.replyTo("3", "settled")
	c.send(`{"id":4,"method":"deny","request":"r-early","hash":"` + hash + `"}`)
	if r := c.replyTo("4", "error"); !strings.Contains(r.str("error"), "has been answered already") {
		t.Errorf("answered twice: %s", r.line)
	}
	engine.session(0).steers <- "now ask"
	if r := c.replyTo("1", "answer"); r.str("answer") != "true once " {
		t.Errorf("answer %s", r.line)
	}
}

func TestQuestions(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		kind, wrong, why, right, want string
	}{
		{"free", `"content":{}`, "no schema", `"text":"any"`, "false any"},
		{"free", ``, "exactly one of", `"decline":true`, "true "},
		{"free", `"text":"a","decline":true`, "exactly one of", `"text":""`, "false "},
		{"choice", `"text":"green"`, `["red" "blue"]`, `"text":"red"`, "false red"},
		{"schema", `"text":"a"`, "has a schema", `"content":{"a":1e2}`, `false {"a":1e2}`},
		{"schema", `"content":[1]`, "(at /content)", `"content":{}`, "false {}"},
	} {
		t.Run(row.kind+" "+row.right, func(t *testing.T) {
			t.Parallel()
			c, _ := started(t)
			c.send(`{"method":"prompt","id":1,"prompt":"ask ` + row.kind + `"}`)
			c.until("the question", func(r reply) bool { return strings.Contains(r.line, "question.requested") })
			comma := ","
			if row.wrong == "" {
				comma = ""
			}
			c.send(`{"method":"answer","id":2,"request":"q-1"` + comma + row.wrong + `}`)
			if r := c.replyTo("2", "error"); !strings.Contains(r.str("error"), row.why) {
				t.Errorf("%s: %s", row.wrong, r.line)
			}
			c.send(`{"method":"approve","id":3,"request":"q-1","hash":"x"}`)
			if r := c.replyTo("3", "error"); !strings.Contains(r.str("error"), "use the method answer") {
				t.Errorf("approve: %s", r.line)
			}
			c.send(`{"method":"answer","id":4,"request":"q-1",` + row.right + `}`)
			if r := c.settledAnswer("4", "1"); r.str("answer") != row.want {
				t.Errorf("the engine was told %q, want %q", r.str("answer"), row.want)
			}
		})
	}
}

// TestQuestionEndsWithTheRun: after an interrupt no answer counts any more.
func TestQuestionEndsWithTheRun(t *testing.T) {
	t.Parallel()
	c, _ := started(t)
	c.send(`{"method":"prompt","id":1,"prompt":"approve plain"}`)
	c.until("the question", func(r reply) bool { return strings.Contains(r.line, "approval.requested") })
	c.send(`{"method":"interrupt"}`)
	c.replyTo("1", "error")
	c.send(`{"method":"approve","id":2,"request":"r-plain","hash":"` + strings.Repeat("b", 64) + `"}`)
	if r := c.replyTo("2", "error"); r.str("code") != "not_found" {
		t.Errorf("approved after the end: %s", r.line)
	}
}

// TestQuestionThatNobodyAsks: one that the record told of, and that the engine settled
// without its approver, ends with the prompt.
func TestQuestionThatNobodyAsks(t *testing.T) {
	t.Parallel()
	c, _ := started(t)
	c.send(`{"method":"prompt","id":1,"prompt":"approve never"}`)
	c.replyTo("1", "answer")
	c.send(`{"method":"approve","id":2,"request":"r-never","hash":"` + strings.Repeat("b", 64) + `"}`)
	if r := c.replyTo("2", "error"); r.str("code") != "not_found" {
		t.Errorf("approved after the end: %s", r.line)
	}
}

// TestNobodyToAsk: without approve the engine has no approver, and no answer counts.
func TestNobodyToAsk(t *testing.T) {
	t.Parallel()
	c := connect(t, &fakeEngine{}, Options{})
	c.send(`{"method":"start","approve":"none"}`, `{"method":"prompt","id":1,"prompt":"approve plain"}`)
	if r := c.replyTo("1", "answer"); r.str("answer") != "nobody to ask" {
		t.Errorf("answer %s", r.line)
	}
	c.send(`{"method":"approve","id":2,"request":"r-plain","hash":"` + strings.Repeat("b", 64) + `"}`)
	c.replyTo("2", "error")
}

// TestEarlyAnswerToAnotherCall: an answer that came before the engine asked counts
// only if what it asks has the hash that was answered.
func TestEarlyAnswerToAnotherCall(t *testing.T) {
	t.Parallel()
	d := newDesk()
	d.add("r", question{hash: "one"})
	if fault := d.decide("r", control.Decision{Hash: "one", Allow: true}); fault != nil {
		t.Fatal(fault)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if a, err := d.Approve(ctx, control.Question{Request: "r", Hash: "two"}); err == nil {
		t.Errorf("a call with another hash got %+v", a)
	}
	if len(d.open) != 0 {
		t.Errorf("%d questions are left open", len(d.open))
	}
}
