package conformance

import (
	"context"
	"os"
	"strings"
	"syscall"

	"github.com/abhed/abhed/ahp"
)

// stdioChecks are about the two lifecycles of a process.
func stdioChecks() []backendCheck {
	both := []Binding{StdioPersistent, StdioPerEvent}
	stays, once := []Binding{StdioPersistent}, []Binding{StdioPerEvent}
	stdio := func(id, requirements, about string, bindings []Binding, run func(context.Context, *probe, *backendEnv) error) backendCheck {
		return must(id, requirements, ProfileStdio, about, bindings, run)
	}
	return []backendCheck{
		stdio("stdio.output", "AHP-STDIO-001", "Standard output holds messages and nothing else", both, runOutput),
		stdio("stdio.once", "AHP-STDIO-001.a", "Each request is answered once", both, runOnce),
		stdio("stdio.sequence", "AHP-STDIO-001.b", "Many requests in a row are answered, each with its id", stays, runSequence),
		stdio("stdio.split", "AHP-STDIO-001.b", "A line that arrives in parts is one message", stays, runSplit),
		stdio("stdio.joined", "AHP-STDIO-001.b", "Lines that arrive at once are messages each", stays, runJoined),
		stdio("stdio.end", "AHP-STDIO-001.c", "The end of its input ends the process", stays, runEnd),
		stdio("stdio.end-status", "AHP-STDIO-001.d", "A process whose input ended exits with 0", stays, runEndStatus).level(Should).after("stdio.end"),
		stdio("stdio.signal", "AHP-STDIO-001.d", "SIGTERM ends the process", stays, runSignal).level(Should),
		stdio("per-event.end", "AHP-STDIO-001.c", "The process ends after its one message", once, runPerEventEnd),
		stdio("per-event.status", "AHP-STDIO-001.e", "An exchange that was completed exits with 0", once, runPerEventStatus).after("per-event.end"),
		stdio("per-event.observe", "AHP-STDIO-001.e", "An observation ends with exit status 0", once, runPerEventObserve).after("per-event.end"),
	}
}

// conversation asks and tells what there is, and returns every further line.
func conversation(ctx context.Context, p *probe, e *backendEnv) ([][]byte, error) {
	l, err := e.open(p)
	if err != nil {
		return nil, err
	}
	var lines [][]byte
	good, err := e.plain()
	if err != nil {
		return nil, err
	}
	unknown, err := e.request(ahp.KindMethod, set("method", "hooks/teleport"))
	if err != nil {
		return nil, err
	}
	discovery, err := made(discovering(e.id()), 0)
	if err != nil {
		return nil, err
	}
	again, err := e.plain()
	if err != nil {
		return nil, err
	}
	for _, m := range []message{good, unknown, discovery, {raw: []byte("{"), breaks: ahp.KindSyntax}, again} {
		a, err := l.ask(ctx, m)
		if err != nil {
			return nil, err
		}
		lines = append(lines, a.extra...)
	}
	note, err := e.observation(0)
	if err != nil {
		return nil, err
	}
	came, err := l.tell(ctx, note)
	if err != nil {
		return nil, err
	}
	switch l := l.(type) {
	case *stdioLink:
		lines = l.strays // those beside answers too
	case *perEventLink:
		lines = append(lines, l.strays...)
	}
	lines = append(lines[:len(lines):len(lines)], came...)
	return append(lines, l.drain(ctx)...), nil
}

func runOutput(ctx context.Context, p *probe, e *backendEnv) error {
	lines, err := conversation(ctx, p, e)
	if err != nil {
		return err
	}
	for _, line := range lines {
		if s := peek(line); !s.answers() {
			return p.failf("%q on standard output is no message of the protocol; diagnostics go to standard error", clip(line))
		}
	}
	return nil
}

func runOnce(ctx context.Context, p *probe, e *backendEnv) error {
	lines, err := conversation(ctx, p, e)
	if err != nil {
		return err
	}
	for _, line := range lines {
		if s := peek(line); s.answers() {
			return p.failf("%q came beside the one answer", clip(line))
		}
	}
	return nil
}

func runSequence(ctx context.Context, p *probe, e *backendEnv) error {
	l, err := e.open(p)
	if err != nil {
		return err
	}
	for i := range e.opts.Sequence {
		m, err := e.plain()
		if err != nil {
			return err
		}
		a, err := l.ask(ctx, m)
		if err != nil {
			return err
		}
		if _, err := p.wantEffects(a, &m); err != nil {
			return p.failf("request %d: %v", i+1, err)
		}
	}
	return nil
}

// persistent opens a link that is known to be one to a process that stays.
func (e *backendEnv) persistent(p *probe) (*stdioLink, message, error) {
	m, err := e.plain()
	if err != nil {
		return nil, m, err
	}
	l, err := e.openStdio(p)
	return l, m, err
}

// runSplit asks once, so that the peer is there and reads, and then several times
// in parts: one that isn't scheduled between two parts sees them as one.
func runSplit(ctx context.Context, p *probe, e *backendEnv) error {
	l, m, err := e.persistent(p)
	if err != nil {
		return err
	}
	if _, err := l.ask(ctx, m); err != nil {
		return err
	}
	for range 5 {
		m, err := e.plain()
		if err != nil {
			return err
		}
		third := len(m.raw) / 3
		a, err := l.askRaw(ctx, m, m.raw[:third], m.raw[third:], []byte("\n"))
		if err != nil {
			return err
		}
		if _, err := p.wantEffects(a, &m); err != nil {
			return err
		}
	}
	return nil
}

func runJoined(ctx context.Context, p *probe, e *backendEnv) error {
	l, m, err := e.persistent(p)
	if err != nil {
		return err
	}
	note, err := e.observation(0)
	if err != nil {
		return err
	}
	a, err := l.askRaw(ctx, m, []byte(string(note.raw)+"\n"+string(m.raw)+"\n"+string(note.raw)+"\n"))
	if err != nil {
		return err
	}
	_, err = p.wantEffects(a, &m)
	return err
}

// ended asks once, closes the input and waits for the end.
func ended(ctx context.Context, p *probe, e *backendEnv) (*stdioLink, error) {
	l, m, err := e.persistent(p)
	if err != nil {
		return nil, err
	}
	if _, err := l.ask(ctx, m); err != nil {
		return nil, err
	}
	l.closeInput()
	return l, nil
}

func runEnd(ctx context.Context, p *probe, e *backendEnv) error {
	l, err := ended(ctx, p, e)
	if err != nil {
		return err
	}
	if l.exit(ctx) == nil {
		return p.failf("the process still runs %s after its input ended", e.opts.Grace)
	}
	return nil
}

func runEndStatus(ctx context.Context, p *probe, e *backendEnv) error {
	l, err := ended(ctx, p, e)
	if err != nil {
		return err
	}
	if exit := l.exit(ctx); exit == nil || exit.Code != 0 {
		return p.failf("the process ended with %v, expected exit code 0", exit)
	}
	return nil
}

func runSignal(ctx context.Context, p *probe, e *backendEnv) error {
	l, m, err := e.persistent(p)
	if err != nil {
		return err
	}
	if _, err := l.ask(ctx, m); err != nil {
		return err
	}
	process, err := os.FindProcess(l.child.Pid())
	if err == nil {
		err = process.Signal(syscall.SIGTERM)
	}
	if err != nil {
		return p.failf("SIGTERM can't be sent: %v", err)
	}
	p.happened(l.n, "SIGTERM sent")
	if l.exit(ctx) == nil {
		return p.failf("the process still runs %s after SIGTERM", e.opts.Grace)
	}
	return nil
}

func runPerEventEnd(ctx context.Context, p *probe, e *backendEnv) error {
	m, err := e.plain()
	if err != nil {
		return err
	}
	a, err := e.asked(ctx, p, m)
	if err != nil {
		return err
	}
	if a.exit == nil {
		return p.failf("the process still runs after its one message and the end of its input")
	}
	return nil
}

func runPerEventStatus(ctx context.Context, p *probe, e *backendEnv) error {
	m, err := e.plain()
	if err != nil {
		return err
	}
	a, err := e.asked(ctx, p, m)
	if err != nil {
		return err
	}
	if a.exit == nil || a.exit.Code != 0 {
		return p.failf("the process ended with %s though it answered, expected exit code 0", exitText(a))
	}
	return nil
}

func exitText(a *answer) string {
	if a.exit == nil {
		return "nothing"
	}
	return strings.TrimSpace(a.exit.String())
}

func runPerEventObserve(ctx context.Context, p *probe, e *backendEnv) error {
	note, err := e.observation(0)
	if err != nil {
		return err
	}
	l := &perEventLink{env: e, p: p}
	x, err := l.run(ctx, note, false)
	if err != nil {
		return err
	}
	if x.exit == nil || x.exit.Code != 0 {
		return p.failf("the process ended with %s after an observation, expected exit code 0", exitText(&answer{exit: x.exit}))
	}
	return nil
}
