package task_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/tool"
	"github.com/abhed/abhed/internal/tool/task"
	"github.com/abhed/abhed/internal/tool/tooltest"
)

func TestTask(t *testing.T) {
	for name, c := range map[string]struct {
		reply task.Reply
		err   error
		want  string
		fails bool
	}{
		"done":          {reply: task.Reply{Text: "found it", Completed: true, Reason: "completed", Notes: []string{"its worktree is gone"}}, want: "found it\n[abhed] its worktree is gone\n"},
		"nothing said":  {reply: task.Reply{Completed: true}, want: "without a report"},
		"limit":         {reply: task.Reply{Text: "half", Reason: "max_turns", Detail: "3 used"}, want: "did not finish: max_turns: 3 used\nIts last words:\nhalf", fails: true},
		"never started": {err: errors.New("depth 2 is the deepest"), want: "not started: depth 2 is the deepest", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			var got task.Request
			tl := task.New(task.Options{Run: func(_ context.Context, _ policy.Agent, r task.Request) (task.Reply, error) {
				got = r
				return c.reply, c.err
			}})
			res := tooltest.Run(t.Context(), t, tl, tooltest.Options{WorkDir: t.TempDir()}, map[string]any{"description": "look", "prompt": "look for it", "read_only": true})
			if !strings.Contains(res.Content, c.want) || res.IsError != c.fails {
				t.Errorf("%q, error %v", res.Content, res.IsError)
			}
			if got.Prompt != "look for it" || !got.ReadOnly || got.Worktree {
				t.Errorf("asked for %+v", got)
			}
		})
	}
}

func TestDeclare(t *testing.T) {
	d := task.New(task.Options{}).Declare([]byte(`{"description":"look","prompt":"p"}`))
	if d.Mutates || d.Subject != "look" || d.Kind != policy.SubjectText {
		t.Errorf("%+v", d)
	}
	if _, err := tool.NewRegistry(task.New(task.Options{})); err != nil {
		t.Error(err)
	}
}
