package extension

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/proc"
	"github.com/abhed/abhed/internal/strictjson"
)

// TestOptions are the surroundings of Test. The zero value is usable.
type TestOptions struct {
	// Confine turns a process into a confined one, for Config.Sandbox.
	Confine func(proc.Spec) (proc.Spec, error)
	// Taken lists the tool names that are in use already.
	Taken []string
	// Tool and Args, a JSON object, make the sample call; empty means a harmless bash
	// call.
	Tool string
	Args []byte
	// NoInvoke leaves the extension's own tools alone. Else invoke_tool really runs
	// the first of them, on arguments made from its schema.
	NoInvoke bool
}

// Report is what Test found.
type Report struct {
	// Name is the extension's, Tools what it provides.
	Name  string
	Tools []string
	// Exchanges are in the order in which they were made.
	Exchanges []Exchange
	// Findings are what would be wrong in a session; none means that all is well.
	Findings []Finding
}

// Finding is one thing that is wrong.
type Finding struct {
	// Event is what it answered, "" if it is wrong at its start or end.
	Event string
	// Text says what was found and what was expected.
	Text string
}

// Exchange is one request and its reply.
type Exchange struct {
	Event string
	// About says why an event is sent a second time, else "".
	About string
	// Subscribed says whether a session would send it this event. If not, nothing
	// about it is a finding.
	Subscribed bool
	// Sent and Received are as they went over the wire, without the line end; Received
	// is "" if there was no reply.
	Sent, Received string
	// Took is the time from the request to the reply, or until none was waited for.
	Took time.Duration
	// Notes are its log lines and standard error, and warnings that are no findings.
	Notes []string
}

// Test starts one extension and sends it every event once, with sample data,
// whatever it subscribes to, and a call or result that it rewrote once more: a
// rewrite must be idempotent. When it dies it is started anew for the next event, so
// that one fault doesn't hide another. Config.Match isn't looked at.
//
// The error is a *StartError if the configuration is at fault, one that says what is
// wrong with o.Args, or ctx's error, with what was found until then.
func Test(ctx context.Context, cfg Config, o TestOptions) (*Report, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return &Report{Name: cfg.Name}, err
	}
	t := &trial{cfg: cfg, o: o, rep: &Report{Name: cfg.Name}}
	if len(o.Args) > 0 {
		args, err := strictjson.Canonical(o.Args)
		if err != nil {
			return t.rep, fmt.Errorf("the arguments of the sample call: %w", err)
		}
		if args[0] != '{' {
			return t.rep, fmt.Errorf("the arguments of the sample call are %.40q, expected a JSON object", args)
		}
		t.o.Args = args
	}
	t.run(ctx)
	t.mu.Lock() // its processes have ended; what they said last is there
	defer t.mu.Unlock()
	return t.rep, ctx.Err()
}

// trial is one Test.
type trial struct {
	cfg  Config // with defaults, and its own subscription
	o    TestOptions
	host *Host

	mu    sync.Mutex // guards what follows: an extension speaks from any goroutine
	rep   *Report
	cur   *Exchange // nil between exchanges
	began time.Time
	quiet bool // while it is started anew
}

func (t *trial) run(ctx context.Context) {
	defer t.stop()
	if !t.start(ctx, false) {
		return
	}
	for _, s := range t.samples() {
		if ctx.Err() != nil || !t.host.exts[0].alive() && !t.start(ctx, true) {
			return
		}
		t.begin(s.event, "")
		s.send(ctx)
		t.end()
	}
}

// start starts the extension, which sends list_tools.
func (t *trial) start(ctx context.Context, again bool) bool {
	t.stop()
	all := t.cfg
	all.Events, all.Match = nil, nil
	if !again {
		t.begin(eventListTools, "")
	}
	t.mu.Lock()
	t.quiet = again
	t.mu.Unlock()
	host, err := Start(ctx, []Config{all}, Options{
		SessionID: "ext-test", Record: t.record, Confine: t.o.Confine, Taken: t.o.Taken, trace: t.trace,
	})
	t.mu.Lock()
	t.quiet = false
	t.mu.Unlock()
	if err != nil && ctx.Err() == nil {
		t.finding(err.Error())
	}
	alive := err == nil && host.exts[0].alive()
	if err == nil {
		t.host = host
		t.rep.Tools = host.States()[0].Tools
	}
	if !again {
		t.end()
	} else if !alive && ctx.Err() == nil {
		t.finding("it doesn't start a second time, so nothing further was asked")
	}
	return alive
}

func (t *trial) stop() {
	if t.host != nil {
		t.host.Close()
		t.host = nil
	}
}

// begin opens an exchange.
func (t *trial) begin(ev, about string) {
	subscribed := ev == eventListTools || t.cfg.subscribes(ev)
	if ev == eventInvokeTool {
		subscribed = len(t.rep.Tools) > 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cur, t.began = &Exchange{Event: ev, About: about, Subscribed: subscribed}, time.Time{}
}

// end closes the exchange.
func (t *trial) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cur.Took == 0 && !t.began.IsZero() {
		t.cur.Took = time.Since(t.began)
	}
	t.rep.Exchanges = append(t.rep.Exchanges, *t.cur)
	t.cur = nil
}

// trace takes what goes over the wire.
func (t *trial) trace(sent bool, line []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.cur == nil || t.quiet:
	case sent:
		t.cur.Sent, t.began = strings.TrimSuffix(string(line), "\n"), time.Now()
	default:
		t.cur.Received, t.cur.Took = string(line), time.Since(t.began)
	}
}

// record takes what a session would record.
func (t *trial) record(d event.Draft) error {
	switch p := d.Payload.(type) {
	case *event.ExtensionChanged:
		switch p.State {
		case StateDead:
			t.finding(death(p))
		case StateEnded:
			if strings.HasPrefix(p.Cause, "killed") {
				t.finding(fmt.Sprintf("it goes on running for more than %v after its standard input was closed: %s; end at the end of the input", closeGrace, p.Cause))
			}
		}
	case *event.ExtensionLogged:
		if p.Level == "warning" {
			t.finding(p.Line)
			return nil
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.cur != nil && !t.quiet {
			t.cur.Notes = append(t.cur.Notes, p.Line)
		}
	}
	return nil
}

// death words the end of the process.
func death(p *event.ExtensionChanged) string {
	s := "it is dead: " + p.Cause
	if p.Stderr != "" {
		s += "; its standard error ended with: " + p.Stderr
	}
	return s
}

// finding notes what is wrong, once.
func (t *trial) finding(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := Finding{Text: text}
	if t.cur != nil {
		f.Event = t.cur.Event
	}
	switch {
	case t.cur != nil && !t.cur.Subscribed:
		t.cur.Notes = append(t.cur.Notes, text)
	case !slices.Contains(t.rep.Findings, f):
		t.rep.Findings = append(t.rep.Findings, f)
	}
}

// again repeats an event within a sample.
func (t *trial) again(ev, about string) {
	t.end()
	t.begin(ev, about)
}

// at is where the samples happen.
func (t *trial) at() At { return At{Turn: 1, Agent: policy.Agent{ID: "main"}} }
