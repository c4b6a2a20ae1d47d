package main

import (
	"slices"

	"github.com/abhed/abhed/ahp"
)

// eventConditions holds the rules that span the members of an event type.
func eventConditions() map[ahp.EventType]object {
	callBatch := prop("batch", need("callIds"))
	turnUsage := prop("usage", both(is("kind", "total"), is("scope", "turn")))
	attemptUsage := prop("usage", both(is("kind", "amount"), is("scope", "attempt"), prop("provenance", object{"enum", []string{"provider", "estimate"}})))
	skipped := prop("execution", is("status", "skipped"))
	supplied := when(skipped, prop("execution", is("reason", "supplied_result")))
	role := func(r ahp.Role) object {
		return prop("messages", object{"items", is("role", string(r))})
	}
	// Where turn is a payload it is closed, and elsewhere it is part of the envelope.
	turn := prop("turn", object{"propertyNames", object{"enum", []string{"id", "synthesized"}}})
	return map[ahp.EventType]object{
		ahp.TurnStart:          turn,
		ahp.TurnProgress:       turn,
		ahp.SessionStart:       when(object{"properties", object{"trigger", object{"enum", []string{"clear", "fork"}}}}, need("resumedFrom")),
		ahp.ConfigChangeBefore: prop("change", without("mcpServers")),
		ahp.TurnFinishBefore:   both(turn, turnUsage),
		ahp.TurnEnd:            both(turn, turnUsage, when(is("outcome", "completed"), without("error"))),
		ahp.ModelResponseAfter: both(attemptUsage, supplied, when(skipped, without("usage", "latencyMs"))),
		ahp.ModelErrorEvent:    both(attemptUsage, prop("execution", is("status", "executed"))),

		ahp.ToolBefore:             callBatch,
		ahp.ToolPermissionRequest:  callBatch,
		ahp.ToolPermissionResolved: callBatch,
		ahp.ToolProgress:           callBatch,
		ahp.ToolAfter: both(callBatch,
			whenElse(is("outcome", "error"), need("error"), without("error")),
			when(is("outcome", "denied"), prop("execution", both(is("status", "skipped"), is("reason", "policy")))),
			when(skipped, without("durationMs", "fileChanges"))),
		ahp.ToolBatchAfter: prop("batch", without("callIds")),

		ahp.ContextCompactBefore: prop("tokenCounts", both(need("before"), without("after"))),
		ahp.ContextCompactAfter:  supplied,

		ahp.UserElicitationRequest: prop("elicitation", without("action", "result")),
		ahp.UserElicitationResult:  prop("elicitation", both(need("action"), without("request"))),
		ahp.UserMessageInbound:     prop("message", both(need("sender"), role(ahp.RoleUser))),
		ahp.UserMessageOutbound:    prop("message", both(without("sender"), role(ahp.RoleAssistant))),
	}
}

// event defines the envelope, each event type, and their union. Members of other
// event types are ignored, so an event is open but for what its type forbids.
func (g *generator) event() {
	envelope := object{"type", "object", "required", g.desc.EnvelopeRequired,
		"properties", g.pick("Event", g.desc.Envelope, map[string]object{"type": object{"enum", eventNames(false)}})}
	g.def("eventEnvelope", envelope)
	branches := list{ref("eventEnvelope")}
	for i := range g.desc.Events {
		e := &g.desc.Events[i]
		branches = append(branches, when(is("type", string(e.Type)), ref("event."+string(e.Type))))
	}
	g.def("event", object{"allOf", branches})
	for i := range g.desc.Events {
		g.eventType(&g.desc.Events[i])
	}
}

func (g *generator) eventType(e *ahp.EventShape) {
	items := object{"type", "array", "items", ref("part")}
	if e.Messages {
		items = ref("messages")
	}
	set := map[string]object{"items": items}
	for name, values := range e.Enums {
		set[name] = object{"enum", values}
	}
	own := slices.Concat(e.Required, e.Optional)
	if !slices.Contains(own, "items") {
		own = append(own, "items")
	}
	own = slices.DeleteFunc(own, func(name string) bool { return slices.Contains(g.desc.Envelope, name) })
	properties := g.pick("Event", own, set)
	for _, name := range e.Forbidden {
		properties = properties.with(name, false)
	}
	out := object{"required", e.Required, "properties", properties}
	g.def("event."+string(e.Type), conditioned(out, eventConditions()[e.Type]))
}

// bounds defines what may be advertised at each interceptable event (§10).
func (g *generator) bounds() {
	targets := g.member("Capabilities", "modify").Enum
	for _, t := range ahp.EventTypes() {
		if !t.Interceptable() {
			continue
		}
		var effects, operations []string
		for _, e := range t.Effects() {
			effects = append(effects, string(e))
		}
		for _, op := range t.FlowOperations() {
			operations = append(operations, string(op))
		}
		properties := object{"effects", object{"items", object{"enum", effects}}}
		others := slices.DeleteFunc(slices.Clone(targets), func(name string) bool { return name == string(t.Target()) })
		properties = properties.with("modify", without(others...))
		if operations != nil {
			properties = properties.with("flow", prop("operations", object{"items", object{"enum", operations}}))
		}
		g.def("capabilities."+string(t), object{"properties", properties})
	}
}

// part defines the eight shapes of §7, and the text parts among them.
func (g *generator) part() {
	common := []string{"id", "kind", "mediaType", "selection", "category", "synthesized"}
	shapes := map[string][]string{
		"body":     nil, // and the content itself
		"gap":      {"gap", "size", "sha256"},
		"metadata": {"size", "sha256"},
		"omit":     {"size", "sha256"},
	}
	var every, texts list
	for _, kind := range []string{"text", "attachment"} {
		for _, shape := range []string{"body", "gap", "metadata", "omit"} {
			own, selection := shapes[shape], shape
			required := []string{"id", "kind", "mediaType", "selection"}
			switch {
			case shape == "body" && kind == "text":
				own, required = []string{"text"}, append(required, "text")
			case shape == "body":
				own, required = []string{"body"}, append(required, "body")
			case shape == "gap":
				selection, required = "body", append(required, "gap")
			}
			media := object{"const", ahp.MediaText}
			if kind == "attachment" {
				media = object{"type", "string", "minLength", 1, "not", object{"pattern", textOrJSON}}
			}
			set := map[string]object{"kind": {"const", kind}, "selection": {"const", selection}, "mediaType": media}
			name := "part." + kind + "." + shape
			g.def(name, object{"type", "object", "required", required,
				"properties", g.pick("Part", slices.Concat(common, own), set), "additionalProperties", false})
			every = append(every, ref(name))
			if kind == "text" {
				texts = append(texts, ref(name))
			}
		}
	}
	g.def("part", object{"oneOf", every})
	g.def("textPart", object{"oneOf", texts})
}

// effect defines the eight effects of §8.
func (g *generator) effect() {
	var names []string
	var every list
	for i := range g.desc.Effects {
		e := &g.desc.Effects[i]
		names = append(names, string(e.Type))
		every = append(every, ref("effect."+string(e.Type)))
		own := slices.Concat(e.Required, e.Optional)
		set := map[string]object{"type": {"const", string(e.Type)}}
		var more object
		switch e.Type {
		case ahp.EffectModify:
			set["target"] = object{"enum", g.member("Capabilities", "modify").Enum}
			set["operation"] = object{"enum", []string{string(ahp.OpReplace), string(ahp.OpMerge)}}
			more = edited()
		case ahp.EffectFlow:
			set["operation"] = object{"enum", []string{string(ahp.FlowStop), string(ahp.FlowContinue)}}
			more = whenElse(is("operation", "stop"), both(need("reason"), without("instruction")), without("reason"))
		case ahp.EffectInject:
			set["target"], set["operation"], set["value"] = object{"const", "context"}, object{"const", "append"}, ref("messages")
		}
		g.def("effect."+string(e.Type), conditioned(object{"type", "object", "required", e.Required,
			"properties", g.pick("Effect", own, set), "additionalProperties", false}, more))
	}
	g.def("effectType", object{"enum", names})
	g.def("effect", object{"oneOf", every})
	g.def("effects", object{"type", "array", "items", ref("effect")})
}

// edited holds the shape of the value of each target of modify. That of "content"
// depends on the event.
func edited() object {
	target := func(value object, names ...ahp.Target) object {
		var list []string
		for _, n := range names {
			list = append(list, string(n))
		}
		return when(prop("target", object{"enum", list}), prop("value", value))
	}
	anObject := object{"type", "object"}
	return both(
		target(anObject, ahp.TargetInput, ahp.TargetWorkspace),
		target(ref("textParts"), ahp.TargetInstructions, ahp.TargetSummary),
		target(object{"anyOf", list{anObject, ref("messages")}}, ahp.TargetContent),
		target(ref("messages"), ahp.TargetOutput, ahp.TargetPrompt, ahp.TargetRequest, ahp.TargetResponse),
	)
}
