package mcp

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/abhed/abhed/ahp/elicitation"
	"github.com/abhed/abhed/internal/strictjson"
)

// calls are the calls of one server that run: only while there is one may the
// server ask something, and while it asks their time stands still.
type calls struct {
	mu      sync.Mutex
	running map[*clock]struct{}
	// asking counts the questions that wait for an answer, asked all there were.
	asking, asked int
	// ctx ends when no call runs any more; nil while none does.
	ctx    context.Context
	cancel context.CancelFunc
}

func (c *calls) begin(k *clock) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.running) == 0 {
		c.running = map[*clock]struct{}{}
		c.ctx, c.cancel = context.WithCancel(context.Background())
	}
	c.running[k] = struct{}{}
}

func (c *calls) end(k *clock) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if delete(c.running, k); len(c.running) == 0 {
		c.cancel()
	}
}

// hold stops the time of all calls that run, for one question. refused says why
// there is to be none, or "". release lets the time go on.
func (c *calls) hold() (ctx context.Context, release func(), refused string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case len(c.running) == 0:
		return nil, nil, "no call of this server runs"
	case c.asking == maxAsking:
		return nil, nil, fmt.Sprintf("%d of its questions wait already", maxAsking)
	case c.asked == maxAsked:
		return nil, nil, fmt.Sprintf("it has asked %d times in this session", maxAsked)
	}
	c.asking++
	c.asked++
	held := make([]*clock, 0, len(c.running))
	for k := range c.running {
		k.hold()
		held = append(held, k)
	}
	return c.ctx, func() {
		for _, k := range held {
			k.release()
		}
		c.mu.Lock()
		c.asking--
		c.mu.Unlock()
	}, ""
}

// elicit answers a question of the server, whose params are raw. It declines what
// nobody can be asked: a question without a call that it could belong to, one that
// isn't a form, and one that is none.
func (s *server) elicit(ctx context.Context, raw jsontext.Value) (*sdk.ElicitResult, error) {
	decline := func(format string, a ...any) (*sdk.ElicitResult, error) {
		s.remark("its question was declined: " + fmt.Sprintf(format, a...))
		return &sdk.ElicitResult{Action: ElicitDecline}, nil
	}
	if raw == nil {
		return decline("it has no params")
	}
	if s.host.opts.Elicit == nil {
		return decline("nobody can be asked")
	}
	q, err := elicitation.ParseRequest(raw)
	switch {
	case err != nil:
		return decline("it can't be read: %v", err)
	case q.Mode != elicitation.ModeForm:
		return decline("it wants a web page to be visited; only forms are answered")
	}
	running, release, refused := s.calls.hold()
	if refused != "" {
		return decline("%s", refused)
	}
	defer release()
	ctx, cancel := context.WithTimeout(ctx, s.host.opts.ElicitTimeout)
	defer cancel()
	stop := context.AfterFunc(running, cancel)
	defer stop()
	answer, err := s.host.opts.Elicit(ctx, Elicitation{
		Server: s.cfg.Name, Message: cut(visible(q.Message), maxDescription), Schema: formSchema(raw), Params: raw,
	})
	switch {
	case running.Err() != nil:
		return decline("the call that it belonged to has ended")
	case ctx.Err() != nil:
		s.remark(fmt.Sprintf("its question had no answer within %v", s.host.opts.ElicitTimeout))
		return &sdk.ElicitResult{Action: ElicitCancel}, nil
	case err != nil:
		return decline("it could not be put: %v", err)
	}
	return s.checkedAnswer(answer, q)
}

// formSchema returns the schema in the params of a form.
func formSchema(params []byte) []byte {
	var m map[string]jsontext.Value
	if strictjson.Unmarshal(params, &m, strictjson.Options{}) != nil {
		return nil // it was read as a form, so this can't be
	}
	return m["requestedSchema"]
}

// checkedAnswer turns an answer into the SDK's, declining one that the form
// doesn't allow. Numbers stay as they were written.
func (s *server) checkedAnswer(a ElicitAnswer, q *elicitation.Request) (*sdk.ElicitResult, error) {
	whole := map[string]any{"action": a.Action}
	if a.Action == ElicitAccept {
		whole["content"] = jsontext.Value(a.Content)
		if len(a.Content) == 0 {
			whole["content"] = jsontext.Value("{}")
		}
	}
	text, err := strictjson.Marshal(whole)
	if err == nil {
		_, err = elicitation.ParseResult(text, q)
	}
	if err != nil {
		s.remark("its question was declined: the answer doesn't fit the form: " + cut(err.Error(), 300))
		return &sdk.ElicitResult{Action: ElicitDecline}, nil
	}
	res := &sdk.ElicitResult{Action: a.Action}
	content, ok := whole["content"].(jsontext.Value)
	if !ok {
		return res, nil
	}
	var members map[string]jsontext.Value
	if err := strictjson.Unmarshal(content, &members, strictjson.Options{}); err != nil {
		return nil, err
	}
	res.Content = map[string]any{}
	for name, v := range members {
		res.Content[name] = v
	}
	return res, nil
}
