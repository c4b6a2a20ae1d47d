package gate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/tool"
)

// withheld is what the model reads in place of a result that could not be
// reviewed.
const withheld = "The result was withheld: the turn was interrupted before it could be reviewed."

// Finish shows a call's outcome to the extensions, then to the backends, and puts
// what is left of it on disk. A result that nobody could review because ctx ended
// is withheld if somebody would have.
func (g *Gate) Finish(ctx context.Context, o agent.Outcome) (agent.Final, error) {
	f := &finishing{g: g, o: o, content: tool.Clean(o.Content), isError: o.IsError}
	f.e = event.ToolEnded{
		Turn: o.Turn, CallID: o.Call.ID, Tool: o.Call.Tool, Outcome: o.Kind,
		DurationMS: o.Duration.Milliseconds(), WorkDir: o.WorkDir,
	}
	before := f.content
	f.e.Injected, f.e.Later = g.takeInjected(o.Call.ID)
	if o.Ran || o.Kind == "supplied" {
		f.extensions(ctx)
	}
	f.backends(ctx)
	if !f.touched {
		f.e.Images = o.Images
	}
	if f.content != before {
		sum := sha256.Sum256([]byte(before))
		f.e.OriginalHash = hex.EncodeToString(sum[:])
	}
	f.e.Content, f.e.IsError = f.content, f.isError
	// The end of the turn takes it to the disk, before the model reads it. Only where
	// others hear of it before that it has to be there now.
	record := g.o.Log.Append
	if g.o.Extensions != nil || g.o.Backends != nil {
		record = g.o.Log.AppendDurable
	}
	if _, err := record(event.Draft{Actor: event.ActorTool, Trust: event.TrustUntrusted, Payload: &f.e}); err != nil {
		return agent.Final{}, err
	}
	g.filesChanged(ctx, o)
	return agent.Final{Content: f.content, IsError: f.isError, Images: f.e.Images, Injected: f.e.Injected, Later: f.e.Later, Stop: f.stop}, nil
}

// finishing is the state of one Finish; it belongs to one goroutine.
type finishing struct {
	g       *Gate
	o       agent.Outcome
	content string
	isError bool
	// touched says that somebody changed or withheld the content: then its images,
	// which only backends are shown, go too.
	touched bool
	stop    string
	e       event.ToolEnded
}

// withhold puts text in the result's place.
func (f *finishing) withhold(text string) { f.content, f.isError, f.touched = text, true, true }

func (f *finishing) extensions(ctx context.Context) {
	x := f.g.o.Extensions
	if x == nil || !x.WatchesResults() {
		return
	}
	if ctx.Err() != nil {
		f.withhold(withheld)
		return
	}
	a := x.ToolResult(ctx, f.o.Call, f.o.Decl, f.content, f.isError)
	f.e.Asked = append(f.e.Asked, a.Asked...)
	if ctx.Err() != nil {
		f.withhold(withheld)
		return
	}
	was := f.content
	f.content, f.isError = tool.Clean(a.Content), a.IsError
	f.touched = f.touched || f.content != was || a.Withheld || len(a.RewrittenBy) > 0
	f.e.RewrittenBy = append(f.e.RewrittenBy, a.RewrittenBy...)
}

// waiting is context that backends added while a call was judged: it waits for the
// call's result, or for the next prompt.
type waiting struct{ now, later []string }

// inject keeps context until the call's end.
func (g *Gate) inject(callID string, now, later []string) {
	if len(now) == 0 && len(later) == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	w := g.injected[callID]
	g.injected[callID] = waiting{append(w.now, now...), append(w.later, later...)}
}

func (g *Gate) takeInjected(callID string) (now, later []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	w := g.injected[callID]
	delete(g.injected, callID)
	return w.now, w.later
}
