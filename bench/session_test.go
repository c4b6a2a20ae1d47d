package bench

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/model/modeltest"
	"github.com/abhed/abhed/internal/require"
)

// workplace is a folder with one small file, the programs that read it again and again,
// and what the bare loop's requests begin and end with.
type workplace struct {
	b           *testing.B
	dir, home   string
	abhed, bare string
	head, tail  string
}

// newWorkplace builds the programs and takes the frame of a request from a run.
func newWorkplace(b *testing.B) *workplace {
	b.Helper()
	require.Path(b, "time") // GNU time tells the peak of memory
	w := &workplace{b: b, dir: b.TempDir(), home: b.TempDir(), abhed: build(b, "./cmd/abhed"), bare: build(b, "./bench/testdata/bareloop.go")}
	if err := os.WriteFile(filepath.Join(w.dir, "f.txt"), []byte(strings.Repeat("some small text\n", 20)), 0o600); err != nil {
		b.Fatal(err)
	}
	server := modeltest.Start(modeltest.Options{Turns: reads(1)})
	defer server.Close()
	w.run(server.URL)
	body := server.Requests()[0].Body
	mark := []byte(`"content":"read the files"}`)
	at := bytes.Index(body, mark)
	if at < 0 {
		b.Fatalf("the request has no prompt: %.200s", body)
	}
	at += len(mark)
	for _, part := range []struct {
		file *string
		data []byte
	}{{&w.head, body[:at]}, {&w.tail, body[at:]}} {
		*part.file = filepath.Join(b.TempDir(), "part")
		if err := os.WriteFile(*part.file, part.data, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	return w
}

// reads is a session of so many turns: reads of one file, then an answer.
func reads(n int) []modeltest.Turn {
	var turns []modeltest.Turn
	for i := range n - 1 {
		turns = append(turns, modeltest.Turn{Calls: []modeltest.Call{{ID: fmt.Sprintf("c%d", i), Name: "read", Args: `{"path":"f.txt"}`}}})
	}
	return append(turns, modeltest.Turn{Text: "all done"})
}

// spent is what a process took.
type spent struct{ cpuMS, rssMB float64 }

// measure runs a program to its end. Its memory is what GNU time says: the peak that a
// process reports of a child begins with its own.
func (w *workplace) measure(environ []string, words ...string) spent {
	w.b.Helper()
	said := filepath.Join(w.dir, "peak")
	cmd := exec.Command("time", append([]string{"-f", "%M", "-o", said}, words...)...)
	cmd.Dir, cmd.Env = w.dir, environ
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != "all done\n" {
		w.b.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(said)
	if err != nil {
		w.b.Fatal(err)
	}
	kib, err := strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
	if err != nil {
		w.b.Fatalf("time says %q", text)
	}
	return spent{(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds() * 1000, kib / 1024}
}

func (w *workplace) run(url string) spent {
	w.b.Helper()
	environ := []string{"HOME=" + w.home, "PATH=" + os.Getenv("PATH"), "ABHED_BASE_URL=" + url, "ABHED_MODEL=test"}
	return w.measure(environ, w.abhed, "-p", "read the files", "--min-tier", "none", "--quiet", "--max-turns", "100000")
}

func (w *workplace) loop(url string) spent {
	w.b.Helper()
	return w.measure([]string{"PATH=" + os.Getenv("PATH")}, w.bare, url, w.head, w.tail)
}

// both runs one session with each program, and reports the medians.
func both(b *testing.B, w *workplace, turns int) {
	var ours, bare, ratios []float64
	rss, sent := 0.0, 0
	for b.Loop() {
		server := modeltest.Start(modeltest.Options{Turns: reads(turns)})
		a := w.run(server.URL)
		sent = 0
		for _, r := range server.Requests() {
			sent += len(r.Body)
		}
		server.Close()
		server = modeltest.Start(modeltest.Options{Turns: reads(turns)})
		p := w.loop(server.URL)
		server.Close()
		ours, bare, ratios = append(ours, a.cpuMS), append(bare, p.cpuMS), append(ratios, a.cpuMS/p.cpuMS)
		rss = max(rss, a.rssMB)
	}
	b.ReportMetric(0, "ns/op") // of both, which means nothing
	b.ReportMetric(median(ours), "CPU-ms")
	b.ReportMetric(median(bare), "bare-CPU-ms")
	b.ReportMetric(median(ratios), "x-bare")
	b.ReportMetric(median(ours)/float64(turns)*1000, "CPU-us/turn")
	b.ReportMetric(rss, "peak-RSS-MB")
	b.ReportMetric(float64(sent)/1e6, "sent-MB")
}

func median(list []float64) float64 {
	s := slices.Sorted(slices.Values(list))
	return s[len(s)/2]
}

// BenchmarkSession runs a scripted session of 20 turns, 19 reads of one small file and
// an answer, against a model server on loopback. The peer is a bare loop that makes the
// same requests and has no gate, no rules, no record and no sandbox; the limit is twice
// its CPU time, and 45 MB.
func BenchmarkSession(b *testing.B) {
	both(b, newWorkplace(b), 20)
}

// BenchmarkLongSession shows how CPU time grows with the turns: what is sent grows with
// their square, what is done for a turn must not.
func BenchmarkLongSession(b *testing.B) {
	w := newWorkplace(b)
	for _, turns := range []int{50, 100, 200, 350, 500} {
		b.Run(fmt.Sprintf("turns=%d", turns), func(b *testing.B) { both(b, w, turns) })
	}
}
