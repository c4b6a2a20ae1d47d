package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/tool"
)

// serverTool is one tool of a server.
type serverTool struct {
	server *server
	// original is what the server calls it.
	original string
	spec     tool.Spec
	mutates  bool
	// output checks structured results; nil if there is no schema that we can use.
	output *tool.Registry
}

var _ tool.Tool = (*serverTool)(nil)

// offer makes the tools of what the server listed. Names in taken are left out.
func (s *server) offer(taken map[string]bool) {
	var names []string
	for _, t := range s.list {
		if len(s.cfg.Only) == 0 || slices.Contains(s.cfg.Only, t.name) {
			names = append(names, t.name)
		}
	}
	canonical := assignNames(s.cfg.Name, names, taken)
	leave := func(name, why string) {
		why = fmt.Sprintf("its tool %s is left out: %s", quoted(name), why)
		s.leftOut = append(s.leftOut, why)
		s.remark(why)
	}
	for _, l := range s.list {
		if !slices.Contains(names, l.name) {
			continue
		}
		name, ok := canonical[l.name]
		if !ok {
			leave(l.name, "there is another tool of that name")
			continue
		}
		schema, notes, err := repairSchema(l.schema)
		if err != nil {
			leave(l.name, err.Error())
			continue
		}
		t := &serverTool{
			server: s, original: l.name, mutates: !slices.Contains(s.cfg.ReadOnly, l.name), output: outputCheck(l.output),
			spec: tool.Spec{Name: name, Version: l.digest, Schema: schema, Description: s.description(l)},
		}
		if _, err := tool.NewRegistry(t); err != nil {
			leave(l.name, err.Error())
			continue
		}
		for _, note := range notes {
			s.remark(fmt.Sprintf("its tool %s: %s", quoted(l.name), note))
		}
		s.tools = append(s.tools, t)
	}
	s.unknownNames()
}

// unknownNames warns about tools in the configuration that the server doesn't have.
func (s *server) unknownNames() {
	if s.list == nil {
		return
	}
	for _, list := range []struct {
		key   string
		names []string
	}{{"read_only", s.cfg.ReadOnly}, {"only", s.cfg.Only}} {
		for _, name := range list.names {
			if !slices.ContainsFunc(s.list, func(l listed) bool { return l.name == name }) {
				s.remark(fmt.Sprintf("%s names %s, which is none of its tools", list.key, quoted(name)))
			}
		}
	}
}

// description returns what the model reads of a tool, marked as the server's.
func (s *server) description(l listed) string {
	text := strings.TrimSpace(visible(l.description))
	if text == "" {
		text = "(The server gives no description.)"
	}
	return fmt.Sprintf("[From MCP server %q] %s", s.cfg.Name, cut(text, maxDescription))
}

// outputCheck returns what checks structured results, nil if nothing can.
func outputCheck(schema jsontext.Value) *tool.Registry {
	if schema == nil || len(schema) > maxSchema {
		return nil
	}
	r, err := tool.NewRegistry(shape{schema})
	if err != nil {
		return nil // what the server promised can't be checked; that breaks nothing
	}
	return r
}

// shape is a schema as a tool, so that the registry checks values against it.
type shape struct{ schema []byte }

func (s shape) Spec() tool.Spec                 { return tool.Spec{Name: "result", Schema: s.schema} }
func (shape) Declare([]byte) policy.Declaration { return policy.Declaration{} }
func (shape) Run(context.Context, tool.Grant) (tool.Result, error) {
	return tool.Result{}, errors.New("a schema was run as a tool")
}

// Spec returns the tool as it was when the host started.
func (t *serverTool) Spec() tool.Spec { return t.spec }

// Declare names server and tool as the subject (gate.md §1).
func (t *serverTool) Declare([]byte) policy.Declaration {
	return policy.Declaration{Kind: policy.SubjectText, Subject: t.server.cfg.Name + "/" + t.original, Mutates: t.mutates}
}

// errTimedOut ends a call that took too long.
var errTimedOut = errors.New("the call took too long")

// Run calls the server.
func (t *serverTool) Run(ctx context.Context, g tool.Grant) (tool.Result, error) {
	s := t.server
	if why := s.host.quarantine(t.spec.Name); why != "" {
		return t.fail("it can't be used in this session: " + why), nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.host.life, func() { cancel(errClosed) })()
	for try := 0; ; try++ {
		l, err := s.ready(ctx)
		if err != nil {
			return t.fail("its server can't be called: " + s.secrets.clean(err.Error())), nil
		}
		if why := s.refused(t.original); why != "" {
			return t.fail(why), nil
		}
		res, lost, err := t.call(ctx, l, g.Args())
		if err == nil {
			return t.result(res), nil
		}
		if lost && try == 0 && l.drop(ctx) {
			continue // the server has not looked at the call
		}
		return t.failed(ctx, l, err), nil
	}
}

// call sends one call and waits for its result. lost says that the server didn't
// know the session.
func (t *serverTool) call(ctx context.Context, l *link, args []byte) (res jsontext.Value, lost bool, err error) {
	s := t.server
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	mark := new(atomic.Bool)
	k := newClock(s.cfg.CallTimeout, func() { cancel(errTimedOut) })
	defer k.stop()
	s.calls.begin(k)
	defer s.calls.end(k)
	params := &sdk.CallToolParams{Name: t.original, Arguments: jsontext.Value(args)}
	for round := 1; ; round++ {
		out, err := l.session.CallTool(context.WithValue(ctx, lostKey{}, mark), params)
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				err = cause
			}
			return nil, round == 1 && mark.Load() && l.session.ID() != "", err
		}
		raw, ok := unwrap(out.Meta)
		if !ok {
			return nil, false, errors.New("its answer is no result of a tool")
		}
		next, err := s.nextRound(ctx, params, raw, round)
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				return nil, false, cause
			}
			return nil, false, &askError{err}
		}
		if next == nil {
			return raw, false, nil
		}
		params = next
	}
}

// drop ends a session that the server has forgotten and reports whether it is gone.
func (l *link) drop(ctx context.Context) bool {
	l.abort()
	select {
	case <-l.dead:
		return true
	case <-time.After(deathWait):
	case <-ctx.Done():
	}
	return false
}

// failed says why a call has no result.
func (t *serverTool) failed(ctx context.Context, l *link, err error) tool.Result {
	wire := answered(err)
	var asked *askError
	switch {
	case errors.As(err, &asked):
		return t.fail("the call was given up, because " + t.server.secrets.clean(cut(visible(asked.Error()), maxNotice)))
	case errors.Is(err, errTimedOut):
		res := t.fail(fmt.Sprintf("the server did not answer within %v. The call was cancelled; whether the server did any of it is not known", t.server.cfg.CallTimeout))
		res.TimedOut = true
		return res
	case errors.Is(err, errClosed) || ctx.Err() != nil:
		return t.fail("the call was interrupted; whether the server did any of it is not known")
	case wire != nil:
		return t.fail(fmt.Sprintf("the server refused the call with error %d: %s", wire.Code, t.server.secrets.clean(cut(wire.Message, maxNotice))))
	}
	select {
	case <-l.dead:
		return t.fail(t.server.secrets.clean(fmt.Sprintf("the server ended during the call: %s. Whether it did any of the call is not known. It is started again by the next call", l.cause)))
	case <-time.After(deathWait):
	case <-ctx.Done():
	}
	what := err.Error()
	if fault := l.fault.Load(); fault != nil {
		what = *fault + ". Whether it did any of the call is not known"
	} else if l.child == nil {
		what = l.httpFault(err)
	}
	return t.fail("the call failed: " + t.server.secrets.clean(cut(what, maxNotice)))
}

func (t *serverTool) fail(why string) tool.Result {
	return tool.Fail(fmt.Sprintf("The tool %s of MCP server %q gave no result: %s.", t.original, t.server.cfg.Name, strings.TrimSuffix(why, ".")))
}

// fits returns what is wrong with a structured result, or "".
func (t *serverTool) fits(structured jsontext.Value) string {
	if t.output == nil || len(structured) > 1<<20 {
		return ""
	}
	if _, err := t.output.Check("result", structured); err != nil {
		return strings.TrimPrefix(err.Error(), "The arguments of result can't be used: ")
	}
	return ""
}
