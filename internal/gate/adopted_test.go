package gate

import (
	"slices"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model"
)

// TestImagesAreAdopted holds what a backend can make of the pictures of a request:
// they can be left out and nothing else.
func TestImagesAreAdopted(t *testing.T) {
	dot := event.Image{MediaType: "image/png", Data: "iVBORw0KGgr//g=="}
	other := event.Image{MediaType: "image/png", Data: "iVBORw0KGgr//Q=="}
	drop := func(list []ahp.Message, ids ...string) []ahp.Message {
		for i := range list {
			list[i].Parts = slices.DeleteFunc(list[i].Parts, func(p ahp.Part) bool { return slices.Contains(ids, p.ID) })
		}
		return list
	}
	tests := []struct {
		name, fault string
		f           func(list []ahp.Message) []ahp.Message
		want        func(was, now []*model.Message) bool
	}{
		{"nothing", "", func(l []ahp.Message) []ahp.Message { return l }, func(was, now []*model.Message) bool { return slices.Equal(was, now) }},
		{"left out", "", func(l []ahp.Message) []ahp.Message { return drop(l, "m1:1", "c1:result:0:image0") }, func(_, now []*model.Message) bool {
			r := now[2].Parts[0].ToolResult
			return len(now[0].Parts) == 1 && slices.Equal(r.Images, []event.Image{other}) && r.Content == "a picture"
		}},
		{"the text of a result", "", func(l []ahp.Message) []ahp.Message { s := "x"; l[3].Parts[0].Text = &s; return l }, func(_, now []*model.Message) bool {
			r := now[2].Parts[0].ToolResult
			return r.Content == "x" && slices.Equal(r.Images, []event.Image{dot, other})
		}},
		{"swapped", "only an image that was there", func(l []ahp.Message) []ahp.Message {
			a, b := &l[3].Parts[1], &l[3].Parts[2]
			a.Body, b.Body = b.Body, a.Body
			return l
		}, nil},
		{"a new one", "only an image that was there", func(l []ahp.Message) []ahp.Message { l[1].Parts[1].ID = "new"; return l }, nil},
		{"a gap", "only an image that was there", func(l []ahp.Message) []ahp.Message {
			l[1].Parts[1].Body, l[1].Parts[1].Gap = nil, &ahp.PartGap{Reason: "x"}
			return l
		}, nil},
		{"without its result", "can't be there", func(l []ahp.Message) []ahp.Message { return drop(l, "c1:result:0") }, nil},
		{"said by the model", "can't be there", func(l []ahp.Message) []ahp.Message {
			l[2].Parts = append(l[2].Parts, l[1].Parts[1])
			return l
		}, nil},
	}
	for _, tt := range tests {
		g := &Gate{o: Options{Backends: &Backends{lender: &Lender{}}}}
		was := []*model.Message{
			{Role: event.RoleUser, Parts: []model.Part{event.TextPart("see"), {Image: &dot}}},
			{Role: event.RoleAssistant, Parts: []model.Part{{Seal: &event.Seal{Data: "sealed"}}, {ToolCall: &model.ToolCall{ID: "c1", Name: "read", Args: "{}"}}}},
			{Role: event.RoleTool, Parts: []model.Part{{ToolResult: &model.ToolResult{CallID: "c1", Name: "read", Content: "a picture", Images: []event.Image{dot, other}}}}},
		}
		req, items, err := g.newAdopted().request(&agent.RequestBefore{System: "sys", Messages: was}, tt.f(g.canonicalRequest("sys", was)))
		switch {
		case tt.fault != "":
			if err == nil || !strings.Contains(err.Error(), tt.fault) {
				t.Errorf("%s: %v", tt.name, err)
			}
		case err != nil || !tt.want(was, req.Messages) || len(items) != 4:
			t.Errorf("%s: %v, %+v, %d items", tt.name, err, req, len(items))
		}
		if r := was[2].Parts[0].ToolResult; r.Content != "a picture" || len(r.Images) != 2 {
			t.Errorf("%s: the conversation has %+v", tt.name, r)
		}
	}
}
