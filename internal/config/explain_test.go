package config

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/abhed/abhed/internal/strictjson"
)

func TestExplain(t *testing.T) {
	sources := []Source{
		file(Managed, `{"permissions": {"deny": ["read(/x)"], "max_mode": "auto"}}`),
		args(Arg{"--mode", "permissions.mode", []string{"bypass"}}, Arg{"--deny", "permissions.deny", []string{"bash(\u202e)"}}),
		environ("ABHED_BASE_URL=http://h/v1", "ABHED_MODEL=m", "ABHED_API_KEY=hush-hush", "ABHED_X=1"),
		file(User, `{"model": "a/b", "extensions": [{"name": "g", "command": "g", "env": {"TOKEN": "hush-hush"}}], "limits": {"max_turns": 5}}`),
		untrustedFile("{\n\"permissions\": {\"allow\": [\"bash\"]}}"),
	}
	s := load(t, sources...)
	const want = `model = "env/m"  # environment ABHED_MODEL
permissions.mode = "auto"  # managed /f/managed.json:1:52
permissions.max_mode = "auto"  # managed /f/managed.json:1:52
permissions.deny[0] = "read(/x)"  # managed /f/managed.json:1:27
permissions.deny[1] = "bash(\u202e)"  # command line --deny
extensions[0].name = "g"  # user /f/user.json:1:42
extensions[0].command = "g"  # user /f/user.json:1:58
extensions[0].env.TOKEN = "[hidden]"  # user /f/user.json:1:80
extensions[0].timeout_ms = 5000  # default
extensions[0].invoke_timeout_ms = 120000  # default
extensions[0].sandbox = false  # default
extensions[0].on_failure = "skip"  # default
sandbox.min_tier = "process"  # default
sandbox.network = false  # default
limits.max_turns = 5  # user /f/user.json:1:120
limits.max_tokens = 0  # default
limits.max_cost_usd = 0  # default
limits.max_seconds = 0  # default
context.compaction = "auto"  # default
context.threshold = 0.8  # default
context.keep_results = 20  # default
context.stub_bytes = 4096  # default
mcp_budget_tokens = 10000  # default
http.stall_seconds = 60  # default
http.retries = 5  # default
ABHED_BASE_URL = "http://h/v1"  # environment ABHED_BASE_URL
ABHED_API_KEY = "[secret]"  # environment ABHED_API_KEY
ignored: permissions.allow[0]  # project /w/.abhed/config.json:2:27: the project isn't trusted, and only stricter settings of it apply; abhed trust shows and trusts it, --trust-workspace does for one run
warning: environment ABHED_X: no such variable is known; known are ABHED_BASE_URL, ABHED_MODEL, ABHED_API_KEY, ABHED_REQUIRE
`
	if d := cmp.Diff(want, s.Explain().Text()); d != "" {
		t.Errorf("text (-want +got):\n%s", d)
	}
	data, err := s.Explain().JSON()
	if err != nil {
		t.Fatal(err)
	}
	type explained struct {
		Key    string
		Origin struct {
			Layer, File, Key string
			Line, Column     int
		}
	}
	var decoded struct{ Values []explained }
	if err := json.Unmarshal(data, &decoded); err != nil || len(decoded.Values) != len(s.Explain().Values) || decoded.Values[3].Origin.Line != 1 || decoded.Values[3].Origin.Layer != "managed" {
		t.Errorf("JSON = %s, %v", data, err)
	}
	again, err := load(t, sources[4], sources[3], sources[2], sources[1], sources[0]).Explain().JSON()
	if err != nil || string(again) != string(data) {
		t.Error("another order of the sources gives another explanation")
	}
}

// TestSecretIsNeverPrinted prints settings and endpoints in every way at hand.
func TestSecretIsNeverPrinted(t *testing.T) {
	const key = "hush-hush-hush"
	s := load(t, environ("ABHED_BASE_URL=http://h", "ABHED_MODEL=m", "ABHED_API_KEY="+key))
	e, err := s.Resolve("")
	if err != nil {
		t.Fatal(err)
	}
	type holder struct{ hidden Secret }
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log, nil))
	for _, v := range []any{e.APIKey, &e.APIKey, e, &e, s, *s, s.QuickStart, []Secret{e.APIKey}, map[string]Secret{"k": e.APIKey}, holder{e.APIKey}, &holder{e.APIKey}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
			if got := fmt.Sprintf(verb, v); strings.Contains(got, key) || strings.Contains(got, fmt.Sprintf("%x", key)) {
				t.Errorf("%s of %T shows the key: %s", verb, v, got)
			}
		}
		one, err1 := json.Marshal(v)
		two, err2 := strictjson.Marshal(v)
		if err1 == nil && strings.Contains(string(one), key) || err2 == nil && strings.Contains(string(two), key) {
			t.Errorf("JSON of %T shows the key: %s %s", v, one, two)
		}
		logger.Info("x", "v", v)
	}
	if strings.Contains(log.String(), key) {
		t.Errorf("the log shows the key: %s", log.String())
	}
	if got := fmt.Sprint(e.APIKey, Secret{}) + e.APIKey.String() + fmt.Sprintf("%#v", e.APIKey); strings.Count(got, "[secret]") != 4 {
		t.Errorf("printed as %q", got)
	}
	if e.APIKey.Reveal() != key || NewSecret("") != (Secret{}) || (Secret{}).Reveal() != "" {
		t.Error("Reveal is wrong")
	}
}

func TestSchema(t *testing.T) {
	data, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	type node struct {
		Type                 string
		Properties           map[string]node
		AdditionalProperties any
		Items                *node
		Enum                 []string
		Default              any
		Required             []string
		Minimum, Maximum     *float64
	}
	var root node
	if err := json.Unmarshal(data, &root); err != nil {
		t.Fatal(err)
	}
	if len(root.Properties) != len(settingsSpec().fields) || root.AdditionalProperties != false {
		t.Errorf("the top level is %+v", root)
	}
	permissions, extension := root.Properties["permissions"], root.Properties["extensions"].Items
	if d := cmp.Diff(Modes(), permissions.Properties["mode"].Enum); d != "" || permissions.Properties["mode"].Default != "default" {
		t.Errorf("mode: %s, default %v", d, permissions.Properties["mode"].Default)
	}
	if d := cmp.Diff([]string{"name", "command"}, extension.Required); d != "" || extension.Properties["timeout_ms"].Default != 5000.0 || *extension.Properties["timeout_ms"].Minimum != 1 {
		t.Errorf("an extension is %+v", extension)
	}
	again, err := Schema()
	if err != nil || string(again) != string(data) {
		t.Error("the schema differs from call to call")
	}
}
