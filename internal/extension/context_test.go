package extension_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/extension"
)

// indices returns what an answer keeps of n messages.
func indices(keep []bool, n int) []int {
	out := []int{}
	for i := range n {
		if keep == nil || keep[i] {
			out = append(out, i)
		}
	}
	return out
}

func TestContext(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		replies map[string]string
		want    []int
		by      string
	}{
		{"absent", map[string]string{"a": `{}`}, []int{0, 1, 2, 3, 4, 5}, ""},
		{"null", map[string]string{"a": `{"keep":null}`}, []int{0, 1, 2, 3, 4, 5}, ""},
		{"all", map[string]string{"a": `{"keep":[5,4,3,2,1,0,0]}`}, []int{0, 1, 2, 3, 4, 5}, ""},
		{"none", map[string]string{"a": `{"keep":[]}`}, []int{5}, "a"},
		{"only what isn't there", map[string]string{"a": `{"keep":[6,-1,9223372036854775807]}`}, []int{5}, "a"},
		{"a result is dropped", map[string]string{"a": `{"keep":[0,1,2,4,5]}`}, []int{0, 4, 5}, "a"},
		{"a call is dropped", map[string]string{"a": `{"keep":[0,2,3,4,5]}`}, []int{0, 4, 5}, "a"},
		{"the newest is dropped", map[string]string{"a": `{"keep":[0,1,2,3,4]}`}, []int{0, 1, 2, 3, 4, 5}, ""},
		{"two", map[string]string{"b": `{"keep":[1,2,3,4]}`, "a": `{"keep":[0,1,2,3]}`}, []int{1, 2, 3, 5}, "a b"},
		{"two, one of them silent", map[string]string{"b": `{"keep":[0]}`, "a": `{}`}, []int{0, 5}, "b"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var configs []extension.Config
			for name, reply := range tt.replies {
				configs = append(configs, fakeExt(t, name, actions{"context": reply}))
			}
			got := start(t, nil, configs...).Context(context.Background(), main1(), history())
			if d := cmp.Diff(tt.want, indices(got.Keep, 6)); d != "" {
				t.Errorf("kept (-want +got):\n%s", d)
			}
			if strings.Join(got.By, " ") != tt.by || (got.Keep == nil) != (tt.by == "") || got.Refused {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// TestContextKeepsThePrompt: what a backend added later has the person's role, and
// must not take the prompt's place.
func TestContextKeepsThePrompt(t *testing.T) {
	t.Parallel()
	h := start(t, nil, fakeExt(t, "a", actions{"context": `{"keep":[]}`}))
	messages := append(history(), &event.Message{Role: event.RoleUser, Parts: []event.Part{event.TextPart("added by a backend")}})
	at := main1()
	at.Prompt = messages[5]
	if got := indices(h.Context(context.Background(), at, messages).Keep, 7); !slices.Equal(got, []int{5}) {
		t.Errorf("kept %v", got)
	}
	at.Prompt = &event.Message{Role: event.RoleUser} // summarised away
	if got := indices(h.Context(context.Background(), at, messages).Keep, 7); !slices.Equal(got, []int{6}) {
		t.Errorf("kept %v", got)
	}
	if got := h.Context(context.Background(), at, nil); got.Keep != nil || got.By != nil {
		t.Errorf("no messages: %+v", got)
	}
}

func TestContextWarns(t *testing.T) {
	t.Parallel()
	rec := &record{}
	h := start(t, rec, fakeExt(t, "a", actions{"context": `{"keep":[0,6,7],"block":true}`}))
	for range 2 {
		h.Context(context.Background(), main1(), history())
	}
	want := []string{
		`a reply to context has "block", which has no effect there`,
		`its keep names 6, which is no message's index; there were 6 messages`,
	}
	if d := cmp.Diff(want, rec.lines("a", "warning")); d != "" {
		t.Errorf("warnings (-want +got):\n%s", d)
	}
}

// TestContextOfTheDead: a filter that can't be asked must not be passed by.
func TestContextOfTheDead(t *testing.T) {
	t.Parallel()
	for f, refused := range map[extension.OnFailure]bool{extension.Skip: false, extension.AskPerson: true, extension.Block: true} {
		h := start(t, nil, fakeExt(t, "b", actions{"context": `{"keep":[4]}`}),
			with(fakeExt(t, "a", actions{"context": `{"keep":"all"}`}), func(c *extension.Config) { c.OnFailure = f }))
		for range 2 { // the messages in hand, and those after it
			got := h.Context(context.Background(), main1(), history())
			if got.Refused != refused || refused != (got.RefusedBy == "a") || refused != strings.Contains(got.Reason, "on_failure") {
				t.Errorf("%s: %+v", f, got)
			}
			if a := got.Asked[0]; a.Answer != "failed" || a.Policy != string(f) || a.Failure != "invalid" {
				t.Errorf("%s: asked %+v", f, a)
			}
			if d := cmp.Diff([]int{4, 5}, indices(got.Keep, 6)); d != "" {
				t.Errorf("%s: kept (-want +got):\n%s", f, d)
			}
		}
	}
	h := start(t, nil, fakeExt(t, "a", nil))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if got := h.Context(ctx, main1(), history()); !got.Refused || got.Asked[0].Failure != "interrupted" {
		t.Errorf("interrupted: %+v", got)
	}
}
