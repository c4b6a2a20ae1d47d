package recall_test

import (
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/tool/recall"
	"github.com/abhed/abhed/internal/tool/tooltest"
)

func TestRecall(t *testing.T) {
	long := strings.Repeat("x", 70<<10) + "end"
	tl := recall.New(func(_ policy.Agent, id string) (string, bool) { return long, id == "c7" })
	run := func(args map[string]any) (string, bool) {
		res := tooltest.Run(t.Context(), t, tl, tooltest.Options{WorkDir: t.TempDir()}, args)
		return res.Content, res.IsError
	}
	if text, bad := run(map[string]any{"call_id": "c7"}); bad || !strings.HasSuffix(text, "go on with offset 65536") {
		t.Errorf("%d bytes, error %v", len(text), bad)
	}
	if text, bad := run(map[string]any{"call_id": "c7", "offset": 65536}); bad || text != long[65536:] {
		t.Errorf("%d bytes, error %v", len(text), bad)
	}
	if text, bad := run(map[string]any{"call_id": "c7", "offset": 1 << 20}); !bad || !strings.Contains(text, "behind its end") {
		t.Errorf("%q, error %v", text, bad)
	}
	if text, bad := run(map[string]any{"call_id": "c8"}); !bad || !strings.Contains(text, `"c8"`) {
		t.Errorf("%q, error %v", text, bad)
	}
}
