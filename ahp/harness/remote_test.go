package harness_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/ahp/transport"
	"github.com/abhed/abhed/internal/strictjson"
)

// remoteArgument marks a run of the test binary as a backend that the test steers
// over a socket, whose path is the next argument.
const remoteArgument = "remote-backend"

// remote gives what it reads to the test, and writes what the test wants.
func remote(socket string, in io.Reader, out io.Writer) int {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return 2
	}
	defer conn.Close()
	go io.Copy(out, conn)
	io.Copy(conn, in)
	return 0
}

// dyingArgument marks a run of the test binary as a backend that dies at its first
// request unless the file that is the next argument is there, and makes it.
const dyingArgument = "dying-backend"

func dying(file string) int {
	lines := bufio.NewReader(os.Stdin)
	for {
		msg, err := lines.ReadBytes('\n')
		if err != nil {
			return 0
		}
		if _, err := os.Stat(file); err != nil {
			os.WriteFile(file, nil, 0o600)
			return 7
		}
		id, _ := ahp.MessageID(msg)
		reply, _ := ahp.EncodeEffects(id, nil)
		os.Stdout.Write(append(reply, '\n'))
	}
}

// remoteThatDies returns a process that dies once.
func remoteThatDies(t *testing.T) transport.Transport {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cfg := ahp.TransportConfig{Type: ahp.TransportStdio, Command: exe, Args: []string{dyingArgument, filepath.Join(t.TempDir(), "died")}, Lifecycle: ahp.LifecyclePersistent}
	link, err := transport.Stdio(cfg, transport.StdioOptions{Env: ahptest.ChildEnv()})
	if err != nil {
		t.Fatal(err)
	}
	return link
}

// remotePeer is a real process that answers when the row says so.
type remotePeer struct {
	t        *testing.T
	row      *lifecycle
	wire     transport.Transport
	mu       sync.Mutex
	conn     net.Conn
	came     map[string]int
	owed     map[string]int // requests that were not answered
	released map[string]bool
	news     chan struct{} // closed at every arrival, and made anew
}

func newRemotePeer(t *testing.T, row *lifecycle) *remotePeer {
	dir, err := os.MkdirTemp("", "ahp") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &remotePeer{t: t, row: row, came: map[string]int{}, owed: map[string]int{}, released: map[string]bool{}, news: make(chan struct{})}
	cfg := ahp.TransportConfig{Type: ahp.TransportStdio, Command: exe, Args: []string{remoteArgument, socket}, Lifecycle: ahp.LifecyclePersistent}
	if p.wire, err = transport.Stdio(cfg, transport.StdioOptions{Env: ahptest.ChildEnv(), Grace: 100 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	var reader sync.WaitGroup
	reader.Go(func() { p.serve(l) })
	t.Cleanup(func() {
		p.wire.Close()
		l.Close()
		reader.Wait()
	})
	return p
}

// serve takes the requests that the process passes on.
func (p *remotePeer) serve(l net.Listener) {
	conn, err := l.Accept()
	if err != nil {
		return
	}
	defer conn.Close()
	p.mu.Lock()
	p.conn = conn
	p.mu.Unlock()
	lines := bufio.NewReader(conn)
	for {
		msg, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		p.mu.Lock()
		key := keyOf(msg)
		p.came[key]++
		p.owed[key]++
		p.answer(key)
		close(p.news)
		p.news = make(chan struct{})
		p.mu.Unlock()
	}
}

// answer writes what is owed to key, if that may be; the caller holds p.mu.
func (p *remotePeer) answer(key string) {
	for p.released[key] && p.owed[key] > 0 {
		p.emitLocked(p.row.response(key, p.came[key]-p.owed[key]))
		p.owed[key]--
	}
}

func (p *remotePeer) emitLocked(reply []byte) {
	line, err := strictjson.Canonical(reply)
	if err == nil {
		_, err = p.conn.Write(append(line, '\n'))
	}
	if err != nil {
		p.t.Error(err)
	}
}

func (p *remotePeer) link() transport.Transport { return p.wire }

func (p *remotePeer) wait(key string, n int) {
	awaitRequests(p.t, key, n, func() (int, <-chan struct{}) {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.came[key], p.news
	})
}

func (p *remotePeer) release(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.released[key] = true
	p.answer(key)
}

func (p *remotePeer) ignored() int { return p.wire.(interface{ Ignored() int }).Ignored() }

// emit returns when the line was read and dropped.
func (p *remotePeer) emit(reply []byte) {
	before := p.ignored()
	p.mu.Lock()
	p.emitLocked(reply)
	p.mu.Unlock()
	for end := time.Now().Add(20 * time.Second); p.ignored() == before; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("nobody dropped %s", reply)
		}
	}
}

// TestLifecyclesOfAProcess plays the rows that a persistent process can have: it
// has one request outstanding (§16).
func TestLifecyclesOfAProcess(t *testing.T) {
	n := 0
	for _, s := range readLifecycles(t) {
		if s.chain != nil || s.Transports != nil && !slices.Contains(s.Transports, "stdio") {
			continue
		}
		n++
		t.Run(s.ID, func(t *testing.T) { playRow(t, &s, newRemotePeer(t, &s), func() {}) })
	}
	if n < 10 {
		t.Errorf("only %d rows", n)
	}
}

// TestOneOutstanding holds that a second request to a persistent process waits for
// the first, within its own deadline.
func TestOneOutstanding(t *testing.T) {
	row := &lifecycle{ID: "row"}
	p := newRemotePeer(t, row)
	within := func(d time.Duration) *harness.Harness {
		return newHarness(t, harnessOptions(), party{link: p.link(), subs: []ahp.Subscription{ahptest.Intercept(ahp.FailOpen, d, "tool.before")}})
	}
	first, second := exchangeOf(t, within(time.Minute), "row:a"), exchangeOf(t, within(100*time.Millisecond), "row:b")
	failures := make(chan error, 1)
	go func() {
		_, err := first.Send()
		failures <- err
	}()
	p.wait("a", 1)
	_, err := second.Send()
	if f := ahp.AsFailure(err); f == nil || f.Class != ahp.FailDeadline || !strings.Contains(err.Error(), "earlier request") {
		t.Errorf("the second: %v", err)
	}
	first.Cancel()
	if err := <-failures; !errors.Is(err, harness.ErrInterrupted) {
		t.Errorf("the first: %v", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.came["b"] != 0 {
		t.Error("two requests were outstanding")
	}
}

// TestMalformedProcessIsEnded holds that a process whose replies are no valid
// messages, again and again, is ended and started anew (§16), while one that is
// merely refused goes on.
func TestMalformedProcessIsEnded(t *testing.T) {
	for _, tt := range []struct {
		fault string
		ends  bool
	}{
		{"no_effects", true}, {"duplicate_keys", true}, {"wrong_id", true}, {"garbage", true},
		{"unadvertised_effect", false}, {"rpc_error", false}, {"none", false},
	} {
		f, ok := ahptest.FindFault(tt.fault)
		if !ok {
			t.Fatal(tt.fault)
		}
		starts := 0
		link, err := transport.Stdio(ahptest.StdioConfig(t, f.Name, ahp.LifecyclePersistent), transport.StdioOptions{
			Grace: 50 * time.Millisecond, Backoff: time.Millisecond, Env: append(ahptest.ChildEnv(), "AHP_ANNOUNCE=1"),
			OnStderr: func(line string) {
				if line == announcement {
					starts++
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		h := newHarness(t, harnessOptions(), intercepts(transport.Record(link, func(transport.Traffic) {}), ahp.FailOpen))
		for i := range 20 {
			dispatch(t, h, fmt.Sprintf("e%d", i))
		}
		h.Close() // the reader of its standard error is done
		if (starts > 1) != tt.ends || starts == 0 || starts > 4 {
			t.Errorf("%s: started %d times in 20 requests", tt.fault, starts)
		}
	}
}
