package extension

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"github.com/abhed/abhed/internal/policy"
)

type rawJSON = jsontext.Value

func TestDecodeReplyRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, want string }{
		{"no object", `[]`, "found a list, expected an object"},
		{"repeated name", `{"block":true,"block":false}`, "the same member name twice"},
		{"repeated name by escape", `{"block":true,"bl\u006fck":false}`, "the same member name twice"},
		{"repeated unknown name", `{"x":1,"x":1}`, "the same member name twice"},
		{"repeated name below", `{"args":{"a":1,"a":2}}`, "the same member name twice"},
		{"block", `{"block":"true"}`, `"block" can't be used: found a string, expected a boolean`},
		{"block number", `{"block":1}`, `found a number, expected a boolean`},
		{"ask", `{"ask":{}}`, `"ask" can't be used`},
		{"reason", `{"block":true,"reason":7}`, `"reason" can't be used: found a number, expected a string`},
		{"args", `{"args":[]}`, `"args" can't be used: found a list, expected an object`},
		{"content", `{"content":["a"]}`, `"content" can't be used`},
		{"is_error", `{"is_error":"no"}`, `"is_error" can't be used`},
		{"keep", `{"keep":[1.5]}`, `"keep" can't be used`},
		{"keep null inside", `{"keep":[null]}`, `"keep" can't be used`},
		{"system", `{"system":true}`, `"system" can't be used`},
		{"summary", `{"summary":1}`, `"summary" can't be used`},
		{"cancel", `{"cancel":""}`, `"cancel" can't be used`},
		{"result", `{"result":{}}`, `"result" can't be used`},
		{"log", `{"log":1}`, `"log" can't be used`},
		{"seq", `{"seq":"1"}`, `"seq" can't be used`},
		{"seq fraction", `{"seq":1.5}`, `"seq" can't be used`},
		{"tools", `{"tools":{}}`, `"tools" can't be used: found an object, expected a list`},
		{"tools entry", `{"tools":["x"]}`, `"tools" can't be used`},
		{"tools null entry", `{"tools":[null]}`, `"tools" can't be used`},
		{"tool name", `{"tools":[{"name":1}]}`, `entry 0, "name"`},
		{"tool mutates", `{"tools":[{},{"mutates":"no"}]}`, `entry 1, "mutates"`},
		{"bad UTF-8", "{\"log\":\"\xff\"}", "invalid UTF-8"},
		{"lone surrogate", `{"log":"\ud800"}`, "can't be used"},
		{"too deep", `{"args":` + strings.Repeat(`{"a":`, 200) + `1` + strings.Repeat(`}`, 201), "nested deeper"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := decodeReply([]byte(tt.in))
			if err == nil {
				t.Fatalf("taken as %+v", r)
			}
			if err.class != failInvalid || !strings.Contains(err.msg, tt.want) {
				t.Errorf("%s: %q, want %q in it", err.class, err.msg, tt.want)
			}
		})
	}
}

func TestDecodeReply(t *testing.T) {
	t.Parallel()
	r, err := decodeReply([]byte(`{"block":null,"ask":true,"reason":"r","args":{"b":1, "a":2e0},"content":"","is_error":false,
		"keep":[3,1],"system":null,"result":null,"seq":4,"log":"l","cancel":false,"blok":1,"Block":true,
		"tools":[{"name":"a","description":"d","schema":{"type":"object"},"mutates":false,"mutate":true},{"name":null,"mutates":null}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if r.block || !r.ask || r.reason != "r" || string(r.args) != `{"a":2e0,"b":1}` || r.log != "l" || *r.seq != 4 {
		t.Errorf("got %+v", r)
	}
	if r.content == nil || *r.content != "" || r.isError == nil || *r.isError || r.result != nil {
		t.Errorf("an absent field and an empty one were confused: %+v", r)
	}
	if got := fmt.Sprint(r.unknown); got != "[Block blok tools/mutate]" {
		t.Errorf("unknown fields %s", got)
	}
	if len(r.tools) != 2 || r.tools[0].mutates || r.tools[0].name != "a" || !r.tools[1].mutates || r.tools[1].schema != nil {
		t.Errorf("tools %+v", r.tools)
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"ask", "block", "reason"}
	for name, want := range map[string]string{
		"blok": "block", "blockk": "block", "clock": "block", "blcok": "block", "Block": "block", "as": "ask",
		"block": "", "blk": "", "allow": "", "": "", "sak": "ask", "reasons": "reason",
	} {
		if got := nearest(name, known); got != want {
			t.Errorf("nearest(%q) = %q, want %q", name, got, want)
		}
	}
}

// anyJSON draws a JSON value of bounded depth.
func anyJSON(depth int) *rapid.Generator[string] {
	leaf := rapid.OneOf(
		rapid.SampledFrom([]string{"true", "false", "null", `""`, "0", "1", "-1", "[]", "{}", `"allow"`, `"permit"`, `"yes"`}),
		rapid.Map(rapid.StringMatching(`[a-z ]{0,8}`), func(s string) string { return `"` + s + `"` }),
	)
	if depth == 0 {
		return leaf
	}
	return rapid.OneOf(leaf,
		rapid.Map(rapid.SliceOfN(anyJSON(depth-1), 0, 3), func(v []string) string { return "[" + strings.Join(v, ",") + "]" }),
		replyJSON(depth-1))
}

// replyJSON draws an object of fields that an extension might try.
func replyJSON(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		names := rapid.SliceOfN(rapid.SampledFrom([]string{
			"block", "ask", "reason", "args", "content", "is_error", "keep", "system", "summary", "cancel", "tools", "result",
			"log", "seq", "allow", "permit", "decision", "permission", "permissionDecision", "verdict", "approve", "approved",
			"override", "effects", "Block", "mutates", "level", "code", "objection", "deny", "skip", "bypass", "mode",
		}), 0, 6).Draw(t, "names")
		var b strings.Builder
		for i, n := range names {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, "%q:%s", n, anyJSON(max(depth, 0)).Draw(t, "value"))
		}
		return "{" + b.String() + "}"
	})
}

// joins returns what an answer makes of a verdict.
func joins(v policy.Verdict, a Answer) policy.Verdict {
	return policy.Join(v, []policy.Objection{a.Objection})
}

// TestNoReplyLowersAVerdict is the founding rule as a property: whatever an
// extension answers, joined with any verdict it is at least that verdict.
func TestNoReplyLowersAVerdict(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := replyJSON(2).Draw(t, "reply")
		policyOnFailure := rapid.SampledFrom([]OnFailure{Skip, AskPerson, Block}).Draw(t, "on_failure")
		e := &ext{cfg: Config{Name: "x", OnFailure: policyOnFailure}, source: policy.Source{Kind: "extension", Name: "x"}}
		ev := rapid.SampledFrom([]string{eventToolCall, eventPermission}).Draw(t, "event")
		var a answer
		a.reply, a.fail = decodeReply([]byte(text))
		got := e.answer(ev, a, policy.Call{Tool: "bash", Args: []byte(`{}`)}, 1, 0)
		for v := policy.Verdict(0); v <= policy.Deny+1; v++ {
			least := v
			if v < policy.Allow || v > policy.Deny {
				least = policy.Deny // a verdict that is none counts as deny
			}
			if j := joins(v, got); j < least {
				t.Fatalf("reply %s turned %s into %s", text, v, j)
			}
		}
		if a.reply != nil && a.reply.block && !got.Objection.Denies() {
			t.Fatalf("reply %s says block, objection is %s", text, got.Objection)
		}
		if a.fail != nil && policyOnFailure == Block && !got.Objection.Denies() {
			t.Fatalf("reply %s is no reply, on_failure is block, objection is %s", text, got.Objection)
		}
	})
}

// FuzzReply holds that the decoder ends without a panic on any bytes, and that
// what it takes never allows.
func FuzzReply(f *testing.F) {
	for _, s := range []string{`{}`, `{"block":true,"reason":"x"}`, `{"args":{"a":[1]}}`, `{"tools":[{"name":"a","schema":{}}]}`,
		`{"keep":[1,2],"seq":1,"is_error":null}`, `{"allow":true,"block":false}`, `{"block":true,"block":false}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := decodeReply(data)
		if (r == nil) == (err == nil) {
			t.Fatalf("reply %v and error %v", r, err)
		}
		e := &ext{cfg: Config{Name: "x", OnFailure: Skip}, source: policy.Source{Kind: "extension", Name: "x"}}
		got := e.answer(eventToolCall, answer{reply: r, fail: err}, policy.Call{Args: []byte(`{}`)}, 1, 0)
		for v := policy.Allow; v <= policy.Deny; v++ {
			if joins(v, got) < v {
				t.Fatalf("%q lowered %s", data, v)
			}
		}
	})
}
