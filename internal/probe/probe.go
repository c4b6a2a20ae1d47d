// Package probe finds out what a model endpoint can do, by asking it, and says it
// for a person: whether it can be reached and lets one in, whether its replies
// stream, whether it calls tools, and what else it has.
//
// It guarantees that at most MaxRequests requests are made of the model, one after
// the other, each bounded in time and output; that a probe whose condition failed is
// NotTried and says why; and that no text of a Report shows one of Options.Secrets,
// however the endpoint echoes them.
//
// Do not assume that OK is a promise: a model answers as it likes, and each thing was
// seen once. No is what was seen once, too, but for refusals by the endpoint, which
// are quoted. Nothing is retried.
package probe

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/abhed/abhed/internal/model"
)

const (
	// MaxRequests is how many requests of the model Run makes at most, which is 8 where
	// none is refused. Besides, it asks for the base URL once, without credentials.
	MaxRequests = 10
	// DefaultTimeout is what a zero Options.Timeout means.
	DefaultTimeout = time.Minute
	// DefaultMaxOutput is what a zero Options.MaxOutput means. Models that reason spend
	// most of it before they answer.
	DefaultMaxOutput = 2000
	// lookTimeout bounds the look at the network where Options.Timeout is longer.
	lookTimeout = 15 * time.Second
	// maxQuoted bounds what is quoted of a reply, in characters.
	maxQuoted = 120
)

// Outcome is what became of one probe.
type Outcome string

const (
	// OK was seen to work.
	OK Outcome = "ok"
	// No was seen not to work.
	No Outcome = "no"
	// Unclear is what could not be told.
	Unclear Outcome = "unclear"
	// NotTried is a probe that was not made; Saw says why.
	NotTried Outcome = "not tried"
)

// The probes, in the order of a Report.
const (
	Name       = "name"       // the host's name resolves
	Port       = "port"       // somebody answers there
	TLS        = "tls"        // the certificate is accepted
	HTTP       = "http"       // it speaks HTTP
	Clock      = "clock"      // its clock and ours agree
	Credential = "credential" // it lets the request in
	Model      = "model"      // it knows the path and the model
	Reply      = "reply"      // a plain request is answered
	Stream     = "stream"     // the answer comes in pieces as it is made
	UsageSaid  = "usage"      // it says how many tokens that took
	ToolCall   = "tool call"
	ToolResult = "tool result"
	TwoCalls   = "two calls" // in one reply
	Output     = "output"    // an answer that fits a schema
	Image      = "image"
	Reasoning  = "reasoning"
	Replay     = "replay" // of that reasoning
	Cache      = "cache"
	Window     = "window" // of the context
)

// names lists all probes in order.
func names() []string {
	return []string{Name, Port, TLS, HTTP, Clock, Credential, Model, Reply, Stream, UsageSaid, ToolCall, ToolResult,
		TwoCalls, Output, Image, Reasoning, Replay, Cache, Window}
}

// Probe is one thing that was tried.
type Probe struct {
	Name    string  `json:"name"`
	Outcome Outcome `json:"outcome"`
	// Saw is one sentence on what was seen.
	Saw string `json:"saw"`
	// Do says what to do about it; "" if there is nothing.
	Do string `json:"do,omitzero"`
}

// Report is what Run found.
type Report struct {
	// Model is "provider/model" as configured, "" if no client was given.
	Model string `json:"model,omitzero"`
	// Endpoint is the base URL without user information and query.
	Endpoint string `json:"endpoint,omitzero"`
	// Verdict says whether an agent can work with this: OK if requests are answered,
	// tools are called and their results are taken.
	Verdict Outcome `json:"verdict"`
	// Probes holds every probe, in a fixed order.
	Probes []Probe `json:"probes"`
	// Requests is how many requests of the model were made.
	Requests int `json:"requests"`
	// InputTokens and OutputTokens are what the endpoint says that they took.
	InputTokens  int64 `json:"input_tokens"`
	OutputTokens int64 `json:"output_tokens"`
	// Milliseconds is how long it took altogether.
	Milliseconds int64 `json:"milliseconds"`
}

// Options says what to probe and how far to go.
type Options struct {
	// Client is the model; nil leaves out everything but the network.
	Client model.Client
	// BaseURL is where it is, for the look at the network; "" leaves that out.
	BaseURL string
	// CAFile is a PEM file of authorities trusted besides the system's; "" is none.
	CAFile string
	// Images says that the model is configured as one that takes images.
	Images bool
	// Window is the configured context window in tokens; 0 if none is configured.
	Window int64
	// Timeout bounds each request; zero means DefaultTimeout.
	Timeout time.Duration
	// MaxOutput bounds each reply in tokens; zero means DefaultMaxOutput.
	MaxOutput int64
	// Secrets are values that no text may show. Those of fewer than four bytes are
	// passed over: they would garble everything.
	Secrets [][]byte
}

// runner is one run.
type runner struct {
	o      Options
	report *Report
	probes map[string]*Probe
	hide   *hider
	// blocked says why no further request makes sense, "" while one does.
	blocked string
	// thoughts is what was seen of reasoning.
	thoughts thoughts
}

// Run makes the probes. It ends early if ctx does, and always returns a whole report.
func Run(ctx context.Context, o Options) *Report {
	began := time.Now()
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.MaxOutput <= 0 {
		o.MaxOutput = DefaultMaxOutput
	}
	if o.Window > 0 { // small windows must hold question and answer
		o.MaxOutput = max(1, min(o.MaxOutput, o.Window/4))
	}
	r := &runner{o: o, report: &Report{}, probes: map[string]*Probe{}, hide: newHider(o.Secrets)}
	for _, n := range names() {
		r.probes[n] = &Probe{Name: n}
	}
	if o.Client != nil {
		r.report.Model = r.hide.clean(o.Client.Name())
	}
	r.look(ctx)
	r.ask(ctx)
	for _, n := range names() {
		r.report.Probes = append(r.report.Probes, *r.probes[n])
	}
	r.report.Verdict = r.verdict()
	r.report.Milliseconds = time.Since(began).Milliseconds()
	return r.report
}

// ask makes the probes that need the model.
func (r *runner) ask(ctx context.Context) {
	if r.o.Client == nil {
		r.blocked = "no client could be made for the model"
	}
	if r.blocked == "" && r.plain(ctx) {
		if answer := r.toolCall(ctx); answer != nil {
			r.toolResult(ctx, answer)
			r.twoCalls(ctx)
		}
		r.output(ctx)
		r.image(ctx)
		r.longPrompt(ctx)
		r.reasoning()
	}
	for _, n := range names() {
		if r.probes[n].Outcome == "" {
			r.skip(n, r.blocked)
		}
	}
}

// set says what became of a probe. Its texts may hold anything.
func (r *runner) set(name string, o Outcome, do, saw string, args ...any) {
	p := r.probes[name]
	p.Outcome, p.Saw, p.Do = o, r.hide.clean(fmt.Sprintf(saw, args...)), r.hide.clean(do)
}

// quoted returns what the model said, in quotes and cut. Secrets go first: within
// quotes, or cut, they would not be found.
func (r *runner) quoted(s string) string {
	s = r.hide.clean(s)
	if list := []rune(s); len(list) > maxQuoted {
		s = string(list[:maxQuoted]) + "…"
	}
	return strconv.Quote(s)
}

// skip says that a probe was not made.
func (r *runner) skip(name, why string) { r.set(name, NotTried, "", "not tried: %s", why) }

// verdict is the report's in one word.
func (r *runner) verdict() Outcome {
	for _, n := range []string{Name, Port, TLS, Credential, Model, Reply, ToolCall, ToolResult} {
		if r.probes[n].Outcome == No {
			return No
		}
	}
	for _, n := range []string{Reply, ToolCall, ToolResult} {
		if r.probes[n].Outcome != OK {
			return Unclear
		}
	}
	return OK
}

// shown returns a URL without what may be secret in it, "" if it can't be read.
func shown(base string) string {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
}
