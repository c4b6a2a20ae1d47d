package ahp_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/require"
)

// registrationText is a good registration in which every test changes one thing.
const registrationText = `{"protocolVersion":"draft","hooks":[
 {"id":"com.example.policy","transport":{"type":"http","url":"https://policy.example.com/hooks"},
  "authentication":{"type":"bearer","tokenEnv":"AHP_POLICY_TOKEN"},
  "subscriptions":[{"events":["tool.before","user.*"],"mode":"intercept","timeoutMs":750,"failurePolicy":"fail-closed","content":{"default":"metadata"}}]},
 {"id":"com.example.local","transport":{"type":"stdio","command":"/usr/bin/review","args":["serve","--rules","/etc/rules.json"],"lifecycle":"persistent"},
  "subscriptions":[{"events":["*"],"mode":"observe","content":{"default":"omit","text":"body"},"x-new":true}]}]}`

func TestRegistration(t *testing.T) {
	tests := []struct{ name, from, to, pointer string }{
		{"as it is", "draft", "draft", "-"},
		{"unknown members", `"mode":"observe"`, `"mode":"observe","x":{"y":1}`, "-"},
		{"another revision", "draft", "2031-01-01", "/protocolVersion"},
		{"no hooks", `"hooks":[`, `"hooks":[],"old":[`, "/hooks"},
		{"a plain id", "com.example.policy", "policy", "/hooks/0/id"},
		{"the same id", "com.example.local", "com.example.policy", "/hooks/1/id"},
		{"no content", `,"content":{"default":"metadata"}`, ``, "/hooks/0/subscriptions/0"},
		{"content without a default", `{"default":"metadata"}`, `{"text":"body"}`, "/hooks/0/subscriptions/0/content"},
		{"another selection", `{"default":"metadata"}`, `{"default":"all"}`, "/hooks/0/subscriptions/0/content/default"},
		{"no deadline", `"timeoutMs":750,`, ``, "/hooks/0/subscriptions/0"},
		{"a deadline of 0", `750`, `0`, "/hooks/0/subscriptions/0/timeoutMs"},
		{"no policy", `"failurePolicy":"fail-closed",`, ``, "/hooks/0/subscriptions/0"},
		{"another policy", `fail-closed`, `fail-soft`, "/hooks/0/subscriptions/0/failurePolicy"},
		{"an observer with a policy", `"mode":"observe"`, `"mode":"observe","failurePolicy":"fail-open"`, "/hooks/1/subscriptions/0"},
		{"an unknown event", `"tool.before"`, `"tool.imagined"`, "/hooks/0/subscriptions/0/events/0"},
		{"an observed event", `"tool.before"`, `"session.end"`, "/hooks/0/subscriptions/0/events/0"},
		{"a family of two segments", `"user.*"`, `"user.message.*"`, "/hooks/0/subscriptions/0/events/1"},
		{"an event twice", `"user.*"`, `"tool.before"`, "/hooks/0/subscriptions/0/events/1"},
		{"a workload credential", `"type":"bearer"`, `"type":"workload"`, "/hooks/0/authentication/type"},
		{"a name that isn't one", `AHP_POLICY_TOKEN`, `AHP-POLICY`, "/hooks/0/authentication/tokenEnv"},
		{"two sources of a token", `"tokenEnv"`, `"tokenRef":"a","tokenEnv"`, "/hooks/0/authentication"},
		{"bearer with members of oauth", `"tokenEnv"`, `"scopes":["a"],"tokenEnv"`, "/hooks/0/authentication"},
		{"bearer with an issuer", `"tokenEnv"`, `"issuer":"https://login.example","tokenEnv"`, "/hooks/0/authentication"},
		{"oauth with members of bearer", `"bearer","tokenEnv"`, `"oauth","resource":"https://a.example/","issuer":"https://login.example","clientId":"c","flow":"client_credentials","tokenEnv"`, "/hooks/0/authentication"},
		{"oauth without a client", `"bearer","tokenEnv":"AHP_POLICY_TOKEN"`, `"oauth","resource":"https://a.example/","issuer":"https://login.example","flow":"client_credentials"`, "/hooks/0/authentication"},
		{"credentials for stdio", `"transport":{"type":"stdio"`, `"authentication":{"type":"bearer","tokenEnv":"A"},"transport":{"type":"stdio"`, "/hooks/1/authentication"},
		{"no lifecycle", `,"lifecycle":"persistent"`, ``, "/hooks/1/transport"},
		{"stdio with a URL", `"lifecycle":"persistent"`, `"lifecycle":"persistent","url":"https://a.example/"`, "/hooks/1/transport/url"},
		{"http with a command", `"transport":{"type":"http"`, `"transport":{"command":"a","type":"http"`, "/hooks/0/transport"},
		{"another lifecycle", `persistent`, `forever`, "/hooks/1/transport/lifecycle"},
		{"another scheme", `https://policy`, `ftp://policy`, "/hooks/0/transport/url"},
		{"a managed one that can be disabled", `"mode":"observe"`, `"mode":"observe","scope":"managed"`, "/hooks/1/subscriptions/0"},
		{"a managed one", `"mode":"observe"`, `"mode":"observe","scope":"managed","disableable":false`, "-"},
		{"a legacy member", `"transport":{"type":"http"`, `"contentReceiver":{},"transport":{"type":"http"`, "/hooks/0/contentReceiver"},
		{"an upload in the clear", `"mode":"observe"`, `"mode":"observe","upload":{"endpoint":"http://x.example/","timeoutMs":1,"maxBytes":0}`, "/hooks/1/subscriptions/0/upload/endpoint"},
		{"an upload to this machine", `"mode":"observe"`, `"mode":"observe","upload":{"endpoint":"http://127.0.0.1:9/","timeoutMs":1,"maxBytes":0}`, "-"},
		{"a literal token", `"tokenEnv"`, `"token":"do-not-store","tokenEnv"`, "/hooks/0/authentication/token"},
		{"a literal client secret", `"x-new":true`, `"x-new":{"client_secret":"x"}`, "/hooks/1/subscriptions/0/x-new/client_secret"},
		{"a token as an option", `"--rules"`, `"--token=abc","--rules"`, "/hooks/1/transport/args/1"},
		{"a token after an option", `"--rules"`, `"--api-key","abc"`, "/hooks/1/transport/args/2"},
		{"a header", `"--rules"`, `"-H","Authorization: Bearer abc"`, "/hooks/1/transport/args/2"},
		{"a URL with a password", `"--rules"`, `"postgres://u:p@db/x"`, "/hooks/1/transport/args/1"},
		{"a well-known prefix", `"--rules"`, `"ghp_abcdefghijklmnopqrst"`, "/hooks/1/transport/args/1"},
		{"a random text", `"--rules"`, `"q7Zt0LkP3vXe9RbY2mWsU8aHdFgJcN5"`, "/hooks/1/transport/args/1"},
		{"a UUID", `"--rules"`, `"5b7de29e-a9e0-41a8-bf26-d94b05f0656d"`, "-"},
		{"a hash", `"--rules"`, `"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"`, "-"},
		{"a long path", `"--rules"`, `"/opt/Very-Long/Path2/With-Many_Segments/And-Numbers-1234567890/policy.v2.JSON"`, "-"},
		{"options that name a place", `"--rules"`, `"--token-env=AHP_TOKEN","--token-file"`, "-"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if !strings.Contains(registrationText, tt.from) {
				t.Fatalf("no %q", tt.from)
			}
			text := strings.Replace(registrationText, tt.from, tt.to, 1)
			r, err := ahp.DecodeRegistration([]byte(text))
			if tt.pointer == "-" {
				if err != nil {
					t.Fatal(err)
				}
				b, err := r.Encode()
				if err != nil {
					t.Fatal(err)
				}
				if _, err := ahp.DecodeRegistration(b); err != nil {
					t.Error(err)
				}
				return
			}
			var e *ahp.Error
			if !errors.As(err, &e) || e.Pointer != tt.pointer || e.Offset <= 0 || e.Requirement == "" {
				t.Fatalf("got %v, want a fault at %q", err, tt.pointer)
			}
		})
	}
}

// TestLiteralTokenFixture adds what the fixture lacks beside its literal token, so
// that the token is all that is wrong.
func TestLiteralTokenFixture(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(require.Shared(t), "fixtures/ahp/registration/literal-token.invalid.json"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(data), `"failurePolicy"`, `"content":{"default":"omit"},"failurePolicy"`, 1)
	_, err = ahp.DecodeRegistration([]byte(text))
	var e *ahp.Error
	if !errors.As(err, &e) || e.Requirement != "AHP-SEC-001" || strings.Contains(err.Error(), "do-not-store") {
		t.Errorf("got %v", err)
	}
}

func TestSelects(t *testing.T) {
	sub := func(mode ahp.Mode, events ...string) *ahp.Subscription {
		return &ahp.Subscription{Mode: mode, Events: events}
	}
	tests := []struct {
		sub  *ahp.Subscription
		t    ahp.EventType
		want bool
	}{
		{sub(ahp.ModeIntercept, "tool.*"), ahp.ToolPermissionRequest, true},
		{sub(ahp.ModeIntercept, "tool.*"), ahp.ToolProgress, false},
		{sub(ahp.ModeObserve, "tool.*"), ahp.ToolProgress, true},
		{sub(ahp.ModeObserve, "tool.*"), ahp.TaskChangeAfter, false},
		{sub(ahp.ModeObserve, "*"), ahp.HookFailure, true},
		{sub(ahp.ModeIntercept, "*"), ahp.HookFailure, false},
		{sub(ahp.ModeIntercept, "tool.before"), ahp.ToolAfter, false},
	}
	for _, tt := range tests {
		if got := tt.sub.Selects(tt.t); got != tt.want {
			t.Errorf("%s %v selects %s: %v", tt.sub.Mode, tt.sub.Events, tt.t, got)
		}
	}
}
