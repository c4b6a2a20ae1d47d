package inspect

import (
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/strictjson"
)

// maxOpen bounds the recorded requests that wait for their answers.
const maxOpen = 4096

// recorded is what Record remembers.
type recorded struct {
	open map[string]*Entry // by the id of the request
}

// logLine is a line that "ahp backend log" writes. Its chain isn't checked here.
type logLine struct {
	Seq   int64   `json:"seq"`
	Time  string  `json:"time"`
	Mode  string  `json:"mode"`
	Event ahp.Raw `json:"event"`
}

// Record adds one line of a file to what is shown: a message as it was on the wire,
// of which an answer belongs to the latest request with its id, or a line of the
// log that "ahp backend log" writes. Nobody is asked about it. What is neither is
// shown as invalid. It must not be called from two goroutines at a time.
func (i *Inspector) Record(line []byte) {
	p, err := ahp.Peek(line)
	var l logLine
	switch {
	case err == nil && p.Method == "" && !p.HasID && strictjson.Unmarshal(line, &l, strictjson.Options{}) == nil && l.Seq > 0:
		i.recordLog(line, &l)
	case err == nil && p.Method == "" && p.HasID:
		i.recordAnswer(line)
	default:
		i.recordMessage(line)
	}
}

func (i *Inspector) recordMessage(line []byte) {
	e := newEntry(time.Now(), line)
	e.Recorded = true
	if r, err := ahp.DecodeRequest(line); err == nil {
		switch q := r.(type) {
		case *ahp.Intercept:
			e.At = millis(q.Event.Time, e.At)
			if len(i.past.open) >= maxOpen {
				i.past.open = nil
			}
			if i.past.open == nil {
				i.past.open = map[string]*Entry{}
			}
			i.past.open[q.Event.ID] = e
		case *ahp.Observe:
			e.At, e.Decision = millis(q.Event.Time, e.At), decisionObserved
		case *ahp.Discover:
			e.Decision = decisionAnswered
		}
	}
	i.log.add(e)
}

func (i *Inspector) recordAnswer(line []byte) {
	id, _ := ahp.MessageID(line)
	name, _ := id.Value()
	e := i.past.open[name]
	if e == nil {
		e = newEntry(time.Now(), line)
		e.Recorded, e.Problem = true, "an answer without a request before it in the file"
		i.log.add(e)
		return
	}
	delete(i.past.open, name)
	i.log.update(e, func() {
		e.Reply = capture(line)
		e.answer(line)
	})
}

func (i *Inspector) recordLog(line []byte, l *logLine) {
	e := &Entry{At: millis(l.Time, time.Now().UnixMilli()), Recorded: true, Effects: []string{}, Asked: []*Ask{}, Request: capture(line)}
	e.Method, e.Decision = ahp.MethodObserve, decisionObserved
	if l.Mode == "intercept" {
		e.Method, e.Decision = ahp.MethodIntercept, decisionPass // the log has no effect
	}
	if v, err := ahp.DecodeEvent(l.Event); err == nil {
		e.describe(v)
	} else if len(l.Event) > 0 {
		e.Decision, e.Problem = decisionInvalid, reasonOf(err)
	}
	i.log.add(e)
}

// millis returns a time of the protocol in milliseconds since 1970.
func millis(text string, otherwise int64) int64 {
	if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return at.UnixMilli()
	}
	return otherwise
}
