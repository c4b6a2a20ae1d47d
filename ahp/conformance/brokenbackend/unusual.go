package brokenbackend

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/strictjson"
)

// Unusual returns backends that are unlike ours and keep every rule: a suite that
// complains of one accuses the innocent. Their Check is a name that starts with
// "unusual.".
func Unusual() []Mutation {
	reply := func(name, about string, change func(o object) []byte) Mutation {
		return Mutation{Check: "unusual." + name, About: about, after: func(_ *peer, _, reply []byte) []byte {
			if o := parse(reply); o != nil {
				return change(o)
			}
			return reply
		}}
	}
	return []Mutation{
		reply("crlf", "ends lines with a carriage return too", func(o object) []byte { return append(text(o), '\r') }),
		reply("blanks", "puts white space around and into its answers", func(o object) []byte {
			return bytes.ReplaceAll(append([]byte("  "), append(text(o), "\t "...)...), []byte(`"id":`), []byte(`"id" :  `))
		}),
		reply("members", "adds members of its own to the envelope and the result", func(o object) []byte {
			o["x-vendor"] = object{"took": 1}
			if r, is := o["result"].(object); is {
				r["x-vendor"] = true
			}
			return text(o)
		}),
		reply("escapes", "escapes the letters of ids", func(o object) []byte {
			id, is := o["id"].(string)
			if !is {
				return text(o)
			}
			var b strings.Builder
			for _, r := range id {
				if r < 0x10000 {
					fmt.Fprintf(&b, `\u%04X`, r)
				} else {
					b.WriteRune(r)
				}
			}
			o["id"] = "ID"
			return bytes.Replace(text(o), []byte(`"ID"`), []byte(`"`+b.String()+`"`), 1)
		}),
		reply("errors", "says more, and less, in errors", func(o object) []byte {
			if e, is := o["error"].(object); is {
				e["message"] = ""
				if !has(o, "error.data") {
					e["data"] = []any{"see", "the manual"}
				}
			}
			return text(o)
		}),
		reply("silent-manifest", "has no manifest", func(o object) []byte {
			if has(o, "result.manifest") {
				return failure(o["id"], ahp.CodeMethodNotFound)
			}
			return text(o)
		}),
		{Check: "unusual.parse", About: "answers what isn't JSON over HTTP with an error and status 200", handle: func(_ *peer, msg []byte) ([]byte, []byte, bool) {
			if strictjson.Check(msg, strictjson.Options{}) != nil && strictjson.TooDeep(msg, 1000) < 0 {
				return failure(nil, ahp.CodeParse), nil, true
			}
			return nil, nil, false
		}},
		{Check: "unusual.one-event", About: "takes tool calls before they run and nothing else", handle: answering(func(o object) []byte {
			kind, _ := get(o, "params.event.type").(string)
			if intercepts(o) && ahp.EventType(kind).Interceptable() && kind != string(ahp.ToolBefore) && get(o, "params.protocolVersion") == ahp.Version {
				return failure(o["id"], ahp.CodeUnsupportedEvent)
			}
			return nil
		})},
		{Check: "unusual.counts", About: "counts in a message, which is another each time", handle: func(b *peer, msg []byte) ([]byte, []byte, bool) {
			return nil, nil, b.counted("messages") < 0
		}, after: func(b *peer, msg, reply []byte) []byte {
			if o := parse(msg); o != nil && strings.Contains(fmt.Sprint(advertised(o)), "message") && bytes.HasSuffix(reply, []byte(`"effects":[]}}`)) {
				return bytes.Replace(reply, []byte(`[]}}`), fmt.Appendf(nil, `[{"type":"message","text":"number %d"}]}}`, b.seenSoFar("messages")), 1)
			}
			return reply
		}},
		{Check: "unusual.noise", About: "says a lot on standard error and answers in pieces", stdio: stdio{noise: true}},
		{Check: "unusual.no-content", About: "answers notifications with 204 and JSON with its charset", around: changing(func(_ *http.Request, _ []byte, w *httptest.ResponseRecorder) {
			if w.Code == http.StatusAccepted {
				w.Code = http.StatusNoContent
			}
			if w.Header().Get("Content-Type") != "" {
				w.Header().Set("Content-Type", "application/json; charset=utf-8")
			}
		})},
	}
}
