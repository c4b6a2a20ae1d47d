package app

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/gate"
	"github.com/abhed/abhed/internal/strictjson"
)

// story tells a person what happens, from the events of the record.
type story struct {
	mu sync.Mutex
	w  io.Writer
	// full tells of every event that a reader may care about, and shows every line
	// of it.
	full bool
}

func newStory(w io.Writer) *story { return &story{w: w} }

// tell prints what e means to a reader; many events mean nothing to one.
func (s *story) tell(e event.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch p := e.Payload.(type) {
	case *event.UserMessage:
		if e.Actor == event.ActorUser {
			s.line("you", p.Text)
		}
	case *event.ModelResponded:
		if text := p.Message.Text(); text != "" {
			s.line("agent", text)
		}
	case *event.ModelFailed:
		text := p.Detail
		if !p.Final {
			text += fmt.Sprintf("; trying again in %s (attempt %d)", time.Duration(p.RetryMS)*time.Millisecond, p.Attempt+1)
		}
		s.line("model", text)
	case *event.Decision:
		s.decision(p)
		s.messages(p.Messages)
	case *event.ToolEnded:
		s.ended(p)
		s.messages(p.Messages)
	case *event.HooksDecided:
		s.hooks(p)
	case *event.ExtensionChanged:
		s.extension(p)
	case *event.ExtensionLogged:
		s.line(p.Name, p.Line)
	case *event.BackendFailed:
		s.line("backend", fmt.Sprintf("%s failed (%s), so %s: %s", p.Backend, p.Class, p.Policy, p.Detail))
	case *event.Notice:
		s.line(p.Level, p.Text)
	default:
		if s.full {
			s.rest(e)
		}
	}
}

// rest tells of the events that only the whole story has.
func (s *story) rest(e event.Event) {
	switch p := e.Payload.(type) {
	case *event.SessionStarted:
		s.line("session", fmt.Sprintf("%s in %s, model %s, mode %s, sandbox tier %s", e.SessionID, p.Workspace, p.Model, p.Mode, p.Tier))
	case *event.SessionResumed:
		s.line("session", fmt.Sprintf("resumed, model %s, mode %s, sandbox tier %s; %d calls had been interrupted", p.Model, p.Mode, p.Tier, len(p.Interrupted)))
	case *event.SessionEnded:
		s.line("session", strings.TrimSuffix(fmt.Sprintf("ended: %s: %s", p.Reason, p.Detail), ": "))
	case *event.Approval:
		s.line("approval", fmt.Sprintf("allowed %t by %s (%s)", p.Allowed, p.By, p.Scope))
	case *event.RecordRepaired:
		s.line("record", fmt.Sprintf("a torn last line of %d bytes was cut off", p.DroppedBytes))
	}
}

// say tells what backends want the person to know, and nothing else of an event.
func (s *story) say(texts []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.messages(texts)
}

// messages tells what backends want the person to know.
func (s *story) messages(texts []string) {
	for _, text := range texts {
		s.line("message", text)
	}
}

// hooks tells what backends did at a point of the run that isn't a tool call.
func (s *story) hooks(p *event.HooksDecided) {
	s.messages(p.Messages)
	if p.Outcome != "none" {
		s.line("backend", strings.TrimSuffix(fmt.Sprintf("%s: %s by %s: %s", p.EventType, p.Outcome, p.By, p.Reason), ": "))
	}
}

func (s *story) extension(p *event.ExtensionChanged) {
	switch p.State {
	case "dead":
		s.line("extension", fmt.Sprintf("%s is dead: %s; from now on: %s", p.Name, p.Cause, p.OnFailure))
	case "started":
		if !s.full {
			return
		}
		s.line("extension", fmt.Sprintf("%s started (pid %d)", p.Name, p.Pid))
	}
}

func (s *story) decision(d *event.Decision) {
	subject := d.Tool
	if d.Subject != "" {
		subject += " " + d.Subject
	}
	switch d.Outcome {
	case "run":
		s.line("gate", fmt.Sprintf("%s\n→ may run: %s", subject, because(d)))
	case "supplied":
		s.line("gate", fmt.Sprintf("%s\n→ not run: %s supplied the result", subject, d.By))
	default:
		text := fmt.Sprintf("%s\n→ %s", subject, verbs(d))
		if d.Step != "rules" && d.Step != "args" { // whose reasons say enough
			text += " by " + d.By
		}
		s.line("gate", strings.TrimSuffix(text+": "+d.Reason, ": "))
	}
}

// because says why a call may run.
func because(d *event.Decision) string {
	if d.Step == "rules" && d.Reason != "" {
		return d.Reason
	}
	return "approved by " + d.By
}

// verbs names a refusal as the rule of the boundary has it: an extension vetoes,
// a backend denies, a question that nobody can answer is refused.
func verbs(d *event.Decision) string {
	switch {
	case d.Code == "backend_failed" || d.Code == "extension_failed":
		return "REFUSED, because it could not be asked,"
	case d.Step == "extension":
		return "VETOED"
	case d.Step == "backend":
		return "DENIED"
	default:
		return "REFUSED"
	}
}

func (s *story) ended(p *event.ToolEnded) {
	switch p.Outcome {
	case "ok", "error", "timeout", "cancelled":
		text := strings.TrimRight(p.Content, "\n")
		if !s.full {
			text = firstLines(text, 6)
		}
		s.line(p.Tool, text)
	}
}

// firstLines returns the first n lines of s and says how many there are more.
func firstLines(s string, n int) string {
	lines := strings.Split(s, "\n")
	if len(lines) <= n {
		return s
	}
	return strings.Join(lines[:n], "\n") + fmt.Sprintf("\n… %d more lines", len(lines)-n)
}

// width is how many characters a line of the story has beside its label.
const width = 100

// line prints a label and a text of any number of lines, made safe for a terminal
// and broken at spaces.
func (s *story) line(label, text string) {
	for _, l := range strings.Split(gate.Visible(text), "\n") {
		for {
			head, rest := breakAt(l, width)
			fmt.Fprintf(s.w, "%10s  %s\n", label, head)
			label = ""
			if rest == "" {
				break
			}
			l = "  " + rest
		}
	}
}

// breakAt splits s at the last space within n characters, or else at the first
// one behind them; a word is never broken.
func breakAt(s string, n int) (head, rest string) {
	runes := []rune(s)
	if len(runes) <= n {
		return s, ""
	}
	for i := n; i > 2; i-- {
		if runes[i] == ' ' {
			return string(runes[:i]), string(runes[i+1:])
		}
	}
	for i := n; i < len(runes); i++ {
		if runes[i] == ' ' {
			return string(runes[:i]), string(runes[i+1:])
		}
	}
	return s, ""
}

// jsonLines prints every event as it is recorded.
type jsonLines struct {
	mu sync.Mutex
	w  io.Writer
}

func (j *jsonLines) tell(e event.Event) {
	b, err := event.Encode(e)
	if err != nil {
		b, _ = strictjson.Marshal(map[string]string{"error": "an event can't be encoded: " + err.Error()})
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	_, _ = j.w.Write(append(b, '\n'))
}
