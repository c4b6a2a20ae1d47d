package transport_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/transport"
)

// child marks a run of the test binary as a scripted backend.
const child = "scripted-backend"

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == child {
		scripted(os.Args[2])
	}
	goleak.VerifyTestMain(m)
}

func reply(id string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"result":{"protocolVersion":"draft","effects":[]}}`, id) + "\n"
}

// scripted is a backend that does what the id of each request says, up to the
// first dash.
func scripted(mode string) {
	fmt.Fprintf(os.Stderr, "started %s\n", strings.Join(os.Environ(), " "))
	if mode == "deaf" {
		time.Sleep(time.Hour)
	}
	held := ""
	seen := map[string]bool{}
	n := 0
	r := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			os.Exit(0)
		}
		mid, _ := ahp.MessageID(line)
		id, _ := mid.Value()
		fmt.Fprintf(os.Stderr, "got %q\n", id)
		switch verb, _, _ := strings.Cut(id, "-"); verb {
		case "hold": // answered before the next reply
			held += reply(id)
			continue
		case "again": // the first time answered too late, the second time twice
			if !seen[id] {
				seen[id] = true
				held += reply(id)
				continue
			}
		case "silent", "":
			continue
		case "count": // numbered; the first comes with the second
			n++
			held += fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"n":%d}`, id, n) + "\n"
			if n > 1 {
				os.Stdout.WriteString(held)
				held = ""
			}
			continue
		case "once": // the answer to the first comes with what is asked after the second
			if !seen[id] {
				seen[id] = true
				continue
			}
			os.Stdout.WriteString(reply(id))
			held = reply(id)
			continue
		case "die":
			os.Exit(3)
		case "strays":
			held += strings.Repeat("noise\n", 3)
		case "half":
			os.Stdout.WriteString(`{"jsonrpc":`)
			os.Exit(0)
		case "twice":
			held += reply(id)
		}
		os.Stdout.WriteString(held + reply(id))
		held = ""
	}
}

// lines collects the standard error of a backend.
type lines struct {
	mu   sync.Mutex
	all  []string
	grew chan struct{}
}

func newLines() *lines { return &lines{grew: make(chan struct{}, 1)} }

func (l *lines) add(s string) {
	l.mu.Lock()
	l.all = append(l.all, s)
	l.mu.Unlock()
	select {
	case l.grew <- struct{}{}:
	default:
	}
}

func (l *lines) count(prefix string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, s := range l.all {
		if strings.HasPrefix(s, prefix) {
			n++
		}
	}
	return n
}

// wait returns when n lines with the prefix have come.
func (l *lines) wait(t *testing.T, prefix string, n int) {
	t.Helper()
	limit := time.After(20 * time.Second)
	for l.count(prefix) < n {
		select {
		case <-l.grew:
		case <-limit:
			t.Fatalf("%d of %d lines %q", l.count(prefix), n, prefix)
		}
	}
}

// wantStarts checks how many processes were started: their standard error may come
// a little after their replies.
func (l *lines) wantStarts(t *testing.T, n int) {
	t.Helper()
	l.wait(t, "started", n)
	if got := l.count("started"); got != n {
		t.Errorf("%d processes, want %d", got, n)
	}
}

// start returns a transport to the scripted backend; it is closed at the end of
// the test.
func start(t *testing.T, mode, lifecycle string, opts transport.StdioOptions) (transport.Transport, *lines) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	stderr := newLines()
	opts.OnStderr = stderr.add
	opts.Env = append(opts.Env, "GORACE=atexit_sleep_ms=0")
	link, err := transport.Stdio(ahp.TransportConfig{Type: "stdio", Command: exe, Args: []string{child, mode}, Lifecycle: lifecycle}, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { link.Close() })
	return link, stderr
}

func request(id string) []byte { return []byte(fmt.Sprintf(`{"jsonrpc":"2.0","id":%q}`, id)) }

// exchange sends a request and waits at most d.
func exchange(t *testing.T, link transport.Transport, id string, d time.Duration) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	out, err := link.Exchange(ctx, request(id))
	return string(out), err
}

// mustExchange fails the test unless the right reply comes.
func mustExchange(t *testing.T, link transport.Transport, id string) {
	t.Helper()
	out, err := exchange(t, link, id, 30*time.Second)
	if err != nil || out+"\n" != reply(id) {
		t.Fatalf("%s: %q, %v", id, out, err)
	}
}

func wantClass(t *testing.T, err error, class ahp.FailureClass) {
	t.Helper()
	if f := ahp.AsFailure(err); f == nil || f.Class != class {
		t.Fatalf("want class %s, got %v", class, err)
	}
}
