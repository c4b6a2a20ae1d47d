package todo_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/tool"
	"github.com/abhed/abhed/internal/tool/todo"
	"github.com/abhed/abhed/internal/tool/tooltest"
)

type m = map[string]any

func items(list ...string) m {
	out := []m{}
	for _, s := range list {
		status, content, _ := strings.Cut(s, ":")
		out = append(out, m{"content": content, "status": status})
	}
	return m{"items": out}
}

func run(t *testing.T, it tool.Tool, args m) tool.Result {
	t.Helper()
	return tooltest.Run(t.Context(), t, it, tooltest.Options{WorkDir: t.TempDir()}, args)
}

func TestListIsReplacedWhole(t *testing.T) {
	var told [][]todo.Item
	it := todo.New(todo.Options{OnChange: func(_ context.Context, _ string, _, items []todo.Item) { told = append(told, items) }})
	res := run(t, it, items("completed:look", "in_progress:mend\nit", "pending:test"))
	want := "1. [x] look\n2. [>] mend it\n3. [ ] test\n(2 of 3 open)\n"
	if res.IsError || res.Content != want {
		t.Errorf("%q, want %q", res.Content, want)
	}
	run(t, it, items("pending:other"))
	if got := it.Items(""); len(got) != 1 || got[0] != (todo.Item{Content: "other", Status: todo.Pending}) {
		t.Errorf("%+v", got)
	}
	if res := run(t, it, items()); res.Content != "(the list is empty)" || len(it.Items("")) != 0 {
		t.Errorf("%q", res.Content)
	}
	if len(told) != 3 || len(told[0]) != 3 || len(told[2]) != 0 {
		t.Errorf("told %v", told)
	}
}

func TestRefusedListChangesNothing(t *testing.T) {
	calls := 0
	it := todo.New(todo.Options{OnChange: func(context.Context, string, []todo.Item, []todo.Item) { calls++ }})
	run(t, it, items("pending:first"))
	for _, tt := range []struct {
		args m
		want string
	}{
		{items("in_progress:a", "pending:b", "in_progress:c"), "items 1, 3 are in_progress"},
		{items("pending:a", "pending: \n"), "item 2 says nothing"},
	} {
		if res := run(t, it, tt.args); !res.IsError || !strings.Contains(res.Content, tt.want) || !strings.Contains(res.Content, "not changed") {
			t.Errorf("%v: %+v, want %q", tt.args, res, tt.want)
		}
	}
	if got := it.Items(""); calls != 1 || len(got) != 1 || got[0].Content != "first" {
		t.Errorf("after %d changes: %+v", calls, got)
	}
}

func TestSchema(t *testing.T) {
	it := todo.New(todo.Options{})
	long, many := strings.Repeat("x", 1001), strings.TrimSuffix(strings.Repeat(`{"content":"x","status":"pending"},`, 101), ",")
	for _, raw := range []string{
		`{}`, `{"items":[{"content":"x"}]}`, `{"items":[{"content":"","status":"pending"}]}`, `{"items":[{"content":"x","status":"done"}]}`,
		fmt.Sprintf(`{"items":[{"content":%q,"status":"pending"}]}`, long), `{"items":[` + many + `]}`, `{"items":[{"content":"x","status":"pending","id":1}]}`,
	} {
		if tooltest.Check(t, it, raw) == nil {
			t.Errorf("%.100s was accepted", raw)
		}
	}
	if d := it.Declare(nil); d != (policy.Declaration{}) {
		t.Errorf("declares %+v, want no subject and no change", d)
	}
}

func TestAgentsHaveTheirOwn(t *testing.T) {
	it := todo.New(todo.Options{})
	it.Restore(map[string][]todo.Item{"sub": {{Content: "theirs", Status: todo.Completed}}})
	run(t, it, items("pending:mine"))
	if got := it.Items("sub"); !slices.Equal(got, []todo.Item{{Content: "theirs", Status: todo.Completed}}) {
		t.Errorf("the other agent's list is now %+v", got)
	}
}

func TestBounds(t *testing.T) {
	it := todo.New(todo.Options{})
	lists := map[string][]todo.Item{}
	for i := range 1000 {
		lists[fmt.Sprint("agent", i)] = nil
	}
	it.Restore(lists)
	if res := run(t, it, items("pending:one more")); !res.IsError || !strings.Contains(res.Content, "1000 agents of this session have a list already") {
		t.Errorf("a list too many: %+v", res)
	}
}

// TestWhoIsAgainstAList: nothing is changed, and nobody is told that it was.
func TestWhoIsAgainstAList(t *testing.T) {
	told := 0
	it := todo.New(todo.Options{
		Before: func(_ context.Context, _ string, old, items []todo.Item) error {
			if len(items) < len(old) {
				return errors.New("items are completed, not dropped")
			}
			return nil
		},
		OnChange: func(context.Context, string, []todo.Item, []todo.Item) { told++ },
	})
	run(t, it, items("pending:a", "pending:b"))
	if res := run(t, it, items("pending:a")); !res.IsError || res.Content != "The list was not changed: items are completed, not dropped" || len(it.Items("")) != 2 || told != 1 {
		t.Errorf("%+v, told %d times", res, told)
	}
}
