package mcp_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed/internal/mcp"
)

const teamForm = `{"mode":"form","message":"Which team?\u202e","requestedSchema":{"type":"object","properties":{"team":{"type":"string","enum":["core","web"]},"n":{"type":"number"},"also":{"type":"string","default":"x"}},"required":["team"]}}`

// answers returns the options of somebody who gives one answer.
func answers(a mcp.ElicitAnswer, err error) mcp.Options {
	return mcp.Options{Elicit: func(context.Context, mcp.Elicitation) (mcp.ElicitAnswer, error) { return a, err }}
}

func TestElicitation(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, params string
		answer       mcp.ElicitAnswer
		err          error
		want, notice string
	}{
		{"accept", teamForm, mcp.ElicitAnswer{Action: "accept", Content: []byte(`{"team":"core","n":1.50}`)}, nil, `"action":"accept","content":{"n":1.50,"team":"core"}`, ""},
		{"decline", teamForm, mcp.ElicitAnswer{Action: "decline"}, nil, `"action":"decline"`, ""},
		{"cancel", teamForm, mcp.ElicitAnswer{Action: "cancel"}, nil, `"action":"cancel"`, ""},
		{"not in the form", teamForm, mcp.ElicitAnswer{Action: "accept", Content: []byte(`{"team":"sales"}`)}, nil, `"action":"decline"`, "doesn't fit the form"},
		{"missing", teamForm, mcp.ElicitAnswer{Action: "accept"}, nil, `"action":"decline"`, "doesn't fit the form"},
		{"no action", teamForm, mcp.ElicitAnswer{Action: "perhaps"}, nil, `"action":"decline"`, "doesn't fit the form"},
		{"error", teamForm, mcp.ElicitAnswer{}, errors.New("nobody there"), `"action":"decline"`, "nobody there"},
		{"url", `{"mode":"url","message":"m","url":"https://h/","elicitationId":"1"}`, mcp.ElicitAnswer{Action: "accept"}, nil, `"action":"decline"`, "only forms"},
		{"nested", `{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"object"}}}}`, mcp.ElicitAnswer{Action: "accept"}, nil, `"action":"decline"`, "can't be read"},
		{"nonsense", `{"message":7}`, mcp.ElicitAnswer{Action: "accept"}, nil, `"action":"decline"`, "can't be read"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			log := logFile(t)
			r := start(t, answers(tt.answer, tt.err), server(t, "s", script{Tools: named("ask"), Log: log}))
			r.works("mcp__s__ask", `{"params":`+tt.params+`}`, "answered")
			logHas(t, log, tt.want)
			logHas(t, log, `"elicitation":{"form":{}}`)
			if tt.notice != "" {
				r.noticed(tt.notice)
			}
		})
	}
}

func TestElicitationIsShown(t *testing.T) {
	t.Parallel()
	var got mcp.Elicitation
	r := start(t, mcp.Options{Elicit: func(_ context.Context, q mcp.Elicitation) (mcp.ElicitAnswer, error) {
		got = q
		return mcp.ElicitAnswer{Action: mcp.ElicitDecline}, nil
	}}, server(t, "s", script{Tools: named("ask")}))
	r.works("mcp__s__ask", `{"params":`+teamForm+`}`, "answered")
	if got.Server != "s" || got.Message != "Which team?" || !strings.Contains(string(got.Schema), `"enum":["core","web"]`) || !strings.Contains(string(got.Params), `"message":"Which team?`) {
		t.Errorf("asked %+v", got)
	}
}

// TestElicitationTakesItsTime holds that the time of a call stands still while a
// person is asked.
func TestElicitationTakesItsTime(t *testing.T) {
	t.Parallel()
	s := server(t, "s", script{Tools: named("ask", "hang")})
	s.CallTimeout = 300 * time.Millisecond
	r := start(t, mcp.Options{Elicit: func(ctx context.Context, _ mcp.Elicitation) (mcp.ElicitAnswer, error) {
		select {
		case <-time.After(700 * time.Millisecond):
		case <-ctx.Done():
		}
		return mcp.ElicitAnswer{Action: mcp.ElicitDecline}, nil
	}}, s)
	r.works("mcp__s__ask", `{"params":`+teamForm+`}`, "answered")
	r.fails("mcp__s__hang", `{}`, "within 300ms")
}

func waits(ctx context.Context, _ mcp.Elicitation) (mcp.ElicitAnswer, error) {
	<-ctx.Done()
	return mcp.ElicitAnswer{Action: mcp.ElicitAccept, Content: []byte(`{"team":"core"}`)}, nil
}

func TestElicitationTimesOut(t *testing.T) {
	t.Parallel()
	log := logFile(t)
	r := start(t, mcp.Options{ElicitTimeout: 100 * time.Millisecond, Elicit: waits}, server(t, "s", script{Tools: named("ask"), Log: log}))
	r.works("mcp__s__ask", `{"params":`+teamForm+`}`, "answered")
	logHas(t, log, `"action":"cancel"`)
	r.noticed("no answer within 100ms")
}

func TestElicitationEndsWithItsCall(t *testing.T) {
	t.Parallel()
	log := logFile(t)
	asked := make(chan struct{})
	r := start(t, mcp.Options{Elicit: func(ctx context.Context, q mcp.Elicitation) (mcp.ElicitAnswer, error) {
		close(asked)
		return waits(ctx, q)
	}}, server(t, "s", script{Tools: named("ask", "echo"), Log: log}))
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	if res := r.runCtx(ctx, "mcp__s__ask", `{"params":`+teamForm+`}`); !res.IsError {
		t.Errorf("got %+v", res)
	}
	logHas(t, log, `"action":"decline"`)
	r.noticed("the call that it belonged to has ended")
	r.works("mcp__s__echo", `{}`, "echo")
}

func TestElicitationWithoutACall(t *testing.T) {
	t.Parallel()
	log := logFile(t)
	r := start(t, answers(mcp.ElicitAnswer{Action: "accept", Content: []byte(`{"team":"core"}`)}, nil), server(t, "s", script{Tools: named("ask"), Log: log}))
	r.works("mcp__s__ask", `{"late":true,"params":`+teamForm+`}`, "done")
	if err := os.WriteFile(log+".go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	logHas(t, log, `answer {"action":"decline"`)
	r.noticed("no call of this server runs")
}

func TestNobodyToAsk(t *testing.T) {
	t.Parallel()
	log := logFile(t)
	r := start(t, mcp.Options{}, server(t, "s", script{Tools: named("ask", "askpanic"), Log: log}))
	r.works("mcp__s__ask", `{"params":`+teamForm+`}`, "answered")
	r.works("mcp__s__askpanic", `{}`, "empty")
	logHas(t, log, `"capabilities":{"roots":{}}`)
}

// TestElicitationWithoutParams would end a program that trusts the SDK to look.
func TestElicitationWithoutParams(t *testing.T) {
	t.Parallel()
	r := start(t, answers(mcp.ElicitAnswer{Action: "accept"}, nil), server(t, "s", script{Tools: named("askpanic")}))
	r.works("mcp__s__askpanic", `{}`, "decline")
}
