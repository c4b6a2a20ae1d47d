package harness_test

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/ahp/transport"
)

// pipeEchoArgument marks a run of the test binary as the other end of
// BenchmarkPipeEcho.
const pipeEchoArgument = "pipe-echo"

// pipeEcho decodes each line, encodes it again, and answers with an empty reply.
func pipeEcho(in io.Reader, out io.Writer) {
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return
		}
		var m map[string]any
		if json.Unmarshal(line, &m) != nil {
			return
		}
		reply, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": m["id"], "result": map[string]any{"protocolVersion": "draft", "effects": []any{}}})
		out.Write(append(reply, '\n'))
	}
}

func benchEvent() *ahp.Event {
	return ahptest.ToolBefore("e", `{"command":"`+strings.Repeat("go test ./... && ", 90)+`true","timeout":120}`)
}

// BenchmarkDispatch is one decision by one persistent stdio backend: a real
// process that never objects.
func BenchmarkDispatch(b *testing.B) {
	link, err := transport.Stdio(ahptest.StdioConfig(b, "", ahp.LifecyclePersistent), transport.StdioOptions{Env: ahptest.ChildEnv()})
	if err != nil {
		b.Fatal(err)
	}
	h := newHarness(b, harness.Options{}, party{link: link, subs: []ahp.Subscription{ahptest.Intercept(ahp.FailClosed, time.Minute, "tool.before")}})
	caps := noAllow()
	event := benchEvent()
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		n++
		event.ID = "e" + time.Duration(n).String() // the backend remembers answers
		out, err := h.Dispatch(b.Context(), event, caps, nil, harness.DispatchOptions{})
		if err != nil || !out.MayExecute() {
			b.Fatal(err, out)
		}
	}
}

// BenchmarkPipeEcho is what BenchmarkDispatch is measured against: two Go
// processes and a pipe, each end decoding and encoding the same JSON.
func BenchmarkPipeEcho(b *testing.B) {
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(exe, pipeEchoArgument)
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	defer cmd.Wait()
	defer in.Close()
	event := benchEvent()
	msg, err := (&ahp.Intercept{Event: event, Capabilities: *noAllow()}).Encode()
	if err != nil {
		b.Fatal(err)
	}
	var request map[string]any
	if err := json.Unmarshal(msg, &request); err != nil {
		b.Fatal(err)
	}
	r := bufio.NewReader(out)
	b.ReportAllocs()
	for b.Loop() {
		text, err := json.Marshal(request)
		if err != nil {
			b.Fatal(err)
		}
		in.Write(append(text, '\n'))
		line, err := r.ReadBytes('\n')
		if err != nil {
			b.Fatal(err)
		}
		var reply map[string]any
		if err := json.Unmarshal(line, &reply); err != nil {
			b.Fatal(err)
		}
	}
}
