package gate_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/gate"
	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/strictjson"
)

// dot is a picture's beginning: enough to be told from text.
var dot = event.Image{MediaType: "image/png", Data: "iVBORw0KGgr//g=="}

// TestImagesOfResults holds that a picture reaches the model only with the content
// that came with it.
func TestImagesOfResults(t *testing.T) {
	const shown = "a picture"
	modify := `{"type":"modify","target":"output","operation":"merge","value":[{"id":"m","role":"tool","parts":[{"id":"p","kind":"text","mediaType":"text/plain","selection":"body","text":"more"}]}]}`
	tests := []struct {
		name, extension string
		effects         *string
		content         string
		kept            bool
	}{
		{"nobody changes it", `{}`, effects(), shown, true},
		{"an extension rewrites it", `{"content":"[redacted]"}`, effects(), "[redacted]", false},
		{"a backend adds to it", `{}`, effects(modify), shown + "\nmore", false},
		{"it can't be reviewed", `{}`, nil, "The result was withheld", false},
	}
	for _, tt := range tests {
		r := newRig(t)
		cfg, _ := r.heard("x", "tool_result", tt.extension)
		r.extensions(cfg)
		a := r.serve("fail-closed", func(b string, _ *ahp.Intercept) *string {
			if b == "one" {
				return tt.effects
			}
			return effects()
		})
		o := agent.Outcome{Call: policy.Call{ID: "c", Tool: "read", Args: []byte(`{}`)}, Kind: "ok", Content: shown, Images: []event.Image{dot}, Ran: true}
		f, err := gate.New(r.opts).Finish(t.Context(), o)
		e := last[*event.ToolEnded](r.log)
		if err != nil || !strings.HasPrefix(f.Content, tt.content) || (len(f.Images) == 1) != tt.kept || !slices.Equal(f.Images, e.Images) {
			t.Errorf("%s: %+v %v, recorded %+v", tt.name, f, err, e)
		}
		if n := len(a.last.Event.Items.Messages[0].Parts); tt.extension != `{}` && n != 1 {
			t.Errorf("%s: backends see %d parts", tt.name, n)
		}
		if tt.kept {
			parts := a.last.Event.Items.Messages[0].Parts
			if len(parts) != 2 || parts[1].MediaType != "image/png" || *parts[1].Size != 10 {
				t.Errorf("%s: backends see %+v", tt.name, parts)
			}
		}
	}
	// The text that stands for a result that nobody reviewed makes none reviewed.
	r := newRig(t)
	cfg, _ := r.heard("x", "tool_result", `{}`)
	r.extensions(cfg)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o := agent.Outcome{Call: policy.Call{ID: "c", Tool: "read", Args: []byte(`{}`)}, Kind: "ok", Images: []event.Image{dot}, Ran: true}
	o.Content = "The result was withheld: the turn was interrupted before it could be reviewed."
	if f, err := gate.New(r.opts).Finish(ctx, o); err != nil || f.Content != o.Content || f.Images != nil {
		t.Errorf("%+v %v", f, err)
	}
}

// TestImagesStayInRequests holds that a backend which isn't shown the pictures can
// add to a request, and that they are sent.
func TestImagesStayInRequests(t *testing.T) {
	r := newRig(t)
	fake := r.watched("fail-closed", func(context.Context, *ahp.Intercept) ([]ahp.Effect, error) {
		value, err := strictjson.Marshal([]ahp.Message{ahp.TextMessage("x", ahp.RoleUser, "look")})
		return []ahp.Effect{&ahp.Modify{Target: ahp.TargetRequest, Operation: ahp.OpMerge, Value: value}}, err
	})
	was := conversation()[:4]
	was[0] = says(event.RoleUser, event.TextPart("see"), model.Part{Image: &dot})
	was[2].Parts[0].ToolResult.Images = []event.Image{dot}
	say := r.gate.Ask(t.Context(), agent.At{TurnID: "t"}, &agent.RequestBefore{Attempt: agent.Attempt{ID: "a", Number: 1}, System: "sys", Messages: was})
	if say.Request == nil || len(say.Request.Messages) != 5 || !slices.Equal(say.Request.Messages[:4], was) {
		t.Errorf("%+v %+v", say, say.Refusal)
	}
	list := fake.Requests()[0].Event.Items.Messages
	for _, p := range []ahp.Part{list[1].Parts[1], list[3].Parts[1]} {
		if p.Kind != ahp.KindAttachment || p.MediaType != "image/png" || *p.Size != 10 {
			t.Errorf("backends see %+v", p)
		}
	}
}
