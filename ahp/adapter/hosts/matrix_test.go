package hosts_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/adaptertest"
	"github.com/abhed/abhed/ahp/adapter/hosts"
	"github.com/abhed/abhed/internal/require"
	"github.com/abhed/abhed/internal/strictjson"
)

// calls are what most policies are about.
func calls() []adapter.Call {
	return []adapter.Call{
		{ID: "1", Name: "bash", Input: ahp.Raw(`{"command":"rm -rf /","timeout":5}`)},
		{ID: "2", Name: "write", Input: ahp.Raw(`{"file_path":"/repo/a","content":"x"}`)},
		{ID: "3", Name: "edit", Input: ahp.Raw(`{"file_path":"/repo/a","old_string":"x","new_string":"y"}`)},
		{ID: "4", Name: "mcp__demo__echo", Input: ahp.Raw(`{"text":"hi"}`), MCP: adapter.InferMCP("demo", "echo")},
	}
}

// answer is one answer of one host at one event.
type answer struct {
	host *adapter.Host
	row  *adapter.Row
	*adaptertest.Case
	verdict *adapter.Verdict
	data    []byte
}

func (a *answer) String() string {
	return fmt.Sprintf("%s, %s, %s: %q", a.host.Name, a.row.Native, a.Name, a.data)
}

// each calls f for every answer: all hosts, events and outcomes. call is what an event
// about a tool is of.
func each(t *testing.T, call adapter.Call, f func(a *answer)) {
	t.Helper()
	asked := 0
	for _, h := range hosts.All() {
		for i := range h.Rows {
			r := &h.Rows[i]
			e := adaptertest.Event(r, call)
			for _, c := range adaptertest.Cases(e) {
				v := adapter.Settle(e, c.Outcome, adaptertest.Texts())
				data, err := h.Write(e, v)
				if err != nil {
					t.Errorf("%s, %s, %s: %v", h.Name, r.Native, c.Name, err)
				}
				asked++
				f(&answer{h, r, &c, v, data})
			}
		}
	}
	if asked < 100 {
		t.Errorf("%d answers were looked at: the matrix is empty", asked)
	}
}

func isCall(t ahp.EventType) bool { return t == ahp.ToolBefore || t == ahp.ToolPermissionRequest }

// I025: a refusal given on two channels was taken for a broken hook, and the file was
// written. So it is given on one: what the exit code says no document contradicts.
func TestI025DenyOnOneChannel(t *testing.T) {
	t.Parallel()
	first := map[string]string{}
	for _, call := range calls() {
		refused := 0
		each(t, call, func(a *answer) {
			if a.Name != "deny" || !a.row.Denies() {
				return
			}
			refused++
			d := a.host.Delivery(a.row)
			switch {
			case a.verdict.Deny == "" || strings.TrimSpace(string(a.data)) == "":
				t.Errorf("%v is no refusal", a)
			case d.Exit == 0 && d.Stream == adapter.Stderr:
				t.Errorf("%v: exit code 0, and nothing on standard output: that is a pass", a)
			case d.Exit != 0 && d.Exit != 2:
				t.Errorf("%v: exit code %d is a broken hook to most hosts", a, d.Exit)
			case strings.Contains(string(a.data), `"allow"`):
				t.Errorf("%v refuses and permits", a)
			}
			key := a.host.Name + ", " + a.row.Native
			if was, seen := first[key]; seen && was != string(a.data) {
				t.Errorf("%v depends on the tool: for another it is %q", a, was)
			}
			first[key] = string(a.data)
		})
		if refused < len(hosts.All()) {
			t.Errorf("%s: %d refusals of %d hosts: each can refuse somewhere", call.Name, refused, len(hosts.All()))
		}
	}
}

// I032: a host that ignores a rewrite would run the original. There the call is refused,
// and the refusal says what the policy wants instead.
func TestI032RewriteThatTheHostIgnores(t *testing.T) {
	t.Parallel()
	native, stood := 0, 0
	each(t, calls()[0], func(a *answer) {
		if !isCall(a.row.Type) || !strings.HasPrefix(a.Name, "modify") {
			return
		}
		m := a.row.Find(ahp.EffectModify, "")
		input := string(a.Outcome.Event.Tool.Input)
		removal := a.Name == "modify by a removal"
		switch {
		case m != nil && m.How == adapter.Native && !(m.Merges && removal) && a.verdict.Deny == "":
			native++
			if string(a.verdict.Input) != input || !strings.Contains(string(a.data), `"true"`) && !strings.Contains(string(a.data), `\"true\"`) {
				t.Errorf("%v lacks the rewritten input %s", a, input)
			}
		case !a.row.Denies():
			if !slices.Contains(a.verdict.Lost, ahp.EffectModify) || m != nil {
				t.Errorf("%v: nothing stands in for the rewrite, and nobody is told", a)
			}
		case a.verdict.Deny == "" || a.verdict.Input != nil:
			t.Errorf("%v lets the original run", a)
		case a.Name != "modify and ask" && !strings.Contains(a.verdict.Deny, input):
			t.Errorf("%v doesn't say what the policy wants: %s", a, input)
		default:
			stood++
		}
	})
	if native == 0 || stood == 0 {
		t.Errorf("%d rewrites and %d refusals: both kinds of host exist", native, stood)
	}
}

// I037: a refusal in the form of a tool's event does nothing at the end of a turn. What
// is asked there is said in the event's own form, or it is reported.
func TestI037StopInItsOwnForm(t *testing.T) {
	t.Parallel()
	goesOn := 0
	each(t, calls()[0], func(a *answer) {
		if a.row.Type != ahp.TurnFinishBefore {
			return
		}
		can := a.row.Find(ahp.EffectFlow, ahp.FlowContinue) != nil
		silent := strings.TrimSpace(string(a.data)) == "" || string(a.data) == string(a.host.Blank(a.row.Native))
		switch {
		case strings.Contains(string(a.data), "permissionDecision") && a.host.Name != "kimi": // whose package reads the same document at both
			t.Errorf("%v has the form of a tool's event", a)
		case a.Name == "continue" && can:
			goesOn++
			if silent || !strings.Contains(string(a.data), "run the tests") {
				t.Errorf("%v doesn't go on", a)
			}
		case a.Name == "continue":
			if !silent || !slices.Contains(a.verdict.Lost, ahp.EffectFlow) {
				t.Errorf("%v: the host can't go on, and nobody is told: lost %v", a, a.verdict.Lost)
			}
		case a.Name == "deny" && !a.row.Denies():
			if len(a.verdict.Lost) == 0 && len(a.verdict.Stood) == 0 {
				t.Errorf("%v: a refusal vanishes", a)
			}
		}
	})
	if goesOn < 4 {
		t.Errorf("%d events go on: Claude Code alone has two", goesOn)
	}
}

// I039: a host that acts on a refusal alone. The table of abilities decides, and nothing
// else: this host exists nowhere.
func TestI039HostThatOnlyRefuses(t *testing.T) {
	t.Parallel()
	row := &adapter.Row{Native: "before", Type: ahp.ToolBefore, Can: []adapter.Ability{
		{Effect: ahp.EffectDeny, How: adapter.Native, Level: adapter.Enforced},
		{Effect: ahp.EffectAsk, How: adapter.Denies, Level: adapter.Enforced}, {Effect: ahp.EffectModify, How: adapter.Denies, Level: adapter.Enforced},
	}}
	e := adaptertest.Event(row, calls()[0])
	want := map[string]string{
		"pass": "", "allow": "", "say": "", "inject": "", "inject and say": "", "deny": "policy X: no", "deny and say": "policy X: no", "interrupted": "policy X: no",
		"ask": "policy X: may it?", "modify and ask": "policy X: may it?", "stop": "enough",
		"modify": `{"command":"true","timeout":5}`, "modify by a removal": `{"command":"true"}`, "return": `"instead"`,
	}
	for _, c := range adaptertest.Cases(e) {
		text, known := want[c.Name]
		v := adapter.Settle(e, c.Outcome, adaptertest.Texts())
		switch {
		case !known:
			t.Errorf("%s: the test doesn't know this case", c.Name)
		case (v.Deny == "") != (text == "") || !strings.Contains(v.Deny, text):
			t.Errorf("%s: the refusal is %q, expected %q in it", c.Name, v.Deny, text)
		case v.Ask != "" || v.Input != nil || v.Stop != "" || len(v.Context) > 0 || len(v.Notices) > 0:
			t.Errorf("%s: the host knows a refusal alone, and is told %+v", c.Name, *v)
		}
	}
	if c := row.Capabilities(0); !c.Has(ahp.EffectAsk) || !c.Has(ahp.EffectModify) || c.Has(ahp.EffectInject) || c.Has(ahp.EffectFlow) {
		t.Errorf("advertised are %v: what a refusal stands in for, and nothing else", c.Effects)
	}
}

// I043: a host that reads all of a hook's output as JSON broke on plain text. What is
// added at the start of a session has each host's own envelope.
func TestI043ContextInTheEnvelope(t *testing.T) {
	t.Parallel()
	const text = "<ctx>hi</ctx>"
	wrapped := 0
	for _, h := range hosts.All() {
		for i := range h.Rows {
			r := &h.Rows[i]
			if r.Type != ahp.SessionStart || r.Find(ahp.EffectInject, "") == nil {
				continue
			}
			e := adaptertest.Event(r, adapter.Call{})
			o := &ahp.Outcome{Event: e.AHP, Permission: ahp.PermissionNone, Injections: []*ahp.Inject{{DeliverAt: ahp.DeliverNow, Messages: []ahp.Message{ahp.TextMessage("m", ahp.RoleUser, text)}}}}
			data, err := h.Write(e, adapter.Settle(e, o, adaptertest.Texts()))
			if err != nil {
				t.Fatal(err)
			}
			if string(data) == text {
				t.Logf("%s takes plain text", h.Name)
				continue
			}
			wrapped++
			data = document(h, data)
			if err := strictjson.Check(data, strictjson.Options{}); err != nil || !holds(data, text) {
				t.Errorf("%s: %s is neither the text nor a document that holds it: %v", h.Name, data, err)
			}
		}
	}
	if wrapped < 4 {
		t.Errorf("%d hosts have an envelope: those of Claude Code, Codex, Gemini and Qwen are known", wrapped)
	}
}

// holds reports whether a member of the document is text, or has it as a line.
func holds(data []byte, text string) bool {
	var members map[string]ahp.Raw
	if !ahp.Raw(data).IsObject() || strictjson.Unmarshal(data, &members, strictjson.Options{}) != nil {
		return false
	}
	for _, v := range members {
		if slices.Contains(strings.Split(adapter.Show(v), "\n"), text) || holds(v, text) {
			return true
		}
	}
	return false
}

// I046: a member that is fine for one host voids the answer of another. The list of
// each event's members stands beside each adapter, whose own test looks for others; here
// it is held that no event of any host is left out of that test, and what all lists have
// in common.
func TestI046MembersOfEachEvent(t *testing.T) {
	t.Parallel()
	each(t, calls()[0], func(a *answer) {
		doc := document(a.host, a.data)
		if len(doc) == 0 || doc[0] != '{' {
			return
		}
		if err := strictjson.Check(doc, strictjson.Options{}); err != nil {
			t.Errorf("%v is no document: %v", a, err)
		}
		for _, empty := range []string{":null", `:""`, "\n", "\ufeff"} {
			if strings.Contains(string(a.data), empty) {
				t.Errorf("%v holds %q", a, empty)
			}
		}
		// One host spells the event in two ways, of which a refusal has both.
		if name, text := `"hookeventname":`, strings.ToLower(string(a.data)); strings.Contains(text, name) && !strings.Contains(text, name+`"`+strings.ToLower(a.row.Native)+`"`) {
			t.Errorf("%v names another event", a)
		}
	})
	for _, h := range hosts.All() {
		file := filepath.Join(require.Root(t), "ahp", "adapter", folder(h.Name), "testdata", "write.golden")
		data, err := os.ReadFile(file)
		if err != nil {
			t.Errorf("%s: its package isn't held against its own list: %v", h.Name, err)
			continue
		}
		for i := range h.Rows {
			if line := fmt.Sprintf("== %s, %s\n", h.Rows[i].Native, h.Rows[i].Type); !strings.Contains(string(data), line) {
				t.Errorf("%s: %s isn't in %s", h.Name, strings.TrimSpace(line), file)
			}
		}
	}
}

// document returns an answer without the mark in front by which Cline finds it.
func document(h *adapter.Host, data []byte) []byte {
	if h.Name == "cline" {
		data = bytes.TrimPrefix(data, []byte("HOOK_CONTROL\t"))
	}
	return data
}

// folder returns the folder of a host's package.
func folder(host string) string {
	if host == "continue" {
		return "continuecli"
	}
	return strings.ReplaceAll(host, "-", "")
}
