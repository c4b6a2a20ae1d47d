package main

import (
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/hookd"
	"github.com/abhed/abhed/internal/hooklog"
)

// TestLogTellsWhyNobodyJudged looks at decisions that a failure made: the model's text
// says that "ahp log" knows why, and what passed unjudged must not look like the rest.
func TestLogTellsWhyNobodyJudged(t *testing.T) {
	failed := func(policy string) hooklog.Answer {
		return hooklog.Answer{Backend: "org.test.slow", Kind: ahp.AnswerFailure, Failure: &hooklog.Failure{Class: "timeout", Detail: "too late"}, Policy: policy}
	}
	denied := hooklog.Answer{Backend: "org.test.guard", Kind: ahp.AnswerEffects, Effects: []ahp.Raw{ahp.Raw(`{"reason":"no pushing","type":"deny"}`)}}
	for _, c := range []struct {
		about    string
		decision hooklog.Decision
		answers  []hooklog.Answer
		want     string
	}{
		{"passed unjudged", hooklog.Pass, []hooklog.Answer{failed("fail-open")}, "7 ms  e  org.test.slow gave no answer, and is fail-open: timeout: too late\n"},
		{"refused unjudged", hooklog.Deny, []hooklog.Answer{failed("fail-closed")}, "7 ms  e  org.test.slow gave no answer, and is fail-closed: timeout: too late\n"},
		{"refused by another", hooklog.Deny, []hooklog.Answer{failed("fail-closed"), denied}, "7 ms  e  no pushing\n"},
		{"asked by another", hooklog.Ask, []hooklog.Answer{failed("fail-open")}, "7 ms  e\n"},
		{"an observer", hooklog.Pass, []hooklog.Answer{failed("")}, "7 ms  e\n"},
		{"judged", hooklog.Pass, nil, "7 ms  e\n"},
	} {
		h := newHome(t)
		h.decide(t, "e", "ls", c.decision, func(e *hooklog.Entry) { e.Answers = c.answers })
		r := h.run(t.Context(), nil, "", newLog)
		if r.want(t, exitOK); !strings.HasSuffix(r.stdout, c.want) {
			t.Errorf("%s: %q, want %q", c.about, r.stdout, c.want)
		}
	}
}

// TestLogNamesHosts has a name that is none, and an event that has no tool.
func TestLogNamesHosts(t *testing.T) {
	h := newHome(t)
	h.decide(t, "e", "ls", hooklog.Pass, func(e *hooklog.Entry) { e.Tool = "" })
	h.run(t.Context(), nil, "", newLog, "--host", "codex").want(t, exitOK, "  pass     codex        PreToolUse       -                      7 ms  e\n")
	h.run(t.Context(), nil, "", newLog, "--host", "gemini").want(t, exitOK, "No such decision is logged")
	h.run(t.Context(), nil, "", newLog, "--host", "claud").want(t, exitUsage, "did you mean claude-code?")
}

// TestExplainNewest explains without an id.
func TestExplainNewest(t *testing.T) {
	h := newHome(t)
	h.run(t.Context(), nil, "", newExplain).want(t, exitNegative, "nothing was refused or asked about in ")
	h.decide(t, "pass-1", "ls", hooklog.Pass, nil)
	h.run(t.Context(), nil, "", newExplain).want(t, exitNegative, "nothing was refused or asked about in ")
	h.decide(t, "deny-1", "git push", hooklog.Deny, nil)
	h.decide(t, "pass-2", "ls", hooklog.Pass, nil)
	h.decide(t, "canary", "x", hooklog.Deny, func(e *hooklog.Entry) { e.Tool = hookd.CanaryDeny })
	h.run(t.Context(), nil, "", newExplain).want(t, exitOK, "id            deny-1\n")
	h.decide(t, "ask-1", "make deploy", hooklog.Ask, nil)
	h.run(t.Context(), nil, "", newExplain, "--json").want(t, exitOK, `"id":"ask-1"`)
}
