package gemini

import (
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/model/modeltest"
)

// converse asks until the script ends and returns the history. It tries once more
// where the endpoint refused what was sent back, as often as it does, and counts that.
func converse(t *testing.T, s *modeltest.Server, c *Client, history []*model.Message) (_ []*model.Message, refusals int) {
	t.Helper()
	for s.Left() > 0 {
		resp, err := c.Stream(t.Context(), request(history...), nil)
		if err != nil {
			me := asError(t, err)
			if me.Kind != model.ErrReplay || !me.Retryable() {
				t.Fatal(err)
			}
			refusals++
			continue
		}
		history = append(append(history, resp.Message), results(resp.Message.ToolCalls())...)
	}
	return history, refusals
}

var thinking = modeltest.Turn{Reasoning: "hm", Calls: richCalls[:2]}

// I156: a session that was begun with one provider goes on with another, whose
// first request a strict server accepts: it sees no signature that isn't its own.
func TestResumingElsewhere(t *testing.T) {
	first := modeltest.NewWith(t, modeltest.Options{SealKey: "a", Turns: []modeltest.Turn{thinking, {Text: "done", Reasoning: "hm"}}})
	history, _ := converse(t, first, newClient(t, first.URL, nil), []*model.Message{user("go")})
	history = append(history, user("more"))
	for name, change := range map[string]func(*Config){
		"another provider": func(cfg *Config) { cfg.Name = "elsewhere" },
		"another model":    func(cfg *Config) { cfg.Model = "gemini-y" },
	} {
		t.Run(name, func(t *testing.T) {
			second := modeltest.NewWith(t, modeltest.Options{SealKey: "b", Turns: []modeltest.Turn{{Text: "ok", Expect: "more"}}})
			if _, refusals := converse(t, second, newClient(t, second.URL, change), history); refusals != 0 {
				t.Errorf("%d requests were refused", refusals)
			}
			if body := string(second.Requests()[0].Body); strings.Contains(body, "thoughtSignature") || strings.Contains(body, `"id"`) || !strings.Contains(body, "result of read") {
				t.Error(body)
			}
		})
	}
	// The sibling: the same provider and model still get theirs.
	again := modeltest.NewWith(t, modeltest.Options{SealKey: "a", NeedReasoning: true, Turns: []modeltest.Turn{{Text: "ok"}}})
	if _, refusals := converse(t, again, newClient(t, again.URL, nil), history); refusals != 0 {
		t.Errorf("%d requests were refused", refusals)
	}
}

// TestAnotherKey: the same names with other credentials don't accept the signatures.
// They are dropped, all at once, and never sent again.
func TestAnotherKey(t *testing.T) {
	first := modeltest.NewWith(t, modeltest.Options{SealKey: "a", Turns: []modeltest.Turn{thinking, thinking}})
	history, _ := converse(t, first, newClient(t, first.URL, nil), []*model.Message{user("go")})
	second := modeltest.NewWith(t, modeltest.Options{SealKey: "b", Turns: []modeltest.Turn{{}, thinking, {Text: "done", Expect: "result of list"}}})
	c := newClient(t, second.URL, nil)
	if _, refusals := converse(t, second, c, history); refusals != 1 {
		t.Errorf("%d requests were refused, want the first alone", refusals)
	}
	if body := string(second.Requests()[2].Body); strings.Count(body, "thoughtSignature") != 1 {
		t.Errorf("want only the new signature: %s", body)
	}
}

// TestCallsOfAnotherModel: a model that wants every step signed gets the word for
// calls that it didn't make, once it has asked for it; its own are signed as they were.
func TestCallsOfAnotherModel(t *testing.T) {
	history := []*model.Message{user("go"),
		assistant(foreign(thought("t"), "anthropic:a/m"), call1("i", "f", "{}"), call1("j", "g", "{}")), tool(result1("i", "f", "x")), tool(result1("j", "g", "y"))}
	s := modeltest.NewWith(t, modeltest.Options{NeedReasoning: true, Turns: []modeltest.Turn{{}, thinking, {Text: "done"}}})
	c := newClient(t, s.URL, nil)
	if _, refusals := converse(t, s, c, history); refusals != 1 {
		t.Errorf("%d requests were refused, want the first alone", refusals)
	}
	body := string(s.Requests()[2].Body)
	if strings.Count(body, "thoughtSignature") != 2 || strings.Count(body, noSignature) != 1 || noSignature != modeltest.UnsignedCall {
		t.Error(body)
	}
}

// TestRefusalsEnd: an endpoint that refuses whatever is sent is not asked for ever.
func TestRefusalsEnd(t *testing.T) {
	for _, frame := range []string{ending("MISSING_THOUGHT_SIGNATURE"), `{"error":{"code":400,"message":"Thought signature is not valid","status":"INVALID_ARGUMENT"}}`} {
		turn := modeltest.Turn{Faults: []modeltest.Fault{modeltest.Raw("text/event-stream", frames(frame))}}
		s := modeltest.New(t, turn, turn, turn, turn)
		c := newClient(t, s.URL, nil)
		history := []*model.Message{user("go"), assistant(sealed(call1("i", "f", "{}"), modeltestSeal(t), "")), tool(result1("i", "f", "x"))}
		var kinds []model.ErrorKind
		for range 3 {
			_, err := c.Stream(t.Context(), request(history...), nil)
			if kinds = append(kinds, asError(t, err).Kind); kinds[len(kinds)-1] == model.ErrRequest {
				break
			}
		}
		if n := len(kinds); kinds[0] != model.ErrReplay || kinds[n-1] != model.ErrRequest {
			t.Errorf("%s: %v, want it refused for good within three requests", frame, kinds)
		}
	}
}

// modeltestSeal returns a signature that the scripted server takes for a call of f.
func modeltestSeal(t *testing.T) string {
	t.Helper()
	s := modeltest.New(t, modeltest.Turn{Reasoning: "r", Calls: []modeltest.Call{{Name: "f", Args: "{}"}}})
	resp, err := newClient(t, s.URL, nil).Stream(t.Context(), request(user("go")), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range resp.Message.Parts {
		if p.ToolCall != nil {
			return p.Seal.Data
		}
	}
	t.Fatal("no call")
	return ""
}
