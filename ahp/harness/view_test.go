package harness_test

import (
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/harness"
)

// viewed dispatches a tool.after with text, reasoning and an image to one
// subscription with the given content, and returns what it was asked.
func viewed(t *testing.T, content map[string]ahp.Selection, native bool) *ahp.Intercept {
	t.Helper()
	fake := ahptest.NewFake(nil)
	sub := ahptest.Intercept(ahp.FailClosed, time.Minute, "tool.*")
	sub.Content, sub.IncludeNative = content, native
	h := newHarness(t, harness.Options{}, party{link: fake, subs: []ahp.Subscription{sub}})
	e := ahptest.ToolAfter("e", "visible")
	secret := ahp.TextPart("think", "thoughts")
	secret.Category = "reasoning"
	image := ahp.Part{ID: "image", Kind: ahp.KindAttachment, MediaType: "image/png", Selection: ahp.SelectBody, Body: &ahp.BodyRef{Ref: "r"}}
	e.Items.Messages[0].Parts = append(e.Items.Messages[0].Parts, secret, image)
	e.Native = ahp.Raw(`{"secret":true}`)
	out, err := h.Dispatch(t.Context(), e, ahptest.FullCapabilities(ahp.ToolAfter), nil, harness.DispatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if out.Trace[0].Failure != nil {
		t.Fatal(out.Trace[0].Failure)
	}
	if len(e.Items.Messages[0].Parts) != 3 || e.Items.Messages[0].Parts[2].Body == nil || e.Native == nil {
		t.Error("the caller's event was changed")
	}
	return fake.Requests()[0]
}

func TestContentSelection(t *testing.T) {
	q := viewed(t, map[string]ahp.Selection{"default": ahp.SelectMetadata, "text": ahp.SelectBody, "reasoning": ahp.SelectOmit}, false)
	parts := q.Event.Items.Messages[0].Parts
	if len(parts) != 2 || *parts[0].Text != "visible" || parts[1].ID != "image" || parts[1].Selection != ahp.SelectMetadata || parts[1].Body != nil {
		t.Errorf("parts %+v", parts)
	}
	if q.Event.Native != nil {
		t.Error("native data without being asked for")
	}
	if m := q.Capabilities.Modify[ahp.TargetOutput]; m.Replace || !m.Merge {
		t.Errorf("a list with hidden content may be replaced: %+v", m)
	}
}

func TestAttachmentsWithoutUpload(t *testing.T) {
	q := viewed(t, map[string]ahp.Selection{"default": ahp.SelectBody}, true)
	image := q.Event.Items.Messages[0].Parts[2]
	if image.Body != nil || image.Gap == nil || image.Selection != ahp.SelectBody {
		t.Errorf("image %+v", image)
	}
	if string(q.Event.Native) != `{"secret":true}` {
		t.Errorf("native %s", q.Event.Native)
	}
}

func TestEverythingHidden(t *testing.T) {
	q := viewed(t, map[string]ahp.Selection{"default": ahp.SelectOmit}, false)
	if len(q.Event.Items.Messages) != 1 || len(q.Event.Items.Messages[0].Parts) != 0 {
		t.Errorf("items %+v", q.Event.Items)
	}
}

// TestMergeKeepsHidden holds that an edit of a view reaches the whole value.
func TestMergeKeepsHidden(t *testing.T) {
	fake := ahptest.NewFake(ahptest.Says(&ahp.Modify{Target: ahp.TargetOutput, Operation: ahp.OpMerge,
		Value: ahp.Raw(`[{"id":"more","role":"tool","parts":[]}]`)}))
	sub := ahptest.Intercept(ahp.FailClosed, time.Minute, "tool.after")
	sub.Content["default"] = ahp.SelectOmit
	h := newHarness(t, harness.Options{}, party{link: fake, subs: []ahp.Subscription{sub}})
	out, err := h.Dispatch(t.Context(), ahptest.ToolAfter("e", "hidden"), ahptest.FullCapabilities(ahp.ToolAfter), nil, harness.DispatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	m := out.Event.Items.Messages
	if len(m) != 2 || *m[0].Parts[0].Text != "hidden" || m[1].ID != "more" || !out.Changed {
		t.Errorf("%+v, %v", m, out.Trace[0].Failure)
	}
}

// TestNothingIsShownMoreOpenly: what the host itself keeps back stays so, whatever a
// subscription selects, and a list that holds such a part can't be replaced.
func TestNothingIsShownMoreOpenly(t *testing.T) {
	fake := ahptest.NewFake(nil)
	sub := ahptest.Intercept(ahp.FailClosed, time.Minute, "tool.after")
	sub.Content = map[string]ahp.Selection{"default": ahp.SelectBody}
	h := newHarness(t, harness.Options{}, party{link: fake, subs: []ahp.Subscription{sub}})
	for own, shown := range map[ahp.Selection]int{ahp.SelectMetadata: 2, ahp.SelectOmit: 1} {
		e := ahptest.ToolAfter("e"+string(own), "visible")
		e.Items.Messages[0].Parts = append(e.Items.Messages[0].Parts, ahp.Part{ID: "kept", Kind: ahp.KindText, MediaType: "text/plain", Selection: own})
		if out, err := h.Dispatch(t.Context(), e, ahptest.FullCapabilities(ahp.ToolAfter), nil, harness.DispatchOptions{}); err != nil || out.Trace[0].Failure != nil {
			t.Fatalf("%s: %v, %v", own, err, out)
		}
		q := fake.Requests()[len(fake.Requests())-1]
		parts := q.Event.Items.Messages[0].Parts
		if len(parts) != shown || shown == 2 && (parts[1].Selection != own || parts[1].Text != nil) {
			t.Errorf("%s: shown %+v", own, parts)
		}
		if q.Capabilities.Modify[ahp.TargetOutput].Replace {
			t.Errorf("%s: a list with hidden content may be replaced", own)
		}
	}
}
