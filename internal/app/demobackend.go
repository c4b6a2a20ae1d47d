package app

import (
	"context"
	"fmt"
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/backend"
	"github.com/abhed/abhed/internal/strictjson"
)

// DemoBackendCommand is the hidden command that is the demo's backend.
const DemoBackendCommand = "demo-backend"

// demoBackendID names the backend in the demo's registration.
const demoBackendID = "org.abhed.demo-policy"

// DemoBackend serves the demo's AHP backend on standard input and output: it
// denies writes to the folder release.
func DemoBackend(ctx context.Context, sys System) int {
	judge := func(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
		var input struct {
			Path string `json:"path"`
		}
		if err := strictjson.Unmarshal(q.Event.Tool.Input, &input, strictjson.Options{}); err != nil {
			return nil, err
		}
		if q.Event.Tool.Name == "write" && strings.HasPrefix(input.Path, "release/") {
			return backend.Answer(q, &ahp.Deny{Reason: "release/ is written by the release job only", Code: "org.abhed.demo.release"})
		}
		return nil, nil
	}
	server := backend.New(backend.Func(judge), backend.Options{Events: []ahp.EventType{ahp.ToolBefore}})
	if err := server.ServeStdio(ctx, sys.Stdin, sys.Stdout); err != nil && ctx.Err() == nil {
		return sys.fail(ExitFailure, fmt.Errorf("the demo backend: %w", err))
	}
	return ExitOK
}
