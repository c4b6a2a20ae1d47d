package abhed_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/abhed/abhed"
	"github.com/abhed/abhed/internal/app"
)

// rpcClient is how the record names who answers over rpc. The person of an embedded
// session calls itself the same, so that the records can be compared.
const rpcClient = "rpc client"

// asked is a question about a call; said is the answer.
type (
	asked struct {
		Request, Tool, Args, Original, Hash string
		Why                                 []string
	}
	said struct {
		allow bool
		// hash is what the answer names, "" for the question's.
		hash, scope string
	}
)

// withPeople lists the surfaces on which a person can be asked.
func withPeople() []surface {
	return []surface{{"rpc", "internal/rpcmode", overRPC}, {"embedded", ".", embedded}}
}

// headless runs it as abhed -p does.
func headless(t *testing.T, s *stage) ending {
	var out, errs bytes.Buffer
	o := app.RunOptions{Prompt: s.prompt, PromptGiven: true, Output: "json"}
	o.Dir = s.dir
	code := app.Run(t.Context(), o, s.system(strings.NewReader(""), &out, &errs))
	if out.Len() == 0 {
		return ending{refused: errs.String(), code: code}
	}
	var r struct{ Result, Reason, Record string }
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatalf("%v: %s%s", err, out.String(), errs.String())
	}
	return ending{answer: r.Result, reason: r.Reason, record: r.Record}
}

// rpcLine is a line of abhed rpc, so far as it is of interest here.
type rpcLine struct {
	Type, Record, Answer, Reason, Error string
	ID                                  int
	Event                               struct {
		Type    string
		Payload json.RawMessage
	}
}

// overRPC runs it as abhed rpc does.
func overRPC(t *testing.T, s *stage) ending {
	in, requests := io.Pipe()
	replies, out := io.Pipe()
	var errs bytes.Buffer
	done := make(chan int, 1)
	go func() {
		o := app.RPCOptions{}
		o.Dir = s.dir
		code := app.RPC(t.Context(), o, s.system(in, out, &errs))
		out.Close()
		done <- code
	}()
	queue := make(chan map[string]any, 1000)
	go func() {
		for m := range queue {
			b, err := json.Marshal(m)
			if err == nil {
				_, err = requests.Write(append(b, '\n'))
			}
			if err != nil {
				t.Error(err)
				return
			}
		}
	}()
	start := map[string]any{"id": 1, "method": "start"}
	if s.person != nil {
		start["approve"] = "client"
	}
	queue <- start
	var e ending
	lines := bufio.NewReader(replies)
	for {
		text, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		var r rpcLine
		if err := json.Unmarshal(text, &r); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		e.heard(t, s, r, queue)
	}
	close(queue)
	if code := <-done; code != 0 {
		t.Errorf("exit %d: %s", code, errs.String())
	}
	return e
}

// heard acts on a line of abhed rpc.
func (e *ending) heard(t *testing.T, s *stage, r rpcLine, queue chan<- map[string]any) {
	switch {
	case r.ID == 1:
		e.record = r.Record
		if r.Type != "ready" {
			e.refused, e.code = r.Error, 2
			queue <- map[string]any{"method": "quit"}
			return
		}
		queue <- map[string]any{"id": 2, "method": "prompt", "prompt": s.prompt}
	case r.ID == 2:
		e.answer, e.reason = r.Answer, r.Reason
		queue <- map[string]any{"method": "quit"}
	case r.ID == 3: // to an approval
		if r.Type == "error" {
			e.complaints = append(e.complaints, r.Error)
			queue <- map[string]any{"id": 4, "method": "deny", "request": e.open.Request, "hash": e.open.Hash} // for the run to go on
		}
	case r.Event.Type == "approval.requested" && s.person != nil:
		var q asked
		if err := json.Unmarshal(r.Event.Payload, &q); err != nil {
			t.Error(err)
		}
		say := s.person(q)
		m := map[string]any{"id": 3, "method": "deny", "request": q.Request, "hash": q.Hash}
		if say.allow {
			m["method"] = "approve"
			if say.scope != "" {
				m["scope"] = say.scope
			}
		}
		if say.hash != "" {
			m["hash"] = say.hash
		}
		e.open = q
		queue <- m
	}
}

// embedded runs it in a Go program.
func embedded(t *testing.T, s *stage) ending {
	o := abhed.Options{Workspace: s.dir, Environ: s.environ(), Tools: s.tools, Hooks: s.hooks}
	if s.person != nil {
		o.Approver, o.Asker = approver(s.person), nobody{}
	}
	session, err := abhed.New(t.Context(), o)
	if err != nil {
		return ending{refused: err.Error(), code: 2}
	}
	answer, err := session.Run(t.Context(), s.prompt)
	if err != nil {
		t.Error(err)
	}
	e := ending{answer: answer.Text, reason: answer.Reason, record: session.Info().Record}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
	return e
}

// approver is the person of an embedded session.
type approver func(q asked) said

// nobody answers no question but those about calls.
type nobody struct{}

// Ask declines.
func (nobody) Ask(context.Context, abhed.Inquiry) (abhed.Reply, error) {
	return abhed.Reply{Declined: true}, nil
}

// Approve answers for the person.
func (a approver) Approve(_ context.Context, q abhed.Question) (abhed.Decision, error) {
	say := a(asked{q.Request, q.Tool, q.Args, q.Original, q.Hash, q.Why})
	d := abhed.Decision{Hash: q.Hash, Allow: say.allow, Scope: say.scope, By: rpcClient}
	if say.hash != "" {
		d.Hash = say.hash
	}
	return d, nil
}
