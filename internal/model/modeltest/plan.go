package modeltest

import (
	"errors"
	"net/http"
	"unicode/utf8"

	"github.com/abhed/abhed/internal/strictjson"
)

var (
	errCut      = errors.New("cut here")
	errCutClean = errors.New("end here")
	errStall    = errors.New("stall here")
)

// plan is a reply with its faults.
type plan struct {
	api         dialect
	sealKey     string
	turn        Turn
	promptGuess int

	status       int
	header       map[string]string
	raw          []byte // sent instead of frames
	rawType      string
	stallHeaders bool
	gzip         bool
	cutAt        int // -1: nowhere
	cutClean     bool
	stallAt      int // -1: nowhere
	splitEvery   int // 0: as the frames are
	splitAt      int // 0: nowhere

	missingIndex, zeroIndex, idEveryPiece, argsObject, wholeCalls bool
	truncateArgs, repeatFinal, noFinish, noDone, noUsage          bool
	earlyUsage, jsonBody, noSpace, comments, emptyChoices, nulls  bool
	reasoningField, lineEnd                                       string
	errorFrame                                                    string
	errorAfter                                                    int
}

type object = map[string]any

func newPlan(api dialect, turn Turn, sealKey string) *plan {
	p := &plan{api: api, sealKey: sealKey, turn: turn, cutAt: -1, stallAt: -1, lineEnd: "\n", reasoningField: "reasoning_content"}
	for _, f := range turn.Faults {
		f(p)
	}
	return p
}

// Stream returns the bytes of the event stream for turn, as the server writes
// them, for tests that feed a decoder directly.
func Stream(turn Turn) []byte { return StreamOf(Chat, turn) }

// StreamOf is Stream for another API.
func StreamOf(api API, turn Turn) []byte {
	var out []byte
	pieces, _ := newPlan(dialects()[api], turn, "").body()
	for _, piece := range pieces {
		out = append(out, piece...)
	}
	return out
}

// body returns the reply's pieces, one a frame, and their content type.
func (p *plan) body() (pieces [][]byte, contentType string) {
	if p.raw != nil {
		return [][]byte{p.raw}, p.rawType
	}
	if p.jsonBody {
		return [][]byte{encode(p.api.whole(p))}, "application/json"
	}
	broken := frame{name: p.api.errorEvent, data: []byte(p.errorFrame)}
	for i, f := range p.api.frames(p) {
		if p.errorFrame != "" && i == p.errorAfter {
			return append(pieces, p.event(broken)), "text/event-stream"
		}
		pieces = append(pieces, p.event(f))
	}
	if p.errorFrame != "" {
		pieces = append(pieces, p.event(broken))
	}
	return pieces, "text/event-stream"
}

func encode(v any) []byte {
	b, err := strictjson.Marshal(v)
	if err != nil {
		panic("modeltest: a turn that is not UTF-8: " + err.Error()) // a fault of the test that wrote it
	}
	return b
}

func (p *plan) event(f frame) []byte {
	space := " "
	if p.noSpace {
		space = ""
	}
	lead := ""
	if p.comments {
		lead = ": keep-alive" + p.lineEnd + p.lineEnd + "data:" + p.lineEnd + p.lineEnd
	}
	if f.name != "" {
		lead += "event:" + space + f.name + p.lineEnd
	}
	return []byte(lead + "data:" + space + string(f.data) + p.lineEnd + p.lineEnd)
}

// args returns a call's arguments as far as they are to be sent.
func (p *plan) args(c Call) string {
	if !p.truncateArgs {
		return c.Args
	}
	half := len(c.Args) / 2
	for half > 0 && !utf8.RuneStart(c.Args[half]) {
		half--
	}
	return c.Args[:half]
}

// counts returns what the reply reports, an estimate where the turn says nothing.
func (p *plan) counts() Usage {
	if p.turn.Usage != nil {
		return *p.turn.Usage
	}
	n := len(p.turn.Text) + len(p.turn.Reasoning)
	for _, c := range p.turn.Calls {
		n += len(c.Args)
	}
	return Usage{Prompt: p.promptGuess, Completion: n / 4}
}

// split cuts s into pieces of n characters.
func split(s string, n int) []string {
	var out []string
	for s != "" {
		end := 0
		for i := 0; i < n && end < len(s); i++ {
			_, size := utf8.DecodeRuneInString(s[end:])
			end += size
		}
		out = append(out, s[:end])
		s = s[end:]
	}
	return out
}

// output writes the body as the plan's splits, cut and stall say.
type output struct {
	w    http.ResponseWriter
	p    *plan
	gone chan struct{}
	sent int
}

func (o *output) Write(b []byte) (int, error) {
	total := len(b)
	for len(b) > 0 {
		n := len(b)
		if e := o.p.splitEvery; e > 0 {
			n = min(n, e)
		}
		for _, at := range []int{o.p.splitAt, o.p.cutAt, o.p.stallAt} {
			if at > o.sent {
				n = min(n, at-o.sent)
			}
		}
		if err := o.due(); err != nil {
			return 0, err
		}
		if _, err := o.w.Write(b[:n]); err != nil {
			return 0, err
		}
		o.w.(http.Flusher).Flush()
		o.sent += n
		b = b[n:]
	}
	return total, o.due()
}

// due returns the cut or stall that is planned for this place.
func (o *output) due() error {
	switch {
	case o.sent == o.p.cutAt && o.p.cutClean:
		return errCutClean
	case o.sent == o.p.cutAt:
		// The header must be out, or the client sees no answer at all.
		o.w.(http.Flusher).Flush()
		return errCut
	case o.sent == o.p.stallAt:
		o.w.(http.Flusher).Flush()
		return errStall
	}
	return nil
}
