package mcp

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"github.com/abhed/abhed/internal/run"
	"github.com/abhed/abhed/internal/tool"
)

// Host owns the servers of one session. Its methods may be called from any
// goroutine. Every Host needs a Close.
type Host struct {
	opts    Options
	http    *http.Transport
	servers []*server

	// Set by Start and then only read.
	tools    []*serverTool // sorted by name
	byName   map[string]*serverTool
	deferred map[string]bool

	// life ends with Close, and with it every call and every start.
	life context.Context
	end  context.CancelFunc
	work *run.Group
	once sync.Once

	mu          sync.Mutex // guards what follows
	loaded      []string
	quarantined map[string]string
}

// Start starts all servers at the same time and reads their lists of tools. ctx
// bounds the start, not the host's life.
//
// The error is a *StartError if the configuration is at fault, ctx's error, or
// *run.PanicError; then nothing is left running. A server that can't start is no
// error: it has no tools, which is recorded and shown by States.
func Start(ctx context.Context, servers []Server, opts Options) (*Host, error) {
	h := &Host{opts: opts, byName: map[string]*serverTool{}, deferred: map[string]bool{}, quarantined: map[string]string{}}
	h.opts.Taken, h.opts.Roots = slices.Clone(opts.Taken), slices.Clone(opts.Roots)
	if h.opts.ElicitTimeout == 0 {
		h.opts.ElicitTimeout = DefaultElicitTimeout
	}
	if h.opts.BudgetTokens == 0 {
		h.opts.BudgetTokens = DefaultBudget
	}
	if h.opts.Version == "" {
		h.opts.Version = "0"
	}
	var err error
	if h.http, err = newHTTPTransport(opts.CAFile); err != nil {
		return nil, err
	}
	if err := h.configure(servers); err != nil {
		return nil, err
	}
	h.life, h.end = context.WithCancel(context.Background())
	h.work = run.New(h.life)
	group := run.New(ctx)
	for _, s := range h.servers {
		group.Go(func(ctx context.Context) error { s.start(ctx); return nil })
	}
	if err := group.Wait(); err != nil {
		h.Close()
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		h.Close()
		return nil, err
	}
	h.offer()
	for _, s := range h.servers {
		h.work.Go(func(ctx context.Context) error { s.watch(ctx); return nil })
	}
	return h, nil
}

// configure checks the servers against each other.
func (h *Host) configure(servers []Server) error {
	segments := map[string]string{}
	for _, cfg := range servers {
		s, err := newServer(h, cfg)
		if err != nil {
			return err
		}
		seg := segment(cfg.Name)
		if other, taken := segments[seg]; taken {
			return &StartError{Server: cfg.Name, Msg: fmt.Sprintf("server %q has the same name, or one that reads the same in the names of tools; rename one", other)}
		}
		segments[seg] = cfg.Name
		h.servers = append(h.servers, s)
	}
	return nil
}

// offer makes the tools of what the servers listed.
func (h *Host) offer() {
	taken := map[string]bool{searchName: true}
	for _, name := range h.opts.Taken {
		taken[name] = true
	}
	for _, s := range h.servers {
		s.offer(taken)
		for _, t := range s.tools {
			h.byName[t.spec.Name] = t
			h.tools = append(h.tools, t)
		}
	}
	slices.SortFunc(h.tools, func(a, b *serverTool) int { return cmp.Compare(a.spec.Name, b.spec.Name) })
	h.applyBudget()
}

// Tools returns all tools, sorted by name, those included that the model isn't told
// of at first; with such there is one more, mcp_tools, which describes them. They
// stay usable until Close.
func (h *Host) Tools() []tool.Tool {
	out := make([]tool.Tool, 0, len(h.tools)+1)
	for _, t := range h.tools {
		out = append(out, t)
	}
	if len(h.deferred) > 0 {
		out = append(out, &searchTool{h})
	}
	return out
}

// States returns the state of every server in configuration order.
func (h *Host) States() []State {
	out := make([]State, 0, len(h.servers))
	for _, s := range h.servers {
		out = append(out, s.state())
	}
	return out
}

// Close ends all servers at the same time: calls in progress return as failed, a
// process's standard input is closed and after a grace of one second its group is
// killed, an HTTP session is ended. It returns when every process is reaped and
// every goroutine of the host has ended. Closing twice does nothing.
func (h *Host) Close() {
	h.once.Do(func() {
		h.end()
		group := run.New(context.Background())
		for _, s := range h.servers {
			group.Go(func(context.Context) error { s.close(); return nil })
		}
		_ = group.Wait()  // only a panic could be told, and there is nobody to tell
		_ = h.work.Wait() // likewise
		h.http.CloseIdleConnections()
	})
}
