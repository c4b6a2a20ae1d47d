package conformance

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode"
)

// Bounds of a transcript.
const (
	maxLineText = 1 << 10
	maxLines    = 500
	maxProof    = 12
)

// probe is what one run of one check writes down. Its methods may be called from
// any goroutine.
type probe struct {
	redact func(string) string
	// observer tells that the peer decides about nothing: -32002 is its valid answer
	// to a valid request.
	observer bool
	mu       sync.Mutex
	lines    []Line
	count    int // lines so far, those beyond maxLines included
	asked    int // number of the line that was sent last
	links    int
	remark   string
	cleanup  []func()
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
	p.count++
	if d == ToPeer {
		p.asked = p.count
	}
	if len(p.lines) < maxLines {
		p.lines = append(p.lines, Line{Number: p.count, Connection: connection, Direction: d, Text: p.readable(text), Bytes: len(text)})
	}
}

// readable returns text as one line of valid UTF-8 without secrets, cut.
func (p *probe) readable(text []byte) string {
	s := string(text)
	if p.redact != nil {
		s = p.redact(s)
	}
	if len(s) > maxLineText {
		s = s[:maxLineText] + "…"
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '\uFFFD'
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
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
	for n := max(1, p.asked); n <= p.count && len(f.proof) < maxProof; n++ {
		f.proof = append(f.proof, n)
	}
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
	r := Result{Check: c, Verdict: Pass, Reason: p.remark, Transcript: p.lines}
	var f *finding
	switch {
	case err == nil:
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
