package mcp

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/abhed/abhed/internal/strictjson"
)

// input is one question within the answer to a call, as servers of 2026-07-28 put them.
type input struct {
	Method string         `json:"method"`
	Params jsontext.Value `json:"params,omitzero"`
}

// askError says what is wrong with questions in the answer to a call, while nothing is
// wrong with the server.
type askError struct{ error }

// nextRound returns the params of the same call with the answers to what the server
// asked in its result, nil if it asked nothing. The SDK doesn't get to see the
// questions: it would fill in defaults that nobody agreed to, and trust that a question
// has params.
func (s *server) nextRound(ctx context.Context, params *sdk.CallToolParams, raw jsontext.Value, round int) (*sdk.CallToolParams, error) {
	o, err := readOutcome(raw)
	if err != nil || o.Asks == nil || o.Asks.Kind() == 'n' {
		return nil, nil // what is wrong with it is said where the result is read
	}
	if round == maxRounds {
		return nil, fmt.Errorf("it answered the call with questions %d times", maxRounds)
	}
	if len(o.Asks) > maxOther {
		return nil, fmt.Errorf("its questions have %d bytes, the limit is %d", len(o.Asks), maxOther)
	}
	var inputs map[string]input
	if err := strictjson.Unmarshal(o.Asks, &inputs, strictjson.Options{}); err != nil {
		return nil, fmt.Errorf("its questions can't be read: %w", err)
	}
	if len(inputs) > maxInputs {
		return nil, fmt.Errorf("it asked %d questions at once, the limit is %d", len(inputs), maxInputs)
	}
	next := *params
	next.InputResponses, next.RequestState = sdk.InputResponseMap{}, ""
	if o.State.Kind() == '"' {
		if err := strictjson.Unmarshal(o.State, &next.RequestState, strictjson.Options{}); err != nil {
			return nil, fmt.Errorf("its state can't be read: %w", err)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(inputs)) {
		if next.InputResponses[id], err = s.input(ctx, inputs[id]); err != nil {
			return nil, err
		}
	}
	if len(inputs) > 0 {
		return &next, nil
	}
	// It has no room now and wants the call again.
	timer := time.NewTimer(restartPause << (round - 1))
	defer timer.Stop()
	select {
	case <-timer.C:
		return &next, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// input answers one question.
func (s *server) input(ctx context.Context, in input) (sdk.InputResponse, error) {
	switch in.Method {
	case "elicitation/create":
		return s.elicit(ctx, in.Params)
	case "roots/list":
		//lint:ignore SA1019 see client
		return &sdk.ListRootsResult{Roots: s.roots()}, nil
	}
	return nil, fmt.Errorf("it asked for %s, which isn't given here", quoted(in.Method))
}
