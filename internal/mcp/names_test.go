package mcp_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/abhed/abhed/internal/mcp"
	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/require"
)

// TestNamesDontDependOnOrder is I183.
func TestNamesDontDependOnOrder(t *testing.T) {
	t.Parallel()
	sh := require.Path(t, "sh")
	long := strings.Repeat("x", 70)
	var want []string
	for i := range 50 {
		list := []mcp.Server{
			plain(sh, "a", "search", long+"1", "do it"),
			plain(sh, "b", "search", long+"2", "do.it", long+"1"),
		}
		rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		h, err := mcp.Start(t.Context(), list, mcp.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, x := range h.Tools() {
			got = append(got, x.Spec().Name)
		}
		h.Close()
		if i == 0 {
			want = got
		}
		if !slices.Equal(got, want) {
			t.Fatalf("I183: run %d names the tools %q, the first run named them %q", i, got, want)
		}
	}
	if len(want) != 7 || !slices.Contains(want, "mcp__a__search") || !slices.Contains(want, "mcp__b__search") {
		t.Errorf("names %q", want)
	}
	if len(slices.Compact(slices.Clone(want))) != 7 {
		t.Errorf("I183: two tools have one name: %q", want)
	}
	for _, n := range want {
		if len(n) > 64 {
			t.Errorf("I183: the name %s has %d characters", n, len(n))
		}
	}
}

// plain returns a server that says its lines after a random while and nothing else;
// it starts much faster than the fake one.
func plain(sh, name string, tools ...string) mcp.Server {
	hello := `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}}`
	list := `{"jsonrpc":"2.0","id":2,"result":{"tools":[` + strings.Join(named(tools...), ",") + `]}}`
	script := `read a; sleep "$1"; echo "$2"; read b; read c; echo "$3"; read d`
	return mcp.Server{Name: name, Command: sh, Args: []string{"-c", script, "sh", fmt.Sprintf("0.0%02d", rand.IntN(20)), hello, list}}
}

// TestLongNames is I184.
func TestLongNames(t *testing.T) {
	t.Parallel()
	name := strings.Repeat("s", 60)
	r := start(t, mcp.Options{}, server(t, name, script{Tools: named("create_x", "create_y", "create_"+strings.Repeat("z", 90))}), server(t, "up", script{Tools: named("x")}))
	names := r.names()
	if len(names) != 4 || names[0] == names[1] {
		t.Fatalf("I184: names %q", names)
	}
	known := policy.Known{Tools: map[string]policy.SubjectKind{}, MCPServers: r.Servers()}
	for _, n := range names {
		server, original, ok := r.Original(n)
		if len(n) > 64 || !ok || server != name && server != "up" {
			t.Errorf("I184: %s has %d characters and is %s of %s", n, len(n), original, server)
		}
		r.works(n, `{}`, original+" {}")
		known.Tools[n] = policy.SubjectText
	}
	for _, rule := range []string{"create_x", "create_" + strings.Repeat("z", 90), "*"} {
		var texts []policy.RuleText
		for _, text := range r.Rules("mcp__" + name + "__" + rule) {
			texts = append(texts, policy.RuleText{Text: text})
		}
		set, problems := policy.Compile(policy.RuleLists{Deny: texts}, known)
		if set == nil || len(problems) > 0 {
			t.Fatalf("I184: rule for %s: %v", rule, problems)
		}
		for _, n := range names {
			server, original, _ := r.Original(n)
			in := policy.Input{Call: policy.Call{Tool: n}, Declaration: policy.Declaration{Kind: policy.SubjectText, Mutates: true}, Env: policy.Env{Mode: policy.ModeBypass}}
			want := server == name && (rule == "*" || rule == original)
			if got := set.Matches(in); got != want {
				t.Errorf("I184: rule for %s matches %s (%s): %v, expected %v", rule, n, original, got, want)
			}
		}
	}
	for _, same := range []string{"bash(go *)", "mcp__up__x", "mcp__up__*", "mcp__down__y"} {
		if got := r.Rules(same); len(got) != 1 || got[0] != same {
			t.Errorf("the rule %s became %q", same, got)
		}
	}
}

// TestNamesProperty holds for any names that a server may give to its tools, the
// hashed names of others included.
func TestNamesProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		srv := rapid.StringMatching(`[a-z.\-]{1,64}`).Draw(t, "server")
		tools := rapid.SliceOfNDistinct(rapid.OneOf(rapid.StringMatching(`[a-z_]{1,80}`), rapid.String()), 1, 12, rapid.ID[string]).Draw(t, "tools")
		first := mcp.AssignNames(srv, tools, nil)
		for _, n := range first { // a name that is taken on purpose
			if tail := strings.TrimPrefix(n, "mcp__"+srv+"__"); !slices.Contains(tools, tail) {
				tools = append(tools, tail)
			}
		}
		names := mcp.AssignNames(srv, tools, nil)
		shuffled := rapid.Permutation(tools).Draw(t, "shuffled")
		again := mcp.AssignNames(srv, shuffled, nil)
		seen := map[string]string{}
		for _, tool := range tools {
			n := names[tool]
			if n == "" || len(n) > 64 || again[tool] != n || seen[n] != "" {
				t.Fatalf("tool %q of %q is named %q, in other order %q; the name is also that of %q", tool, srv, n, again[tool], seen[n])
			}
			seen[n] = tool + "!"
			rest, ok := strings.CutPrefix(n, "mcp__")
			if seg, _, found := strings.Cut(rest, "__"); !ok || !found || seg != mcp.Segment(srv) {
				t.Fatalf("%q isn't a tool of %q for the grammar of rules", n, srv)
			}
		}
	})
}

func TestSegmentsAreApart(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, s := range []string{"a.b", "a_b", "a-b", strings.Repeat("a", 60), strings.Repeat("a", 61), strings.Repeat("a", 40), "a._.b"} {
		seg := mcp.Segment(s)
		if other := seen[seg]; other != "" || strings.Contains(seg, "__") || strings.HasSuffix(seg, "_") || len(seg) > 40 {
			t.Errorf("server %q stands in names as %q, like %q", s, seg, other)
		}
		seen[seg] = s
	}
	_, err := mcp.Start(t.Context(), []mcp.Server{{Name: "a.b", Command: "x"}, {Name: mcp.Segment("a.b"), Command: "x"}}, mcp.Options{})
	if err == nil || !strings.Contains(err.Error(), "reads the same") {
		t.Errorf("two servers that read the same: %v", err)
	}
}
