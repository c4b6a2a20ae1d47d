package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/control"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/extension"
	"github.com/abhed/abhed/internal/gate"
	"github.com/abhed/abhed/internal/strictjson"
)

// maxPrompt bounds a prompt read from standard input.
const maxPrompt = 4 << 20

// RunOptions is one headless run.
type RunOptions struct {
	SettingsOptions
	Prompt      string
	PromptGiven bool
	// Terminal says that standard input is a terminal, which is never read: nobody
	// would know that a prompt is awaited.
	Terminal bool
	// Resume is the id of a session to go on with; Continue takes the newest of the
	// workspace.
	Resume   string
	Continue bool
	// Fork, with Resume or Continue, goes on in a new session that has what the other
	// one had, and ForkAt, if not 0, what it had up to that event.
	Fork                         bool
	ForkAt                       int64
	AcceptUnsigned, AcceptBroken bool
	// Output is text, json or stream-json.
	Output         string
	Quiet, Verbose bool
	// MaxTime becomes MaxSeconds, rounded up.
	MaxTime      time.Duration
	SystemAppend string
	// JSONSchema is the file of the JSON Schema that the answer must fit, "" for none.
	JSONSchema string
}

// Run does one headless run and returns the exit code of its end (abhed.md
// "Loop"). It never waits for a person.
func Run(ctx context.Context, o RunOptions, sys System) int {
	if err := o.check(); err != nil {
		return sys.fail(ExitUsage, err)
	}
	prompt, err := o.prompt(sys.Stdin)
	if err != nil {
		return sys.fail(ExitUsage, err)
	}
	o.MaxSeconds = Seconds(o.MaxTime)
	out := newOutput(o, sys)
	start := control.Start{Resume: o.Resume, Continue: o.Continue, Fork: o.Fork, ForkAt: o.ForkAt, Sink: out}
	if start.Output, err = o.schema(); err != nil {
		return sys.fail(ExitUsage, err)
	}
	host := NewHost(HostOptions{SettingsOptions: o.SettingsOptions, SystemAppend: o.SystemAppend, AcceptUnsigned: o.AcceptUnsigned, AcceptBroken: o.AcceptBroken}, sys)
	c, err := host.open(ctx, start)
	if err != nil {
		return sys.fail(startCode(err), err)
	}
	answer := c.Prompt(ctx, control.Prompt{Text: prompt})
	info := c.Info()
	closeErr := c.Close()
	code := exitCode(agent.Reason(answer.Reason))
	if closeErr != nil {
		code = sys.fail(ExitNegative, closeErr)
	}
	out.end(answer, info, code)
	return code
}

// Seconds rounds a limit up, so that no time is no limit, and a short one is one.
func Seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// schema reads the JSON Schema of the answer, nil for none.
func (o *RunOptions) schema() ([]byte, error) {
	if o.JSONSchema == "" {
		return nil, nil
	}
	b, err := readBounded(o.JSONSchema, maxSettings)
	if err != nil {
		return nil, fmt.Errorf("--json-schema: %w", err)
	}
	if _, err := answerCheck(b); err != nil {
		return nil, fmt.Errorf("--json-schema %s: %w", o.JSONSchema, err)
	}
	return b, nil
}

// startCode is the exit code of a failed start: 2 if the configuration or the
// invocation is at fault, 1 if the machine is.
func startCode(err error) int {
	var e *control.Error
	if errors.As(err, &e) && e.Code == control.CodeFailed {
		return ExitNegative
	}
	return ExitUsage
}

// operationalError is a start that failed through no fault of the configuration.
type operationalError struct{ err error }

func (e *operationalError) Error() string { return e.err.Error() }
func (e *operationalError) Unwrap() error { return e.err }

func (o *RunOptions) check() error {
	switch o.Output {
	case "text", "json", "stream-json":
	default:
		return fmt.Errorf("--output %q: expected text, json or stream-json", o.Output)
	}
	switch {
	case o.Resume != "" && o.Continue:
		return errors.New("--resume and --continue exclude each other")
	case o.ForkAt < 0:
		return fmt.Errorf("--fork-at %d: expected the number of an event, from 1", o.ForkAt)
	case (o.Fork || o.ForkAt != 0) && o.Resume == "" && !o.Continue:
		return errors.New("a fork needs --resume or --continue: the session that it is of")
	case o.MaxTurns < 0 || o.MaxTokens < 0 || o.MaxTime < 0 || o.MaxCost < 0:
		return errors.New("a limit can't be negative; 0 means the configured limit")
	}
	return nil
}

// prompt returns the prompt of the flag, or standard input.
func (o *RunOptions) prompt(stdin io.Reader) (string, error) {
	text := o.Prompt
	if !o.PromptGiven && o.Terminal {
		return "", errors.New("there is no prompt: give one with -p, or on standard input; abhed demo shows what this is")
	}
	if !o.PromptGiven {
		b, err := io.ReadAll(io.LimitReader(stdin, maxPrompt+1))
		if err != nil {
			return "", fmt.Errorf("the prompt can't be read from standard input: %w", err)
		}
		if len(b) > maxPrompt {
			return "", fmt.Errorf("the prompt on standard input is larger than %d bytes", maxPrompt)
		}
		text = string(b)
	}
	if strings.TrimSpace(text) == "" {
		return "", errors.New("there is no prompt: give one with -p or on standard input")
	}
	return text, nil
}

// output shows a run in one of the formats. It is the run's sink.
type output struct {
	o     RunOptions
	sys   System
	story *story
	lines *jsonLines
	// midLine says that the text on standard output doesn't end with a line feed.
	midLine bool
}

func newOutput(o RunOptions, sys System) *output {
	return &output{o: o, sys: sys, story: newStory(sys.Stderr), lines: &jsonLines{w: sys.Stdout}}
}

// Event hears every event of the record.
func (out *output) Event(e event.Event) {
	if out.o.Output == "stream-json" {
		out.lines.tell(e)
		return
	}
	switch e.Payload.(type) {
	case *event.ModelResponded, *event.ModelFailed:
		if out.midLine {
			fmt.Fprintln(out.sys.Stdout)
			out.midLine = false
		}
	}
	if p, ok := e.Payload.(*event.ExtensionChanged); ok && p.State == "dead" && p.OnFailure == string(extension.Skip) {
		out.story.tell(e) // a guard that stands aside is worth a line even with --quiet
		return
	}
	if out.o.Quiet {
		return
	}
	switch p := e.Payload.(type) {
	case *event.Decision:
		if p.Outcome != "run" || out.o.Verbose {
			out.story.tell(e)
		} else {
			out.story.say(p.Messages)
		}
	case *event.HooksDecided:
		if p.Outcome != "none" || out.o.Verbose {
			out.story.tell(e)
		} else {
			out.story.say(p.Messages)
		}
	case *event.ModelFailed, *event.BackendFailed, *event.Notice:
		out.story.tell(e)
	case *event.ExtensionChanged:
		if p.State == "dead" || out.o.Verbose {
			out.story.tell(e)
		}
	case *event.ExtensionLogged:
		if p.Level == "warning" || out.o.Verbose {
			out.story.tell(e)
		}
	case *event.ToolEnded:
		if out.o.Verbose {
			out.story.tell(e)
		} else {
			out.story.say(p.Messages)
		}
	}
}

// Delta hears the model's text as it arrives. What a sub-agent says is not the answer.
func (out *output) Delta(d control.Delta) {
	if out.o.Output != "text" || out.o.Quiet || d.Kind != "text" || d.AgentID != "" {
		return
	}
	fmt.Fprint(out.sys.Stdout, out.safe(d.Text))
	out.midLine = !strings.HasSuffix(d.Text, "\n")
}

// safe returns text as it may be printed: a terminal obeys what a file only holds.
func (out *output) safe(text string) string {
	if out.sys.TerminalOut {
		return gate.Visible(text)
	}
	return text
}

// end prints what is said at the end.
func (out *output) end(res control.Answer, info control.Info, code int) {
	switch out.o.Output {
	case "json":
		b, err := strictjson.Marshal(summary{
			Type: "result", SessionID: info.SessionID, Record: info.Record, Reason: res.Reason, Detail: res.Detail,
			Result: res.Text, IsError: code != 0, ExitCode: code, Turns: res.Turns, Usage: &res.Usage, CostUSD: res.CostUSD,
		})
		if err != nil {
			b = []byte(`{"type":"result","is_error":true,"detail":"the result can't be encoded"}`)
		}
		fmt.Fprintf(out.sys.Stdout, "%s\n", b)
	case "text":
		if out.o.Quiet {
			fmt.Fprint(out.sys.Stdout, out.safe(res.Text))
			out.midLine = res.Text != "" && !strings.HasSuffix(res.Text, "\n")
		}
		if out.midLine {
			fmt.Fprintln(out.sys.Stdout)
		}
	}
	if !res.Completed {
		detail := ""
		if res.Detail != "" {
			detail = ": " + res.Detail
		}
		fmt.Fprintf(out.sys.Stderr, "abhed: the run ended with %s%s\n", res.Reason, detail)
	}
	if !out.o.Quiet {
		fmt.Fprintf(out.sys.Stderr, "record: %s\n", info.Record)
		if !res.Completed {
			fmt.Fprintf(out.sys.Stderr, "go on with: abhed --resume %s -p …\n", info.SessionID)
		}
	}
}

// summary is the one object of --output json.
type summary struct {
	Type      string       `json:"type"`
	SessionID string       `json:"session_id"`
	Record    string       `json:"record"`
	Reason    string       `json:"reason"`
	Detail    string       `json:"detail,omitempty"`
	Result    string       `json:"result"`
	IsError   bool         `json:"is_error"`
	ExitCode  int          `json:"exit_code"`
	Turns     int          `json:"turns"`
	Usage     *event.Usage `json:"usage,omitempty"`
	// CostUSD is null if a price is unknown or a reply came without usage.
	CostUSD *float64 `json:"cost_usd"`
}
