package main

import "github.com/abhed/abhed/ahp"

// base identifies the schemas; nothing need be there to fetch.
const base = "https://github.com/abhed/abhed/ahp/schema/" + ahp.Version + "/"

const dialect = "https://json-schema.org/draft/2020-12/schema"

// from refers to a definition from another file.
func from(name string) object { return object{"$ref", definitions + "#/$defs/" + name} }

// file is one published schema.
type file struct {
	name   string // without ".json"
	schema object
}

func newFile(name, title, description string, schema object) file {
	head := object{"$schema", dialect, "$id", base + name + ".json", "title", title, "description", description}
	return file{name: name, schema: head.with(schema...)}
}

// rpc returns a JSON-RPC object: what is required beyond jsonrpc, and its members.
func rpc(required []string, members ...any) object {
	return object{"type", "object", "required", append([]string{"jsonrpc"}, required...),
		"properties", object{"jsonrpc", object{"const", "2.0"}}.with(members...)}
}

// payload is a params object or a result: it names the revision.
func payload(required []string, members ...any) object {
	return object{"type", "object", "required", append([]string{"protocolVersion"}, required...),
		"properties", object{"protocolVersion", from("protocolVersion")}.with(members...)}
}

// messages returns the schemas of what is sent.
func messages() []file {
	return []file{
		newFile("intercept-request", "hooks/intercept",
			"A harness asks a backend for a decision. The id equals params.event.id, which a schema can't say.", interceptRequest()),
		newFile("observe-notification", "hooks/observe", "A harness tells a backend of an event. There is no id, and no reply.",
			rpc([]string{"method", "params"}, "id", false, "method", object{"const", ahp.MethodObserve},
				"params", payload([]string{"event"}, "event", from("event"), "extensions", from("extensions")))),
		newFile("capabilities-request", "hooks/capabilities", "Asks for the manifest. The params are closed.",
			rpc([]string{"id", "method", "params"}, "id", from("requestId"), "method", object{"const", ahp.MethodCapabilities},
				"params", payload(nil).with("additionalProperties", false))),
		newFile("capabilities-response", "The answer to hooks/capabilities", "The manifest.",
			response(payload([]string{"manifest"}, "manifest", from("manifest"), "effects", false))),
		newFile("intercept-response", "The answer to hooks/intercept",
			"An ordered list of effects. The id is the request's, and every effect one that the request advertised, which a schema can't say.",
			response(decision(from("effects")))),
		newFile("intercept-deny-response", "An answer that denies", "Exactly one effect, deny.",
			response(decision(object{"type", "array", "items", from("effect.deny"), "minItems", 1, "maxItems", 1}))),
		newFile("intercept-no-effect-response", "An answer without effects", "Nothing is permitted by it.",
			response(decision(object{"type", "array", "maxItems", 0}))),
		newFile("error-response", "An error", "A JSON-RPC error. The id is null where that of the request couldn't be read.", errorResponse()),
		newFile("json-rpc-message", "Any message", "The JSON-RPC envelope alone: what the methods carry is in the other schemas.", envelope()),
		newFile("upload-receipt", "The answer to an upload", "Status 201 with this body confirms an upload, if it matches what was sent.", from("receipt")),
		newFile("registration", "A registration",
			"The backends of a harness, in order. Each id is there once, and no literal secret, which a schema can't say.", from("registration")),
	}
}

func interceptRequest() object {
	params := payload([]string{"event", "capabilities"}, "event", both(from("event"), prop("type", object{"enum", eventNames(true)})),
		"capabilities", from("capabilities"), "state", from("state"), "extensions", from("extensions"))
	var bounds list
	for _, name := range eventNames(true) {
		bounds = append(bounds, when(prop("event", is("type", name)), prop("capabilities", from("capabilities."+name))))
	}
	return rpc([]string{"id", "method", "params"}, "id", object{"type", "string", "minLength", 1},
		"method", object{"const", ahp.MethodIntercept}, "params", params.with("allOf", bounds))
}

func decision(effects object) object {
	return payload([]string{"effects"}, "effects", effects, "manifest", false, "extensions", from("extensions"))
}

// response is a success. Other members of the envelope are ignored; a method would
// have to be one.
func response(result object) object {
	return rpc([]string{"id", "result"}, "id", from("requestId"), "result", result, "error", false, "method", methodName())
}

func methodName() object { return object{"type", "string", "minLength", 1} }

func errorResponse() object {
	id := object{"anyOf", list{object{"type", "null"}, from("requestId")}}
	return rpc([]string{"id", "error"}, "id", id, "error", from("rpcError"), "result", false, "method", methodName())
}

// envelope is any message: either a request or a response, and not both at once.
func envelope() object {
	anObject := object{"type", "object"}
	return object{"anyOf", list{
		both(rpc([]string{"method", "params"}, "id", from("requestId"), "method", methodName(), "params", anObject), without("result", "error")),
		both(response(anObject), without("method"), prop("params", anObject)),
		both(errorResponse(), without("method"), prop("params", anObject)),
	}}
}
