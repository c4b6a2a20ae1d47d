package brokenbackend

import (
	"bytes"
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/strictjson"
)

func messageMutations() []Mutation {
	refusing := func(path string) func(*peer, []byte) ([]byte, []byte, bool) {
		return answering(func(o object) []byte {
			if has(o, path) {
				return failure(o["id"], ahp.CodeInvalidParams)
			}
			return nil
		})
	}
	return []Mutation{
		{Check: "answer", About: "leaves effects out of the result", after: func(_ *peer, msg, reply []byte) []byte {
			return bytes.Replace(reply, []byte(`"effects":`), []byte(`"verdicts":`), 1)
		}},
		{Check: "id.text", About: "writes ids in lower case", after: func(_ *peer, msg, reply []byte) []byte {
			o := parse(reply)
			if id, is := get(o, "id").(string); is && id != strings.ToLower(id) {
				return put(o, "id", strings.ToLower(id))
			}
			return reply
		}},
		{Check: "id.integer", About: "makes texts of integer ids", after: func(_ *peer, msg, reply []byte) []byte {
			o := parse(reply)
			if id, is := get(o, "id").(float64); is {
				return put(o, "id", string(text(id)))
			}
			return reply
		}},
		{Check: "id.mismatch", About: "takes any id for an event", handle: answering(func(o object) []byte {
			if id, is := o["id"].(string); is && id != "" && intercepts(o) && has(o, "params.event.id") && get(o, "params.event.id") != any(id) {
				return effects(id, "[]")
			}
			return nil
		})},
		{Check: "id.invalid", About: "takes anything for an id", handle: answering(func(o object) []byte {
			if id, there := o["id"]; there && intercepts(o) {
				if s, is := id.(string); !is || s == "" {
					return effects(id, "[]")
				}
			}
			return nil
		})},
		{Check: "rpc.member-order", About: "wants a line to start with the brace", handle: func(_ *peer, msg []byte) ([]byte, []byte, bool) {
			if bytes.HasPrefix(msg, []byte(" ")) {
				return failure(nil, ahp.CodeParse), nil, true
			}
			return nil, nil, false
		}},
		{Check: "rpc.minimal", About: "wants a session with every event", handle: answering(func(o object) []byte {
			if e, is := get(o, "params.event").(object); is && intercepts(o) && get(o, "params.protocolVersion") == ahp.Version && o["jsonrpc"] == "2.0" && !has(e, "session") {
				return failure(o["id"], ahp.CodeInvalidParams)
			}
			return nil
		})},
		{Check: "large", About: "refuses more than 250 KB", handle: func(_ *peer, msg []byte) ([]byte, []byte, bool) {
			if len(msg) > 250_000 {
				id, _ := ahp.MessageID(msg)
				s, _ := id.Value()
				return failure(s, ahp.CodeInvalidRequest), nil, true
			}
			return nil, nil, false
		}},
		{Check: "state", About: "knows no candidate", handle: answering(func(o object) []byte {
			if get(o, "params.state.candidate") != nil {
				return failure(o["id"], ahp.CodeInvalidParams)
			}
			return nil
		})},
		{Check: "grease.envelope", About: "refuses unknown members of the envelope", handle: refusing("x-conform")},
		{Check: "grease.params", About: "refuses unknown members of params", handle: refusing("params.x-conform")},
		{Check: "grease.event", About: "refuses unknown members of the event", handle: refusing("params.event.x-conform")},
		{Check: "grease.open", About: "refuses unknown members of session", handle: refusing("params.event.session.x-conform")},
	}
}

func refusalMutations() []Mutation {
	return []Mutation{
		{Check: "rpc.version", About: "takes any JSON-RPC version", handle: when(func(o object) []byte {
			if intercepts(o) && o["jsonrpc"] != "2.0" && has(o, "id") {
				return put(o, "jsonrpc", "2.0")
			}
			return nil
		})},
		{Check: "rpc.request", About: "calls what is no request an internal error", handle: func(_ *peer, msg []byte) ([]byte, []byte, bool) {
			if strictjson.Check(msg, strictjson.Options{}) == nil && !bytes.HasPrefix(msg, []byte("[")) && parse(msg) == nil {
				return failure(nil, -32603), nil, true
			}
			return nil, nil, false
		}},
		{Check: "rpc.batch", About: "answers a batch", handle: func(b *peer, msg []byte) ([]byte, []byte, bool) {
			var list []object
			if strictjson.Unmarshal(msg, &list, strictjson.Options{}) == nil && len(list) == 1 {
				return append(append([]byte("["), effects(list[0]["id"], "[]")...), ']'), nil, true
			}
			return nil, nil, false
		}},
		{Check: "rpc.params", About: "forgets the id when params aren't an object", handle: answering(func(o object) []byte {
			if _, is := o["params"].(object); !is && has(o, "id") && has(o, "params") && o["jsonrpc"] == "2.0" {
				return failure(nil, ahp.CodeInvalidParams)
			}
			return nil
		})},
		{Check: "method.unknown", About: "calls an unknown method an invalid request", after: func(_ *peer, msg, reply []byte) []byte {
			return bytes.Replace(reply, []byte(`"code":-32601`), []byte(`"code":-32600`), 1)
		}},
		{Check: "version.unsupported", About: "serves any revision", handle: when(func(o object) []byte {
			if v, is := get(o, "params.protocolVersion").(string); is && intercepts(o) && v != ahp.Version {
				return put(o, "params.protocolVersion", ahp.Version)
			}
			return nil
		})},
		{Check: "version.supported", About: "doesn't say which revisions it speaks", after: func(_ *peer, msg, reply []byte) []byte {
			if o := parse(reply); has(o, "error.data") && bytes.Contains(reply, []byte("-32001")) {
				return without(o, "error.data")
			}
			return reply
		}},
		{Check: "version.missing", About: "takes a missing revision for its own", handle: when(func(o object) []byte {
			if p, is := o["params"].(object); is && intercepts(o) && !has(p, "protocolVersion") {
				return put(o, "params.protocolVersion", ahp.Version)
			}
			return nil
		})},
		{Check: "event.unknown", About: "calls an unknown event invalid params", after: func(_ *peer, msg, reply []byte) []byte {
			if bytes.Contains(msg, []byte("eleport")) || bytes.Contains(msg, []byte("Tool.Before")) {
				return bytes.Replace(reply, []byte(`"code":-32002`), []byte(`"code":-32602`), 1)
			}
			return reply
		}},
		{Check: "event.observe-only", About: "decides about the end of a session", handle: answering(func(o object) []byte {
			if intercepts(o) && get(o, "params.event.type") == string(ahp.SessionEnd) {
				return effects(o["id"], "[]")
			}
			return nil
		})},
		{Check: "event.incomplete", About: "does without a call", handle: when(func(o object) []byte {
			if e, is := get(o, "params.event").(object); is && intercepts(o) && e["type"] == string(ahp.ToolBefore) && !has(e, "call") {
				return put(o, "params.event.call", object{"id": "made-up"})
			}
			return nil
		})},
		{Check: "event.closed", About: "ignores unknown members of tool", handle: when(func(o object) []byte {
			if has(o, "params.event.tool.risk") {
				return without(o, "params.event.tool.risk")
			}
			return nil
		})},
		{Check: "event.enumeration", About: "takes an unknown origin for native", handle: when(func(o object) []byte {
			if get(o, "params.event.tool.origin") == "plugin" {
				return put(o, "params.event.tool.origin", "native")
			}
			return nil
		})},
		{Check: "content.parts", About: "doesn't look at content", handle: when(func(o object) []byte {
			if intercepts(o) && get(o, "params.event.type") == string(ahp.ToolBefore) && has(o, "params.event.items") {
				return without(o, "params.event.items")
			}
			return nil
		})},
		{Check: "capabilities.bounds", About: "ignores effects that it doesn't know", handle: when(func(o object) []byte {
			if list := advertised(o); len(list) == 1 && list[0] == "teleport" {
				return put(o, "params.capabilities", object{"effects": []any{}})
			}
			return nil
		})},
		{Check: "discovery", About: "answers discovery with effects too", after: func(_ *peer, msg, reply []byte) []byte {
			return bytes.Replace(reply, []byte(`"manifest":`), []byte(`"effects":[],"manifest":`), 1)
		}},
		{Check: "discovery.independent", About: "has another manifest after the first event", after: func(b *peer, msg, reply []byte) []byte {
			if o := parse(msg); o != nil && intercepts(o) {
				b.counted("events")
			}
			o := parse(reply)
			if !has(o, "result.manifest") || b.counted("events") == 1 {
				return reply
			}
			return put(o, "result.manifest.toolPaths", []any{string(text(b.counted("events")))})
		}},
		{Check: "discovery.closed", About: "ignores further params of a discovery", handle: when(func(o object) []byte {
			if o["method"] == ahp.MethodCapabilities && has(o, "params.session") {
				return without(o, "params.session")
			}
			return nil
		})},
	}
}

func silenceMutations() []Mutation {
	replies := func(when func(o object) bool, reply func(o object) []byte) func(*peer, []byte) ([]byte, []byte, bool) {
		return answering(func(o object) []byte {
			if when(o) {
				return reply(o)
			}
			return nil
		})
	}
	observed := func(path string, want any) func(object) bool {
		return func(o object) bool { return observes(o) && get(o, path) == want }
	}
	code := func(code int) func(object) []byte { return func(object) []byte { return failure(nil, code) } }
	return []Mutation{
		{Check: "observe.valid", About: "acknowledges an observation", handle: replies(observed("params.event.type", string(ahp.HookFailure)),
			func(o object) []byte { return effects(get(o, "params.event.id"), "[]") })},
		{Check: "observe.malformed", About: "complains of a malformed observation", handle: replies(func(o object) bool {
			return observes(o) && has(o, "params.event") && !has(o, "params.event.time")
		}, code(ahp.CodeInvalidParams))},
		{Check: "observe.version", About: "complains of an observation's revision", handle: replies(observed("params.protocolVersion", "2099-12-31"), code(ahp.CodeUnsupportedVersion))},
		{Check: "observe.event", About: "complains of an unknown event", handle: replies(observed("params.event.type", "tool.teleport"), code(ahp.CodeUnsupportedEvent))},
		{Check: "observe.id", About: "decides about an observation with an id", handle: replies(func(o object) bool { return observes(o) && has(o, "id") },
			func(o object) []byte { return effects(o["id"], "[]") })},
		{Check: "notification.unknown", About: "complains of an unknown notification", handle: replies(func(o object) bool {
			return o["method"] == "hooks/teleport" && !has(o, "id")
		}, code(ahp.CodeMethodNotFound))},
		{Check: "notification.intercept", About: "decides about a request without an id", handle: replies(func(o object) bool { return intercepts(o) && !has(o, "id") },
			func(o object) []byte { return effects(get(o, "params.event.id"), "[]") })},
		{Check: "observe.between", About: "stumbles after a large observation", handle: func(b *peer, msg []byte) ([]byte, []byte, bool) {
			o := parse(msg)
			switch {
			case o != nil && observes(o) && len(msg) > 50_000:
				b.counted("large")
			case o != nil && intercepts(o) && b.counted("large") > 1:
				b.reset("large")
				return failure(o["id"], ahp.CodeInternal), nil, true
			default:
				b.reset("large")
			}
			return nil, nil, false
		}},
	}
}

func decisionMutations() []Mutation {
	return []Mutation{
		{Check: "events.claimed", About: "knows no tools of MCP servers", handle: answering(func(o object) []byte {
			if get(o, "params.event.type") == string(ahp.ToolBefore) && get(o, "params.event.tool.origin") == "mcp" && intercepts(o) {
				return failure(o["id"], ahp.CodeInvalidParams)
			}
			return nil
		})},
		{Check: "events.all", About: "asks for approval where that isn't possible", handle: answering(func(o object) []byte {
			deliveries, _ := get(o, "params.capabilities.inject.context.deliverAt").([]any)
			full := get(o, "params.capabilities.modify.prompt.merge") == true && get(o, "params.capabilities.modify.prompt.replace") == true && len(deliveries) == 2
			if intercepts(o) && get(o, "params.event.type") == string(ahp.TurnStart) && full {
				return effects(o["id"], `[{"type":"ask"}]`)
			}
			return nil
		})},
		{Check: "effects.full", About: "edits what the event doesn't have", handle: answering(func(o object) []byte {
			if intercepts(o) && strings.HasPrefix(command(o), "git push") && len(advertised(o)) == 8 {
				return effects(o["id"], `[{"type":"modify","target":"output","operation":"replace","value":[]}]`)
			}
			return nil
		})},
		{Check: "effects.narrow", About: "asks though only deny is offered", handle: answering(func(o object) []byte {
			if intercepts(o) && strings.HasPrefix(command(o), "curl") && len(advertised(o)) == 1 {
				return effects(o["id"], `[{"type":"ask"}]`)
			}
			return nil
		})},
		{Check: "effects.message", About: "denies though only a message is offered", handle: answering(func(o object) []byte {
			if intercepts(o) && get(o, "params.event.type") == string(ahp.UserMessageOutbound) && len(advertised(o)) == 1 {
				return effects(o["id"], `[{"type":"deny","reason":"no"}]`)
			}
			return nil
		})},
		{Check: "effects.options", About: "goes on though no continuation is left", handle: answering(func(o object) []byte {
			if intercepts(o) && get(o, "params.capabilities.flow.remainingContinuations") == float64(0) {
				return effects(o["id"], `[{"type":"flow","operation":"continue"}]`)
			}
			return nil
		})},
		{Check: "duplicate", About: "denies what it has seen before", handle: func(b *peer, msg []byte) ([]byte, []byte, bool) {
			o := parse(msg)
			id, is := get(o, "id").(string)
			if is && intercepts(o) && len(id) > 8 && get(o, "params.event.id") == any(id) && len(advertised(o)) == 8 && b.counted(id) > 1 {
				return effects(id, `[{"type":"deny","reason":"again"}]`), nil, true
			}
			return nil, nil, false
		}},
		{Check: "extensions", About: "trusts an extension", handle: answering(func(o object) []byte {
			if intercepts(o) && has(o, "params.event.extensions") && strings.Contains(string(text(get(o, "params.event.extensions"))), "org.example.conformance") {
				return effects(o["id"], "[]")
			}
			return nil
		})},
		{Check: "deny", About: "denies nothing", handle: answering(func(o object) []byte {
			if intercepts(o) && strings.HasPrefix(command(o), "rm -rf") {
				return effects(o["id"], "[]")
			}
			return nil
		})},
	}
}
