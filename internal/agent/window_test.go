package agent_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model"
)

// windowModel is a fakeModel with a context window: it counts a token for four bytes,
// reports what it counted, and refuses what doesn't fit.
type windowModel struct {
	*fakeModel
	window int64 // tokens, 0 is any number
	// silent: nothing is reported of a request that fits.
	silent bool
	// summary makes the nth reply to a request for a summary, a *model.Response or an
	// error; nil is a short one.
	summary func(n int) any

	summaries []model.Request
	overflows int
}

func (m *windowModel) Stream(ctx context.Context, req *model.Request, onDelta func(model.Delta)) (*model.Response, error) {
	tokens := bytesOf(req) / 4
	isSummary := strings.HasPrefix(req.System, "You condense")
	if isSummary {
		m.summaries = append(m.summaries, *req)
	}
	if m.window > 0 && tokens > m.window {
		m.overflows++
		return nil, &model.Error{Kind: model.ErrOverflow, Status: 400, Endpoint: "http://x", Detail: fmt.Sprintf("%d tokens don't fit into %d", tokens, m.window)}
	}
	var resp *model.Response
	var err error
	if isSummary {
		reply := any(says("a short summary"))
		if m.summary != nil {
			reply = m.summary(len(m.summaries))
		}
		if err, _ = reply.(error); err == nil {
			resp = reply.(*model.Response)
		}
	} else {
		resp, err = m.fakeModel.Stream(ctx, req, onDelta)
	}
	if err != nil || m.silent {
		return resp, err
	}
	out := *resp
	return used(&out, tokens, 1), nil
}

func bytesOf(req *model.Request) int64 {
	n := len(req.System)
	for _, t := range req.Tools {
		n += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	for _, m := range req.Messages {
		for _, text := range texts([]*model.Message{m}) {
			n += len(text)
		}
	}
	return int64(n)
}

// past is a conversation of steps calls, whose results have size bytes each, between
// a person's first message and an answer.
func past(steps, size int) []*model.Message {
	out := []*model.Message{user("the task")}
	for i := range steps {
		id := fmt.Sprintf("h%d", i+1)
		out = append(out,
			&model.Message{Role: event.RoleAssistant, Parts: []model.Part{{ToolCall: &model.ToolCall{ID: id, Name: "read", Args: "{}"}}}},
			&model.Message{Role: event.RoleTool, Parts: []model.Part{{ToolResult: &model.ToolResult{CallID: id, Name: "read", Content: id + strings.Repeat("r", size)}}}})
	}
	return append(out, &model.Message{Role: event.RoleAssistant, Parts: []model.Part{event.TextPart("the answer")}})
}

func user(text string) *model.Message {
	return &model.Message{Role: event.RoleUser, Parts: []model.Part{event.TextPart(text)}}
}

// inWindow gives b a model with a window, which it knows of if known, and lets it
// compact by itself.
func (b *bench) inWindow(window int64, known bool) *windowModel {
	m := &windowModel{fakeModel: b.model, window: window}
	b.opts.Model.Client, b.opts.Context.Auto = m, true
	if known {
		b.opts.Model.Window = window
	}
	return m
}

// reductions returns the triggers of what was recorded as made smaller.
func reductions(log *memLog) []string {
	var out []string
	for _, r := range of[*event.ContextReduced](log) {
		out = append(out, r.Trigger)
	}
	return out
}

func notices(log *memLog) string {
	var out []string
	for _, n := range of[*event.Notice](log) {
		out = append(out, n.Text)
	}
	return strings.Join(out, "\n")
}

// larger is a model of another name, with a window that takes everything here.
func (b *bench) larger() (agent.Model, *windowModel) {
	m := &windowModel{fakeModel: &fakeModel{name: "larger/model"}, window: 1 << 20}
	return agent.Model{Client: m, Window: m.window}, m
}
