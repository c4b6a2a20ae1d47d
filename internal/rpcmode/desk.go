package rpcmode

import (
	"context"
	"crypto/subtle"
	"slices"
	"sync"

	"github.com/abhed/abhed/internal/control"
	"github.com/abhed/abhed/internal/event"
)

// clientName names the program at the other end in the record.
const clientName = "rpc client"

// desk holds the questions that wait for the client. One is open from the moment at
// which the client can know of it, which may be before the engine asks, until it is
// answered and taken, or has ended otherwise.
type desk struct {
	mu   sync.Mutex
	open map[string]*question
}

// question is about a call, or if hash is "" not.
type question struct {
	hash           string
	sessionOffered bool
	choices        []string
	structured     bool
	// asked says that the engine waits for the answer.
	asked  bool
	answer *answer
	// given ends with the answer.
	given chan struct{}
}

// answer is a person's: to a call a decision, else a reply.
type answer struct {
	decision control.Decision
	reply    control.Reply
}

func newDesk() *desk { return &desk{open: map[string]*question{}} }

// hear follows the questions in the record.
func (d *desk) hear(p event.Payload) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch p := p.(type) {
	case *event.ApprovalRequested:
		d.add(p.Request, question{hash: p.Hash, sessionOffered: p.SessionOffered})
	case *event.QuestionRequested:
		d.add(p.Request, question{choices: p.Choices, structured: len(p.Schema) > 0 && p.Schema.Kind() == '{'})
	case *event.Approval:
		d.drop(p.Request)
	case *event.QuestionAnswered:
		d.drop(p.Request)
	}
}

// add opens a question unless it is open already.
func (d *desk) add(request string, q question) *question {
	if old := d.open[request]; old != nil {
		return old
	}
	q.given = make(chan struct{})
	d.open[request] = &q
	return &q
}

// drop ends a question that the engine doesn't wait for.
func (d *desk) drop(request string) {
	if q := d.open[request]; q != nil && !q.asked {
		delete(d.open, request)
	}
}

// settleDown ends every question that the engine doesn't wait for: their run is over.
func (d *desk) settleDown() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for request := range d.open {
		d.drop(request)
	}
}

// Approve waits for the client's answer.
func (d *desk) Approve(ctx context.Context, q control.Question) (control.Decision, error) {
	a, err := d.wait(ctx, q.Request, question{hash: q.Hash, sessionOffered: q.SessionOffered})
	if err != nil {
		return control.Decision{}, err
	}
	return a.decision, nil
}

// Ask waits for the client's answer.
func (d *desk) Ask(ctx context.Context, q control.Inquiry) (control.Reply, error) {
	a, err := d.wait(ctx, q.Request, question{choices: q.Choices, structured: q.Schema != nil})
	if err != nil {
		return control.Reply{}, err
	}
	return a.reply, nil
}

func (d *desk) wait(ctx context.Context, request string, q question) (*answer, error) {
	d.mu.Lock()
	open := d.add(request, q)
	if open.answer != nil && open.hash != q.hash {
		// What was answered is not what is asked.
		delete(d.open, request)
		open = d.add(request, q)
	}
	open.hash, open.sessionOffered, open.choices, open.structured, open.asked = q.hash, q.sessionOffered, q.choices, q.structured, true
	d.mu.Unlock()
	select {
	case <-open.given:
	case <-ctx.Done():
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.open, request)
	if open.answer == nil {
		return nil, context.Cause(ctx)
	}
	return open.answer, nil
}

// decide takes the client's answer about a call.
func (d *desk) decide(request string, a control.Decision) *control.Error {
	d.mu.Lock()
	defer d.mu.Unlock()
	q, fault := d.find(request)
	switch {
	case fault != nil:
		return fault
	case q.hash == "":
		return usagef("the request %s is not about a call: use the method answer", quote(request))
	case subtle.ConstantTimeCompare([]byte(q.hash), []byte(a.Hash)) != 1:
		return usagef("the hash is not that of the request %s, which is still open: answer with the hash of its approval.requested event", quote(request))
	case a.Allow && a.Scope == event.ScopeSession && !q.sessionOffered:
		return usagef("the request %s can't be approved for the session, which is still open: expected the scope %q", quote(request), event.ScopeOnce)
	}
	q.give(answer{decision: a})
	return nil
}

// reply takes the client's answer to another question; object says that it is one
// for a schema.
func (d *desk) reply(request string, r control.Reply, object bool) *control.Error {
	d.mu.Lock()
	defer d.mu.Unlock()
	q, fault := d.find(request)
	switch {
	case fault != nil:
		return fault
	case q.hash != "":
		return usagef("the request %s is about a call: use approve or deny", quote(request))
	case r.Declined:
	case q.structured && !object:
		return usagef("the request %s has a schema: expected content, an object that fits it", quote(request))
	case !q.structured && object:
		return usagef("the request %s has no schema: expected text", quote(request))
	case len(q.choices) > 0 && !slices.Contains(q.choices, r.Text):
		return usagef("the request %s offers other choices: %q", quote(request), q.choices)
	}
	q.give(answer{reply: r})
	return nil
}

func (d *desk) find(request string) (*question, *control.Error) {
	q := d.open[request]
	switch {
	case q == nil:
		return nil, &control.Error{Code: control.CodeNotFound, Msg: "no request " + quote(request) + " is open: it has ended, or there never was one"}
	case q.answer != nil:
		return nil, &control.Error{Code: control.CodeNotFound, Msg: "the request " + quote(request) + " has been answered already"}
	}
	return q, nil
}

func (q *question) give(a answer) {
	q.answer = &a
	close(q.given)
}
