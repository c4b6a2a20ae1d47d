package ask_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/control"
	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/tool/ask"
	"github.com/abhed/abhed/internal/tool/tooltest"
)

func TestAsk(t *testing.T) {
	for name, c := range map[string]struct {
		reply control.Reply
		err   error
		want  string
		fails bool
	}{
		"answer":   {reply: control.Reply{Text: "the blue one"}, want: "the blue one"},
		"declined": {reply: control.Reply{Declined: true}, want: "what you assumed", fails: true},
		"nobody":   {err: errors.New("time is up"), want: "time is up", fails: true},
		"empty":    {reply: control.Reply{Text: " \n"}, want: "answered nothing", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			var choices []string
			tl := ask.New(ask.Options{Ask: func(_ context.Context, _ policy.Agent, q string, list []string) (control.Reply, error) {
				choices = append([]string{q}, list...)
				return c.reply, c.err
			}})
			res := tooltest.Run(t.Context(), t, tl, tooltest.Options{WorkDir: t.TempDir()}, map[string]any{"question": "Which?", "choices": []string{"red", "blue"}})
			if !strings.Contains(res.Content, c.want) || res.IsError != c.fails {
				t.Errorf("%q, error %v", res.Content, res.IsError)
			}
			if strings.Join(choices, " ") != "Which? red blue" {
				t.Errorf("asked %q", choices)
			}
		})
	}
}
