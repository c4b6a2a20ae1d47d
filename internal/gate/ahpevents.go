package gate

import (
	"time"

	"github.com/google/uuid"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/policy"
)

// toolPath names the one path on which Abhed's tools run.
const toolPath = "native"

// Identity is what every AHP event of a session says of its sender.
type Identity struct {
	// Source is the absolute URI of this installation.
	Source string
	// Session, Workspace, Roots and Model describe the session.
	Session   string
	Workspace string
	Roots     []string
	Model     string
	// Version is the harness's version, Mode the permission mode.
	Version string
	Mode    string
}

func newID() string {
	id, err := uuid.NewV7()
	if err != nil {
		return uuid.NewString()
	}
	return id.String()
}

// envelope returns what all events have.
func (i *Identity) envelope(t ahp.EventType, at time.Time) *ahp.Event {
	return &ahp.Event{
		ID: newID(), Source: i.Source, Type: t, Time: ahp.Timestamp(at),
		Session: &ahp.Session{ID: i.Session, Cwd: i.Workspace, WorkspaceRoots: i.Roots, Model: i.Model},
	}
}

// toolEvent returns an event about a call.
func (i *Identity) toolEvent(t ahp.EventType, at time.Time, c policy.Call) *ahp.Event {
	e := i.envelope(t, at)
	e.Session.Cwd = c.WorkDir
	e.Session.Agent = &ahp.Agent{ID: c.Agent.ID}
	e.Call = &ahp.Identity{ID: c.ID}
	e.Tool = &ahp.Tool{Name: c.Tool, Input: ahp.Raw(c.Args), Origin: ahp.OriginNative, Kind: kindOf(c.Tool)}
	e.Path = toolPath
	return e
}

// kindOf describes a built-in tool; it is descriptive and grounds nothing.
func kindOf(tool string) string {
	switch tool {
	case "bash":
		return "shell"
	case "read":
		return "file_read"
	case "write":
		return "file_write"
	case "edit":
		return "file_edit"
	case "glob", "grep":
		return "search"
	default:
		return ""
	}
}

func (i *Identity) before(at time.Time, c policy.Call) *ahp.Event {
	return i.toolEvent(ahp.ToolBefore, at, c)
}

func (i *Identity) permission(at time.Time, c policy.Call) *ahp.Event {
	e := i.toolEvent(ahp.ToolPermissionRequest, at, c)
	e.Suggestions = []ahp.Raw{}
	return e
}

// after returns the event of a call's end. content is what the model would read.
func (i *Identity) after(at time.Time, o agent.Outcome, content string) *ahp.Event {
	e := i.toolEvent(ahp.ToolAfter, at, o.Call)
	e.Items = ahp.MessageItems(ahp.TextMessage(o.Call.ID+":result", ahp.RoleTool, content))
	switch o.Kind {
	case "ok":
		e.Outcome, e.Execution = "ok", ahp.Executed()
	case "supplied":
		e.Outcome, e.Execution = "ok", ahp.Skipped("supplied_result")
	case "error":
		e.Outcome, e.Execution = "error", ahp.Executed()
		text := o.Err
		if text == "" {
			text = "the tool reported an error"
		}
		e.Error = &ahp.Problem{Class: "tool", Message: text}
	case "timeout":
		e.Outcome, e.Execution = "timeout", ahp.Executed()
	case "denied":
		e.Outcome, e.Execution = "denied", ahp.Skipped("policy")
	case "stopped":
		e.Outcome, e.Execution = "cancelled", ahp.Skipped("policy")
	default:
		e.Outcome, e.Execution = "cancelled", ahp.Skipped("cancelled")
		if o.Ran {
			e.Execution = ahp.Executed()
		}
	}
	if e.Execution.Status == "executed" {
		ms := o.Duration.Milliseconds()
		e.DurationMs = &ms
	}
	return e
}

// Manifest returns what Abhed promises to send and to enforce. It never offers
// allow, on any event (gate.md §2 step 3).
func Manifest() *ahp.Manifest {
	both := []ahp.Mode{ahp.ModeObserve, ahp.ModeIntercept}
	return &ahp.Manifest{
		Events: []ahp.ManifestEvent{
			{Event: ahp.SessionStart, Modes: both, Capabilities: startCapabilities()},
			{Event: ahp.SessionEnd, Modes: []ahp.Mode{ahp.ModeObserve}},
			{Event: ahp.ToolBefore, Modes: both, Capabilities: beforeCapabilities()},
			{Event: ahp.ToolPermissionRequest, Modes: both, Capabilities: permissionCapabilities()},
			{Event: ahp.ToolAfter, Modes: both, Capabilities: afterCapabilities()},
		},
		Gaps: []ahp.Gap{
			{Path: "limits.maxUploadBytes", Reason: "content is sent inline; nothing is uploaded"},
			{Path: "limits.minTimeoutMs", Reason: "no bound is set"},
			{Path: "limits.maxTimeoutMs", Reason: "no bound is set"},
			{Path: "events", Reason: "one message has at most 16 MiB and a depth of 128"},
		},
		Transports:        []string{"stdio", "http"},
		Authentication:    []string{"bearer"},
		ToolPaths:         []string{toolPath},
		ContentCategories: []string{"text"},
		ManagedPolicy:     ahp.ManagedPolicy{Scopes: []string{"managed", "user", "project"}},
		CorrelationIdentityFields: []string{
			"session.id", "call.id", "id",
		},
	}
}

func startCapabilities() *ahp.Capabilities {
	return &ahp.Capabilities{Effects: []ahp.EffectType{ahp.EffectInject, ahp.EffectMessage}, Inject: injectNow()}
}

func beforeCapabilities() *ahp.Capabilities {
	return &ahp.Capabilities{
		Effects: []ahp.EffectType{ahp.EffectDeny, ahp.EffectAsk, ahp.EffectModify, ahp.EffectMessage, ahp.EffectReturn, ahp.EffectFlow, ahp.EffectInject},
		Modify:  map[ahp.Target]ahp.ModifyCapability{ahp.TargetInput: {Replace: true, Merge: true}},
		Flow:    stopOnly(),
		Inject:  injectNow(),
	}
}

// againCapabilities is what a backend may answer when it is asked once more about
// input that a later one changed.
func againCapabilities() *ahp.Capabilities {
	return &ahp.Capabilities{Effects: []ahp.EffectType{ahp.EffectDeny, ahp.EffectAsk, ahp.EffectMessage}}
}

func permissionCapabilities() *ahp.Capabilities {
	return &ahp.Capabilities{Effects: []ahp.EffectType{ahp.EffectDeny, ahp.EffectMessage, ahp.EffectFlow}, Flow: stopOnly()}
}

func afterCapabilities() *ahp.Capabilities {
	return &ahp.Capabilities{
		Effects: []ahp.EffectType{ahp.EffectModify, ahp.EffectInject, ahp.EffectMessage, ahp.EffectFlow},
		Modify:  map[ahp.Target]ahp.ModifyCapability{ahp.TargetOutput: {Replace: true, Merge: true}},
		Flow:    stopOnly(),
		Inject:  injectNow(),
	}
}

func stopOnly() *ahp.FlowCapability {
	return &ahp.FlowCapability{Operations: []ahp.FlowOperation{ahp.FlowStop}}
}

// injectNow offers context with the call's result, which is the next moment at
// which anything can be added.
func injectNow() *ahp.InjectCapability {
	return &ahp.InjectCapability{Context: ahp.ContextInjection{Append: true, DeliverAt: []ahp.Delivery{ahp.DeliverNow, ahp.DeliverNextTurn}}}
}
