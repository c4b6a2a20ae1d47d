package config

import (
	"bytes"
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
}

// I225: a typing error in the managed file must not void it without notice.
func TestCaseI225ManagedTypingError(t *testing.T) {
	got := faultsOf(t, file(Managed, `{"pemissions": {"deny": ["bash"]}}`), file(User, `{"permissions": {"mode": "auto"}}`))
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
		`{"permissions": {"network": false}}`:   `"network" belongs under sandbox`,
		`{"permissions": {"api_key_env": "X"}}`: `"api_key_env" belongs under custom_providers`,
		`{"limits": {"context_window": 1}}`:     `"context_window" belongs under custom_providers.models or under models`,
	} {
		if got := faultsOf(t, file(User, data)); len(got) != 1 || !strings.Contains(got[0], hint) {
			t.Errorf("%s: %q, want the hint %q", data, got, hint)
		}
	}
}

// I232: a file with characters outside ASCII, with a byte order mark or with
// CRLF line ends gives the same settings. (The locale can't matter: nothing here
// reads it.)
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
	for name, data := range forms {
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
