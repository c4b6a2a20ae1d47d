package app

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/abhed/abhed/internal/chain"
	"github.com/abhed/abhed/internal/control"
	"github.com/abhed/abhed/internal/event"
)

// Tools lists what the model is offered (see control.Looker).
func (c *conversation) Tools() []control.Tool {
	var out []control.Tool
	for _, s := range c.e.main.specs() {
		out = append(out, control.Tool{Name: s.Name, Description: s.Description, Schema: slices.Clone(s.Schema)})
	}
	return out
}

// Tasks lists the background work (see control.Looker).
func (c *conversation) Tasks() []control.Task {
	e := c.e
	var out []control.Task
	for _, j := range e.jobs.List() {
		t := control.Task{ID: j.ID, Kind: "command", Title: j.Command, State: "running"}
		if j.Agent.ID != mainAgent {
			t.AgentID = j.Agent.ID
		}
		if !j.Ended.IsZero() {
			t.State = j.Exit
		}
		out = append(out, t)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, a := range e.agents {
		out = append(out, a.task)
	}
	return out
}

// Extensions describes the extensions (see control.Looker).
func (c *conversation) Extensions() []control.Extension {
	out := []control.Extension{}
	if c.e.ext == nil {
		return out
	}
	for _, s := range c.e.ext.States() {
		out = append(out, control.Extension{
			Name: s.Name, State: s.State, Pid: s.Pid, Tools: s.Tools, Calls: int64(s.Calls + s.ToolCalls),
			MedianMS: milliseconds(s.Median), WorstMS: milliseconds(s.Worst), LastError: s.LastError,
		})
	}
	return out
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Servers describes the MCP servers (see control.Looker).
func (c *conversation) Servers() []control.Server {
	if c.e.servers == nil {
		return nil
	}
	var out []control.Server
	for _, s := range c.e.servers.States() {
		out = append(out, control.Server{Name: s.Name, State: s.State, Tools: s.Tools, Error: s.Error})
	}
	return out
}

// Export writes the record so far (see control.Looker).
func (c *conversation) Export(ctx context.Context, w io.Writer, format string) error {
	if err := c.e.log.Sign(); err != nil {
		return &control.Error{Code: control.CodeFailed, Msg: err.Error()}
	}
	if err := exportRecord(ctx, c.e.log.Path(), w, format); err != nil {
		return &control.Error{Code: control.CodeFailed, Msg: err.Error()}
	}
	return nil
}

// exportRecord writes a record as it is, or as a page for a browser that loads
// nothing.
func exportRecord(ctx context.Context, file string, w io.Writer, format string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	out := bufio.NewWriter(w)
	if format == "jsonl" {
		if _, err := io.Copy(out, f); err != nil {
			return err
		}
		return out.Flush()
	}
	if format != "html" {
		return fmt.Errorf("the format %q is unknown; expected jsonl or html", format)
	}
	page := &page{w: out}
	page.begin(file)
	lines := chain.NewReader(f)
	for ctx.Err() == nil {
		line, err := lines.Next()
		if errors.Is(err, io.EOF) {
			page.end()
			return out.Flush()
		}
		if err != nil {
			return err
		}
		page.add(line)
	}
	return context.Cause(ctx)
}

// page writes a record as HTML.
type page struct{ w *bufio.Writer }

const pageHead = `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>%[1]s</title><style>body{font:15px/1.5 system-ui,sans-serif;max-width:70em;margin:2em auto;padding:0 1em}pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:.2em 0 0}article{border-top:1px solid #bbb;padding:.5em 0}h2{font-size:.85em;margin:0;color:#555}</style>
<h1>%[1]s</h1>
`

func (p *page) begin(file string) { fmt.Fprintf(p.w, pageHead, html.EscapeString(file)) }

func (p *page) end() { _, _ = p.w.WriteString("</html>\n") } // the flush reports it

// add writes what a line of the record means to a reader, if it means something.
func (p *page) add(line chain.Line) {
	ev, err := event.Decode(line.Data)
	if err != nil {
		fmt.Fprintf(p.w, "<article><pre>line %d can't be read: %s</pre></article>\n", line.Number, html.EscapeString(err.Error()))
		return
	}
	var text strings.Builder
	st := newStory(&text)
	st.full = true
	st.tell(ev)
	if text.Len() == 0 {
		return
	}
	who := ""
	if id := event.AgentOf(ev.Payload); id != "" {
		who = ", agent " + id
	}
	fmt.Fprintf(p.w, "<article><h2>%d · %s%s · %s</h2><pre>%s</pre></article>\n",
		ev.Seq, html.EscapeString(string(ev.Payload.Type())), html.EscapeString(who), ev.Time.UTC().Format(time.RFC3339), html.EscapeString(text.String()))
}

// RecordExport writes a session's record to standard output.
func RecordExport(ctx context.Context, sys System, name, format string) int {
	if format != "jsonl" && format != "html" {
		return sys.fail(ExitUsage, fmt.Errorf("--format %q: expected jsonl or html", format))
	}
	_, file, err := findRecord(sys, name)
	if err != nil {
		return recordFailure(sys, err)
	}
	if err := exportRecord(ctx, file, sys.Stdout, format); err != nil {
		return sys.fail(ExitFailure, err)
	}
	return ExitOK
}
