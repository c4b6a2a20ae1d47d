package main

import "github.com/abhed/abhed/ahp"

// Small parts of conditions.

func is(member, value string) object {
	return object{"properties", object{member, object{"const", value}}, "required", []string{member}}
}

func need(members ...string) object { return object{"required", members} }

func without(members ...string) object {
	var p object
	for _, m := range members {
		p = p.with(m, false)
	}
	return object{"properties", p}
}

func prop(member string, schema object) object {
	return object{"properties", object{member, schema}}
}

func when(cond, then object) object { return object{"if", cond, "then", then} }

func whenElse(cond, then, other object) object {
	return object{"if", cond, "then", then, "else", other}
}

func both(parts ...object) object {
	all := make(list, len(parts))
	for i := range parts {
		all[i] = parts[i]
	}
	return object{"allOf", all}
}

func oneOf(parts ...object) object {
	all := make(list, len(parts))
	for i := range parts {
		all[i] = parts[i]
	}
	return object{"oneOf", all}
}

func contains(schema object) object { return object{"contains", schema} }

// conditions holds the rules that span members, by Go type: what the check
// functions of package ahp hold. TestMutations compares the two.
func conditions() map[string]object {
	skippedByPolicy := object{"allOf", list{is("status", "skipped"), is("reason", "policy")}}
	return map[string]object{
		"Tool":       whenElse(is("origin", "mcp"), need("mcp"), without("mcp")),
		"Connection": connection(),
		"Execution": oneOf(
			both(is("status", "executed"), without("reason", "detail")),
			both(is("status", "skipped"), is("reason", "supplied_result"), without("detail")),
			both(is("status", "skipped"), object{"properties", object{"reason", object{"enum", []string{"policy", "cancelled", "timeout", "other"}}}, "required", []string{"reason"}}),
		),
		"FileChange": both(
			whenElse(is("change", "moved"), need("previousPath"), without("previousPath")),
			when(is("change", "created"), without("before")),
			when(is("change", "deleted"), without("after")),
		),
		"BatchCall": both(
			when(is("outcome", "denied"), prop("execution", skippedByPolicy)),
			prop("batch", need("callIds")),
		),
		"WorkspaceState": {"minProperties", 1},
		"Elicitation":    both(prop("request", ref("textPart")), prop("result", ref("textPart"))),

		"Capabilities":     capabilities(),
		"ModifyCapability": {"anyOf", list{prop("replace", object{"const", true}), prop("merge", object{"const", true})}},
		"FlowCapability":   when(prop("operations", contains(object{"const", "continue"})), need("remainingContinuations", "continuationCount")),
		"ContextInjection": prop("append", object{"const", true}),
		"Manifest":         without("identity"),
		"ManifestEvent":    manifestEvent(),
		"ManagedPolicy":    when(prop("scopes", contains(object{"const", "managed"})), prop("disableable", object{"const", false})),

		"Registration":    prop("protocolVersion", ref("protocolVersion")),
		"Backend":         both(without("contentReceiver"), when(prop("transport", is("type", "stdio")), without("authentication"))),
		"TransportConfig": whenElse(is("type", "stdio"), both(need("command", "lifecycle"), without("url")), both(need("url"), without("command", "lifecycle", "args", "cwd"))),
		"Authentication": whenElse(is("type", "bearer"),
			both(oneOf(need("tokenEnv"), need("tokenRef")), without("resource", "issuer", "clientId", "flow", "clientSecretRef", "scopes")),
			both(need("resource", "issuer", "clientId", "flow"), without("tokenEnv", "tokenRef"))),
		"Subscription": subscription(),
		"Upload":       prop("endpoint", object{"anyOf", list{ref("https"), object{"pattern", loopbackURL()}}}),
	}
}

// connection holds that each location member of the transport is there, or a gap
// names it, and that those of other transports aren't.
func connection() object {
	gap := func(name string) object {
		return both(need("gaps"), prop("gaps", contains(is("path", name))))
	}
	locations := []string{"url", "command", "args", "cwd", "addressForm", "address"}
	shape := func(transport object, own ...string) object {
		parts := []object{prop("transport", transport)}
		for _, name := range locations {
			mine := false
			for _, o := range own {
				mine = mine || o == name
			}
			if mine {
				parts = append(parts, object{"anyOf", list{need(name), gap(name)}})
			} else {
				parts = append(parts, without(name))
			}
		}
		return both(parts...)
	}
	return oneOf(
		shape(object{"enum", []string{"http", "sse"}}, "url"),
		shape(object{"const", "stdio"}, "command", "args", "cwd"),
		shape(object{"pattern", "^_"}, "addressForm", "address"),
	)
}

// capabilities holds the general rules of an advertisement; what an event allows
// is in the definitions "capabilities.<event>".
func capabilities() object {
	known := object{"anyOf", list{ref("effectType"), ref("rdns")}}
	parts := []object{prop("effects", object{"items", known})}
	for _, block := range []string{"modify", "flow", "inject"} {
		parts = append(parts, whenElse(prop("effects", contains(object{"const", block})), need(block), without(block)))
	}
	return both(parts...)
}

func manifestEvent() object {
	parts := []object{
		prop("event", object{"enum", eventNames(false)}),
		whenElse(prop("modes", contains(object{"const", "intercept"})),
			both(need("capabilities"), prop("event", object{"enum", eventNames(true)})),
			prop("capabilities", prop("effects", object{"maxItems", 0}))),
	}
	for _, t := range ahp.EventTypes() {
		if t.Interceptable() {
			parts = append(parts, when(is("event", string(t)), prop("capabilities", ref("capabilities."+string(t)))))
		}
	}
	return both(parts...)
}

func eventNames(interceptable bool) []string {
	var out []string
	for _, t := range ahp.EventTypes() {
		if !interceptable || t.Interceptable() {
			out = append(out, string(t))
		}
	}
	return out
}

func subscription() object {
	selector := func(interceptable bool) object {
		return prop("events", object{"items", object{"anyOf", list{
			object{"const", "*"}, object{"pattern", family}, object{"enum", eventNames(interceptable)}}}})
	}
	return both(
		prop("content", need("default")),
		whenElse(is("mode", "intercept"),
			both(need("timeoutMs", "failurePolicy"), selector(true)),
			both(without("timeoutMs", "failurePolicy"), selector(false))),
		when(is("scope", "managed"), both(need("disableable"), prop("disableable", object{"const", false}))),
	)
}
