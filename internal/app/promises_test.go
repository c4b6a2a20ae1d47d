package app_test

import (
	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/model/modeltest"
	"github.com/abhed/abhed/internal/strictjson"
)

// list returns messages of one role as an effect's value.
func list(role ahp.Role, texts ...string) ahp.Raw {
	var messages []ahp.Message
	for i, text := range texts {
		messages = append(messages, ahp.TextMessage("new"+string(rune('a'+i)), role, text))
	}
	b, err := strictjson.Marshal(messages)
	if err != nil {
		panic(err)
	}
	return b
}

func always(effects ...ahp.Effect) func(*ahp.Intercept) []ahp.Effect {
	return func(*ahp.Intercept) []ahp.Effect { return effects }
}

// once gives the effects at the first event of a run alone: at the request with
// nothing but the prompt, or the first reply, which calls a tool.
func once(effects ...ahp.Effect) func(*ahp.Intercept) []ahp.Effect {
	return func(q *ahp.Intercept) []ahp.Effect {
		if len(q.Event.Items.Messages) > 2 || q.Event.FinishReason == "stop" || q.Event.ContinuationCount > 0 {
			return nil
		}
		return effects
	}
}

// atLast gives the effects at the reply without calls.
func atLast(effects ...ahp.Effect) func(*ahp.Intercept) []ahp.Effect {
	return func(q *ahp.Intercept) []ahp.Effect {
		if q.Event.FinishReason != "stop" {
			return nil
		}
		return effects
	}
}

func modify(target ahp.Target, op ahp.Operation, value ahp.Raw) *ahp.Modify {
	return &ahp.Modify{Target: target, Operation: op, Value: value}
}

func inject(at ahp.Delivery) *ahp.Inject {
	return &ahp.Inject{DeliverAt: at, Messages: []ahp.Message{ahp.TextMessage("ctx", ahp.RoleUser, "CONTEXT")}}
}

func stop() *ahp.Flow { return &ahp.Flow{Operation: ahp.FlowStop, Reason: "that is enough"} }

func deny() *ahp.Deny { return &ahp.Deny{Reason: "not on Fridays"} }

// promises is every promise of the manifest, with the run that holds it.
func promises() []enforced {
	var rows []enforced
	for _, part := range [][]enforced{anywhere(), prompts(), requests(), replies(), calls(), moves(), answers(), changes(), compactions(), elicitations()} {
		rows = append(rows, part...)
	}
	return rows
}

// anywhere are the effects that mean the same at every event: a message for the
// user, and context for the model.
func anywhere() []enforced {
	var rows []enforced
	for _, t := range []ahp.EventType{
		ahp.SessionStart, ahp.TurnStart, ahp.TurnFinishBefore, ahp.ModelRequestBefore, ahp.ModelResponseAfter, ahp.ToolBefore,
		ahp.ToolAfter, ahp.ToolBatchAfter, ahp.UserMessageInbound, ahp.UserMessageOutbound,
	} {
		want := well()
		want.stderr, want.unsent = "NOTICE", []string{"NOTICE"}
		rows = append(rows, enforced{on: t, effect: ahp.EffectMessage, say: always(&ahp.Notice{Text: "NOTICE"}), want: want})
	}
	rows = append(rows, enforced{on: ahp.ToolPermissionRequest, effect: ahp.EffectMessage, mode: "default", say: always(&ahp.Notice{Text: "NOTICE"}),
		want: ran{requests: 2, said: "done\n", stderr: "NOTICE", unsent: []string{"NOTICE"}, sent: []string{"Nobody can be asked"}}})
	for t, before := range map[ahp.EventType]string{
		ahp.SessionStart: "user CONTEXT\nuser do it\nassistant", ahp.TurnStart: "user do it\nuser CONTEXT\nassistant",
		ahp.ModelRequestBefore: "user do it\nuser CONTEXT\nassistant", ahp.ToolBefore: "for call_1\nuser CONTEXT\n",
		ahp.ToolAfter: "for call_1\nuser CONTEXT\n", ahp.ToolBatchAfter: "for call_1\nuser CONTEXT\n",
	} {
		now, later := well(), well()
		now.sent, later.unsent, later.next = []string{before}, []string{"CONTEXT"}, "CONTEXT"
		if t == ahp.SessionStart { // there is no turn yet, so the next one is the first
			later = now
		}
		rows = append(rows,
			enforced{on: t, effect: ahp.EffectInject, op: "now", say: once(inject(ahp.DeliverNow)), want: now},
			enforced{on: t, effect: ahp.EffectInject, op: "next_turn", say: once(inject(ahp.DeliverNextTurn)), want: later})
	}
	return rows
}

// prompts are the effects on what a person says.
func prompts() []enforced {
	var rows []enforced
	for _, t := range []ahp.EventType{ahp.UserMessageInbound, ahp.TurnStart} {
		replaced, merged := well(), well()
		replaced.sent, replaced.unsent, replaced.record = []string{"user do that\n"}, []string{"do it"}, "changed"
		merged.sent, merged.record = []string{"user do it\nand that\n"}, "changed"
		rows = append(rows,
			enforced{on: t, effect: ahp.EffectDeny, say: always(deny()), want: ran{code: 7, stderr: "not on Fridays", record: "denied"}},
			enforced{on: t, effect: ahp.EffectModify, op: "replace", say: always(modify(ahp.TargetPrompt, ahp.OpReplace, list(ahp.RoleUser, "do that"))), want: replaced},
			enforced{on: t, effect: ahp.EffectModify, op: "merge", say: always(modify(ahp.TargetPrompt, ahp.OpMerge, list(ahp.RoleUser, "and that"))), want: merged})
	}
	return append(rows, enforced{on: ahp.TurnStart, effect: ahp.EffectFlow, op: "stop", say: always(stop()),
		want: ran{code: 8, stderr: "that is enough", record: "stopped"}})
}

// requests are the effects on what is sent to the model.
func requests() []enforced {
	t := ahp.ModelRequestBefore
	replaced, merged, supplied := well(), well(), ran{said: "supplied\n", record: "supplied"}
	replaced.sent, replaced.unsent, replaced.record = []string{"user only this\n"}, []string{"do it", "coding agent"}, "changed"
	merged.sent, merged.record = []string{"for call_1\nuser and this\n"}, "changed"
	return []enforced{
		{on: t, effect: ahp.EffectDeny, say: always(deny()), want: ran{code: 8, stderr: "not on Fridays", record: "denied"}},
		{on: t, effect: ahp.EffectFlow, op: "stop", say: always(stop()), want: ran{code: 8, stderr: "that is enough", record: "stopped"}},
		{on: t, effect: ahp.EffectModify, op: "replace", say: always(modify(ahp.TargetRequest, ahp.OpReplace, list(ahp.RoleUser, "only this"))), want: replaced},
		{on: t, effect: ahp.EffectModify, op: "merge", say: always(modify(ahp.TargetRequest, ahp.OpMerge, list(ahp.RoleUser, "and this"))), want: merged},
		{on: t, effect: ahp.EffectReturn, say: always(&ahp.Return{Value: list(ahp.RoleAssistant, "supplied")}), want: supplied},
	}
}

// replies are the effects on what the model says.
func replies() []enforced {
	t := ahp.ModelResponseAfter
	replaced, merged := well(), well()
	replaced.said, replaced.record = "better\n", "changed"
	merged.said, merged.record = "done\n\nand more\n", "changed"
	return []enforced{
		{on: t, effect: ahp.EffectModify, op: "replace", say: atLast(modify(ahp.TargetResponse, ahp.OpReplace, list(ahp.RoleAssistant, "better"))), want: replaced},
		{on: t, effect: ahp.EffectModify, op: "merge", say: atLast(modify(ahp.TargetResponse, ahp.OpMerge, list(ahp.RoleAssistant, "and more"))), want: merged},
		{on: t, effect: ahp.EffectFlow, op: "stop", say: once(stop()), want: ran{code: 8, requests: 1, stderr: "that is enough", record: "stopped"}},
	}
}

// calls are the effects on tool calls.
func calls() []enforced {
	input, result := ahp.TargetInput, ahp.TargetOutput
	refused := ran{requests: 2, said: "done\n", sent: []string{"not on Fridays"}, stderr: "not on Fridays"}
	other := ran{requests: 2, said: "done\n", sent: []string{"Created other"}}
	stopped := ran{code: 8, requests: 1, stderr: "that is enough"}
	stoppedAfter := stopped
	stoppedAfter.marker = true
	stoppedBatch := stoppedAfter
	stoppedBatch.record = "stopped"
	supplied := ran{requests: 2, said: "done\n", sent: []string{"tool as if for call_1"}}
	clean, longer := well(), well()
	clean.sent, clean.unsent = []string{"tool clean for call_1"}, []string{"Created"}
	longer.sent = []string{"Created marker", "and more for call_1"}
	return []enforced{
		{on: ahp.ToolBefore, effect: ahp.EffectDeny, say: always(deny()), want: refused},
		{on: ahp.ToolBefore, effect: ahp.EffectAsk, say: always(&ahp.Ask{}), want: ran{requests: 2, said: "done\n", sent: []string{"Nobody can be asked"}}},
		{on: ahp.ToolBefore, effect: ahp.EffectModify, op: "replace", say: always(modify(input, ahp.OpReplace, ahp.Raw(`{"path":"other","content":"y"}`))), want: other},
		{on: ahp.ToolBefore, effect: ahp.EffectModify, op: "merge", say: always(modify(input, ahp.OpMerge, ahp.Raw(`{"path":"other"}`))), want: other},
		{on: ahp.ToolBefore, effect: ahp.EffectReturn, say: always(&ahp.Return{Value: ahp.Raw(`"as if"`)}), want: supplied},
		{on: ahp.ToolBefore, effect: ahp.EffectFlow, op: "stop", say: always(stop()), want: stopped},
		{on: ahp.ToolPermissionRequest, effect: ahp.EffectDeny, mode: "default", say: always(deny()), want: refused},
		{on: ahp.ToolPermissionRequest, effect: ahp.EffectFlow, op: "stop", mode: "default", say: always(stop()), want: stopped},
		{on: ahp.ToolAfter, effect: ahp.EffectModify, op: "replace", say: always(modify(result, ahp.OpReplace, list(ahp.RoleTool, "clean"))), want: clean},
		{on: ahp.ToolAfter, effect: ahp.EffectModify, op: "merge", say: always(modify(result, ahp.OpMerge, list(ahp.RoleTool, "and more"))), want: longer},
		{on: ahp.ToolAfter, effect: ahp.EffectFlow, op: "stop", say: always(stop()), want: stoppedAfter},
		{on: ahp.ToolBatchAfter, effect: ahp.EffectFlow, op: "stop", say: always(stop()), want: stoppedBatch},
	}
}

// moving is a reply that changes the working directory and then writes the marker
// there, or here if that is refused.
func moving() modeltest.Turn {
	return modeltest.Turn{Calls: []modeltest.Call{{ID: "call_0", Name: "bash", Args: `{"command":"mkdir sub; cd sub"}`}, {ID: "call_1", Name: "write", Args: markerArgs}}}
}

// moves are the effects on changes of the working directory.
func moves() []enforced {
	first := moving()
	there := ran{requests: 2, said: "done\n", stderr: "NOTICE", unsent: []string{"NOTICE"}}
	here := well()
	here.sent, here.record = []string{"The working directory stays", "refused by backend org.test.judge. Reason: not on Fridays"}, "denied"
	return []enforced{
		{on: ahp.WorkspaceChangeBefore, effect: ahp.EffectMessage, first: &first, mode: "bypass", say: always(&ahp.Notice{Text: "NOTICE"}), want: there},
		{on: ahp.WorkspaceChangeBefore, effect: ahp.EffectDeny, first: &first, mode: "bypass", say: always(deny()), want: here},
	}
}

// answers are the effects on the end of a turn and on what the person reads.
func answers() []enforced {
	finish, outbound := ahp.TurnFinishBefore, ahp.UserMessageOutbound
	row := func(t ahp.EventType, target ahp.Target, op ahp.Operation, said string) enforced {
		want := well()
		want.said, want.record = said, "changed"
		return enforced{on: t, effect: ahp.EffectModify, op: string(op), say: always(modify(target, op, list(ahp.RoleAssistant, "better"))), want: want}
	}
	stopped, more := well(), well()
	stopped.code, stopped.record, stopped.stderr = 8, "stopped", "that is enough"
	more.requests, more.said, more.record, more.sent = 3, "done\nchecked\n", "continued", []string{"assistant done\nuser check it\n"}
	return []enforced{
		row(finish, ahp.TargetResponse, ahp.OpReplace, "better\n"), row(finish, ahp.TargetResponse, ahp.OpMerge, "done\n\nbetter\n"),
		{on: finish, effect: ahp.EffectFlow, op: "stop", say: always(stop()), want: stopped},
		{on: finish, effect: ahp.EffectFlow, op: "continue", say: once(&ahp.Flow{Operation: ahp.FlowContinue, Instruction: "check it"}),
			more: []modeltest.Turn{{Text: "checked"}}, want: more},
		row(outbound, ahp.TargetContent, ahp.OpReplace, "better\n"), row(outbound, ahp.TargetContent, ahp.OpMerge, "done\nbetter\n"),
		{on: outbound, effect: ahp.EffectDeny, say: always(deny()), want: ran{code: 8, requests: 2, marker: true, stderr: "not on Fridays", record: "denied"}},
	}
}
