package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/spf13/cobra"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/internal/strictjson"
)

// newEvaluate is "ahp evaluate".
func newEvaluate(sys system) *cobra.Command {
	var schema string
	c := &cobra.Command{
		Use:   "evaluate [--tool-schema FILE]",
		Short: "Say what a harness makes of replies to intercepts",
		Long: `Read lines {"id", "request", "response"} from standard input, and print for each what a
harness makes of the response, as one line of JSON. The host behind it allows everything
and never prompts.

Always printed are id, decision (allow, deny or ask), executed (false outside of
tool.before) and messages; input for events with a tool; result only where a supplied
result is selected, and null is one; flow only where it is stop or continue;
continuationInstructions and continuationRemaining where the request accepts
continuations; injections only where there are any. A response that is refused as a whole
gives {"id", "rejected": true, "layer", "error"}; layer is the first that refuses of
schema, correlation, capability and application.

--tool-schema FILE is a JSON Schema of the tool's arguments: the host's own check. Where
the effective input fails it, nothing is executed, no result is used, and
"hostRefused": true is printed.`,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return failWith(exitUsage, fmt.Errorf("evaluate takes no FILE: it reads standard input, so write < %s", args[0]))
			}
			check, err := toolSchema(sys, schema)
			if err != nil {
				return err
			}
			return eachLine(sys.stdin, func(n int, line []byte, err error) error {
				if err == nil && len(bytes.TrimSpace(line)) == 0 {
					return nil
				}
				return evaluateLine(sys, n, line, err, check)
			})
		},
	}
	c.Flags().StringVar(&schema, "tool-schema", "", "`FILE` with the JSON Schema of the tool's arguments")
	c.Flags().Bool("json", true, "print JSON, as this command always does")
	return c
}

// toolSchema returns the check of a tool's input by the schema in a file; without a
// file everything passes.
func toolSchema(sys system, file string) (func(ahp.Raw) bool, error) {
	if file == "" {
		return func(ahp.Raw) bool { return true }, nil
	}
	data, err := sys.read(file)
	if err != nil {
		return nil, err
	}
	if err := strictjson.Check(data, strictjson.Options{}); err != nil {
		return nil, wrong(file, data, err)
	}
	var schema jsonschema.Schema
	if err := schema.UnmarshalJSON(data); err != nil {
		return nil, wrong(file, data, fmt.Errorf("found %w, expected a JSON Schema", err))
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		return nil, wrong(file, data, fmt.Errorf("found %w, expected a JSON Schema that stands alone", err))
	}
	return func(input ahp.Raw) bool {
		var v any
		return strictjson.Unmarshal(input, &v, strictjson.Options{}) == nil && resolved.Validate(v) == nil
	}, nil
}

// row is one line of input.
type row struct {
	ID       ahp.Raw `json:"id"`
	Request  ahp.Raw `json:"request"`
	Response ahp.Raw `json:"response"`
}

// rejection is the output for a response that is refused as a whole.
type rejection struct {
	ID       ahp.Raw `json:"id"`
	Rejected bool    `json:"rejected"`
	Layer    string  `json:"layer"`
	Error    string  `json:"error"`
}

// evaluateLine prints what becomes of one line. A line that can't be told apart is
// wrong use; one with an id, whose messages are at fault, is a rejection.
func evaluateLine(sys system, n int, line []byte, err error, accepts func(ahp.Raw) bool) error {
	const want = `expected a line {"id": ..., "request": ..., "response": ...}`
	if err != nil {
		return failWith(exitUsage, fmt.Errorf("standard input:%d: %w; %s", n, err, want))
	}
	var r row
	if err := strictjson.Unmarshal(line, &r, strictjson.Options{MaxBytes: maxLine}); err != nil {
		// Such as a name that is repeated within the response.
		if id, ok := ahp.MessageID(line); ok {
			return sys.printJSON(rejection{ahp.Raw(id.String()), true, "schema", err.Error()})
		}
		return failWith(exitUsage, fmt.Errorf("standard input:%d: %w; %s", n, err, want))
	}
	if r.ID == nil || r.Request == nil || r.Response == nil {
		return failWith(exitUsage, fmt.Errorf("standard input:%d: found a line without all of its members, %s", n, want))
	}
	v, err := evaluate(&r, accepts)
	if err != nil {
		layer, text := refusal(err)
		return sys.printJSON(rejection{r.ID, true, layer, text})
	}
	return sys.printJSON(v)
}

// evaluate returns the verdict, or why the response is refused.
func evaluate(r *row, accepts func(ahp.Raw) bool) (*verdict, error) {
	q, err := ahp.DecodeRequest(r.Request)
	if err != nil {
		return nil, &requestError{err}
	}
	intercept, is := q.(*ahp.Intercept)
	if !is {
		return nil, &ahp.Error{Kind: ahp.KindMethod, Pointer: "/method", Offset: -1, Found: "the method " + q.Method(), Expected: ahp.MethodIntercept, Requirement: "AHP-RPC-002"}
	}
	out, err := harness.Evaluate(intercept, r.Response)
	if err != nil {
		return nil, err
	}
	v, err := verdictOf(out, &intercept.Capabilities, accepts)
	if err != nil {
		return nil, err
	}
	v.ID = r.ID
	return v, nil
}

// refusal returns the layer that refuses, and why.
func refusal(err error) (layer, text string) {
	layer = ahp.KindShape.Layer() // of what isn't a response with effects
	var e *ahp.Error
	if errors.As(err, &e) {
		layer = e.Kind.Layer()
	}
	text = strings.TrimPrefix(err.Error(), "ahp: ")
	var ours *requestError
	if errors.As(err, &ours) {
		text = "the request: " + text
	}
	return layer, text
}

// requestError says that the request is at fault, and not the response.
type requestError struct{ error }

// Unwrap returns what is wrong with the request.
func (e *requestError) Unwrap() error { return e.error }
