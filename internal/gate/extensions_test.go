package gate_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/extension"
	"github.com/abhed/abhed/internal/gate"
	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/strictjson"
)

// heard is where a script writes the requests that it reads.
func (r *rig) heard(name, event, reply string, c ...func(*extension.Config)) (extension.Config, func() string) {
	file := filepath.Join(r.t.TempDir(), "heard")
	cfg := r.script(name, `*'"event":"`+event+`"'*) printf '%s\n' "$r" >> '`+file+`'; echo '`+reply+`' ;;`)
	cfg.Events = []string{event}
	for _, f := range c {
		f(&cfg)
	}
	return cfg, func() string {
		b, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			r.t.Fatal(err)
		}
		return string(b)
	}
}

var here = agent.At{TurnID: "t", Turn: 3}

// extended makes the rig's gate one with the extensions, of the agent a1 at depth 1.
func (r *rig) extended(cfgs ...extension.Config) *gate.Gate {
	r.extensions(cfgs...)
	r.opts.Agent = policy.Agent{ID: "a1", Depth: 1}
	r.gate = gate.New(r.opts)
	return r.gate
}

// person is extended for the agent that a person talks to.
func (r *rig) person(cfgs ...extension.Config) *gate.Gate {
	r.extended(cfgs...)
	r.opts.Agent.Depth = 0
	r.gate = gate.New(r.opts)
	return r.gate
}

const whose = `"turn":3,"agent":{"id":"a1","depth":1}`

// TestPromptsPassTheExtensions holds that a refused prompt is in the record as such.
func TestPromptsPassTheExtensions(t *testing.T) {
	r := newRig(t)
	cfg, log := r.heard("guard", "user_prompt_submit", `{"block":true,"reason":"not that"}`)
	if no := r.extended(cfg).Submit(t.Context(), here, "do evil"); no != nil || log() != "" {
		t.Errorf("what a sub-agent is given was asked about: %+v, %s", no, log())
	}
	r = newRig(t)
	cfg, log = r.heard("guard", "user_prompt_submit", `{"block":true,"reason":"not that"}`)
	g := r.person(cfg)
	no := g.Submit(t.Context(), here, "do evil")
	if no == nil || no.By != "extension guard" || no.Reason != "not that" {
		t.Fatalf("%+v", no)
	}
	d := last[*event.HooksDecided](r.log)
	if d.EventType != "user_prompt_submit" || d.EventID != "" || d.Outcome != "denied" || d.By != no.By || d.Reason != "not that" || d.Original != "do evil" || d.Turn != 3 || d.TurnID != "t" {
		t.Errorf("%+v", d)
	}
	if len(d.Asked) != 1 || d.Asked[0].Kind != "extension" || d.Asked[0].Answer != "deny" {
		t.Errorf("%+v", d.Asked)
	}
	if s := log(); !strings.Contains(s, `"turn":3,"agent":{"id":"a1","depth":0}`) || !strings.Contains(s, `"content":"do evil"`) {
		t.Errorf("the extension read %s", s)
	}
}

// TestExtensionsThatSayNothingAreRecorded is the same without an opinion.
func TestExtensionsThatSayNothingAreRecorded(t *testing.T) {
	r := newRig(t)
	g := r.person(r.script("quiet", ""))
	if no := g.Submit(t.Context(), here, "hi"); no != nil {
		t.Fatal(no)
	}
	if d := last[*event.HooksDecided](r.log); d == nil || d.Outcome != "none" || len(d.Asked) != 1 || d.Original != "" {
		t.Errorf("%+v", d)
	}
	messages := conversation()
	kept, no := g.Select(t.Context(), here, messages)
	if no != nil || len(kept) != len(messages) || &kept[0] != &messages[0] {
		t.Errorf("%v %v", kept, no)
	}
	if c, no := g.Compact(t.Context(), here, messages); no != nil || c != (agent.Compaction{}) {
		t.Errorf("%+v %v", c, no)
	}
	if texts, no := g.Begin(t.Context(), here, "sys"); no != nil || texts != nil {
		t.Errorf("%q %v", texts, no)
	}
	if d := last[*event.HooksDecided](r.log); d.EventType != "before_agent_start" || d.Outcome != "none" {
		t.Errorf("%+v", d)
	}
}

// TestNobodyIsAskedWithoutSubscribers holds that nothing is recorded or copied then.
func TestNobodyIsAskedWithoutSubscribers(t *testing.T) {
	r := newRig(t)
	cfg, _ := r.heard("calls", "tool_call", `{}`)
	for _, g := range []*gate.Gate{gate.New(r.opts), r.extended(cfg)} {
		messages := conversation()
		kept, no := g.Select(t.Context(), here, messages)
		if no != nil || &kept[0] != &messages[0] {
			t.Error("the messages are others")
		}
		_, no2 := g.Begin(t.Context(), here, "sys")
		_, no3 := g.Compact(t.Context(), here, messages)
		if no := g.Submit(t.Context(), here, "hi"); no != nil || no2 != nil || no3 != nil {
			t.Error("somebody refused")
		}
		g.Ended(t.Context(), here, agent.ReasonCompleted, "done")
		if g.Wants("user.attention", "observe") {
			t.Error("somebody wants to know")
		}
		if d := last[*event.HooksDecided](r.log); d != nil {
			t.Errorf("recorded %+v", d)
		}
	}
}

// TestSystemTextsAreAdded holds that what is added is in the record.
func TestSystemTextsAreAdded(t *testing.T) {
	r := newRig(t)
	one, log := r.heard("one", "before_agent_start", `{"system":"be kind"}`)
	two, _ := r.heard("two", "before_agent_start", `{"system":"be brief"}`)
	texts, no := r.extended(two, one).Begin(t.Context(), here, "sys")
	if want := []string{"be brief", "be kind"}; no != nil || !slices.Equal(texts, want) {
		t.Errorf("%q %v", texts, no)
	}
	if d := last[*event.HooksDecided](r.log); d.Outcome != "changed" || d.By != "extension two, extension one" || !slices.Equal(d.Injected, texts) {
		t.Errorf("%+v", d)
	}
	if !strings.Contains(log(), `"system":"sys"`) {
		t.Errorf("the extension read %s", log())
	}
}

// TestMessagesAreKeptOut holds which are sent, and that the record names the others.
func TestMessagesAreKeptOut(t *testing.T) {
	r := newRig(t)
	cfg, log := r.heard("trim", "context", `{"keep":[0,2,3]}`)
	messages := conversation()
	kept, no := r.extended(cfg).Select(t.Context(), here, messages)
	if no != nil || len(kept) != 2 || kept[0] != messages[0] || kept[1] != messages[4] {
		t.Errorf("%v %v", kept, no)
	}
	d := last[*event.HooksDecided](r.log)
	if want := []string{"m2", "c1:result", "c2:result"}; d.Outcome != "changed" || d.By != "extension trim" || !slices.Equal(d.LeftOut, want) {
		t.Errorf("%+v", d)
	}
	if !strings.Contains(log(), whose) || len(messages) != 5 {
		t.Errorf("the extension read %s", log())
	}
}

// TestKeptMessagesKeepTheirIDs holds that backends know a message by the same id
// whatever extensions keep out, and so does the record of what backends change.
func TestKeptMessagesKeepTheirIDs(t *testing.T) {
	r := newRig(t)
	cfg, _ := r.heard("trim", "context", `{"keep":[0,4,5]}`)
	r.extensions(cfg)
	fake := r.watched("fail-closed", func(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
		value, err := strictjson.Marshal([]ahp.Message{ahp.TextMessage("x", ahp.RoleUser, "look")})
		return []ahp.Effect{&ahp.Modify{Target: ahp.TargetRequest, Operation: ahp.OpMerge, Value: value}}, err
	})
	messages := append(conversation(), says(event.RoleUser, event.TextPart("and on")))
	kept, no := r.gate.Select(t.Context(), here, messages)
	if no != nil {
		t.Fatal(no)
	}
	say := r.gate.Ask(t.Context(), here, &agent.RequestBefore{Attempt: agent.Attempt{ID: "a", Number: 1}, System: "sys", Messages: kept})
	if say.Request == nil || len(say.Request.Messages) != 4 || say.Request.Messages[1] != messages[4] {
		t.Fatalf("%+v", say)
	}
	var shown, recorded []string
	for _, m := range fake.Requests()[0].Event.Items.Messages {
		shown = append(shown, m.ID)
	}
	for _, item := range last[*event.HooksDecided](r.log).Request {
		recorded = append(recorded, item.ID)
	}
	if want := []string{"system", "m1", "m5", "m6"}; !slices.Equal(shown, want) || !slices.Equal(recorded, append(want, "x")) {
		t.Errorf("backends see %q, recorded %q", shown, recorded)
	}
}

// TestThePersonsMessageStays holds that it is told from what others said in a user's
// message, as it was when it was said or as a backend changed it.
func TestThePersonsMessageStays(t *testing.T) {
	r := newRig(t)
	cfg, _ := r.heard("trim", "context", `{"keep":[]}`)
	r.extensions(cfg)
	g := gate.New(r.opts)
	messages := append(conversation(), says(event.RoleUser, event.TextPart("[abhed] be quick")))
	if no := g.Submit(t.Context(), here, "go on"); no != nil {
		t.Fatal(no)
	}
	if no := g.Submit(t.Context(), here, "not there yet"); no != nil {
		t.Fatal(no)
	}
	if kept, no := g.Select(t.Context(), here, messages); no != nil || len(kept) != 1 || kept[0] != messages[4] {
		t.Errorf("%v %v", kept, no)
	}
	r.watched("fail-closed", func(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
		value, err := strictjson.Marshal(given("go on, slowly"))
		return []ahp.Effect{&ahp.Modify{Target: ahp.TargetPrompt, Operation: ahp.OpReplace, Value: value}}, err
	})
	if say := r.gate.Ask(t.Context(), here, &agent.Inbound{Item: "m6", Text: "be slow"}); say.Refusal != nil {
		t.Fatal(say.Refusal)
	}
	messages = append(conversation(), says(event.RoleUser, event.TextPart("go on, slowly")), says(event.RoleUser, event.TextPart("[abhed] be quick")))
	if kept, no := r.gate.Select(t.Context(), here, messages); no != nil || len(kept) != 1 || kept[0] != messages[5] {
		t.Errorf("%v %v", kept, no)
	}
}

// TestDeadFilterRefusesTheCall holds that what had to be filtered isn't sent unfiltered.
func TestDeadFilterRefusesTheCall(t *testing.T) {
	r := newRig(t)
	cfg := r.script("trim", `*'"context"'*) echo nonsense ;;`)
	cfg.OnFailure = extension.Block
	g := r.extended(cfg)
	for range 2 {
		kept, no := g.Select(t.Context(), here, conversation())
		if kept != nil || no == nil || no.By != "extension trim" || no.Err != nil {
			t.Errorf("%v %+v", kept, no)
		}
		if d := last[*event.HooksDecided](r.log); d.Outcome != "denied" || d.Asked[0].Answer != "failed" || d.LeftOut != nil {
			t.Errorf("%+v", d)
		}
	}
}

// TestCompactionsPassTheExtensions holds both answers.
func TestCompactionsPassTheExtensions(t *testing.T) {
	for reply, want := range map[string]string{`{"cancel":true,"reason":"keep all"}`: "denied", `{"summary":"in short"}`: "supplied"} {
		r := newRig(t)
		cfg, log := r.heard("short", "before_compact", reply)
		c, no := r.extended(cfg).Compact(t.Context(), here, conversation())
		if no != nil || c.By != "short" || c.Cancel != (want == "denied") || (c.Summary != nil) != (want == "supplied") || c.Summary != nil && *c.Summary != "in short" {
			t.Errorf("%s: %+v %v", reply, c, no)
		}
		if d := last[*event.HooksDecided](r.log); d.EventType != "before_compact" || d.Outcome != want || d.By != "extension short" {
			t.Errorf("%s: %+v", reply, d)
		}
		if !strings.Contains(log(), `"messages":[{"index":0`) {
			t.Errorf("the extension read %s", log())
		}
	}
}

// TestEndsAreTold holds that a sub-agent's end isn't taken for the session's turn end.
func TestEndsAreTold(t *testing.T) {
	for depth, want := range []string{"turn_end", "subagent_end"} {
		r := newRig(t)
		turn, turns := r.heard("turns", "turn_end", `{}`)
		sub, subs := r.heard("subs", "subagent_end", `{}`)
		r.extensions(turn, sub)
		r.opts.Agent.Depth = depth
		gate.New(r.opts).Ended(t.Context(), here, agent.ReasonCompleted, "all done")
		r.opts.Extensions.SessionEnd(t.Context(), "x")
		r.opts.Extensions.Close()
		told, other := turns(), subs()
		if want == "subagent_end" {
			told, other = other, told
		}
		if !strings.Contains(told, `"content":"all done"`) || other != "" {
			t.Errorf("depth %d: %q, and the others %q", depth, told, other)
		}
	}
}

// TestEndedContextRefuses holds that a cancelled run gets no answer.
func TestEndedContextRefuses(t *testing.T) {
	r := newRig(t)
	g := r.person(r.script("quiet", ""))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, begin := g.Begin(ctx, here, "sys")
	_, sel := g.Select(ctx, here, conversation())
	_, comp := g.Compact(ctx, here, conversation())
	for i, no := range []*agent.Refusal{g.Submit(ctx, here, "hi"), begin, sel, comp} {
		if no == nil || !no.Interrupted {
			t.Errorf("%d: %+v", i, no)
		}
	}
}

// TestUnrecordedAskingRefuses lets the record fail where an asking is to be written.
func TestUnrecordedAskingRefuses(t *testing.T) {
	r := newRig(t)
	g := r.person(r.script("all", `*'"context"'*) echo '{"keep":[]}' ;;
*'"before_compact"'*) echo '{"summary":"x"}' ;;
*'"before_agent_start"'*) echo '{"system":"x"}' ;;`))
	r.log.fail = func(p event.Payload) error {
		if p.Type() == event.TypeHooksDecided {
			return errors.New("disk full")
		}
		return nil
	}
	texts, begin := g.Begin(t.Context(), here, "sys")
	kept, sel := g.Select(t.Context(), here, conversation())
	c, comp := g.Compact(t.Context(), here, conversation())
	if texts != nil || kept != nil || c != (agent.Compaction{}) {
		t.Errorf("%v %v %v", texts, kept, c)
	}
	for i, no := range []*agent.Refusal{g.Submit(t.Context(), here, "hi"), begin, sel, comp} {
		if no == nil || no.Err == nil {
			t.Errorf("%d: %+v", i, no)
		}
	}
}

// TestPeopleAreWanted holds that extensions are told when a person is wanted, and
// which tool it is about; with backends or without.
func TestPeopleAreWanted(t *testing.T) {
	for _, backends := range []bool{false, true} {
		r := newRig(t)
		cfg, log := r.heard("bell", "notification", `{}`)
		r.extensions(cfg)
		r.opts.Approver = &person{answer: yes}
		var fake *ahptest.Fake
		if backends {
			fake = r.watched("fail-open", nil)
		} else {
			r.gate = gate.New(r.opts)
		}
		if !r.gate.Wants("user.attention", "observe") {
			t.Error("nobody wants to know")
		}
		r.gate.Tell(t.Context(), here, &agent.Attention{Kind: "idle", Title: "Done", Message: "your turn"})
		r.runs("bash", `{"command":"make"}`)
		r.opts.Extensions.Close()
		lines := strings.Split(strings.TrimSpace(log()), "\n")
		if len(lines) != 2 || !strings.Contains(lines[0], `"content":"Done: your turn"`) || strings.Contains(lines[0], `"tool"`) || !strings.Contains(lines[1], `"tool":"bash"`) {
			t.Errorf("backends %t: the extension read %q", backends, lines)
		}
		if fake != nil {
			if e := seen(t, fake, "user.attention"); e.Attention.Kind == "approval" && !strings.Contains(*e.Attention.Title[0].Text, "bash") {
				t.Errorf("%+v", e.Attention)
			}
		}
	}
}
