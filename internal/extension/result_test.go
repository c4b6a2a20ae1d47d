package extension_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/abhed/abhed/internal/extension"
	"github.com/abhed/abhed/internal/policy"
)

func TestToolResult(t *testing.T) {
	t.Parallel()
	redact := `@replace AKIA [redacted]`
	tests := []struct {
		name    string
		replies []string // of a, b, c…; "!name" is dead with that on_failure
		content string
		want    extension.ResultAnswer
		asked   string
	}{
		{"nobody objects", []string{"{}", "{}"}, "out", extension.ResultAnswer{Content: "out"}, "a1=none b1=none"},
		{"the first changes", []string{redact, "{}"}, "AKIA", extension.ResultAnswer{Content: "[redacted]", RewrittenBy: []string{"a"}}, "a1=rewrite b1=none"},
		{"the later one changes", []string{"{}", "{}", redact}, "AKIA", extension.ResultAnswer{Content: "[redacted]", RewrittenBy: []string{"c"}}, "a1=none b1=none c1=rewrite a2=none b2=none"},
		{"both change once", []string{"@replace x y", redact}, "x AKIA", extension.ResultAnswer{Content: "y [redacted]", RewrittenBy: []string{"a", "b"}}, "a1=rewrite b1=rewrite a2=none"},
		{"a change that undoes another", []string{"@replace x y", "@replace y x"}, "x", extension.ResultAnswer{RewrittenBy: []string{"a", "b"}, Withheld: true, IsError: true}, "a1=rewrite b1=rewrite a2=rewrite"},
		{"not idempotent", []string{"@append !", redact}, "AKIA", extension.ResultAnswer{RewrittenBy: []string{"a", "b"}, Withheld: true, IsError: true}, "a1=rewrite b1=rewrite a2=rewrite"},
		{"the error flag", []string{`{"is_error":true}`, "{}"}, "out", extension.ResultAnswer{Content: "out", IsError: true, RewrittenBy: []string{"a"}}, "a1=rewrite b1=none"},
		{"empty is not absent", []string{`{"content":""}`}, "out", extension.ResultAnswer{RewrittenBy: []string{"a"}}, "a1=rewrite"},
		{"null is absent", []string{`{"content":null,"is_error":null}`}, "out", extension.ResultAnswer{Content: "out"}, "a1=none"},
		{"the same text", []string{`{"content":"out","is_error":false}`}, "out", extension.ResultAnswer{Content: "out"}, "a1=none"},
		{"a NUL", []string{`{"content":"a\u0000b"}`}, "out", extension.ResultAnswer{Content: `a\x00b`, RewrittenBy: []string{"a"}}, "a1=rewrite"},
		{"dead, skip", []string{"!skip", "{}"}, "out", extension.ResultAnswer{Content: "out"}, "a1=failed b1=none"},
		{"dead, ask", []string{"!ask", "{}"}, "out", extension.ResultAnswer{Withheld: true, IsError: true}, "a1=failed"},
		{"dead, block", []string{"{}", "!block"}, "out", extension.ResultAnswer{Withheld: true, IsError: true}, "a1=none b1=failed"},
		{"a rewrite and a second reply", []string{`@raw "{\"content\":\"new\"}\n{}\n"`}, "out", extension.ResultAnswer{Content: "new", RewrittenBy: []string{"a"}}, "a1=rewrite+failed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var configs []extension.Config
			for i, r := range tt.replies {
				c := fakeExt(t, string(rune('a'+i)), actions{"tool_result": r})
				if onFailure, dead := strings.CutPrefix(r, "!"); dead {
					c = with(fakeExt(t, c.Name, actions{"tool_result": "garbage"}), func(c *extension.Config) { c.OnFailure = extension.OnFailure(onFailure) })
				}
				configs = append(configs, c)
			}
			h := start(t, nil, configs...)
			got := h.ToolResult(context.Background(), call(t, "bash", `{}`), policy.Declaration{}, tt.content, false)
			var asked []string
			for _, a := range got.Asked {
				asked = append(asked, fmt.Sprintf("%s%d=%s", a.Name, a.Round, a.Answer))
				if a.Step != "tool_result" || a.Kind != "extension" || a.Version == "" {
					t.Errorf("asked %+v", a)
				}
			}
			if s := strings.Join(asked, " "); s != tt.asked {
				t.Errorf("asked %q, want %q", s, tt.asked)
			}
			if got.Withheld {
				if !strings.HasPrefix(got.Content, "The result of bash is withheld: ") || strings.Contains(got.Content, tt.content+"!") {
					t.Errorf("text in its place: %q", got.Content)
				}
				tt.want.Content = got.Content
			}
			got.Asked = nil
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("result (-want +got):\n%s", d)
			}
		})
	}
}

// TestToolResultOnlySubscribers: match doesn't narrow results, the subscription
// does.
func TestToolResultOnlySubscribers(t *testing.T) {
	t.Parallel()
	h := start(t, nil,
		with(fakeExt(t, "calls", actions{"tool_result": "@append x"}), func(c *extension.Config) { c.Events = []string{"tool_call"} }),
		with(fakeExt(t, "results", actions{"tool_result": "@append y"}), func(c *extension.Config) {
			c.Match = func(policy.Call, policy.Declaration) bool { return false }
		}),
	)
	got := h.ToolResult(context.Background(), call(t, "bash", `{}`), policy.Declaration{}, "", false)
	if got.Content != "y" {
		t.Errorf("got %+v", got)
	}
}
