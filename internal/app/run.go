package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/abhed/abhed/internal/agent"
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
	Resume                       string
	Continue                     bool
	AcceptUnsigned, AcceptBroken bool
	// Output is text, json or stream-json.
	Output         string
	Quiet, Verbose bool
	// MaxTime becomes MaxSeconds, rounded up.
	MaxTime      time.Duration
	SystemAppend string
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
	o.MaxSeconds = int64((o.MaxTime + time.Second - 1) / time.Second)
	l, err := loadSettings(o.SettingsOptions, sys)
	if err != nil {
		return sys.fail(ExitUsage, err)
	}
	client, err := connect(l, sys)
	if err != nil {
		return sys.fail(ExitUsage, err)
	}
	out := newOutput(o, sys)
	e, err := build(ctx, buildOptions{
		loaded: l, model: client, systemAppend: o.SystemAppend, onEvent: out.event, onText: out.text,
		resume: o.Resume, resumeNewest: o.Continue, acceptUnsigned: o.AcceptUnsigned, acceptBroken: o.AcceptBroken,
	}, sys)
	if err != nil {
		return sys.fail(startCode(err), err)
	}
	res := e.run(ctx, prompt)
	closeErr := e.close()
	code := exitCode(res.Reason)
	if closeErr != nil {
		code = sys.fail(ExitNegative, closeErr)
	}
	out.end(res, e, code)
	return code
}

// startCode is the exit code of a failed start: 2 if the configuration is at
// fault, 1 if the machine is.
func startCode(err error) int {
	var ops *operationalError
	if errors.As(err, &ops) {
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

// output shows a run in one of the formats.
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

// event hears every event of the record.
func (out *output) event(e event.Event) {
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

// text hears the model's text as it arrives.
func (out *output) text(piece string) {
	if out.o.Output != "text" || out.o.Quiet {
		return
	}
	fmt.Fprint(out.sys.Stdout, out.safe(piece))
	out.midLine = !strings.HasSuffix(piece, "\n")
}

// safe returns text as it may be printed: a terminal obeys what a file only holds.
func (out *output) safe(text string) string {
	if out.sys.TerminalOut {
		return gate.Visible(text)
	}
	return text
}

// end prints what is said at the end.
func (out *output) end(res agent.Result, e *engine, code int) {
	switch out.o.Output {
	case "json":
		b, err := strictjson.Marshal(summary{
			Type: "result", SessionID: e.log.ID(), Record: e.log.Path(), Reason: string(res.Reason), Detail: res.Detail,
			Result: res.Text, IsError: code != 0, ExitCode: code, Turns: res.Turns, Usage: &res.Usage,
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
	if res.Reason != agent.ReasonCompleted {
		detail := ""
		if res.Detail != "" {
			detail = ": " + res.Detail
		}
		fmt.Fprintf(out.sys.Stderr, "abhed: the run ended with %s%s\n", res.Reason, detail)
	}
	if !out.o.Quiet {
		fmt.Fprintf(out.sys.Stderr, "record: %s\n", e.log.Path())
		if res.Reason != agent.ReasonCompleted {
			fmt.Fprintf(out.sys.Stderr, "go on with: abhed --resume %s -p …\n", e.log.ID())
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
}
