package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/validate"
	"github.com/abhed/abhed/internal/strictjson"
)

// newValidate is "ahp validate".
func newValidate(sys system) *cobra.Command {
	var o validateOptions
	c := &cobra.Command{
		Use:   "validate [--as KIND] [--context FILE] FILE... | --stream",
		Short: "Judge messages and registrations",
		Long: `Judge each FILE ("-" is standard input) against the protocol, and say where it is at
fault, what was found and what was expected. A FILE that ends in .jsonl is judged as
the stdio binding frames messages: one a line.

KIND is one of
  ` + strings.ReplaceAll(kindList(), ", ", "\n  ") + `
which goes by the members of the message.

--context FILE holds what is known around the message: for a response to an intercept
{"event", "current": {TARGET: VALUE}, "mode", "action"}, and its edits are tried; for a
registration {"interactive", "environment", "requirements", "manifest"}, and its
credentials and what it asks for are checked. Literal secrets are warnings here.

--stream reads messages from standard input, one a line, keeps the lineage of their
events, and prints a verdict a line: {"accepted":…,"errorKind":null|"schema"|"lineage"}.

Exit codes: 0 valid (or every line judged), 1 invalid, 2 wrong use, 3 a file could not
be read.`,
		RunE: func(_ *cobra.Command, args []string) error {
			if o.stream {
				return o.runStream(sys, args)
			}
			return o.run(sys, args)
		},
	}
	f := c.Flags()
	f.StringVar(&o.kind, "as", string(validate.Any), "the `KIND` of the message")
	f.StringVar(&o.context, "context", "", "`FILE` with what is known around the message")
	f.BoolVar(&o.stream, "stream", false, "judge the messages of standard input, one a line")
	f.BoolVar(&o.json, "json", false, "print one JSON object for each FILE")
	return c
}

func kindList() string {
	kinds := validate.Kinds()
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = string(k)
	}
	return strings.Join(names, ", ")
}

type validateOptions struct {
	kind, context string
	stream, json  bool
}

// judged is the result for one file in JSON.
type judged struct {
	File     string             `json:"file"`
	Kind     validate.Kind      `json:"kind"`
	Valid    bool               `json:"valid"`
	Findings []validate.Finding `json:"findings"`
	Warnings []validate.Finding `json:"warnings"`
}

func (o *validateOptions) run(sys system, files []string) error {
	kind := validate.Kind(o.kind)
	switch {
	case !slices.Contains(validate.Kinds(), kind):
		return fmt.Errorf("--as %q: expected one of %s", o.kind, kindList())
	case len(files) == 0:
		return errors.New("no FILE: expected one, or \"-\" for standard input")
	}
	code := exitOK
	for _, file := range files {
		data, err := sys.read(file)
		if err != nil {
			return err
		}
		opts, err := o.options(sys, kind, data)
		if err != nil {
			return err
		}
		judge := validate.Message
		if strings.HasSuffix(file, ".jsonl") {
			judge = validate.Lines
		}
		r, err := judge(data, kind, opts)
		if err != nil {
			return fmt.Errorf("%s: %s", file, strings.TrimPrefix(err.Error(), "validate: "))
		}
		if !r.Valid() {
			code = exitNegative
		}
		if err := o.print(sys, file, data, r); err != nil {
			return err
		}
	}
	return done(code)
}

// options reads the context; whose it is follows from the kind or, for any, from
// its own members.
func (o *validateOptions) options(sys system, kind validate.Kind, data []byte) (opts validate.Options, err error) {
	if o.context == "" {
		return opts, nil
	}
	text, err := sys.read(o.context)
	if err != nil {
		return opts, err
	}
	var peek struct {
		Event ahp.Raw `json:"event"`
	}
	if err := strictjson.Unmarshal(text, &peek, strictjson.Options{}); err != nil {
		return opts, wrong(o.context, text, err)
	}
	if kind == validate.Registration || kind == validate.Any && peek.Event == nil {
		opts.Registration, err = validate.DecodeRegistrationContext(text)
	} else {
		opts.Response, err = validate.DecodeResponseContext(text)
	}
	if err != nil {
		return opts, wrong(o.context, text, err)
	}
	return opts, nil
}

func (o *validateOptions) print(sys system, file string, data []byte, r *validate.Report) error {
	if o.json {
		return sys.printJSON(judged{File: file, Kind: r.Kind, Valid: r.Valid(), Findings: r.Findings, Warnings: r.Warnings})
	}
	var b strings.Builder
	line := func(f *validate.Finding, what string) {
		place := file
		if f.In != "" {
			place = o.context
		} else if n, column := strictjson.LineColumn(data, f.Offset); f.Offset >= 0 {
			place = fmt.Sprintf("%s:%d:%d", file, n, column)
		}
		fmt.Fprintf(&b, "%s: %s%s\n", place, what, f)
	}
	for i := range r.Findings {
		line(&r.Findings[i], "")
	}
	for i := range r.Warnings {
		line(&r.Warnings[i], "warning: ")
	}
	verdict := "valid"
	if !r.Valid() {
		verdict = "invalid"
	}
	fmt.Fprintf(&b, "%s: %s (%s)\n", file, verdict, r.Kind)
	return sys.print(b.String())
}

// runStream judges the messages of standard input.
func (o *validateOptions) runStream(sys system, args []string) error {
	if len(args) > 0 || o.context != "" || o.kind != string(validate.Any) {
		return errors.New("--stream takes no FILE, no --as and no --context: it reads standard input, one message a line")
	}
	stream := validate.NewStream(ahp.LineageOptions{})
	schema := "schema"
	return eachLine(sys.stdin, func(_ int, line []byte, err error) error {
		if err != nil || len(line) > ahp.MaxMessageBytes {
			return sys.printJSON(validate.Verdict{ErrorKind: &schema})
		}
		return sys.printJSON(stream.Judge(line))
	})
}
