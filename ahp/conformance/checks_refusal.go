package conformance

import (
	"context"

	"github.com/abhed/abhed/ahp"
)

// refusalChecks are about well-formed JSON that breaks a rule: the protocol says
// with which error it is answered.
func refusalChecks() []backendCheck {
	return []backendCheck{
		base("rpc.version", "AHP-RPC-001.g", "A request of another JSON-RPC version is refused with -32600", runRPCVersion),
		base("rpc.request", "AHP-RPC-001.g", "JSON that is no request is refused with -32600", runRPCRequest),
		base("rpc.batch", "AHP-RPC-001.i", "A batch is refused as one", runBatch),
		base("rpc.params", "AHP-RPC-001.h", "A request whose params aren't an object is refused with its id", runParams),
		base("method.unknown", "AHP-RPC-001.o", "An unknown method is refused with -32601", runUnknownMethod),
		base("version.unsupported", "AHP-VER-001.a", "A request of an unsupported revision is refused with -32001", runUnsupportedVersion),
		base("version.supported", "AHP-VER-001.b", "That refusal lists the supported revisions", runSupportedList).level(Should).after("version.unsupported"),
		base("version.missing", "AHP-VER-001.c", "A request without a revision is refused", runMissingVersion),
		base("event.unknown", "AHP-DEC-001.b", "An unknown event type is refused with -32002", runUnknownEvent),
		base("event.observe-only", "AHP-DEC-001.c", "An event that can only be observed is refused in a decision request", runObserveOnly),
		base("event.incomplete", "AHP-CORE-003.e", "An event that lacks a member, or has one of another type, is refused with -32602", runIncomplete),
		base("event.closed", "AHP-CORE-003.f", "An unknown member of a closed object is refused", runClosed),
		base("event.enumeration", "AHP-CORE-003.g", "An unknown value of an enumeration is refused", runEnumeration),
		base("content.parts", "AHP-CONTENT-001", "Content that isn't one of the eight shapes of parts is refused", runParts),
		must("capabilities.bounds", "AHP-CAP-002", ProfileToolInterception, "Capabilities that are missing, or beyond the event's bound, are refused", everywhere(), runBounds),
	}
}

// refuses holds that each variant is refused with one of the codes; the id may be
// null if null is true.
func refuses(ctx context.Context, p *probe, e *backendEnv, null bool, codes []int64, variants ...variant) error {
	if p.observer { // it need not look at events that it doesn't take
		codes = append(codes[:len(codes):len(codes)], ahp.CodeUnsupportedEvent)
	}
	return e.each(ctx, p, variants, func(a *answer, m *message) error { return p.wantError(a, m.id, null, codes...) })
}

func invalidParams() []int64 { return []int64{ahp.CodeInvalidParams, ahp.CodeInvalidRequest} }

func runRPCVersion(ctx context.Context, p *probe, e *backendEnv) error {
	return refuses(ctx, p, e, true, []int64{ahp.CodeInvalidRequest},
		variant{"1.0", ahp.KindEnvelope, []edit{set("jsonrpc", "1.0")}},
		variant{"a number", ahp.KindEnvelope, []edit{set("jsonrpc", 2)}},
		variant{"missing", ahp.KindEnvelope, []edit{drop("jsonrpc")}})
}

func runRPCRequest(ctx context.Context, p *probe, e *backendEnv) error {
	l, err := e.open(p)
	if err != nil {
		return err
	}
	for _, text := range []string{`"hooks/intercept"`, `17`, `null`} {
		m := message{raw: []byte(text), breaks: ahp.KindEnvelope}
		a, err := l.ask(ctx, m)
		if err == nil {
			err = p.wantRefused(a, m.id, ahp.CodeInvalidRequest)
		}
		if err != nil {
			return named(text, err)
		}
	}
	return refuses(ctx, p, e, true, []int64{ahp.CodeInvalidRequest},
		variant{"no method", ahp.KindEnvelope, []edit{drop("method")}},
		variant{"a method of another type", ahp.KindEnvelope, []edit{set("method", 3)}})
}

func runBatch(ctx context.Context, p *probe, e *backendEnv) error {
	l, err := e.open(p)
	if err != nil {
		return err
	}
	m, err := e.plain()
	if err != nil {
		return err
	}
	for _, raw := range []string{"[" + string(m.raw) + "]", "[]"} {
		batch := message{raw: []byte(raw), breaks: ahp.KindEnvelope}
		a, err := l.ask(ctx, batch)
		if err == nil {
			err = p.wantRefused(a, batch.id, ahp.CodeInvalidRequest, ahp.CodeParse)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func runParams(ctx context.Context, p *probe, e *backendEnv) error {
	return refuses(ctx, p, e, false, invalidParams(),
		variant{"a list", ahp.KindShape, []edit{set("params", []any{})}},
		variant{"a text", ahp.KindShape, []edit{set("params", "{}")}},
		variant{"no event", ahp.KindShape, []edit{drop("params.event")}},
		variant{"an event as text", ahp.KindShape, []edit{set("params.event", "{}")}})
}

func runUnknownMethod(ctx context.Context, p *probe, e *backendEnv) error {
	return refuses(ctx, p, e, false, []int64{ahp.CodeMethodNotFound},
		variant{"an unknown one", ahp.KindMethod, []edit{set("method", "hooks/teleport")}},
		variant{"other letters", ahp.KindMethod, []edit{set("method", "Hooks/Intercept")}})
}

func runUnsupportedVersion(ctx context.Context, p *probe, e *backendEnv) error {
	err := refuses(ctx, p, e, false, []int64{ahp.CodeUnsupportedVersion},
		variant{"a later one", ahp.KindVersion, []edit{set("params.protocolVersion", "2099-12-31")}},
		variant{"other letters", ahp.KindVersion, []edit{set("params.protocolVersion", "Draft")}},
		variant{"a later one with what only that has", ahp.KindVersion, []edit{
			set("params.protocolVersion", "2099-12-31"), set("params.event.type", "tool.teleport.before")}})
	if err != nil {
		return err
	}
	m, err := made(discovering(e.id()), ahp.KindVersion, set("params.protocolVersion", "2099-12-31"))
	if err != nil {
		return err
	}
	a, err := e.asked(ctx, p, m)
	if err != nil {
		return err
	}
	return named("discovery", p.wantError(a, m.id, false, ahp.CodeUnsupportedVersion, ahp.CodeMethodNotFound))
}

func runSupportedList(ctx context.Context, p *probe, e *backendEnv) error {
	m, err := e.request(ahp.KindVersion, set("params.protocolVersion", "2099-12-31"))
	if err != nil {
		return err
	}
	a, err := e.asked(ctx, p, m)
	if err != nil {
		return err
	}
	rpc, _, err := p.refusal(a)
	if err != nil {
		return err
	}
	if !lists(rpc.Data, ahp.Version) {
		return p.failf("the error's data doesn't list %q under \"supported\"", ahp.Version)
	}
	return nil
}

func runMissingVersion(ctx context.Context, p *probe, e *backendEnv) error {
	codes := append(invalidParams(), ahp.CodeUnsupportedVersion)
	return refuses(ctx, p, e, false, codes,
		variant{"missing", ahp.KindShape, []edit{drop("params.protocolVersion")}},
		variant{"a number", ahp.KindShape, []edit{set("params.protocolVersion", 1)}})
}

func runUnknownEvent(ctx context.Context, p *probe, e *backendEnv) error {
	return refuses(ctx, p, e, false, []int64{ahp.CodeUnsupportedEvent},
		variant{"an unknown one", ahp.KindEvent, []edit{set("params.event.type", "tool.teleport")}},
		variant{"other letters", ahp.KindEvent, []edit{set("params.event.type", "Tool.Before")}})
}

func runObserveOnly(ctx context.Context, p *probe, e *backendEnv) error {
	l, err := e.open(p)
	if err != nil {
		return err
	}
	for _, t := range []ahp.EventType{ahp.SessionEnd, ahp.ToolProgress, ahp.FileChanged} {
		m, err := made(intercepting(e.id(), samples(t)[0], object{"effects": []any{}}), ahp.KindEvent)
		if err != nil {
			return err
		}
		a, err := l.ask(ctx, m)
		if err == nil {
			err = p.wantError(a, m.id, false, append(invalidParams(), ahp.CodeUnsupportedEvent)...)
		}
		if err != nil {
			return named(string(t), err)
		}
	}
	return nil
}

func runIncomplete(ctx context.Context, p *probe, e *backendEnv) error {
	variants := []variant{
		{"no time", ahp.KindShape, []edit{drop("params.event.time")}},
		{"no source", ahp.KindShape, []edit{drop("params.event.source")}},
		{"a session of another type", ahp.KindShape, []edit{set("params.event.session", "session-1")}},
		{"a session without an id", ahp.KindShape, []edit{set("params.event.session", object{"cwd": "/"})}},
	}
	if e.ofTool() {
		variants = append(variants,
			variant{"no tool", ahp.KindShape, []edit{drop("params.event.tool")}},
			variant{"no call", ahp.KindShape, []edit{drop("params.event.call")}},
			variant{"no path", ahp.KindShape, []edit{drop("params.event.path")}},
			variant{"a tool without a name", ahp.KindShape, []edit{drop("params.event.tool.name")}},
			variant{"input as text", ahp.KindShape, []edit{set("params.event.tool.input", `{"command":"ls"}`)}})
	}
	return refuses(ctx, p, e, false, invalidParams(), variants...)
}

func runClosed(ctx context.Context, p *probe, e *backendEnv) error {
	if !e.ofTool() {
		return p.notApplicable("the events that are claimed hold no closed object to try this with")
	}
	return refuses(ctx, p, e, false, invalidParams(),
		variant{"an unknown member of tool", ahp.KindShape, []edit{set("params.event.tool.risk", "low")}},
		variant{"an unknown member of call", ahp.KindShape, []edit{set("params.event.call.parent", "x")}},
		variant{"an unknown member of batch", ahp.KindShape, []edit{set("params.event.batch", object{"id": "b", "callIds": []any{"call-1"}, "size": 1})}})
}

func runEnumeration(ctx context.Context, p *probe, e *backendEnv) error {
	variants := []variant{{"a permission", ahp.KindShape, []edit{set("params.state", object{"permission": "maybe", "candidate": nil})}}}
	if e.ofTool() {
		variants = append(variants, variant{"an origin", ahp.KindShape, []edit{set("params.event.tool.origin", "plugin")}})
	}
	return refuses(ctx, p, e, false, invalidParams(), variants...)
}

func runParts(ctx context.Context, p *probe, e *backendEnv) error {
	part := func(p object) []edit {
		return []edit{set("params.event.items", []any{p})}
	}
	if !e.ofTool() {
		return p.notApplicable("the events that are claimed hold no bare parts to try this with")
	}
	return refuses(ctx, p, e, false, invalidParams(),
		variant{"a part of kind json", ahp.KindShape, part(object{"id": "p", "kind": "json", "mediaType": "application/json", "selection": "body", "json": object{}})},
		variant{"an attachment of JSON", ahp.KindShape, part(object{"id": "p", "kind": "attachment", "mediaType": "application/json", "selection": "body", "body": object{"ref": "r"}})},
		variant{"text under metadata", ahp.KindShape, part(object{"id": "p", "kind": "text", "mediaType": "text/plain", "selection": "metadata", "text": "leak"})},
		variant{"a role on a part", ahp.KindShape, part(object{"id": "p", "kind": "text", "mediaType": "text/plain", "selection": "body", "text": "x", "role": "user"})})
}

func runBounds(ctx context.Context, p *probe, e *backendEnv) error {
	caps := func(v any) []edit { return []edit{set("params.capabilities", v)} }
	return refuses(ctx, p, e, false, invalidParams(),
		variant{"no capabilities", ahp.KindShape, []edit{drop("params.capabilities")}},
		variant{"no list of effects", ahp.KindShape, caps(object{})},
		variant{"an unknown effect", ahp.KindShape, caps(object{"effects": []any{"teleport"}})},
		variant{"an effect of an extension", ahp.KindShape, caps(object{"effects": []any{"org.example.effect"}})},
		variant{"an effect twice", ahp.KindShape, caps(object{"effects": []any{"message", "message"}})},
		variant{"options of what isn't listed", ahp.KindShape, caps(object{"effects": []any{"message"}, "flow": object{"operations": []any{"stop"}}})})
}
