package conformance

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode"
)

// probe is what one run of one check writes down. Its methods may be called from
// any goroutine.
type probe struct {
	redact func(string) string
	// observer tells that the peer decides about nothing: -32002 is its valid answer
	// to a valid request.
	observer bool
	mu       sync.Mutex
	said     transcript
	asked    int // number of the line that was sent last
	// cited are lines of plays, in place of said, and shown the numbers of those that
	// prove a pass.
	cited   []Line
	shown   []int
	links   int
	remark  string
	cleanup []func()
}

// finding is a check's result that isn't a pass.
type finding struct {
	verdict Verdict
	reason  string
	proof   []int
}

func (f *finding) Error() string { return f.reason }

// connection returns the number of a new connection.
func (p *probe) connection() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.links++
	return p.links
}

// record writes a line down.
func (p *probe) record(connection int, d Direction, text []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.said.add(Line{Connection: connection, Direction: d, Text: p.readable(text), Bytes: len(text)})
	if d == ToPeer {
		p.asked = p.said.count
	}
}

// readable returns text as one line of valid UTF-8 without secrets, cut.
func (p *probe) readable(text []byte) string {
	s := string(text)
	if p.redact != nil {
		s = p.redact(s)
	}
	whole := len(s) <= maxLineText
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '\uFFFD'
		}
		return r
	}, strings.ToValidUTF8(s[:min(len(s), maxLineText)], "\uFFFD"))
	if whole = whole && len(s) <= maxLineText; !whole {
		s = strings.ToValidUTF8(s[:min(len(s), maxLineText)], "") + "…" // what replaces a byte is longer
	}
	return s
}

// happened writes down something that is no message.
func (p *probe) happened(connection int, format string, args ...any) {
	p.record(connection, Happened, fmt.Appendf(nil, format, args...))
}

// failf returns the finding that the peer breaks the check; the proof is what was
// sent last and everything since.
func (p *probe) failf(format string, args ...any) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := &finding{verdict: Fail, reason: p.readable([]byte(fmt.Sprintf(format, args...)))}
	f.proof = p.said.since(p.asked, maxProof)
	return f
}

// notApplicable returns the finding that the check has no meaning here.
func (p *probe) notApplicable(format string, args ...any) error {
	return &finding{verdict: NotApplicable, reason: fmt.Sprintf(format, args...)}
}

// note adds a remark to a pass.
func (p *probe) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remark = p.readable([]byte(fmt.Sprintf(format, args...)))
}

// atEnd has f called when the check is over, the last one first.
func (p *probe) atEnd(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cleanup = append(p.cleanup, f)
}

func (p *probe) end() {
	p.mu.Lock()
	todo := p.cleanup
	p.cleanup = nil
	p.mu.Unlock()
	for i := len(todo) - 1; i >= 0; i-- {
		todo[i]()
	}
}

// judge returns the result of a check that returned err.
func (p *probe) judge(c Check, err error) Result {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := Result{Check: c, Verdict: Pass, Reason: p.remark, Transcript: p.said.lines()}
	if p.cited != nil {
		r.Transcript = p.cited
	}
	var f *finding
	switch {
	case err == nil && p.cited != nil:
		r.Proof = p.shown
	case err == nil:
		r.Proof = p.said.ends(maxPassed)
	case errors.As(err, &f):
		r.Verdict, r.Reason, r.Proof = f.verdict, f.reason, f.proof
		if f.verdict == Fail && c.Level == Should {
			r.Verdict = Warn
		}
	default:
		r.Verdict, r.Reason = SuiteError, p.readable([]byte(err.Error()))
	}
	return r
}
