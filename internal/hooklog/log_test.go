package hooklog_test

import (
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/hooklog"
)

func open(t testing.TB, dir string, opts hooklog.Options) *hooklog.Log {
	t.Helper()
	l, err := hooklog.Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func TestAppendReadFindVerify(t *testing.T) {
	dir := t.TempDir() + "/log"
	l := open(t, dir, hooklog.Options{})
	for _, id := range []string{"e1", "e2", "x3"} {
		e := &hooklog.Entry{ID: id, Host: "codex", Decision: hooklog.Deny, Tool: "shell", Event: ahp.Raw(`{"input":{"n":1.50,"token":"marlin-99"},"id":"` + id + `"}`)}
		if err := l.Append(e); err != nil {
			t.Fatal(err)
		}
		if e.Seq == 0 || len(e.Hash) != 64 || e.Time == "" {
			t.Errorf("%+v", e)
		}
	}
	var ids string
	if err := hooklog.Read(dir, func(e *hooklog.Entry) error { ids += e.ID; return nil }); err != nil || ids != "e1e2x3" {
		t.Errorf("read %q, %v", ids, err)
	}
	e, err := hooklog.Find(dir, "x")
	if err != nil || e.ID != "x3" || string(e.Event) != `{"id":"x3","input":{"n":1.50,"token":"[removed]"}}` {
		t.Errorf("%+v, %s, %v", e, e.Event, err)
	}
	if r, err := hooklog.Verify(dir, nil); err != nil || !r.OK() || r.Lines != 3 {
		t.Errorf("%+v, %v", r, err)
	}
}
