package anthropic

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/model/modeltest"
	"github.com/abhed/abhed/internal/strictjson"
)

// TestI154ThinkingComesBackUnchanged plays a session of thirty turns with an interrupted
// call, a resumed history and later messages that are edited against a server that takes only the
// thinking that it signed.
func TestI154ThinkingComesBackUnchanged(t *testing.T) {
	const turns = 30
	o := modeltest.Options{NeedReasoning: true}
	for i := range turns {
		turn := modeltest.Turn{Reasoning: "because é\u2028<&> \U0001f600" + strings.Repeat(" ", i), Text: "I read.", Calls: []modeltest.Call{{ID: fmt.Sprint("c", i), Name: "read", Args: "{}"}}}
		if i == turns/2 {
			cut := turn
			cut.Faults = []modeltest.Fault{modeltest.CutAt(900)}
			o.Turns = append(o.Turns, cut)
		}
		o.Turns = append(o.Turns, turn)
	}
	s := modeltest.NewWith(t, o)
	c := newClient(t, s.URL, func(cfg *Config) { cfg.Sampling = map[string]any{"thinking_budget": 2000} })
	history := []*model.Message{user("go")}
	cuts := 0
	for n := 0; s.Left() > 0; n++ {
		switch n {
		case 10: // another process takes the session over
			c = newClient(t, s.URL, func(cfg *Config) { cfg.Sampling = map[string]any{"thinking_budget": 2000} })
			for i, m := range history {
				history[i] = &model.Message{Role: m.Role, Parts: slices.Clone(m.Parts)}
			}
		case 20: // and something is said in between
			history = append(history, user("go on"))
		case 25: // and a result that was given is written anew
			for i, m := range history[30:] {
				if m.Role == "tool" {
					edited := *m.Parts[0].ToolResult
					edited.Content = "edited"
					history[30+i] = tool(model.Part{ToolResult: &edited})
					break
				}
			}
		}
		resp, err := c.Stream(t.Context(), request(history...), nil)
		if err != nil {
			if asError(t, err).Kind != model.ErrCut {
				t.Fatal(err)
			}
			cuts++
			continue
		}
		history = append(history, resp.Message, results(resp.Message.ToolCalls()))
	}
	last := s.Requests()[turns]
	if cuts != 1 || strings.Count(string(last.Body), `"signature"`) != turns-1 || strings.Count(string(last.Body), `"edited"`) != 1 || !strings.Contains(string(last.Body), `"thinking":{"type":"enabled"`) {
		t.Errorf("%d cuts, last request %s", cuts, last.Body)
	}
}

// TestI154RefusedThinkingIsDroppedOnce has a server that doesn't know the signatures of
// the history, as after a change of the account.
func TestI154RefusedThinkingIsDroppedOnce(t *testing.T) {
	s := modeltest.NewWith(t, modeltest.Options{SealKey: "new", Turns: []modeltest.Turn{{}, {Reasoning: "new", Calls: richCalls[:1]}, {Text: "done"}}})
	c := newClient(t, s.URL, func(cfg *Config) { cfg.Sampling = map[string]any{"thinking_budget": 2000} })
	history := []*model.Message{user("go"), assistant(thought("old", "b2xk"), call1("i", "read", "{}")), tool(result1("i", "r"))}
	_, err := c.Stream(t.Context(), request(history...), nil)
	if me := asError(t, err); me.Kind != model.ErrReplay || !me.Retryable() || me.Status != 400 {
		t.Fatal(err)
	}
	resp, err := c.Stream(t.Context(), request(history...), nil)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(resp.Note, "thinking was left off") {
		t.Errorf("note %q", resp.Note)
	}
	history = append(history, resp.Message, results(resp.Message.ToolCalls()))
	if _, err := c.Stream(t.Context(), request(history...), nil); err != nil {
		t.Fatal(err)
	}
	last := string(s.Requests()[2].Body)
	if strings.Contains(last, "b2xk") || strings.Contains(last, `"old"`) || !strings.Contains(last, `"thinking":"new"`) {
		t.Error(last)
	}
}

// TestRefusalsOfThinking holds which refusals make the client drop its seals, and that
// it does so no second time.
func TestRefusalsOfThinking(t *testing.T) {
	for message, want := range map[string]model.ErrorKind{
		"messages.1.content.0: Invalid `signature` in `thinking` block":                                                                    model.ErrReplay,
		"messages.1.content.0: Invalid `data` in `redacted_thinking` block":                                                                model.ErrReplay,
		"messages.1.content.0.thinking.signature: Field required":                                                                          model.ErrReplay,
		"messages.5.content.1: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.":               model.ErrReplay,
		"messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, ...":     model.ErrReplay,
		"`max_tokens` must be greater than `thinking.budget_tokens`":                                                                       model.ErrRequest,
		"prompt is too long: 210000 tokens > 200000 maximum":                                                                               model.ErrOverflow,
		"input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000, decrease input length or `max_tokens` and try again": model.ErrOverflow,
	} {
		body, err := strictjson.Marshal(map[string]any{"type": "error", "error": map[string]any{"type": "invalid_request_error", "message": message}})
		if err != nil {
			t.Fatal(err)
		}
		fault := []modeltest.Fault{modeltest.Status(400, string(body))}
		inStream := []modeltest.Fault{modeltest.ErrorFrame(1, string(body))}
		s := modeltest.New(t, modeltest.Turn{Faults: fault}, modeltest.Turn{Faults: fault}, modeltest.Turn{Faults: inStream})
		c := newClient(t, s.URL, nil)
		ms := []*model.Message{user("a"), assistant(redacted("r"), thought("t", "s"), say("b")), user("c")}
		// The server must not see the seals; this test is of what the client makes of its
		// answers.
		c.seals.Origin = "anthropic:another/model"
		for _, m := range ms {
			for i := range m.Parts {
				if m.Parts[i].Seal != nil {
					m.Parts[i].Seal.Kind, m.Parts[i].Seal.Origin = "unsent", c.seals.Origin
				}
			}
		}
		for i, kind := range []model.ErrorKind{want, want, want} {
			if i > 0 && want == model.ErrReplay {
				kind = model.ErrRequest // there is nothing left to drop
			}
			_, err := c.Stream(t.Context(), request(ms...), nil)
			if me := asError(t, err); me.Kind != kind {
				t.Errorf("%s (%d): %v", message, i, err)
			}
		}
	}
}

// TestI156AnotherProvidersThinking resumes a session of one provider with another, and
// with another model of the same.
func TestI156AnotherProvidersThinking(t *testing.T) {
	a := modeltest.NewWith(t, modeltest.Options{SealKey: "a", Turns: []modeltest.Turn{{Reasoning: "mine", Text: "hi", Calls: richCalls[:1]}}})
	history := []*model.Message{user("go")}
	resp, err := newClient(t, a.URL, nil).Stream(t.Context(), request(history...), nil)
	if err != nil {
		t.Fatal(err)
	}
	history = append(history, resp.Message, results(resp.Message.ToolCalls()))
	for name, change := range map[string]func(*Config){
		"provider": func(cfg *Config) { cfg.Name = "other" },
		"model":    func(cfg *Config) { cfg.Model = "m2" },
	} {
		b := modeltest.NewWith(t, modeltest.Options{SealKey: "b", Turns: []modeltest.Turn{{Text: "done"}}})
		c := newClient(t, b.URL, func(cfg *Config) {
			cfg.Sampling = map[string]any{"thinking_budget": 2000}
			change(cfg)
		})
		if _, err := c.Stream(t.Context(), request(history...), nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if body := string(b.Requests()[0].Body); strings.Contains(body, "mine") || strings.Contains(body, "signature") || !strings.Contains(body, `"hi"`) {
			t.Errorf("%s: %s", name, body)
		}
	}
}

// TestNoSealWhereCharactersWereReplaced has a frame whose half character can't be
// joined, since it holds one of those that stand for halves.
func TestNoSealWhereCharactersWereReplaced(t *testing.T) {
	in := events(msgStart, blockStart(0, `{"type":"thinking","thinking":"`+"\U0010f9ff"+` \ud83d","signature":"s"}`), blockStop(0), blockStart(1, `{"type":"text","text":"x"}`), blockStop(1), ending("end_turn"), msgStop)
	resp, err := streamBytes(t, strings.NewReader(in), nil)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]model.Part{thought("\U0010f9ff \ufffd", ""), say("x")}, resp.Message.Parts); d != "" || !strings.Contains(resp.Note, "half characters") {
		t.Error(d, resp.Note)
	}
}

// TestSealsOfAReply holds what of the thinking can be sent back.
func TestSealsOfAReply(t *testing.T) {
	in := events(msgStart,
		blockStart(0, `{"type":"thinking","thinking":"","signature":""}`), blockDelta(0, `{"type":"signature_delta","signature":"a"}`), blockDelta(0, `{"type":"signature_delta","signature":"b"}`), blockStop(0),
		blockStart(1, `{"type":"redacted_thinking","data":"blob"}`), blockStop(1),
		blockStart(2, `{"type":"thinking","thinking":"unsigned"}`), blockStop(2),
		blockStart(3, `{"type":"thinking","thinking":"half \ud83d","signature":"s"}`), blockStop(3),
		blockStart(4, `{"type":"text","text":""}`), blockStop(4),
		blockStart(5, `{"type":"text","text":"x"}`), blockStop(5), ending("end_turn"), msgStop)
	resp, err := streamBytes(t, strings.NewReader(in), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []model.Part{thought("", "ab"), redacted("blob"), thought("unsigned", ""), thought("half \ufffd", ""), say("x")}
	if d := cmp.Diff(want, resp.Message.Parts); d != "" {
		t.Error(d)
	}
}
