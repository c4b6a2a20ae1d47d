package abhed_test

import (
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/model/modeltest"
)

// filling is a conversation that fills the window, so that what came first is to be
// summarised before the third request. With asked the model is asked for a summary.
func filling(summarised bool) []modeltest.Turn {
	big := func(id, word string) modeltest.Turn {
		turn := call(id, "write", `{"path":"`+word+`","content":"0123456789 `+word+` `+strings.Repeat("filler ", 4000)+`"}`)
		turn.Faults = []modeltest.Fault{modeltest.WholeCalls()}
		return turn
	}
	turns := []modeltest.Turn{big("c1", "first"), big("c2", "second")}
	if summarised {
		turns = append(turns, modeltest.Turn{Text: "BYMODEL"})
	}
	return append(turns, done())
}

// TestCompactionsAreAsked covers before_compact with summary and cancel.
func TestCompactionsAreAsked(t *testing.T) {
	t.Parallel()
	say := func(name, do string) player {
		return player{name: name, more: `,"events":["before_compact"]`, lines: []line{{On: "before_compact", Do: do}}}
	}
	byModel := []string{`Summarise the conversation above`, "BYMODEL"}
	for _, tt := range []struct {
		name       string
		extensions []player
		byModel    bool
		sc         scenario
	}{
		{"a summary", []player{say("x", `{"summary":"MINE"}`)}, false, scenario{
			sent: []string{"[3] user && The summary:\n\nMINE", "[3] assistant && 0123456789 second"}, unsent: append(byModel, "[3] assistant && 0123456789 first"),
			recorded: []string{`hooks.decided && "event_type":"before_compact" && "outcome":"supplied" && "by":"extension x"`, `context.reduced && "by":"extension x" && MINE`},
		}},
		{"cancelled", []player{say("x", `{"cancel":true,"reason":"keep it"}`)}, false, scenario{
			sent: []string{"[3] assistant && 0123456789 first"}, unsent: append(byModel, "The summary"),
			recorded: []string{`hooks.decided && "event_type":"before_compact" && "outcome":"denied" && "by":"extension x" && "reason":"keep it"`}, unrecorded: []string{"context.reduced && summary"},
		}},
		{"cancel wins", []player{say("a", `{"summary":"MINE"}`), say("b", `{"cancel":true,"summary":"OTHER"}`)}, false, scenario{
			sent: []string{"[3] assistant && 0123456789 first"}, unsent: append(byModel, "MINE", "OTHER"), recorded: []string{`"event_type":"before_compact" && "outcome":"denied" && "by":"extension b"`},
		}},
		{"two that differ", []player{say("a", `{"summary":"MINE"}`), say("b", `{"summary":"OTHER"}`)}, true, scenario{
			sent: []string{"[3] user && Summarise the conversation above", "[4] user && The summary:\n\nBYMODEL"}, unsent: []string{"MINE", "OTHER"},
			recorded: []string{`"event_type":"before_compact" && "outcome":"none" && gave different summaries`},
		}},
		{"two that agree", []player{say("a", `{"summary":"MINE"}`), say("b", `{"summary":"MINE"}`)}, false, scenario{
			sent: []string{"[3] user && The summary:\n\nMINE"}, unsent: byModel, recorded: []string{`"event_type":"before_compact" && "by":"extension a, extension b"`},
		}},
		{"no opinion", []player{say("x", `{"summary":null,"cancel":null}`)}, true, scenario{
			sent: []string{"[4] user && The summary:\n\nBYMODEL"}, recorded: []string{`"event_type":"before_compact" && "outcome":"none"`},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			sc := tt.sc
			sc.settings, sc.extensions, sc.turns = `,"context":{"threshold":0.4},"models":{"env/test":{"context_window":40000}}`, tt.extensions, filling(tt.byModel)
			sc.heard = []string{`"event":"before_compact" && "turn":3,"agent":{"id":"main","depth":0},"messages":[{"index":0,"role":"assistant","content":"write {\"path\":\"first\"`}
			sc.everywhere(t)
		})
	}
}

// TestWhatIsLeftOutIsNotSummarised: a message that context keeps out isn't in what the
// model is asked to summarise, either.
func TestWhatIsLeftOutIsNotSummarised(t *testing.T) {
	t.Parallel()
	big := filling(false)
	scenario{
		settings:   `,"context":{"threshold":0.4},"models":{"env/test":{"context_window":40000}}`,
		extensions: []player{{name: "x", more: `,"events":["context"]`, lines: []line{{On: "context", Has: `"turn":4,"agent":{"id":"main","depth":0},"messages":[{"index":0,"role":"user","content":"go"},{"index":1,"role":"assistant","content":"write {\"content\":\"tiny`, Do: `{"keep":[0,3,4,5,6]}`}}}},
		turns:      []modeltest.Turn{write("c0", "tiny"), big[0], big[1], {Text: "BYMODEL"}, done()},
		sent:       []string{"[3] assistant && tiny", "[4] user && Summarise the conversation above && 0123456789 first", "[5] user && The summary:\n\nBYMODEL"},
		unsent:     []string{"[4] && tiny"},
	}.everywhere(t)
}
