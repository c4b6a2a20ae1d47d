package modeltest

import (
	"maps"
	"strconv"
	"time"
)

// Fault changes how a turn is sent. Faults combine.
type Fault func(*plan)

// Status answers with an HTTP status and the body as given.
func Status(code int, body string) Fault {
	return func(p *plan) { p.status, p.raw, p.rawType = code, []byte(body), "application/json" }
}

// RateLimited answers 429 with a retry-after of so many seconds.
func RateLimited(seconds int) Fault {
	return func(p *plan) {
		Status(429, `{"error":{"message":"Rate limit reached","type":"rate_limit_error"}}`)(p)
		Header("Retry-After", strconv.Itoa(seconds))(p)
	}
}

// RateLimitedUntil answers 429 with a retry-after that is a date.
func RateLimitedUntil(t time.Time) Fault {
	return func(p *plan) {
		RateLimited(0)(p)
		Header("Retry-After", t.UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT"))(p)
	}
}

// Header sets a header of the response.
func Header(name, value string) Fault {
	return func(p *plan) {
		h := maps.Clone(p.header)
		if h == nil {
			h = map[string]string{}
		}
		h[name] = value
		p.header = h
	}
}

// Raw answers 200 with the body as given.
func Raw(contentType, body string) Fault {
	return func(p *plan) { p.raw, p.rawType = []byte(body), contentType }
}

// CutAt breaks the connection after n bytes of the body.
func CutAt(n int) Fault { return func(p *plan) { p.cutAt = n } }

// EndAt ends the body cleanly after n bytes.
func EndAt(n int) Fault { return func(p *plan) { p.cutAt, p.cutClean = n, true } }

// StallHeaders never answers.
func StallHeaders() Fault { return func(p *plan) { p.stallHeaders = true } }

// StallAt falls silent after n bytes of the body.
func StallAt(n int) Fault { return func(p *plan) { p.stallAt = n } }

// SplitEvery sends the body in pieces of n bytes.
func SplitEvery(n int) Fault { return func(p *plan) { p.splitEvery = n } }

// SplitAt sends the first n bytes apart.
func SplitAt(n int) Fault { return func(p *plan) { p.splitAt = n } }

// Gzip packs the body though nobody asked.
func Gzip() Fault { return func(p *plan) { p.gzip = true } }

// JSONBody answers with one JSON body instead of a stream.
func JSONBody() Fault { return func(p *plan) { p.jsonBody = true } }

// ErrorFrame sends the error after n frames, and then ends cleanly.
func ErrorFrame(n int, data string) Fault {
	return func(p *plan) { p.errorAfter, p.errorFrame = n, data }
}

// MissingIndex leaves out the index of call fragments.
func MissingIndex() Fault { return func(p *plan) { p.missingIndex = true } }

// ZeroIndex gives every call the index 0 and every fragment its id, and
// interleaves the calls.
func ZeroIndex() Fault { return func(p *plan) { p.zeroIndex, p.idEveryPiece = true, true } }

// WholeCalls sends each call as one fragment.
func WholeCalls() Fault { return func(p *plan) { p.wholeCalls = true } }

// WholeCallsAtZero sends each call as one fragment with the index 0.
func WholeCallsAtZero() Fault { return func(p *plan) { p.wholeCalls, p.zeroIndex = true, true } }

// ArgsObject sends the arguments as an object instead of text.
func ArgsObject() Fault { return func(p *plan) { p.argsObject = true } }

// TruncatedArgs sends half of the arguments and the finish reason length.
func TruncatedArgs() Fault { return func(p *plan) { p.truncateArgs = true } }

// TwoFinals sends a second final frame that repeats the calls and carries usage.
func TwoFinals() Fault { return func(p *plan) { p.repeatFinal, p.noUsage = true, true } }

// NoFinish leaves out the finish reason.
func NoFinish() Fault { return func(p *plan) { p.noFinish = true } }

// NoDone leaves out [DONE].
func NoDone() Fault { return func(p *plan) { p.noDone = true } }

// NoUsage leaves out the usage.
func NoUsage() Fault { return func(p *plan) { p.noUsage = true } }

// EarlyUsage sends the usage at the start instead of the end.
func EarlyUsage() Fault { return func(p *plan) { p.earlyUsage = true } }

// EmptyChoices sends a frame with no choices.
func EmptyChoices() Fault { return func(p *plan) { p.emptyChoices = true } }

// Nulls fills every frame with members that are null, error among them.
func Nulls() Fault { return func(p *plan) { p.nulls = true } }

// NoSpace writes data: without a space.
func NoSpace() Fault { return func(p *plan) { p.noSpace = true } }

// LineEnd uses another line end than LF.
func LineEnd(s string) Fault { return func(p *plan) { p.lineEnd = s } }

// Comments sends keep-alive comments and empty events between the frames.
func Comments() Fault { return func(p *plan) { p.comments = true } }

// ReasoningField sends the reasoning in another member.
func ReasoningField(name string) Fault { return func(p *plan) { p.reasoningField = name } }

// Finishing ends the reply with another finish reason.
func Finishing(reason string) Fault { return func(p *plan) { p.turn.Finish = reason } }

// Both applies two faults as one.
func Both(a, b Fault) Fault { return func(p *plan) { a(p); b(p) } }
