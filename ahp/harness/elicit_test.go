package harness_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/elicitation"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/ahp/transport"
	"github.com/abhed/abhed/internal/strictjson"
)

const (
	formText = `{"message":"m","requestedSchema":{"type":"object","required":["name"],"properties":{"name":{"type":"string","maxLength":5}}}}`
	urlText  = `{"mode":"url","message":"m","url":"https://a.example/","elicitationId":"e"}`
)

// askEvent returns a request; the mode is the text's.
func askEvent(id, text string) *ahp.Event {
	mode := "form"
	if strings.Contains(text, `"mode":"url"`) {
		mode = "url"
	}
	part := ahp.TextPart("p", text)
	return &ahp.Event{ID: id, Source: "urn:ahp:test", Type: ahp.UserElicitationRequest, Time: ahp.Timestamp(time.Unix(1767225600, 0)),
		Session: &ahp.Session{ID: "s"}, Elicitation: &ahp.Elicitation{Server: "srv", Mode: mode, Request: &part}}
}

func answerEvent(to, mode, action, text string) *ahp.Event {
	e := askEvent("answer-"+to, text)
	e.Type, e.ParentEventID = ahp.UserElicitationResult, to
	e.Elicitation = &ahp.Elicitation{Server: "srv", Mode: mode, Action: action, Result: e.Elicitation.Request}
	return e
}

// elicits is a party that judges elicitations.
func elicits(judge ahptest.Judge) (party, *ahptest.Fake) {
	fake := ahptest.NewFake(judge)
	return party{link: fake, subs: []ahp.Subscription{ahptest.Intercept(ahp.FailClosed, 30*time.Second, "user.*")}}, fake
}

// perType answers requests and results each with their own effects.
func perType(request, result []ahp.Effect) ahptest.Judge {
	return func(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
		if q.Event.Type == ahp.UserElicitationRequest {
			return request, nil
		}
		return result, nil
	}
}

func send(t testing.TB, h *harness.Harness, e *ahp.Event, caps *ahp.Capabilities) *harness.Outcome {
	t.Helper()
	if caps == nil {
		caps = ahptest.FullCapabilities(e.Type)
	}
	out, err := h.Dispatch(t.Context(), e, caps, nil, harness.DispatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	settle(t, out)
	return out
}

func content(op ahp.Operation, value string) *ahp.Modify {
	return &ahp.Modify{Target: ahp.TargetContent, Operation: op, Value: ahp.Raw(value)}
}

// TestElicitationChain holds that the second interceptor and the observers see the
// result that the first one edited, serialised again as a whole.
func TestElicitationChain(t *testing.T) {
	first, _ := elicits(perType(nil, []ahp.Effect{content(ahp.OpMerge, `{"name":"new"}`)}))
	second, saw := elicits(perType(nil, []ahp.Effect{&ahp.Notice{Text: "seen"}}))
	watcher := ahptest.NewFake(nil)
	h := newHarness(t, harness.Options{}, first, second, party{link: watcher, subs: []ahp.Subscription{ahptest.Observe("user.elicitation.result")}})
	send(t, h, askEvent("q", formText), nil)
	out := send(t, h, answerEvent("q", "form", "accept", `{"content":{"name":"old","keep":true},"_meta":{"k":1},"action":"accept"}`), nil)
	want := `{"action":"accept","content":{"name":"new","keep":true},"_meta":{"k":1}}`
	for name, e := range map[string]*ahp.Event{"the outcome": out.Event, "the second": saw.Requests()[1].Event, "the observer": watcher.Observed()[0]} {
		if got := *e.Elicitation.Result.Text; !strictjson.Equal([]byte(got), []byte(want)) {
			t.Errorf("%s has %s, want %s", name, got, want)
		}
	}
	if !out.Changed || out.Permission != ahp.PermissionNone || len(out.Messages) != 1 {
		t.Errorf("changed %v, permission %s, messages %q", out.Changed, out.Permission, out.Messages)
	}
	if h.Elicitations().Len() != 0 {
		t.Error("the request still waits")
	}
}

// TestElicitationEqualEdit holds that another spelling of the same answer is no
// change (§11, 5).
func TestElicitationEqualEdit(t *testing.T) {
	p, _ := elicits(perType(nil, []ahp.Effect{content(ahp.OpMerge, `{"name":"old"}`)}))
	h := newHarness(t, harness.Options{}, p)
	send(t, h, askEvent("q", formText), nil)
	text := `{ "content": {"name": "old"}, "action": "accept" }`
	out := send(t, h, answerEvent("q", "form", "accept", text), nil)
	if out.Changed || *out.Event.Elicitation.Result.Text != text {
		t.Errorf("changed to %s", *out.Event.Elicitation.Result.Text)
	}
}

// TestElicitationEffects gives one response to a request or a result and tells
// whether it counts: fail-closed makes a denial of what doesn't.
func TestElicitationEffects(t *testing.T) {
	formOnly := &ahp.ElicitationCapability{Form: &ahp.ElicitationMode{}}
	urlOnly := &ahp.ElicitationCapability{URL: &ahp.ElicitationMode{}}
	none := &ahp.ElicitationCapability{}
	ret := func(s string) ahp.Effect { return &ahp.Return{Value: ahp.Raw(s)} }
	deny := &ahp.Deny{Reason: "no"}
	const accepted, declined = `{"action":"accept","content":{"name":"x"}}`, `{"action":"decline"}`
	for _, tt := range []struct {
		name, request, result string // result "" is a response to the request
		action                string
		grant                 *ahp.ElicitationCapability
		effect                ahp.Effect
		counts                bool
	}{
		{"supplied answer", formText, "", "", formOnly, ret(accepted), true},
		{"supplied refusal", formText, "", "", formOnly, ret(declined), true},
		{"supplied answer that the form refuses", formText, "", "", formOnly, ret(`{"action":"accept","content":{"name":"too long"}}`), false},
		{"supplied answer without what is required", formText, "", "", formOnly, ret(`{"action":"accept"}`), false},
		{"supplied null", formText, "", "", formOnly, ret(`null`), false},
		{"supplied nesting", formText, "", "", formOnly, ret(`{"action":"accept","content":{"name":{}}}`), false},
		{"supplied answer without the grant", formText, "", "", urlOnly, ret(accepted), false},
		{"supplied answer with no grant", formText, "", "", none, ret(accepted), false},
		{"supplied consent", urlText, "", "", urlOnly, ret(`{"action":"accept"}`), true},
		{"supplied consent without the grant", urlText, "", "", formOnly, ret(`{"action":"accept"}`), false},
		{"supplied answer to a url", urlText, "", "", urlOnly, ret(accepted), false},
		{"denied", formText, "", "", formOnly, deny, true},
		{"denied without the grant", urlText, "", "", formOnly, deny, false},
		{"denied without any block", formText, "", "", nil, deny, false},
		{"a message needs no grant", formText, "", "", nil, &ahp.Notice{Text: "m"}, true},
		{"a modify at the request", formText, "", "", formOnly, content(ahp.OpMerge, `{}`), false},
		{"edited", formText, accepted, "accept", formOnly, content(ahp.OpReplace, `{"name":"y"}`), true},
		{"edited beyond the form", formText, accepted, "accept", formOnly, content(ahp.OpMerge, `{"name":"too long"}`), false},
		{"edited to nothing", formText, accepted, "accept", formOnly, content(ahp.OpReplace, `{}`), false},
		{"edited with a list", formText, accepted, "accept", formOnly, content(ahp.OpMerge, `[]`), false},
		{"edited with nesting", formText, accepted, "accept", formOnly, content(ahp.OpMerge, `{"o":{}}`), false},
		{"edited without the grant", formText, accepted, "accept", urlOnly, content(ahp.OpMerge, `{"name":"y"}`), false},
		{"edited refusal", formText, declined, "decline", formOnly, content(ahp.OpMerge, `{}`), false},
		{"edited cancellation", formText, `{"action":"cancel"}`, "cancel", formOnly, content(ahp.OpMerge, `{}`), false},
		{"edited consent", urlText, `{"action":"accept"}`, "accept", urlOnly, content(ahp.OpMerge, `{}`), false},
		{"a message at a refusal", formText, declined, "decline", none, &ahp.Notice{Text: "m"}, true},
		{"a deny at the result", formText, accepted, "accept", formOnly, deny, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			judged := []ahp.Effect{tt.effect}
			judge := perType(judged, nil)
			if tt.result != "" {
				judge = perType(nil, judged)
			}
			fake := ahptest.NewFake(judge)
			p := party{link: rawLink(judge), subs: []ahp.Subscription{ahptest.Intercept(ahp.FailClosed, time.Minute, "user.*")}}
			h := newHarness(t, harness.Options{}, p, party{link: fake, subs: []ahp.Subscription{ahptest.Observe("*")}})
			e := askEvent("q", tt.request)
			if tt.result != "" {
				send(t, h, e, nil)
				e = answerEvent("q", e.Elicitation.Mode, tt.action, tt.result)
			}
			caps := ahptest.FullCapabilities(e.Type)
			caps.Elicitation = tt.grant
			out := send(t, h, e, caps)
			d := out.Denial()
			if counted := d == nil || !d.Synthetic; counted != tt.counts {
				t.Errorf("counted %v, want %v: %+v", counted, tt.counts, out.Trace)
			}
			if r, ok := tt.effect.(*ahp.Return); ok && tt.counts && (out.Candidate == nil || !out.Candidate.Value.Equal(r.Value)) {
				t.Errorf("candidate %v", out.Candidate)
			}
		})
	}
}

// TestElicitationAdvertisement holds what a backend is told that it may do.
func TestElicitationAdvertisement(t *testing.T) {
	const accepted = `{"action":"accept","content":{"name":"x"}}`
	for _, tt := range []struct {
		name, request, result string
		action                string
		sees                  ahp.Selection
		want                  string
	}{
		{"request", formText, "", "", ahp.SelectBody, "deny,return,message"},
		{"request that the backend can't see", formText, "", "", ahp.SelectOmit, "deny,return,message"},
		{"result", formText, accepted, "accept", ahp.SelectBody, "modify,message"},
		{"result as metadata", formText, accepted, "accept", ahp.SelectMetadata, "message"},
		{"result left out", formText, accepted, "accept", ahp.SelectOmit, "message"},
		{"refusal", formText, `{"action":"decline"}`, "decline", ahp.SelectBody, "message"},
		{"consent", urlText, `{"action":"accept"}`, "accept", ahp.SelectBody, "message"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, fake := elicits(nil)
			p.subs[0].Content["default"] = tt.sees
			h := newHarness(t, harness.Options{}, p)
			e := askEvent("q", tt.request)
			send(t, h, e, nil)
			if tt.result != "" {
				send(t, h, answerEvent("q", e.Elicitation.Mode, tt.action, tt.result), nil)
			}
			requests := fake.Requests()
			caps := requests[len(requests)-1].Capabilities
			var names []string
			for _, n := range caps.Effects {
				names = append(names, string(n))
			}
			if got := strings.Join(names, ","); got != tt.want || (caps.Modify != nil) != strings.Contains(tt.want, "modify") {
				t.Errorf("advertised %s, want %s", got, tt.want)
			}
		})
	}
	// Without the grant of its mode there is nothing but messages.
	for _, e := range []*ahp.Event{askEvent("q", urlText), answerEvent("q", "url", "accept", `{"action":"accept"}`)} {
		p, fake := elicits(nil)
		h := newHarness(t, harness.Options{}, p)
		if e.Type == ahp.UserElicitationResult {
			send(t, h, askEvent("q", urlText), nil)
		}
		caps := ahptest.FullCapabilities(e.Type)
		caps.Elicitation.URL = nil
		send(t, h, e, caps)
		requests := fake.Requests()
		if got := requests[len(requests)-1].Capabilities.Effects; len(got) != 1 || got[0] != ahp.EffectMessage {
			t.Errorf("%s without the grant advertises %q", e.Type, got)
		}
	}
	// Without its own text the harness can't hold an answer against the form.
	p, fake := elicits(nil)
	h := newHarness(t, harness.Options{}, p)
	e := askEvent("q", formText)
	e.Elicitation.Request = nil
	send(t, h, e, nil)
	if caps := fake.Requests()[0].Capabilities; caps.Has(ahp.EffectReturn) || !caps.Has(ahp.EffectDeny) {
		t.Errorf("advertised %q", caps.Effects)
	}
}

// TestElicitationEvaluated holds the grants where the request is somebody else's,
// and nothing has been narrowed.
func TestElicitationEvaluated(t *testing.T) {
	for _, tt := range []struct {
		event  *ahp.Event
		effect ahp.Effect
		grant  *ahp.ElicitationCapability
		layer  string
	}{
		{askEvent("q", formText), &ahp.Deny{Reason: "no"}, &ahp.ElicitationCapability{Form: &ahp.ElicitationMode{}}, ""},
		{askEvent("q", formText), &ahp.Deny{Reason: "no"}, &ahp.ElicitationCapability{}, "capability"},
		{askEvent("q", formText), &ahp.Return{Value: ahp.Raw(`{"action":"decline"}`)}, nil, "capability"},
		{askEvent("q", formText), &ahp.Return{Value: ahp.Raw(`{"action":"accept","content":{}}`)}, &ahp.ElicitationCapability{Form: &ahp.ElicitationMode{}}, "application"},
		{answerEvent("q", "form", "accept", `{"action":"accept","content":{}}`), content(ahp.OpMerge, `{}`), &ahp.ElicitationCapability{URL: &ahp.ElicitationMode{}}, "capability"},
		{answerEvent("q", "form", "accept", `{"action":"accept","content":{}}`), content(ahp.OpMerge, `{"x":"y"}`), &ahp.ElicitationCapability{Form: &ahp.ElicitationMode{}}, ""},
		{answerEvent("q", "form", "decline", `{"action":"decline"}`), content(ahp.OpMerge, `{}`), &ahp.ElicitationCapability{Form: &ahp.ElicitationMode{}}, "capability"},
	} {
		caps := ahptest.FullCapabilities(tt.event.Type)
		caps.Elicitation = tt.grant
		reply, err := ahp.EncodeEffects(ahp.StringID(tt.event.ID), []ahp.Effect{tt.effect})
		if err != nil {
			t.Fatal(err)
		}
		_, err = harness.Evaluate(&ahp.Intercept{Event: tt.event, Capabilities: *caps}, reply)
		var fault *ahp.Error
		got := ""
		if errors.As(err, &fault) {
			got = fault.Kind.Layer()
		}
		if got != tt.layer || (err != nil) != (tt.layer != "") {
			t.Errorf("%s, %s: %v, want the layer %q", tt.event.Type, tt.effect.EffectType(), err, tt.layer)
		}
	}
	bad := answerEvent("q", "form", "decline", `{"action":"accept"}`)
	if _, err := harness.Evaluate(&ahp.Intercept{Event: bad, Capabilities: *ahptest.FullCapabilities(bad.Type)}, nil); err == nil {
		t.Error("a result with two actions was evaluated")
	}
}

func TestElicitationCorrelation(t *testing.T) {
	p, fake := elicits(nil)
	h := newHarness(t, harness.Options{}, p)
	dispatch := func(e *ahp.Event) error {
		_, err := h.Dispatch(t.Context(), e, ahptest.FullCapabilities(e.Type), nil, harness.DispatchOptions{})
		return err
	}
	const accepted = `{"action":"accept","content":{"name":"x"}}`
	if err := dispatch(askEvent("q", formText)); err != nil {
		t.Fatal(err)
	}
	wrong := answerEvent("q", "form", "accept", accepted)
	wrong.Elicitation.Server = "other"
	var fault *ahp.Error
	if err := dispatch(wrong); !errors.As(err, &fault) || fault.Kind != ahp.KindCorrelation {
		t.Errorf("got %v", err)
	}
	if err := dispatch(answerEvent("q", "form", "accept", `{"action":"accept","content":{"name":"too long"}}`)); !errors.As(err, &fault) || fault.Pointer != "/content/name" {
		t.Errorf("got %v", err)
	}
	if err := dispatch(answerEvent("q", "form", "decline", accepted)); !errors.As(err, &fault) || fault.Pointer != "/elicitation/action" {
		t.Errorf("got %v", err)
	}
	badAsk := askEvent("r", formText)
	badAsk.Elicitation.Mode = "url"
	if err := dispatch(badAsk); !errors.As(err, &fault) || fault.Pointer != "/elicitation/mode" {
		t.Errorf("got %v", err)
	}
	if _, err := h.Observe(t.Context(), badAsk); err == nil {
		t.Error("a request with two modes was observed")
	}
	if n := len(fake.Requests()); n != 1 {
		t.Errorf("%d messages left, want the request alone", n)
	}
	if err := dispatch(answerEvent("q", "form", "accept", accepted)); err != nil {
		t.Error(err)
	}
	if err := dispatch(answerEvent("q", "form", "accept", accepted)); err == nil {
		t.Error("the request was answered twice")
	}
	if _, err := h.Observe(t.Context(), answerEvent("unknown", "form", "accept", accepted)); err != nil {
		t.Errorf("an observed result of an unknown request: %v", err)
	}
}

// TestRefusedElicitationsWaitForNothing holds that no refusal leaves a request in
// the table, and that an observed one stays until its result is observed.
func TestRefusedElicitationsWaitForNothing(t *testing.T) {
	var once sync.Once
	ctx, cancel := context.WithCancel(t.Context())
	p, _ := elicits(func(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
		if q.Event.ID == "interrupted" {
			once.Do(cancel)
			return nil, nil
		}
		return []ahp.Effect{&ahp.Deny{Reason: "no"}}, nil
	})
	h := newHarness(t, harness.Options{}, p)
	if out := send(t, h, askEvent("q", formText), nil); out.Denial() == nil {
		t.Fatal("not denied")
	}
	out, err := h.Dispatch(ctx, askEvent("interrupted", formText), ahptest.FullCapabilities(ahp.UserElicitationRequest), nil, harness.DispatchOptions{})
	if err != nil || !out.Interrupted {
		t.Fatalf("%v, %v", out, err)
	}
	if n := h.Elicitations().Len(); n != 0 {
		t.Errorf("%d requests wait", n)
	}
	if _, err := h.Observe(t.Context(), askEvent("o", formText)); err != nil || h.Elicitations().Len() != 1 {
		t.Errorf("%v, %d wait", err, h.Elicitations().Len())
	}
	if _, err := h.Observe(t.Context(), answerEvent("o", "form", "cancel", `{"action":"cancel"}`)); err != nil || h.Elicitations().Len() != 0 {
		t.Errorf("%v, %d wait", err, h.Elicitations().Len())
	}
}

func TestElicitationsAreBounded(t *testing.T) {
	p, _ := elicits(nil)
	h := newHarness(t, harness.Options{}, p)
	for {
		if _, err := h.Elicitations().Add(askEvent(time.Now().String(), formText)); err != nil {
			break
		}
	}
	_, err := h.Dispatch(t.Context(), askEvent("q", formText), ahptest.FullCapabilities(ahp.UserElicitationRequest), nil, harness.DispatchOptions{})
	if !errors.Is(err, elicitation.ErrFull) {
		t.Errorf("got %v", err)
	}
}

// rawLink answers with the judge's effects whether they are advertised or not.
func rawLink(judge ahptest.Judge) transport.Transport {
	return transport.InProcess(func(ctx context.Context, msg []byte) ([]byte, error) {
		q, err := ahp.DecodeRequest(msg)
		if err != nil {
			return nil, err
		}
		in, ok := q.(*ahp.Intercept)
		if !ok {
			return nil, nil
		}
		effects, err := judge(ctx, in)
		if err != nil {
			return nil, err
		}
		return ahp.EncodeEffects(ahp.StringID(in.Event.ID), effects)
	})
}
