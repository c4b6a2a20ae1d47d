package hooks

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abhed/abhed/internal/hookline"
)

// decisions is how many the soak makes. The one that docs/performance.md has took a
// million.
var soak = flag.Int("decisions", 20_000, "decisions of BenchmarkSoak")

// clients is how many ask at a time.
const clients = 8

// size is that of an event in bytes.
const size = 2 << 10

// load has a number of clients make calls until n are made, and returns how long each
// took.
func load(n int, call func(i int) error) ([]time.Duration, time.Duration, error) {
	var next atomic.Int64
	took := make([]time.Duration, n)
	errs := make(chan error, clients)
	began := time.Now()
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				start := time.Now()
				if err := call(i); err != nil {
					errs <- err
					return
				}
				took[i] = time.Since(start)
			}
		})
	}
	all.Wait()
	select {
	case err := <-errs:
		return nil, 0, err
	default:
		return took, time.Since(began), nil
	}
}

// percentile returns the time that p of 1000 calls don't exceed.
func percentile(list []time.Duration, p int) time.Duration {
	s := slices.Sorted(slices.Values(list))
	return s[min(len(s)*p/1000, len(s)-1)]
}

// ask returns a call of the service that must pass.
func (w *world) ask(tb testing.TB) func(i int) error {
	id, err := hookline.IdentityOf(w.ahp)
	if err != nil {
		tb.Fatal(err)
	}
	return func(i int) error {
		c := &hookline.Call{Host: "claude-code", Home: w.home, Registration: w.rules, Dir: "/tmp", Data: event("ls -la src", i, size)}
		a, err := hookline.Ask(w.socket(), c, id, time.Now().Add(30*time.Second))
		if err == nil && a.Code != hookline.ExitPass {
			err = fmt.Errorf("exit %d %s%s, expected a pass", a.Code, a.Stdout, a.Stderr)
		}
		return err
	}
}

// echo starts the echo server and returns a request of it, over a connection of its
// own, as a hook has it, or over one that stays.
func echo(tb testing.TB, keep bool) func(i int) error {
	tb.Helper()
	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	socket := filepath.Join(tb.TempDir(), "echo.sock")
	cmd := exec.Command(self, "echo", socket)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	awaitSocket(tb, socket, &errs)
	var d net.Dialer
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: !keep, MaxIdleConnsPerHost: clients,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return d.DialContext(ctx, "unix", socket) },
	}}
	tb.Cleanup(client.CloseIdleConnections)
	return func(i int) error {
		sent := event("ls -la src", i, size)
		r, err := client.Post("http://echo/", "application/json", bytes.NewReader(sent))
		if err != nil {
			return err
		}
		defer r.Body.Close()
		got, err := io.ReadAll(r.Body)
		if err == nil && !bytes.Equal(got, sent) {
			err = fmt.Errorf("the echo of %d bytes has %d", len(sent), len(got))
		}
		return err
	}
}

// BenchmarkService compares the decisions of the warm service with a bare net/http echo
// of the same bytes over a Unix socket. The limits: half its throughput, and a p99 of
// ten medians.
func BenchmarkService(b *testing.B) {
	w := newWorld(b)
	w.serve(b)
	const each = 400
	list := []struct {
		name string
		call func(int) error
		rate []float64
		took []time.Duration
	}{{name: "net/http echo, a connection each", call: echo(b, false)}, {name: "net/http echo, connections kept", call: echo(b, true)}, {name: "decisions", call: w.ask(b)}}
	from := 0
	for b.Loop() {
		for i := range list {
			l := &list[i]
			took, all, err := load(each, func(n int) error { return l.call(from + n) })
			if err != nil {
				b.Fatal(err)
			}
			if from > 0 { // the first is for warming up
				l.rate = append(l.rate, each/all.Seconds())
				l.took = append(l.took, took...)
			}
		}
		from += each
	}
	if from == each {
		return
	}
	var text strings.Builder
	fmt.Fprintf(&text, "\n%-34s %9s %7s %9s %9s %7s\n", "", "calls/s", "ratio", "median", "p99", "ratio")
	for _, l := range list {
		mid, high := percentile(l.took, 500), percentile(l.took, 990)
		fmt.Fprintf(&text, "%-34s %9.0f %7.2f %9s %9s %7.2f\n", l.name, median(l.rate), median(l.rate)/median(list[0].rate), mid.Round(time.Microsecond), high.Round(time.Microsecond), float64(high)/float64(mid))
	}
	b.Log(text.String())
	b.ReportMetric(median(list[2].rate)/median(list[0].rate), "x-echo")
	b.ReportMetric(median(list[2].rate)/median(list[1].rate), "x-echo-kept")
}

// BenchmarkSoak makes many decisions and tells the memory of the service on the way.
func BenchmarkSoak(b *testing.B) {
	w := newWorld(b)
	server := w.serve(b)
	call := w.ask(b)
	for b.Loop() {
		var text strings.Builder
		total := *soak
		part := max(total/10, 1)
		for from := 0; from < total; from += part {
			_, all, err := load(part, func(n int) error { return call(from + n) })
			if err != nil {
				b.Fatal(err)
			}
			fmt.Fprintf(os.Stderr, "%d decisions of %d\n", from+part, total)
			fmt.Fprintf(&text, "\n%9d decisions  RSS %5.1f MB  %6.0f/s", from+part, rss(b, server.Process.Pid), float64(part)/all.Seconds())
		}
		b.Log(text.String())
	}
}

// rss returns the resident memory of a process in MB.
func rss(tb testing.TB, pid int) float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		tb.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if v, is := strings.CutPrefix(line, "VmRSS:"); is {
			kb, err := strconv.ParseFloat(strings.Fields(v)[0], 64)
			if err != nil {
				tb.Fatal(err)
			}
			return kb / 1024
		}
	}
	tb.Fatal("the system tells no resident memory")
	return 0
}
