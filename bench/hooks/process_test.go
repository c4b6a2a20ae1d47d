package hooks

import (
	"bytes"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed/internal/hookline"
)

// contender is a command that is measured.
type contender struct {
	name      string
	argv      []string
	code      int       // that it must end with
	fresh     bool      // it is given another event each time
	wall, cpu []float64 // milliseconds
	rss       float64   // the peak, in MB
}

// once runs it and takes its measure.
func (c *contender) once(round int) error {
	cmd := exec.Command(c.argv[0], c.argv[1:]...)
	if c.fresh {
		cmd.Stdin = bytes.NewReader(event("ls -la src", round, 300))
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	began := time.Now()
	err := cmd.Run()
	took := time.Since(began)
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != c.code {
		return fmt.Errorf("%s: %v, expected exit %d\n%s", strings.Join(c.argv, " "), err, c.code, &errs)
	}
	c.wall = append(c.wall, float64(took.Microseconds())/1000)
	c.cpu = append(c.cpu, float64((cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime()).Microseconds())/1000)
	return nil
}

// weigh takes the peak of its memory.
func (c *contender) weigh(launcher string) error {
	cmd := exec.Command(launcher, c.argv...)
	if c.fresh {
		cmd.Stdin = bytes.NewReader(event("ls -la src", 0, 300))
	}
	out, err := cmd.Output()
	if err != nil {
		return err
	}
	kib, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
	c.rss = kib / 1024
	return err
}

// measure runs all in turn, so that what else the machine does falls on each alike.
func measure(rounds int, list []*contender) error {
	for round := range rounds {
		for _, c := range list {
			if err := c.once(round); err != nil {
				return err
			}
		}
	}
	return nil
}

// median returns the middle of list.
func median(list []float64) float64 {
	s := slices.Sorted(slices.Values(list))
	if len(s) == 0 {
		return 0
	}
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// table is the result, each beside the first.
func table(list []*contender) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%-34s %9s %7s %9s %7s %8s\n", "", "wall ms", "ratio", "CPU ms", "ratio", "RSS MB")
	for _, c := range list {
		fmt.Fprintf(&b, "%-34s %9.2f %7.2f %9.2f %7.2f %8.1f\n", c.name, median(c.wall), median(c.wall)/median(list[0].wall), median(c.cpu), median(c.cpu)/median(list[0].cpu), c.rss)
	}
	return b.String()
}

// contenders returns what is compared, a static hello-world first.
func (w *world) contenders() []*contender {
	list := []*contender{
		{name: "hello-world", argv: []string{w.hello}},
		{name: "ahp --version", argv: []string{w.ahp, "--version"}},
		{name: "hook, warm service", argv: w.hook(w.rules), code: hookline.ExitPass, fresh: true},
		{name: "hook, in its process", argv: w.hook(w.rules, "--no-service"), code: hookline.ExitPass, fresh: true},
		{name: "hook, a small backend started", argv: w.hook(w.small, "--no-service"), code: hookline.ExitPass, fresh: true},
		{name: "hook, ahp backend rules started", argv: w.hook(w.spawned, "--no-service"), code: hookline.ExitPass, fresh: true},
	}
	if node, err := exec.LookPath("node"); err == nil {
		list = append(list, &contender{name: "node -e 0", argv: []string{node, "-e", "0"}})
	}
	return list
}

// BenchmarkProcess compares whole processes. The limits, against hello-world: twice for
// a warm service, three times in the hook's own process, five times with a backend that
// is started.
func BenchmarkProcess(b *testing.B) {
	w := newWorld(b)
	w.serve(b)
	list := w.contenders()
	if err := measure(1, list); err != nil { // files in the cache, the service warm
		b.Fatal(err)
	}
	for _, c := range list {
		c.wall, c.cpu = nil, nil
		if err := c.weigh(w.launcher); err != nil {
			b.Fatal(err)
		}
	}
	rounds := 0
	for b.Loop() {
		rounds++
		for _, c := range list {
			if err := c.once(1000 + rounds); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Log(table(list))
	b.ReportMetric(median(list[2].cpu)/median(list[0].cpu), "warm-cpu-x-hello")
	b.ReportMetric(median(list[2].wall)/median(list[0].wall), "warm-wall-x-hello")
	b.ReportMetric(median(list[3].cpu)/median(list[0].cpu), "own-cpu-x-hello")
}
