package agent_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/tool"
)

const schema = `{"type":"object"}`

// onlyJSON takes nothing but an object.
func onlyJSON(answer string) error {
	if !strings.HasPrefix(answer, "{") {
		return errors.New("it is no object")
	}
	return nil
}

func filtered(text string) *model.Response {
	r := says(text)
	r.Finish = model.FinishFiltered
	return r
}

// TestStructuredOutput holds that the schema is in every request, though a backend
// changes it, and that the model is told what is wrong with an answer twice.
func TestStructuredOutput(t *testing.T) {
	tests := []struct {
		name    string
		replies []any
		reason  agent.Reason
		text    string
		misfits int // that the model was told of
	}{
		{"at once", []any{says("{}")}, agent.ReasonCompleted, "{}", 0},
		{"after a call", []any{calls("read", "{}"), says("{}")}, agent.ReasonCompleted, "{}", 0},
		{"the third time", []any{says("one"), says("two"), says("{}")}, agent.ReasonCompleted, "{}", 2},
		{"never", []any{says("one"), says("two"), says("three"), says("{}")}, agent.ReasonError, "three", 2},
		{"never, with a call between", []any{says("one"), calls("read", "{}"), says("two"), says("three"), says("{}")}, agent.ReasonError, "three", 2},
		{"withheld by the provider", []any{filtered("I can't"), says("{}")}, agent.ReasonCompleted, "{}", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := setup(t, nil, tt.replies...)
			b.opts.Output, b.opts.CheckOutput = []byte(schema), onlyJSON
			b.opts.Hooks = &fakeHooks{wants: func(at ahp.EventType, _ ahp.Mode) bool { return at == ahp.ModelRequestBefore }, ask: func(_ agent.At, m agent.Moment) *agent.Say {
				r := m.(*agent.RequestBefore)
				return &agent.Say{Request: &model.Request{System: "changed", Messages: r.Messages}}
			}}
			res := agent.New(b.opts).Run(t.Context(), agent.Prompt{Text: "go"})
			want(t, res, tt.reason)
			told := 0
			for _, m := range of[*event.UserMessage](b.log) {
				if strings.Contains(m.Text, "doesn't fit the JSON Schema") && strings.Contains(m.Text, "it is no object") {
					told++
				}
			}
			if res.Text != tt.text || told != tt.misfits {
				t.Errorf("text %q after the model was told %d times, want %q and %d", res.Text, told, tt.text, tt.misfits)
			}
			if tt.reason == agent.ReasonError && !strings.Contains(res.Detail, "it is no object") {
				t.Errorf("detail %q", res.Detail)
			}
			for i, r := range b.model.asked {
				if string(r.Output) != schema || r.System != "changed" {
					t.Errorf("request %d has the schema %q and the system text %q", i+1, r.Output, r.System)
				}
			}
		})
	}
}

// TestMisfitsAreCountedInARow lets a person ask on after an answer that fits.
func TestMisfitsAreCountedInARow(t *testing.T) {
	var l *agent.Loop
	fits := func() *model.Response { steer(t, l, "and now?", true); return says("{}") }
	b := setup(t, nil, says("one"), says("two"), fits, says("three"), says("four"), says("{}"))
	b.opts.Output, b.opts.CheckOutput = []byte(schema), onlyJSON
	l = agent.New(b.opts)
	want(t, l.Run(t.Context(), agent.Prompt{Text: "go"}), agent.ReasonCompleted)
	// The next run counts anew.
	b.model.replies = []any{says("five"), says("six"), says("seven"), says("eight"), says("nine"), says("{}")}
	want(t, l.Run(t.Context(), agent.Prompt{Text: "go"}), agent.ReasonError)
	want(t, l.Run(t.Context(), agent.Prompt{Text: "go"}), agent.ReasonCompleted)
}

// imagesOf lists the paths or media types of the images in messages.
func imagesOf(messages []*model.Message) []string {
	var out []string
	for _, m := range messages {
		for _, p := range m.Parts {
			if p.Image != nil {
				out = append(out, string(m.Role)+" "+p.Image.MediaType)
			}
			if p.ToolResult != nil {
				for _, i := range p.ToolResult.Images {
					out = append(out, "result "+i.MediaType)
				}
			}
		}
	}
	return out
}

// TestImagesInPrompts holds that images of a prompt are sent, recorded, and counted
// by what they cost and not by their bytes; and that they stay when a backend
// changes the text.
func TestImagesInPrompts(t *testing.T) {
	png, jpeg := event.Image{MediaType: "image/png", Data: strings.Repeat("A", 1<<20)}, event.Image{MediaType: "image/jpeg", Data: "QUJD"}
	for _, rewritten := range []bool{false, true} {
		b := setup(t, func(context.Context, tool.Grant) tool.Result { return tool.OK("ran") }, calls("read", "{}"), says("done"), says("done"))
		if rewritten {
			b.opts.Hooks = &fakeHooks{ask: func(_ agent.At, m agent.Moment) *agent.Say {
				if s, is := m.(*agent.TurnStart); is {
					return &agent.Say{Text: s.Text + "!", By: []string{"x"}}
				}
				return nil
			}}
		}
		b.opts.Model.Window, b.opts.Model.Images, b.opts.Context.Auto = 16000, true, true
		l := agent.New(b.opts)
		want(t, l.Run(t.Context(), agent.Prompt{Text: "look", Images: []event.Image{png, jpeg}}), agent.ReasonCompleted)
		want(t, l.Run(t.Context(), agent.Prompt{Text: "again"}), agent.ReasonCompleted)
		for i, r := range b.model.asked {
			if got, w := imagesOf(r.Messages), []string{"user image/png", "user image/jpeg"}; !slices.Equal(got, w) || !strings.HasPrefix(r.Messages[0].Text(), "look") {
				t.Errorf("request %d has %v and %q", i+1, got, r.Messages[0].Text())
			}
		}
		if m := of[*event.UserMessage](b.log)[0]; len(m.Images) != 2 || m.Images[0].Data != png.Data || rewritten != (m.Text == "look!") {
			t.Errorf("recorded %q with %d images", m.Text, len(m.Images))
		}
		if n := l.ContextTokens(); n < 2000 || n > 8000 {
			t.Errorf("two images and a few words count %d tokens", n)
		}
	}
}

// TestImagesAreNotSentToAModelWithoutThem switches to a model that takes none, with an
// image of a prompt and one of a result in the conversation, and back.
func TestImagesAreNotSentToAModelWithoutThem(t *testing.T) {
	png := event.Image{MediaType: "image/png", Data: "QUJD"}
	b := setup(t, nil, calls("read", "{}"), calls("read", "{}"), says("done"), says("done"))
	b.opts.Model.Images = true
	b.opts.Gate = imageGate{b.gate, []event.Image{png}}
	l := agent.New(b.opts)
	other := &fakeModel{name: "other/model"}
	run := func(m *fakeModel, takes bool) []string {
		l.SetModel(agent.Model{Client: m, Images: takes})
		want(t, l.Run(t.Context(), agent.Prompt{Text: "look", Images: []event.Image{png}}), agent.ReasonCompleted)
		return imagesOf(m.last().Messages)
	}
	w := []string{"user image/png", "result image/png", "result image/png"}
	if got := run(b.model, true); !slices.Equal(got, w) {
		t.Errorf("the first model was sent %v, want %v", got, w)
	}
	other.replies = []any{calls("read", "{}"), says("done")}
	got := run(other, false)
	sent := texts(other.last().Messages)
	if len(got) != 0 || !strings.Contains(sent[0], "look[abhed] An image was here") || !strings.Contains(sent[2], "did c1\n[abhed] An image was here") {
		t.Errorf("the other model was sent %v, %q", got, sent)
	}
	if n := notices(b.log); strings.Count(n, "other/model isn't known to take images") != 1 {
		t.Errorf("notices %q", n)
	}
	w = append(w, "user image/png", "result image/png", "user image/png")
	if got := run(b.model, true); !slices.Equal(got, w) {
		t.Errorf("back again the first model was sent %v, want %v", got, w)
	}
}

// imageGate gives every result images.
type imageGate struct {
	agent.Gate
	images []event.Image
}

func (g imageGate) Finish(ctx context.Context, o agent.Outcome) (agent.Final, error) {
	f, err := g.Gate.Finish(ctx, o)
	f.Images = g.images
	return f, err
}
