package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/abhed/abhed/internal/model/modeltest"
)

// BenchmarkSession runs a scripted session of 20 turns, 19 reads of one small file
// and an answer, against a model server on loopback, and reports the peak of the
// process's memory, whose limit is 45 MB, and its CPU time.
func BenchmarkSession(b *testing.B) {
	program := build(b, "./cmd/abhed")
	dir := b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f.txt"), []byte(strings.Repeat("some small text\n", 20)), 0o600); err != nil {
		b.Fatal(err)
	}
	var rss, cpu float64
	for b.Loop() {
		var turns []modeltest.Turn
		for i := range 19 {
			turns = append(turns, modeltest.Turn{Calls: []modeltest.Call{{ID: fmt.Sprintf("c%d", i), Name: "read", Args: `{"path":"f.txt"}`}}})
		}
		server := modeltest.Start(modeltest.Options{Turns: append(turns, modeltest.Turn{Text: "all done"})})
		cmd := exec.Command(program, "-p", "read the files", "-C", dir, "--min-tier", "none", "--quiet")
		cmd.Env = []string{"HOME=" + b.TempDir(), "PATH=" + os.Getenv("PATH"), "ABHED_BASE_URL=" + server.URL, "ABHED_MODEL=test"}
		out, err := cmd.CombinedOutput()
		server.Close()
		if err != nil || string(out) != "all done\n" {
			b.Fatalf("%v: %s", err, out)
		}
		usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
		if !ok {
			b.Fatal("no resource usage on this system")
		}
		rss = max(rss, float64(usage.Maxrss)/1024) // Linux counts in KiB
		cpu += (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds() * 1000
	}
	b.ReportMetric(rss, "peak-RSS-MB")
	b.ReportMetric(cpu/float64(b.N), "CPU-ms/op")
}
