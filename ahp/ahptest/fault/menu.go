package fault

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/abhed/abhed/ahp"
)

// LateBy is how long the fault "late" holds its reply back.
const LateBy = 2 * time.Second

// Fault is one way in which a backend can misbehave when it is asked. It comes from
// Menu, NotifyMenu or Find alone: the zero Fault is none.
type Fault struct {
	// Name is a word of lower-case letters, digits and underscores.
	Name string
	// About says in a few words what the backend does.
	About string
	// Classes says which failure a harness must see, per carrier; "" says that the
	// exchange succeeds. A carrier that isn't there can't have the fault.
	Classes map[Carrier]ahp.FailureClass
	act     func(id string) action
}

// action is what a faulty backend does with a request.
type action struct {
	// out is written as it is; a process writes it to standard output, HTTP sends
	// it as the body.
	out []byte
	// stderr is written before that.
	stderr []byte
	delay  time.Duration
	// hang keeps the process, or the response, from ending.
	hang bool
	// exit ends the process with code after writing; HTTP cuts the connection.
	exit bool
	code int
	// deaf ends the process before it reads anything.
	deaf bool
	// For HTTP alone; a zero status is 200, an empty media type is that of JSON.
	status    int
	mediaType string
	location  string
	// short announces a longer body than is sent.
	short bool
}

// Menu returns the faults of a request. The faults concern a request for a decision; those of a
// notification are in NotifyMenu.
func Menu() []Fault { return append(streamFaults(), append(replyFaults(), httpFaults()...)...) }

// Find returns the fault of that name, of either menu.
func Find(name string) (Fault, bool) {
	for _, f := range append(Menu(), NotifyMenu()...) {
		if f.Name == name {
			return f, true
		}
	}
	return Fault{}, false
}

// on returns the same class for each of the carriers.
func on(class ahp.FailureClass, carriers ...Carrier) map[Carrier]ahp.FailureClass {
	if len(carriers) == 0 {
		carriers = Carriers()
	}
	m := map[Carrier]ahp.FailureClass{}
	for _, c := range carriers {
		m[c] = class
	}
	return m
}

// with adds one carrier to m.
func with(m map[Carrier]ahp.FailureClass, c Carrier, class ahp.FailureClass) map[Carrier]ahp.FailureClass {
	m[c] = class
	return m
}

func line(s string) []byte { return []byte(s + "\n") }

// result returns a reply with the given effects.
func result(id, effects string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"result":{"protocolVersion":"draft","effects":%s}}`, id, effects)
}

func rpcError(id string, code int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"error":{"code":%d,"message":"no"}}`, id, code)
}

// says returns a fault that writes one line.
func says(name, about string, classes map[Carrier]ahp.FailureClass, text func(id string) string) Fault {
	return Fault{Name: name, About: about, Classes: classes, act: func(id string) action { return action{out: line(text(id))} }}
}

const denies = `[{"type":"message","text":"must not be shown"},{"type":"deny","reason":"must not count"}]`

func streamFaults() []Fault {
	stdio := []Carrier{StdioPersistent, StdioPerEvent}
	return []Fault{
		says("none", "answers without an objection", on(""), func(id string) string { return result(id, "[]") }),
		{Name: "never", About: "never answers", Classes: on(ahp.FailDeadline), act: func(string) action { return action{hang: true} }},
		{Name: "late", About: "answers long after the deadline", Classes: on(ahp.FailDeadline),
			act: func(id string) action { return action{delay: LateBy, out: line(result(id, denies))} }},
		{Name: "twice", About: "answers twice",
			Classes: with(on(ahp.FailMalformed, StdioPerEvent, HTTP), StdioPersistent, ""),
			act: func(id string) action {
				return action{out: bytes.Repeat(line(result(id, "[]")), 2)}
			}},
		{Name: "stray", About: "writes a line that is no message before the answer",
			Classes: on(ahp.FailMalformed),
			act:     func(id string) action { return action{out: []byte("starting up\n" + result(id, "[]") + "\n")} }},
		says("crlf", "ends the answer with a carriage return too, which is white space", on(""), func(id string) string { return result(id, "[]") + "\r" }),
		{Name: "blank_line", About: "writes an empty line before the answer",
			Classes: with(with(on(ahp.FailMalformed, stdio...), HTTP, ""), InProcess, ""),
			act:     func(id string) action { return action{out: []byte("\n" + result(id, "[]") + "\n")} }},
		{Name: "half_line", About: "ends in the middle of the answer",
			Classes: with(with(with(on(ahp.FailMalformed, StdioPerEvent), StdioPersistent, ahp.FailExit), HTTP, ahp.FailConnect), InProcess, ahp.FailMalformed),
			act: func(id string) action {
				r := result(id, "[]")
				return action{out: []byte(r[:len(r)/2]), exit: true, short: true}
			}},
		{Name: "huge_line", About: "answers with more than 16 MiB", Classes: on(ahp.FailMalformed),
			act: func(id string) action {
				return action{out: line(result(id, `[{"type":"message","text":"`+strings.Repeat("x", ahp.MaxMessageBytes)+`"}]`))}
			}},
		{Name: "dies_before", About: "ends before it reads anything", Classes: on(ahp.FailExit, stdio...),
			act: func(string) action { return action{deaf: true, exit: true, code: 3} }},
		{Name: "dies_during", About: "ends after it has read the request",
			Classes: with(with(on(ahp.FailMalformed, StdioPerEvent), StdioPersistent, ahp.FailExit), HTTP, ahp.FailConnect),
			act:     func(string) action { return action{exit: true} }},
		{Name: "dies_after", About: "answers and ends with status 3",
			Classes: with(on("", StdioPersistent), StdioPerEvent, ahp.FailExit),
			act:     func(id string) action { return action{out: line(result(id, "[]")), exit: true, code: 3} }},
		{Name: "floods_stderr", About: "writes a megabyte to standard error and then answers", Classes: on("", stdio...),
			act: func(id string) action {
				return action{stderr: bytes.Repeat([]byte("noise\n"), 1<<20/6), out: line(result(id, "[]"))}
			}},
	}
}

func replyFaults() []Fault {
	malformed, effect := on(ahp.FailMalformed), on(ahp.FailEffect)
	return []Fault{
		says("wrong_id", "answers another request", on(ahp.FailIDMismatch), func(string) string { return result("another", denies) }),
		says("garbage", "answers with something that isn't JSON", malformed, func(string) string { return "I think this is fine." }),
		says("duplicate_keys", "says effects twice, deny first", malformed, func(id string) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"result":{"protocolVersion":"draft","effects":%s,"effects":[]}}`, id, denies)
		}),
		says("bad_utf8", "holds a byte that isn't UTF-8", malformed, func(id string) string { return result(id, "[{\"type\":\"message\",\"text\":\"\xff\"}]") }),
		says("lone_surrogate", "holds half of a surrogate pair", malformed, func(id string) string { return result(id, `[{"type":"message","text":"\ud800"}]`) }),
		says("byte_order_mark", "starts with a byte order mark", malformed, func(id string) string { return "\xef\xbb\xbf" + result(id, "[]") }),
		says("batch", "answers with a list", malformed, func(id string) string { return "[" + result(id, "[]") + "]" }),
		says("no_effects", "has a result without effects", malformed, func(id string) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"result":{"protocolVersion":"draft"}}`, id)
		}),
		says("result_and_error", "has both", malformed, func(id string) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"result":{"protocolVersion":"draft","effects":[]},"error":{"code":1,"message":"x"}}`, id)
		}),
		says("old_jsonrpc", "names another JSON-RPC version", malformed, func(id string) string { return strings.Replace(result(id, "[]"), "2.0", "1.0", 1) }),
		says("rpc_error", "answers with a JSON-RPC error", on(ahp.FailRPCError), func(id string) string { return rpcError(id, ahp.CodeInternal) }),
		says("version_error", "doesn't speak the revision", on(ahp.FailVersion), func(id string) string { return rpcError(id, ahp.CodeUnsupportedVersion) }),
		says("other_version", "answers in another revision", on(ahp.FailVersion), func(id string) string {
			return strings.Replace(result(id, "[]"), `"draft"`, `"2031-01-01"`, 1)
		}),
		says("event_error", "doesn't support the event", on(ahp.FailEvent), func(id string) string { return rpcError(id, ahp.CodeUnsupportedEvent) }),
		says("unknown_effect", "has an unknown effect beside a deny", effect, func(id string) string {
			return result(id, strings.Replace(denies, "]", `,{"type":"teleport"}]`, 1))
		}),
		says("unadvertised_effect", "allows, which the request doesn't advertise, beside a message", effect, func(id string) string {
			return result(id, `[{"type":"message","text":"must not be shown"},{"type":"allow"}]`)
		}),
		says("malformed_effect", "denies without a reason", effect, func(id string) string {
			return result(id, `[{"type":"message","text":"must not be shown"},{"type":"deny"}]`)
		}),
		says("extra_effect_member", "has an unknown member in an effect", effect, func(id string) string {
			return result(id, `[{"type":"deny","reason":"must not count","level":3}]`)
		}),
		says("edits_nothing", "edits what the event doesn't have", effect, func(id string) string {
			return result(id, `[{"type":"modify","target":"output","operation":"replace","value":[]}]`)
		}),
		says("long_goodbye", "answers validly with unknown members in the envelope, which are ignored", on(""), func(id string) string {
			return strings.Replace(result(id, "[]"), `"effects"`, `"x-note":1,"effects"`, 1)
		}),
	}
}

func httpFaults() []Fault {
	status := func(name, about string, class ahp.FailureClass, a action) Fault {
		return Fault{Name: name, About: about, Classes: on(class, HTTP), act: func(id string) action {
			a.out = line(result(id, "[]"))
			return a
		}}
	}
	return []Fault{
		status("status_500", "answers with a server error", ahp.FailHTTPStatus, action{status: 500}),
		status("status_201", "answers with another success", ahp.FailHTTPStatus, action{status: 201}),
		status("status_401", "asks for another credential", ahp.FailAuth, action{status: 401}),
		status("redirect", "sends the request elsewhere", ahp.FailHTTPStatus, action{status: 307, location: elsewhere}),
		status("media_type", "calls the reply plain text", ahp.FailMalformed, action{mediaType: "text/plain"}),
		status("event_stream", "answers with a stream of events", ahp.FailMalformed, action{mediaType: "text/event-stream"}),
		{Name: "status_204", About: "answers a request without a body", Classes: on(ahp.FailHTTPStatus, HTTP),
			act: func(string) action { return action{status: 204} }},
	}
}

// NotifyMenu returns the faults of a notification's delivery.
func NotifyMenu() []Fault {
	return []Fault{
		{Name: "notify_body", About: "answers a notification with 202 and a body", Classes: on(ahp.FailMalformed, HTTP),
			act: func(id string) action { return action{status: 202, out: line(result(id, denies))} }},
		{Name: "notify_200", About: "answers a notification with 200", Classes: on(ahp.FailHTTPStatus, HTTP),
			act: func(string) action { return action{status: 200} }},
		{Name: "notify_redirect", About: "sends the notification elsewhere", Classes: on(ahp.FailHTTPStatus, HTTP),
			act: func(string) action { return action{status: 302, location: elsewhere} }},
		{Name: "notify_exit", About: "ends with status 3", Classes: on(ahp.FailExit, StdioPerEvent),
			act: func(string) action { return action{exit: true, code: 3} }},
	}
}
