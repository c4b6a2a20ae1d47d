package protocol_test

import (
	"os"
	"strings"
	"testing"
)

// silence is the reply of a backend that never answers.
const silence = "silence"

// transcript is one fenced block of a page that starts with ```transcript.
//
// A line that starts with a word of the format opens an entry: registration,
// event, capabilities, outcome, or the id of a backend with "<-" for what it is
// sent and "->" for what it answers. Lines after it belong to the same entry. In
// what a backend is sent, "@event" and "@capabilities" stand for those of the
// transcript.
type transcript struct {
	line  int
	lines []entry
}

type entry struct{ key, value string }

func readTranscripts(t *testing.T, page string) []*transcript {
	t.Helper()
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var (
		out []*transcript
		now *transcript
	)
	for i, line := range strings.Split(string(data), "\n") {
		switch {
		case strings.HasPrefix(line, "```transcript"):
			now = &transcript{line: i + 1}
			out = append(out, now)
		case strings.HasPrefix(line, "```"):
			now = nil
		case now == nil || strings.TrimSpace(line) == "":
		default:
			if key, value, ok := openEntry(line); ok {
				now.lines = append(now.lines, entry{key, value})
			} else if n := len(now.lines); n > 0 {
				now.lines[n-1].value += "\n" + line
			} else {
				t.Fatalf("%s:%d: %q opens no entry", page, i+1, line)
			}
		}
	}
	return out
}

func openEntry(line string) (key, value string, ok bool) {
	for _, word := range []string{"registration", "event", "capabilities", "outcome"} {
		if rest, ok := strings.CutPrefix(line, word+" "); ok {
			return word, strings.TrimSpace(rest), true
		}
	}
	for _, arrow := range []string{" <- ", " -> "} {
		if id, rest, ok := strings.Cut(line, arrow); ok && !strings.ContainsAny(id, " {\"") {
			return id + strings.TrimRight(arrow, " "), strings.TrimSpace(rest), true
		}
	}
	return "", "", false
}

// one returns the value of an entry that a transcript has once.
func (s *transcript) one(key string) string {
	for _, l := range s.lines {
		if l.key == key {
			return l.value
		}
	}
	return ""
}

// replies returns what a backend answers, in order, each on one line.
func (s *transcript) replies(id string) []string {
	out := []string{}
	for _, l := range s.lines {
		if l.key == id+" ->" {
			out = append(out, strings.Join(strings.Fields(l.value), " "))
		}
	}
	return out
}

func (s *transcript) expand(message string) string {
	message = strings.ReplaceAll(message, `"@event"`, s.one("event"))
	return strings.ReplaceAll(message, `"@capabilities"`, s.one("capabilities"))
}
