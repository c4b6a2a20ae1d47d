package ahp_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/abhed/abhed/ahp"
)

// TestHostileSizes holds that no message makes decoding take more than linear
// time: each of these would take minutes if something were quadratic in it.
func TestHostileSizes(t *testing.T) {
	numbered := func(n int, item func(i string) string) string {
		var b strings.Builder
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(item(strconv.Itoa(i)))
		}
		return b.String()
	}
	longName := strings.Repeat("n", 1<<20)
	reply := func(inside string) string {
		return `{"jsonrpc":"2.0","id":"e","result":{"protocolVersion":"draft","effects":[]` + inside + `}}`
	}
	tests := map[string]string{
		"many unknown members":      reply("," + numbered(200_000, func(i string) string { return `"x` + i + `":0` })),
		"many members of no use":    `{"jsonrpc":"2.0","id":"e","result":{` + numbered(200_000, func(i string) string { return `"x` + i + `":0` }) + `}}`,
		"a long name around much":   reply(`,"` + longName + `":[` + numbered(400_000, func(string) string { return "0" }) + `],"effects2":1}`),
		"a fault behind much":       `{"jsonrpc":"2.0","id":"e","result":{"` + longName + `":[` + numbered(400_000, func(string) string { return `"s"` }) + `],"protocolVersion":"draft","effects":[{"type":"x"}]}}`,
		"many effects":              `{"jsonrpc":"2.0","id":"e","result":{"protocolVersion":"draft","effects":[` + numbered(100_000, func(string) string { return `{"type":"ask"}` }) + `,{"type":"x"}]}}`,
		"many extensions":           reply(`,"extensions":{` + numbered(100_000, func(i string) string { return `"a.b` + i + `":0` }) + `}`),
		"many different list items": eventText(ahp.ToolBefore, leastEvents[ahp.ToolBefore]+`,"batch":{"id":"b","callIds":[`+numbered(300_000, func(i string) string { return `"` + i + `"` })+`]}`),
	}
	for name, text := range tests {
		began := time.Now()
		ahp.DecodeEffectsReply([]byte(text), ahp.StringID("e"))
		ahp.DecodeEvent([]byte(text))
		ahp.DecodeRegistration([]byte(text))
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("%s (%d bytes): %v", name, len(text), took)
		} else {
			t.Logf("%s (%d bytes): %v", name, len(text), took.Round(time.Millisecond))
		}
	}
}

// TestReplyFailureIsShort holds that a backend can't make what is kept of its failure
// as long as a message.
func TestReplyFailureIsShort(t *testing.T) {
	long := strings.Repeat("é", 1<<20)
	for name, reply := range map[string]string{
		"the text of an error": `{"jsonrpc":"2.0","id":"e","error":{"code":1,"message":"` + long + `"}}`,
		"a member's name":      `{"jsonrpc":"2.0","id":"e","result":{"protocolVersion":"draft","effects":[{"type":"deny","reason":"r","` + long + `":1}]}}`,
		"a name that is twice": `{"jsonrpc":"2.0","id":"e","` + long + `":1,"` + long + `":1}`,
		"an unknown effect":    `{"jsonrpc":"2.0","id":"e","result":{"protocolVersion":"draft","effects":[{"type":"` + long + `"}]}}`,
		"another id":           `{"jsonrpc":"2.0","id":"` + long + `","result":{"protocolVersion":"draft","effects":[]}}`,
	} {
		_, err := ahp.DecodeEffectsReply([]byte(reply), ahp.StringID("e"))
		if err == nil {
			t.Fatal(name)
		}
		if f := ahp.ReplyFailure(err); len(f.Detail) > 2<<10 || !utf8.ValidString(f.Detail) {
			t.Errorf("%s: %d bytes", name, len(f.Detail))
		}
	}
}

// TestErrorTextsAreShort holds the same of the texts of errors, which servers log and
// send.
func TestErrorTextsAreShort(t *testing.T) {
	long := strings.Repeat("é", 1<<20)
	for name, msg := range map[string]string{
		"a member's name":      `{"jsonrpc":"2.0","id":"e","method":"hooks/capabilities","params":{"protocolVersion":"draft","` + long + `":1}}`,
		"a name that is twice": `{"jsonrpc":"2.0","id":"e","method":"x","params":{"` + long + `":{"a":1,"a":1}}}`,
		"a method":             `{"jsonrpc":"2.0","id":"e","method":"` + long + `","params":{}}`,
		"an id":                `{"jsonrpc":"2.0","id":"` + long + `","method":"hooks/capabilities","params":{}}`,
	} {
		_, err := ahp.DecodeRequest([]byte(msg))
		var e *ahp.Error
		if !errors.As(err, &e) || len(e.Error()) > 1024 || len(e.RPC().Message) > 1024 || !utf8.ValidString(e.Error()) {
			t.Errorf("%s: %.200v", name, err)
		}
	}
}
