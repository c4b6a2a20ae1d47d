package abhed_test

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/abhed/abhed/internal/model/modeltest"
	"github.com/abhed/abhed/internal/require"
	"github.com/abhed/abhed/internal/strictjson"
)

// TestOddBytesOfResults: whatever a tool gives, each request is valid and so is each line
// of the record, nothing is lost silently, and the session goes on: half a surrogate pair
// from a server, an extension or a command (I131), bytes that are no text (I132), and
// sequences for a terminal, which the record has in escaped form (I133).
func TestOddBytesOfResults(t *testing.T) {
	t.Parallel()
	require.Path(t, "bash")
	const halves = `half \ud83d and \ude00\ud83d`
	box := player{name: "shelf", more: `,"events":["session_start"]`, lines: []line{
		{On: "list_tools", Do: boxTools},
		{On: "invoke_tool", Has: "half", Do: `{"result":"` + halves + `"}`}, {On: "invoke_tool", Do: `{"result":"\u001b[?1003h\u0000x"}`},
	}}
	turns := each([]modeltest.Call{
		{ID: "b1", Name: "bash", Args: `{"command":"printf '\\355\\240\\200half'"}`}, {ID: "b2", Name: "bash", Args: `{"command":"printf '\\377\\376\\000ok'"}`},
		{ID: "b3", Name: "bash", Args: `{"command":"printf 'a\\033[?1003h\\033]52;c;QUJD\\007b'"}`},
		{ID: "m1", Name: "mcp__box__put", Args: textArgs("half")}, {ID: "m2", Name: "mcp__box__put", Args: textArgs("bytes")}, {ID: "m3", Name: "mcp__box__put", Args: textArgs("escape")},
		{ID: "e1", Name: "put", Args: textArgs("escape")}, {ID: "e2", Name: "put", Args: textArgs("half")},
		{ID: "r1", Name: "read", Args: `{"path":"esc.txt"}`},
	})
	scenario{
		mode: "bypass", extensions: []player{box}, turns: turns, files: map[string]string{"ws/esc.txt": "a\x1b[?1003hb\n"},
		stage: func(s *stage) {
			p := part{Tools: []string{putTool}}
			p.log, _ = os.Open(os.DevNull)
			s.t.Cleanup(func() { p.log.Close() })
			s.serves(overHTTP(s, func(request string) string {
				reply := p.server(request)
				if !strings.Contains(request, `"tools/call"`) {
					return reply
				}
				for word, text := range map[string]string{"half": halves, "bytes": "\xff\xfeok", "escape": `\u001b[?1003h\u0000x`} {
					if strings.Contains(request, word) {
						head, _, _ := strings.Cut(reply, `"text":`)
						return head + `"text":"` + text + `"}]}}`
					}
				}
				return reply
			}))
		},
		sent:     []string{`tool e2 && gave no result && invalid surrogate pair`, "tool r1 1\ta\x1b[?1003hb"},
		recorded: []string{`tool.ended && "call_id":"m3" && "content":"\u001b[?1003h`, `tool.ended && "call_id":"r1" && \u001b[?1003hb`},
		check: func(t *testing.T, s *stage, record []string) {
			for _, l := range record {
				if !utf8.ValidString(l) || strings.ContainsAny(l, "\x1b\x00") {
					t.Errorf("the record has %q", l)
				}
			}
			for i, r := range s.server.Requests() {
				if err := strictjson.Check(r.Body, strictjson.Options{}); err != nil || !utf8.Valid(r.Body) || bytes.ContainsAny(r.Body, "\x1b\x00") {
					t.Errorf("request %d isn't sound (%v): %q", i+1, err, r.Body)
				}
			}
			all := s.sent()
			compare(t, "what the model read", []string{
				`tool b1 \xed\xa0\x80half`, `tool b2 \xff\xfe\x00ok`, "tool b3 ab", "tool m1 half \uFFFD and \uFFFD\uFFFD", "tool m2 \uFFFDok", "tool m3 \x1b[?1003h\\x00x", "tool e1 \x1b[?1003h\\x00x",
			}, results(all[len(all)-19:], "b1", "b2", "b3", "m1", "m2", "m3", "e1"))
		},
	}.everywhere(t)
}

// results returns the results of some calls.
func results(sent []string, ids ...string) (out []string) {
	for _, id := range ids {
		for _, l := range matching(sent, " tool "+id+" ") {
			_, text, _ := strings.Cut(l, "] ")
			out = append(out, strings.TrimSuffix(text, "\n"))
		}
	}
	return out
}
