package gate_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/ahp/transport"
	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/extension"
	"github.com/abhed/abhed/internal/gate"
	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/strictjson"
)

// tableVar names the file that tells an extension of the property test what to
// answer; the test binary is the extension when it is set.
const tableVar = "GATE_TEST_TABLE"

// table holds replies by the extension's name and the command that it is asked
// about. It is read anew for each request.
type table map[string]map[string]string

// extensionMain is an extension that answers from the table.
func extensionMain(file, name string) {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var q struct {
			Event string `json:"event"`
			Args  struct {
				Command string `json:"command"`
			} `json:"args"`
		}
		reply := "{}"
		if strictjson.Unmarshal(line, &q, strictjson.Options{}) == nil && q.Event == "tool_call" {
			var t table
			if data, err := os.ReadFile(file); err == nil && strictjson.Unmarshal(data, &t, strictjson.Options{}) == nil {
				if r, ok := t[name][q.Args.Command]; ok {
					reply = r
				}
			}
		}
		fmt.Println(reply)
	}
}

var commands = []string{"good", "fine", "bad", "worse", "odd"}

func anyReply(t *rapid.T, label string) string {
	args := `{"args":{"command":"` + rapid.SampledFrom(commands).Draw(t, label+" command") + `"}}`
	return rapid.SampledFrom([]string{
		`{}`, `{}`, `{}`, args, args,
		`{"block":true,"reason":"no"}`, `{"ask":true}`,
		`{"allow":true,"block":null,"decision":"allow","permission":"allow"}`, `{"block":false,"ask":false}`,
	}).Draw(t, label)
}

// orders are the permutations of three extensions.
var orders = [][]string{{"a", "b", "c"}, {"a", "c", "b"}, {"b", "a", "c"}, {"b", "c", "a"}, {"c", "a", "b"}, {"c", "b", "a"}}

// TestLoadOrderChangesNothing holds, for random replies of three extensions, that
// every load order gives the same verdict and the same arguments, and that no
// reply makes the verdict less strict than the rules alone.
func TestLoadOrderChangesNothing(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "table.json")
	lists := policy.RuleLists{Deny: rules("bash(bad*)"), Ask: rules("bash(odd*)")}
	var rigs []*rig
	for _, order := range orders {
		r := newRig(t)
		r.env.Mode, r.rules = policy.ModeBypass, lists
		var cfgs []extension.Config
		for _, name := range order {
			cfgs = append(cfgs, extension.Config{Name: name, Command: self, Args: []string{name}, Env: []string{tableVar + "=" + file}, Events: []string{"tool_call"}})
		}
		r.extensions(cfgs...)
		rigs = append(rigs, r)
	}
	alone := newRig(t)
	alone.env.Mode, alone.rules = policy.ModeBypass, lists
	rapid.Check(t, func(rt *rapid.T) {
		tab := table{}
		for _, name := range orders[0] {
			tab[name] = map[string]string{}
			for _, c := range commands {
				tab[name][c] = anyReply(rt, name+" on "+c)
			}
		}
		data, err := strictjson.Marshal(tab)
		if err == nil {
			err = os.WriteFile(file, data, 0o600)
		}
		if err != nil {
			rt.Fatal(err)
		}
		args := `{"command":"` + rapid.SampledFrom(commands).Draw(rt, "the model's command") + `"}`
		alone.judge("bash", args)
		floor := policy.ParseVerdict(last[*event.Decision](alone.log).Verdict)
		var first *event.Decision
		for _, r := range rigs {
			r.judge("bash", args)
			d := last[*event.Decision](r.log)
			if policy.ParseVerdict(d.Verdict) < floor {
				rt.Fatalf("verdict %s with extensions, %s without", d.Verdict, floor)
			}
			if first == nil {
				first = d
			}
			if d.Verdict != first.Verdict || d.Outcome != first.Outcome || string(d.Final) != string(first.Final) || d.Reason != first.Reason {
				rt.Fatalf("load orders disagree:\n%s %s %s (%s)\n%s %s %s (%s)", first.Verdict, first.Outcome, first.Final, first.Reason, d.Verdict, d.Outcome, d.Final, d.Reason)
			}
		}
	})
}

// idMark stands for the request's id in a reply.
const idMark = "ID"

// anyBackendReply is something that a backend may write; "" is nothing.
func anyBackendReply(t *rapid.T, label string) string {
	effects := rapid.SliceOfN(rapid.SampledFrom([]string{
		`{"type":"allow"}`, `{"type":"ask"}`, `{"type":"deny","reason":"no"}`, `{"type":"message","text":"hi"}`,
		`{"type":"modify","target":"input","operation":"merge","value":{"command":"good"}}`,
		`{"type":"modify","target":"input","operation":"replace","value":{"command":"bad"}}`,
		`{"type":"modify","target":"input","operation":"replace","value":{"cmd":1}}`,
		`{"type":"return","value":"as if"}`, `{"type":"flow","operation":"stop","reason":"enough"}`, `{"type":"permit"}`,
	}), 0, 3).Draw(t, label)
	list := ""
	for i, e := range effects {
		if i > 0 {
			list += ","
		}
		list += e
	}
	return rapid.SampledFrom([]string{
		`{"jsonrpc":"2.0","id":"ID","result":{"protocolVersion":"draft","effects":[` + list + `]}}`,
		`{"jsonrpc":"2.0","id":"ID","result":{"protocolVersion":"draft","effects":[` + list + `],"permission":"allow"}}`,
		`{"jsonrpc":"2.0","id":"ID","error":{"code":1,"message":"allow"}}`,
		`{"allow":true}`, ``,
	}).Draw(t, label+" form")
}

// TestBackendsNeverPermit holds that no reply of any backend, under either failure
// policy, makes a verdict less strict, and that "allow" is never taken.
func TestBackendsNeverPermit(t *testing.T) {
	lists := policy.RuleLists{Deny: rules("bash(bad*)"), Ask: rules("bash(odd*)")}
	alone := newRig(t)
	alone.env.Mode, alone.rules = policy.ModeBypass, lists
	rapid.Check(t, func(rt *rapid.T) {
		r := newRig(t)
		r.env.Mode, r.rules = policy.ModeBypass, lists
		replies := map[string][]string{} // drawn before, because the handlers run in other goroutines
		for _, id := range []string{"org.test.one", "org.test.two"} {
			for i := range 3 {
				replies[id] = append(replies[id], anyBackendReply(rt, fmt.Sprint(id, " ", i)))
			}
		}
		var mu sync.Mutex
		close := r.backends(rt, func(_ context.Context, backend string, q *ahp.Intercept) ([]byte, error) {
			mu.Lock()
			defer mu.Unlock()
			list := replies[backend]
			if len(list) == 0 || list[0] == "" {
				return nil, &ahp.Failure{Class: ahp.FailConnect, Detail: "gone"}
			}
			replies[backend] = list[1:]
			return []byte(strings.Replace(list[0], idMark, q.Event.ID, 1)), nil
		}, rapid.SampledFrom([]string{"fail-open", "fail-closed"}).Draw(rt, "policy"))
		defer close()
		args := `{"command":"` + rapid.SampledFrom(commands).Draw(rt, "command") + `"}`
		alone.judge("bash", args)
		floor := policy.ParseVerdict(last[*event.Decision](alone.log).Verdict)
		ruling := r.judge("bash", args)
		d := last[*event.Decision](r.log)
		if policy.ParseVerdict(d.Verdict) < floor {
			rt.Fatalf("verdict %s with backends, %s without", d.Verdict, floor)
		}
		switch ruling.(type) {
		case *agent.Run, *agent.Supplied:
			if floor != policy.Allow {
				rt.Fatalf("%s though the rules say %s", show(ruling), floor)
			}
		}
	})
}

// backends connects two in-process backends, each with one interceptor of
// tool.before.
func (r *rig) backends(t interface{ Fatal(...any) }, answer func(ctx context.Context, backend string, q *ahp.Intercept) ([]byte, error), failure string) (close func()) {
	hooks := ""
	for i, id := range []string{"org.test.one", "org.test.two"} {
		if i > 0 {
			hooks += ","
		}
		hooks += fmt.Sprintf(`{"id":%q,"transport":{"type":"stdio","command":"none","lifecycle":"persistent"},"subscriptions":[
			{"events":["tool.before","tool.permission.request","tool.after"],"mode":"intercept","timeoutMs":5000,"failurePolicy":%q,"content":{"default":"body"}}]}`, id, failure)
	}
	reg, err := ahp.DecodeRegistration([]byte(`{"protocolVersion":"draft","hooks":[` + hooks + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	h, err := harness.New(reg, harness.Options{
		Manifest: gate.Manifest(),
		Open: func(b *ahp.Backend) (transport.Transport, error) {
			return transport.InProcess(func(ctx context.Context, msg []byte) ([]byte, error) {
				req, err := ahp.DecodeRequest(msg)
				if err != nil {
					return nil, err
				}
				q, ok := req.(*ahp.Intercept)
				if !ok {
					return nil, nil // an observation
				}
				return answer(ctx, b.ID, q)
			}), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.opts.Backends = gate.NewBackends(h, gate.Identity{Source: "urn:abhed:test", Session: "s1", Workspace: r.dir, Roots: []string{r.dir}}, nil)
	return func() { _ = h.Close() }
}
