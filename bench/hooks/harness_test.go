package hooks

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed/internal/hookline"
)

// TestMeasures holds that the figures are those of the programs, and that one which
// doesn't do its work isn't measured.
func TestMeasures(t *testing.T) {
	w := newWorld(t)
	w.serve(t)
	list := w.contenders()
	if err := measure(2, list); err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		if err := c.weigh(w.launcher); err != nil {
			t.Fatal(err)
		}
		if len(c.wall) != 2 || median(c.wall) <= 0 || median(c.cpu) <= 0 || c.rss < 1 || c.rss > 500 {
			t.Errorf("%s: found %v ms, %v ms, %v MB", c.name, c.wall, c.cpu, c.rss)
		}
	}
	if hello, own := list[0], list[3]; own.rss < hello.rss || median(own.cpu) < median(hello.cpu) {
		t.Errorf("a hook took less than a hello-world: %s", table(list))
	}
	if text := table(list); strings.Count(text, "\n") != len(list)+2 || !strings.Contains(text, "warm service") {
		t.Errorf("found the table %s", text)
	}
	refused := &contender{name: "refused", argv: w.hook(w.rules), code: hookline.ExitDeny, fresh: true}
	if err := measure(1, []*contender{refused}); err == nil || len(refused.wall) != 0 {
		t.Errorf("a pass was measured as a refusal: %v", err)
	}
	call := w.ask(t)
	if took, all, err := load(50, call); err != nil || len(took) != 50 || all <= 0 {
		t.Errorf("found %d calls in %v, %v", len(took), all, err)
	}
	if err := echo(t, true)(1); err != nil {
		t.Error(err)
	}
	if _, _, err := load(10, func(i int) error { return fmt.Errorf("call %d", i) }); err == nil {
		t.Error("failing calls were measured")
	}
}

func TestMedianAndPercentile(t *testing.T) {
	for want, list := range map[float64][]float64{0: nil, 2: {3, 1, 2}, 2.5: {4, 1, 2, 3}, 7: {7}} {
		if got := median(list); math.Abs(got-want) > 1e-9 {
			t.Errorf("%v: found %v, expected %v", list, got, want)
		}
	}
	var list []time.Duration
	for i := range 1000 {
		list = append(list, time.Duration(999-i))
	}
	if percentile(list, 500) != 500 || percentile(list, 990) != 990 || percentile(list, 1000) != 999 {
		t.Error("percentiles of 0 to 999 are wrong")
	}
}
