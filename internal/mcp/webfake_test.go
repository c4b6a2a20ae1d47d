package mcp_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/abhed/abhed/internal/mcp"
	"github.com/abhed/abhed/internal/strictjson"
)

// webFake is what a fake server over HTTP has beside one on its standard streams.
type webFake struct {
	mu sync.Mutex // whoever answers a request has it
	// answers are the responses that the client sent.
	answers chan *message
	// flooded is closed when the answers are taken no more.
	flooded chan struct{}
	// Of the request that is answered.
	ctx   context.Context
	flush func()
}

// serve answers POST with an event stream, and ends with its standard input.
func (f *fake) serve() int {
	f.web = &webFake{answers: make(chan *message, 1<<10), flooded: make(chan struct{})}
	l, err := net.Listen("tcp", f.Listen)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 95
	}
	if os.WriteFile(f.Addr+".new", []byte(l.Addr().String()), 0o600) != nil || os.Rename(f.Addr+".new", f.Addr) != nil {
		return 94
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	fmt.Fprintln(os.Stderr, http.Serve(l, f))
	return 93
}

// ServeHTTP takes one message. A process knows its own sessions only.
func (f *fake) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	own := fmt.Sprint("session-", os.Getpid())
	if given := req.Header.Get("Mcp-Session-Id"); given != "" && given != own {
		http.Error(w, "no such session", http.StatusNotFound)
		return
	}
	if req.Method != http.MethodPost {
		http.Error(w, "nothing here", http.StatusMethodNotAllowed)
		return
	}
	var m message
	data, err := io.ReadAll(req.Body)
	if err != nil || strictjson.Unmarshal(data, &m, strictjson.Options{MaxBytes: 32 << 20}) != nil {
		http.Error(w, "no message", http.StatusBadRequest)
		return
	}
	f.note("%s %s", m.Method, m.Params)
	if m.ID == nil || m.Method == "" {
		if m.Method == "" {
			select {
			case f.web.answers <- &m:
			case <-f.web.flooded:
				<-req.Context().Done()
			}
		}
		w.WriteHeader(http.StatusAccepted)
		return
	}
	f.web.mu.Lock()
	defer f.web.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Mcp-Session-Id", own)
	f.out, f.web.ctx, f.web.flush = bufio.NewWriter(w), req.Context(), w.(http.Flusher).Flush
	f.answer(&m)
}

func (w *webFake) next() *message {
	select {
	case m := <-w.answers:
		return m
	case <-w.ctx.Done():
		return nil
	}
}

// hang answers nothing; over HTTP it keeps the request open and takes others.
func (f *fake) hang() {
	if f.web == nil {
		return
	}
	ctx := f.web.ctx
	f.web.flush()
	f.web.mu.Unlock()
	<-ctx.Done()
	f.web.mu.Lock()
}

// flood asks without end and takes no answers.
func (f *fake) flood() {
	if f.web != nil {
		f.web.answers = nil
		close(f.web.flooded)
	}
	for i := 0; f.web == nil || f.web.ctx.Err() == nil; i++ {
		f.write(`{"jsonrpc":"2.0","id":"f%d","method":"ping"}`, i)
	}
}

// askMany puts n questions at once and tells how they were answered.
func (f *fake) askMany(m *message, n int) {
	for i := range n {
		f.write(`{"jsonrpc":"2.0","id":"q%d","method":"elicitation/create","params":%s}`, i, teamForm)
	}
	all := ""
	for range n {
		answer := f.next()
		for answer != nil && answer.Result == nil {
			answer = f.next()
		}
		if answer == nil {
			return
		}
		f.note("answer %s", answer.Result)
		all += string(answer.Result)
	}
	f.result(m, "%s", text(all))
}

// webProcess is a fake server over HTTP in a process of its own.
type webProcess struct {
	t      testing.TB
	script script
	cmd    *exec.Cmd
}

// overHTTP starts a server that plays a script and returns how to reach it.
func overHTTP(t testing.TB, name string, s script) (mcp.Server, *webProcess) {
	t.Helper()
	s.Listen, s.Addr = "127.0.0.1:0", filepath.Join(t.TempDir(), "addr")
	p := &webProcess{t: t, script: s}
	addr := p.start()
	p.script.Listen = addr
	t.Cleanup(p.end)
	return mcp.Server{Name: name, URL: "http://" + addr + "/mcp"}, p
}

func (p *webProcess) start() (addr string) {
	p.t.Helper()
	_ = os.Remove(p.script.Addr)
	cfg := server(p.t, "x", p.script)
	p.cmd = exec.Command(cfg.Command, cfg.Args...)
	p.cmd.Env = append(os.Environ(), raceEnv)
	if _, err := p.cmd.StdinPipe(); err != nil { // open as long as this process lives
		p.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	if !eventually(func() bool { data, err := os.ReadFile(p.script.Addr); addr = string(data); return err == nil }) {
		p.t.Fatal("the server over HTTP doesn't say where it listens")
	}
	return addr
}

func (p *webProcess) end() {
	_ = p.cmd.Process.Kill() // it may have ended by itself
	_ = p.cmd.Wait()
}

// again starts a server that ended, at the same address.
func (p *webProcess) again() {
	p.t.Helper()
	p.end()
	p.start()
}
