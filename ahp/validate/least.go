package validate

import "github.com/abhed/abhed/ahp"

// fillEnvelope gives e what its type requires, but for the value of its target.
func fillEnvelope(e *ahp.Event) {
	name := ahp.Identity{ID: "x"}
	model := &ahp.Model{ID: "x", Provider: "x"}
	if e.Type.HasMessages() && e.Type != ahp.ContextCompactAfter {
		e.Items = ahp.MessageItems()
	}
	switch e.Type {
	case ahp.SessionStart:
		e.Session, e.Trigger, e.PermissionMode = &ahp.Session{ID: "x"}, "startup", "default"
		e.Harness, e.Manifest = &ahp.HarnessInfo{Name: "x", Version: "x"}, ahp.NewManifest()
	case ahp.ConfigChangeBefore:
		e.Change = &ahp.ConfigChange{Source: "x", Scope: "x", Settings: []string{}}
	case ahp.TurnStart:
		e.Turn, e.Trigger = &ahp.Turn{ID: "x"}, "user"
	case ahp.TurnFinishBefore:
		e.Turn, e.Outcome = &ahp.Turn{ID: "x"}, "completed"
	case ahp.ModelRequestBefore:
		e.Model, e.Attempt, e.Params = model, &ahp.Attempt{ID: "x", Number: 1}, ahp.Raw("{}")
	case ahp.ModelResponseAfter:
		e.Model, e.Attempt, e.FinishReason = model, &ahp.Attempt{ID: "x", Number: 1}, "stop"
		e.Execution = &ahp.Execution{Status: "executed"}
	case ahp.ModelSwitchBefore:
		e.Current, e.Proposed, e.Reason = model, model, "x"
	case ahp.ToolBefore, ahp.ToolPermissionRequest, ahp.ToolAfter:
		e.Call, e.Path = &name, "native"
		e.Tool = &ahp.Tool{Name: "x", Origin: ahp.OriginNative, Input: ahp.Raw("{}")}
		if e.Type == ahp.ToolPermissionRequest {
			e.Suggestions = []ahp.Raw{}
		}
		if e.Type == ahp.ToolAfter {
			e.Outcome, e.Execution = "ok", &ahp.Execution{Status: "executed"}
		}
	case ahp.ToolBatchAfter:
		e.Batch = &ahp.Batch{ID: "x"}
		e.Calls = []ahp.BatchCall{{Call: name, Tool: ahp.Tool{Name: "x", Origin: ahp.OriginNative, Input: ahp.Raw("{}")}, Path: "native",
			Outcome: "ok", Execution: ahp.Execution{Status: "executed"}}}
	case ahp.ContextCompactBefore:
		e.Trigger = "manual"
	case ahp.ContextCompactAfter:
		e.Removed, e.Execution = []ahp.Ref{}, &ahp.Execution{Status: "executed"}
	case ahp.TaskChangeBefore:
		e.Task = &ahp.Task{ID: "x", Operation: "update", Change: ahp.Raw("{}")}
	case ahp.UserElicitationRequest, ahp.UserElicitationResult:
		e.Elicitation = &ahp.Elicitation{Server: "x"}
	case ahp.UserMessageInbound:
		e.Message = &ahp.UserMessage{Channel: "x", Sender: "x"}
	case ahp.UserMessageOutbound:
		e.Message = &ahp.UserMessage{Channel: "x"}
	case ahp.WorkspaceChangeBefore:
		e.Workspace = &ahp.Workspace{Kind: "cwd"}
	}
}
