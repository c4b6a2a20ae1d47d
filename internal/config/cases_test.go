package config

import (
	"bytes"
	order "cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The names of these tests hold the ids of the collected bug reports whose right
// outcome they check.

// I224: one malformed pattern must neither drop the file silently nor be
// dropped itself.
func TestCaseI224BadRuleStopsTheStart(t *testing.T) {
	for _, list := range []string{"deny", "ask", "allow"} {
		data := `{"permissions": {"` + list + `": [` + strings.Repeat(`"read(a)", `, 9) + "\n" + `"bash(cp*"]}}`
		got := faultsOf(t, file(User, data))
		want := []string{`/f/user.json:2:1: permissions.` + list + `[9]: found "bash(cp*", expected a rule whose pattern ends with ")"`}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("messages (-want +got):\n%s", d)
		}
	}
	// The sibling: a tool to disable that is no tool's name.
	if got := faultsOf(t, file(User, `{"tools": {"disabled": ["read", "bash(cp*"]}}`)); len(got) != 1 || !strings.HasPrefix(got[0], "/f/user.json:1:33: tools.disabled[1]: ") {
		t.Errorf("messages = %q", got)
	}
}

// I225: a typing error in the managed file must not void it without notice.
func TestCaseI225ManagedTypingError(t *testing.T) {
	got := faultsOf(t, file(Managed, `{"pemissions": {"deny": ["bash"]}}`), file(User, `{"permissions": {"mode": "auto"}}`))
	// The sibling: a restriction of another kind.
	if tools := faultsOf(t, file(Managed, `{"tool": {"disabled": ["bash"]}}`)); len(tools) != 1 || !strings.Contains(tools[0], `did you mean "tools"?`) {
		t.Errorf("messages = %q", tools)
	}
	if len(got) != 1 || !strings.HasPrefix(got[0], `/f/managed.json:1:2: pemissions: unknown key "pemissions"`) || !strings.Contains(got[0], `did you mean "permissions"?`) {
		t.Errorf("messages = %q", got)
	}
}

// I228: a value of a closed set in another case must not be passed over.
func TestCaseI228MisCasedValues(t *testing.T) {
	for data, hint := range map[string]string{
		`{"permissions": {"mode": "AUTO"}}`:                                              "auto",
		`{"sandbox": {"min_tier": "Process"}}`:                                           "process",
		`{"extensions": [{"name": "a", "command": "b", "on_failure": "Block"}]}`:         "block",
		`{"extensions": [{"name": "a", "command": "b", "events": ["TOOL_CALL"]}]}`:       "tool_call",
		`{"custom_providers": [{"name": "a", "api": "OPENAI", "base_url": "http://h"}]}`: "openai",
		`{"context": {"compaction": "OFF"}}`:                                             "off",
		`{"mcp": {"a": {"command": "b", "Disabled": true}}}`:                             "disabled",
	} {
		if got := faultsOf(t, file(User, data)); len(got) != 1 || !strings.Contains(got[0], `did you mean "`+hint+`"?`) || !strings.Contains(got[0], "expected one of ") {
			t.Errorf("%s: %q", data, got)
		}
	}
}

// I229: rules in the wrong place must be refused with the right place named.
func TestCaseI229RulesInTheWrongPlace(t *testing.T) {
	for data, hint := range map[string]string{
		`{"extensions": [{"name": "a", "command": "b", "permissions": {"deny": ["bash"]}}]}`: `"permissions" belongs at the top level`,
		`{"deny": ["bash"]}`:                    `"deny" belongs under permissions`,
		`{"sandbox": {"mode": "plan"}}`:         `"mode" belongs under permissions`,
		`{"permissions": {"network": false}}`:   `"network" belongs under mcp or under sandbox`,
		`{"permissions": {"api_key_env": "X"}}`: `"api_key_env" belongs under custom_providers`,
		`{"limits": {"context_window": 1}}`:     `"context_window" belongs under custom_providers.models or under models`,
	} {
		if got := faultsOf(t, file(User, data)); len(got) != 1 || !strings.Contains(got[0], hint) {
			t.Errorf("%s: %q, want the hint %q", data, got, hint)
		}
	}
}

// I232: a file with characters outside ASCII, with a byte order mark or with
// CRLF line ends gives the same settings, whatever the locale says.
func TestCaseI232EncodingsOfOneFile(t *testing.T) {
	plain := "{\n// Größe, 日本語\n\"permissions\": {\"deny\": [\"bash(rm*)\", /* é */ \"write(/tmp/ü)\",],},\n}\n"
	forms := map[string][]byte{
		"CRLF":          []byte(strings.ReplaceAll(plain, "\n", "\r\n")),
		"mark":          []byte(byteOrderMark + plain),
		"mark and CRLF": []byte(byteOrderMark + strings.ReplaceAll(plain, "\n", "\r\n")),
		"CR":            []byte(strings.ReplaceAll(plain, "\n", "\r")),
	}
	want := load(t, file(User, plain))
	if len(want.Permissions.Deny) != 2 {
		t.Fatalf("deny = %v", want.Permissions.Deny)
	}
	names := slices.Sorted(maps.Keys(forms))
	for i, name := range append(names, names...) {
		data := forms[name]
		t.Setenv("LC_ALL", []string{"C", "ja_JP.SJIS"}[i/len(names)])
		before := bytes.Clone(data)
		got := load(t, file(User, string(data)))
		if !bytes.Equal(before, data) {
			t.Errorf("%s: Load changed its input", name)
		}
		if name == "CR" { // one line for us, so other places
			for i := range got.Permissions.Deny {
				got.Permissions.Deny[i].Origin = want.Permissions.Deny[i].Origin
			}
		}
		if d := cmp.Diff(want.Permissions, got.Permissions); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// I230: what any source disables stays disabled, whatever the others say, in
// whatever order they come; an untrusted project may add and no source takes back.
func TestCaseI230DisabledToolsAreUnited(t *testing.T) {
	off := func(names string) string { return `{"tools": {"disabled": [` + names + `]}}` }
	sources := []Source{
		file(User, off(`"bash"`)), file(Managed, off(`"fetch"`)), untrustedFile(off(`"edit"`)),
		args(Arg{"--disable-tool", "tools.disabled", []string{"write"}}, Arg{"--disable-tool", "tools.disabled", []string{"mcp__s__t"}}),
	}
	want := []string{"fetch", "write", "mcp__s__t", "bash", "edit"}
	for range sources {
		s := load(t, sources...)
		if d := cmp.Diff(want, s.Tools.Disabled); d != "" {
			t.Errorf("disabled (-want +got):\n%s", d)
		}
		if o, ok := s.Origin("tools.disabled[4]"); !ok || o.Layer != Project || len(s.Ignored) != 0 {
			t.Errorf("origin %v, ignored %v", o, s.Ignored)
		}
		sources = append(sources[1:], sources[0])
	}
	// The sibling: an empty list takes nothing back.
	for _, empty := range []Source{file(Managed, off("")), untrustedFile(off("")), file(Project, off(""))} {
		if s := load(t, file(User, off(`"bash"`)), empty); len(s.Tools.Disabled) != 1 {
			t.Errorf("%s: disabled = %v", empty.File, s.Tools.Disabled)
		}
	}
}

// I231: the tier and the network in force are what the documented precedence
// says for every combination of flag, user, project and managed values, and what
// is printed is what is in force.
func TestCaseI231PrecedenceOfTheSandbox(t *testing.T) {
	tiers := append([]string{""}, Tiers()...) // "" is unset
	for n := range len(tiers) * len(tiers) * len(tiers) * len(tiers) {
		pick := func(place int) string { return tiers[n/place%len(tiers)] }
		flag, user, project, managed := pick(1), pick(4), pick(16), pick(64)
		var sources []Source
		add := func(layer Layer, tier string) {
			if tier != "" {
				sources = append(sources, file(layer, `{"sandbox": {"min_tier": "`+tier+`", "network": `+strconv.FormatBool(tier == "none")+`}}`))
			}
		}
		add(User, user)
		add(Project, project)
		add(Managed, managed)
		if flag != "" {
			sources = append(sources, args(Arg{"--min-tier", "sandbox.min_tier", []string{flag}}, Arg{"--network", "sandbox.network", []string{strconv.FormatBool(flag == "none")}}))
		}
		// The highest of flag, user and default is the choice; managed and project are
		// bounds that only make it stricter.
		want := order.Or(flag, user, "process")
		network := want == "none"
		for _, bound := range []string{project, managed} {
			if bound != "" && slices.Index(Tiers(), bound) > slices.Index(Tiers(), want) {
				want = bound
			}
			network = network && (bound == "" || bound == "none")
		}
		s := load(t, sources...)
		if s.Sandbox.MinTier != want || s.Sandbox.Network != network {
			t.Errorf("flag %q, user %q, project %q, managed %q: %+v, want %s, network %v", flag, user, project, managed, s.Sandbox, want, network)
		}
		printed := s.Explain().Text()
		if !strings.Contains(printed, "sandbox.min_tier = \""+want+"\"  # ") || !strings.Contains(printed, "sandbox.network = "+strconv.FormatBool(network)+"  # ") {
			t.Errorf("printed is not what is in force:\n%s", printed)
		}
	}
}
