package validate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/validate"
)

const (
	toolBefore = `{"id":"e","source":"urn:a","type":"tool.before","time":"2026-01-01T00:00:00Z","call":{"id":"c"},"path":"native","tool":{"name":"n","origin":"native","input":{}}}`
	intercept  = `{"jsonrpc":"2.0","id":"e","method":"hooks/intercept","params":{"protocolVersion":"draft","event":` + toolBefore + `,"capabilities":{"effects":["deny"]}}}`
	observe    = `{"jsonrpc":"2.0","method":"hooks/observe","params":{"protocolVersion":"draft","event":` + toolBefore + `}}`
	discover   = `{"jsonrpc":"2.0","id":1,"method":"hooks/capabilities","params":{"protocolVersion":"draft"}}`
	manifest   = `{"events":[],"gaps":[],"transports":["stdio"],"authentication":[],"toolPaths":[],"contentCategories":[],"limits":{},"managedPolicy":{"scopes":[],"disableable":true},"correlationIdentityFields":[]}`
	discovered = `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"draft","manifest":` + manifest + `}}`
	failed     = `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}`
	receipt    = `{"ref":"r","size":0,"sha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}`
	registered = `{"protocolVersion":"draft","hooks":[{"id":"com.example.a","transport":{"type":"stdio","command":"x","lifecycle":"persistent"},` +
		`"subscriptions":[{"events":["tool.before"],"mode":"intercept","timeoutMs":100,"failurePolicy":"fail-closed","content":{"default":"body"}}]}]}`
)

func effects(list string) string {
	return `{"jsonrpc":"2.0","id":"e","result":{"protocolVersion":"draft","effects":[` + list + `]}}`
}

// judged returns the findings, "" for none.
func judged(t *testing.T, text string, kind validate.Kind, opts validate.Options) string {
	t.Helper()
	r, err := validate.Message([]byte(text), kind, opts)
	if err != nil {
		t.Fatal(err)
	}
	return list(r.Findings)
}

func list(findings []validate.Finding) string {
	var out []string
	for _, f := range findings {
		out = append(out, f.Layer+" "+f.String())
	}
	return strings.Join(out, "\n")
}

// TestKinds judges a text of each kind as every kind: it is valid as its own, as
// any, and as an envelope if it is a message; and as nothing else.
func TestKinds(t *testing.T) {
	texts := map[validate.Kind]string{
		validate.InterceptRequest: intercept, validate.ObserveNotification: observe, validate.CapabilitiesRequest: discover, validate.CapabilitiesResponse: discovered,
		validate.ErrorResponse: failed, validate.UploadReceipt: receipt, validate.Registration: registered,
		validate.InterceptResponse:         effects(`{"type":"allow"}`),
		validate.InterceptDenyResponse:     effects(`{"type":"deny","reason":"r"}`),
		validate.InterceptNoEffectResponse: effects(``),
		validate.JSONRPCMessage:            `{"jsonrpc":"2.0","id":1,"method":"m","params":{}}`,
		validate.Any:                       `{"x":1}`, // nothing known
	}
	for _, is := range validate.Kinds() {
		for _, as := range validate.Kinds() {
			want := is == as
			switch {
			case is == validate.Any:
				want = false
			case as == validate.Any:
				want = is != validate.JSONRPCMessage // its method is unknown
			case as == validate.JSONRPCMessage:
				want = is != validate.Registration && is != validate.UploadReceipt
			case as == validate.InterceptResponse:
				want = is == as || is == validate.InterceptDenyResponse || is == validate.InterceptNoEffectResponse
			}
			if got := judged(t, texts[is], as, validate.Options{}); (got == "") != want {
				t.Errorf("%s as %s: want valid %v, got %q", is, as, want, got)
			}
		}
	}
	if _, err := validate.Message([]byte(intercept), "nonsense", validate.Options{}); err == nil {
		t.Error("an unknown kind is accepted")
	}
}

func TestDispatch(t *testing.T) {
	for text, pointer := range map[string]string{
		`{"method":"hooks/x"}`: "/method", `{"method":7}`: "/method", `{"result":{}}`: "/result", `{"result":7}`: "/result", `{}`: "", `[]`: "", `7`: "", `{`: "",
		`{"ref":"r"}`: "", `{"size":1}`: "", `{"hooks":[]}`: "/hooks", `{"a":1,"a":2}`: "/a", "\xef\xbb\xbf{}": "", `{"hooks":[{"id":"\ud800"}]}`: "/hooks/0/id",
	} {
		r, err := validate.Message([]byte(text), validate.Any, validate.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Findings) != 1 || r.Findings[0].Pointer != pointer {
			t.Errorf("%s: %+v, want one finding at %q", text, r.Findings, pointer)
		}
	}
}

func TestWarnings(t *testing.T) {
	text := strings.Replace(observe, `"id":"e"`, `"id":"e","parentEventID":"p","a/b":1`, 1)
	r, err := validate.Message([]byte(text), validate.Any, validate.Options{})
	if err != nil || !r.Valid() || len(r.Warnings) != 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	for i, want := range []string{`1`, `"p"`} {
		if w := r.Warnings[i]; !strings.HasPrefix(text[w.Offset:], want) {
			t.Errorf("%s is looked for at byte %d", w.Pointer, w.Offset)
		}
	}
	secret := strings.Replace(registered, `"command":"x"`, `"command":"x","args":["--token=abc"]`, 1)
	r, err = validate.Message([]byte(secret), validate.Registration, validate.Options{})
	if err != nil || !r.Valid() || len(r.Warnings) != 1 || r.Warnings[0].Requirement != "AHP-SEC-001" {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestElicitationTexts(t *testing.T) {
	event := func(text string) string {
		return `{"jsonrpc":"2.0","method":"hooks/observe","params":{"protocolVersion":"draft","event":{"id":"e","source":"urn:a","type":"user.elicitation.result",` +
			`"time":"2026-01-01T00:00:00Z","elicitation":{"server":"s","mode":"form","action":"decline","result":{"id":"p","kind":"text","mediaType":"text/plain","selection":"body","text":` +
			fmt.Sprintf("%q", text) + `}}}}}`
	}
	if got := judged(t, event(`{"action":"decline"}`), validate.Any, validate.Options{}); got != "" {
		t.Error(got)
	}
	for _, text := range []string{`{"action":"accept"}`, `{"action":"maybe"}`, `{`, ``} {
		if got := judged(t, event(text), validate.Any, validate.Options{}); !strings.Contains(got, "/params/event/elicitation/result (byte") {
			t.Errorf("%s: %q", text, got)
		}
	}
}

func TestResponseContexts(t *testing.T) {
	message := func(selection string) string {
		text := `"text":"t"`
		if selection != "body" {
			text = `"size":1`
		}
		return `{"id":"m","role":"%s","parts":[{"id":"p","kind":"text","mediaType":"text/plain","selection":"` + selection + `",` + text + `}]}`
	}
	list := func(role string) string { return "[" + fmt.Sprintf(message("body"), role) + "]" }
	part := `[{"id":"p","kind":"text","mediaType":"text/plain","selection":"body","text":"t"}]`
	modify := func(target, operation, value string) string {
		return `{"type":"modify","target":"` + target + `","operation":"` + operation + `","value":` + value + `}`
	}
	hidden := `{"event":"tool.after","current":{"output":[` + fmt.Sprintf(message("metadata"), "tool") + `]}}`
	tests := []struct {
		name, context, effects, layer string // "": valid
	}{
		{"input", `{"event":"tool.before","current":{"input":{"a":1}}}`, modify("input", "merge", `{"b":null}`), ""},
		{"input at the permission", `{"event":"tool.permission.request"}`, modify("input", "replace", `{}`), ""},
		{"a target of another event", `{"event":"tool.before"}`, modify("output", "replace", `[]`), "capability"},
		{"an effect of another event", `{"event":"tool.after"}`, `{"type":"ask"}`, "capability"},
		{"output", `{"event":"tool.after"}`, modify("output", "replace", list("tool")), ""},
		{"output as an object", `{"event":"tool.after"}`, modify("content", "replace", `{}`), "capability"},
		{"a whole list with hidden text", hidden, modify("output", "replace", `[]`), "capability"},
		{"behind hidden text", hidden, modify("output", "merge", list("tool")), ""},
		{"prompt", `{"event":"turn.start"}`, modify("prompt", "merge", list("user")), ""},
		{"prompt of an inbound message", `{"event":"user.message.inbound"}`, modify("prompt", "merge", list("user")), ""},
		{"a wrong role inbound", `{"event":"user.message.inbound"}`, modify("prompt", "merge", list("assistant")), "application"},
		{"a wrong role outbound", `{"event":"user.message.outbound"}`, modify("content", "replace", list("user")), "application"},
		{"request", `{"event":"model.request.before"}`, modify("request", "replace", list("system")), ""},
		{"response", `{"event":"model.response.after"}`, modify("response", "replace", list("assistant")), ""},
		{"response at the end of a turn", `{"event":"turn.finish.before"}`, modify("response", "replace", list("assistant")) + `,{"type":"flow","operation":"continue"}`, ""},
		{"instructions", `{"event":"context.compact.before","current":{"instructions":` + part + `}}`, modify("instructions", "merge", part), ""},
		{"summary", `{"event":"context.compact.after"}`, modify("summary", "replace", part), ""},
		{"workspace", `{"event":"workspace.change.before","current":{"workspace":{"cwd":"/a"}}}`, modify("workspace", "merge", `{"workspaceRoots":["/a"]}`), ""},
		{"a workspace of nothing", `{"event":"workspace.change.before","current":{"workspace":{"cwd":"/a"}}}`, modify("workspace", "replace", `{}`), "application"},
		{"an answer", `{"event":"user.elicitation.result","current":{"content":{"a":"b"}},"mode":"form","action":"accept"}`, modify("content", "merge", `{"c":[ "d" ]}`), ""},
		{"a nested answer", `{"event":"user.elicitation.result","current":{"content":{"a":"b"}},"mode":"form","action":"accept"}`, modify("content", "merge", `{"c":{}}`), "capability"},
		{"a cancelled answer", `{"event":"user.elicitation.result","mode":"form","action":"cancel"}`, modify("content", "merge", `{}`), "capability"},
		{"an answer by url", `{"event":"user.elicitation.result","mode":"url","action":"accept"}`, modify("content", "merge", `{}`), "capability"},
		{"a message at every event", `{"event":"session.start"}`, `{"type":"message","text":""}`, ""},
		{"a denied question", `{"event":"user.elicitation.request"}`, `{"type":"deny","reason":"r"}`, ""},
	}
	for _, event := range ahp.EventTypes() {
		if event.Interceptable() {
			tests = append(tests, struct{ name, context, effects, layer string }{"nothing at " + string(event), `{"event":"` + string(event) + `"}`, ``, ""})
		}
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := validate.DecodeResponseContext([]byte(tt.context))
			if err != nil {
				t.Fatal(err)
			}
			got := judged(t, effects(tt.effects), validate.InterceptResponse, validate.Options{Response: c})
			if layer, _, _ := strings.Cut(got, " "); layer != tt.layer {
				t.Errorf("got %q, want %q", got, tt.layer)
			}
		})
	}
}

func TestBadContexts(t *testing.T) {
	for _, text := range []string{`{}`, `{"event":"session.end"}`, `{"event":"nonsense"}`, `{"event":"tool.before","current":{"input":[]}}`,
		`{"event":"tool.after","current":{"output":{}}}`, `{"event":"tool.before","current":7}`, `{`} {
		if c, err := validate.DecodeResponseContext([]byte(text)); err == nil {
			t.Errorf("%s: accepted as %+v", text, c)
		}
	}
	for _, text := range []string{`{"interactive":1}`, `{"environment":{"A":1}}`, `{"requirements":{}}`, `{"manifest":{}}`, `[]`, `{`} {
		if c, err := validate.DecodeRegistrationContext([]byte(text)); err == nil {
			t.Errorf("%s: accepted as %+v", text, c)
		}
	}
	if _, err := validate.Message([]byte(intercept), validate.Any, validate.Options{Response: &validate.ResponseContext{Event: ahp.ToolBefore}}); err == nil {
		t.Error("the context of a response is accepted for a request")
	}
	if _, err := validate.Message([]byte(intercept), validate.Any, validate.Options{Registration: &validate.RegistrationContext{}}); err == nil {
		t.Error("the context of a registration is accepted for a request")
	}
}

func TestRegistrationContexts(t *testing.T) {
	authenticated := strings.Replace(strings.Replace(registered, `{"type":"stdio","command":"x","lifecycle":"persistent"}`, `{"type":"http","url":"https://a.example/"}`, 1),
		`"subscriptions"`, `"authentication":{"type":"bearer","tokenEnv":"T"},"subscriptions"`, 1)
	rows := strings.Replace(manifest, `"events":[]`, `"events":[{"event":"tool.before","modes":["intercept"],"capabilities":{"effects":["deny","modify"],"modify":{"input":{"replace":true,"merge":false}}}}]`, 1)
	tests := []struct {
		name, text, context string
		pointers            string // of the findings
	}{
		{"nothing", registered, `{}`, ""},
		{"a credential", authenticated, `{"environment":{"T":"x"}}`, ""},
		{"no credential", authenticated, `{"environment":{"U":"x"}}`, "/hooks/0/authentication/tokenEnv"},
		{"an empty credential", authenticated, `{"environment":{"T":""}}`, "/hooks/0/authentication/tokenEnv"},
		{"somebody to ask", registered, `{"interactive":true,"requirements":[{"event":"tool.before","mode":"intercept","effects":["ask"]}]}`, ""},
		{"nobody to ask", registered, `{"interactive":false,"requirements":[{"event":"tool.before","mode":"intercept","effects":["deny","ask"]}]}`, "/requirements/0/effects/1"},
		{"no such event", registered, `{"requirements":[{"event":"tool.x"}]}`, "/requirements/0/event"},
		{"no such mode", registered, `{"requirements":[{"event":"tool.before","mode":"x"}]}`, "/requirements/0/mode"},
		{"an observed event", registered, `{"requirements":[{"event":"session.end","mode":"intercept"}]}`, "/requirements/0/event"},
		{"effects of an observation", registered, `{"requirements":[{"event":"tool.after","mode":"observe","effects":["message"]}]}`, "/requirements/0/effects"},
		{"an observation", registered, `{"requirements":[{"event":"session.end","mode":"observe"}]}`, ""},
		{"no such effect", registered, `{"requirements":[{"event":"tool.before","effects":["com.example.x","Deny"]}]}`, "/requirements/0/effects/0 /requirements/0/effects/1"},
		{"an effect of another event", registered, `{"requirements":[{"event":"tool.after","effects":["deny"]}]}`, "/requirements/0/effects/0"},
		{"a target", registered, `{"requirements":[{"event":"tool.before","effects":["modify"],"modify":{"input":{"merge":true}}}]}`, ""},
		{"no such target", registered, `{"requirements":[{"event":"tool.before","effects":["modify"],"modify":{"x/y":{"replace":true}}}]}`, "/requirements/0/modify/x~1y"},
		{"a flow", registered, `{"requirements":[{"event":"turn.finish.before","effects":["flow"],"flow":{"operations":["stop","continue"]}}]}`, ""},
		{"a flow of another event", registered, `{"requirements":[{"event":"tool.before","effects":["flow"],"flow":{"operations":["continue"]}}]}`, "/requirements/0/flow/operations/0"},
		{"a delivery", registered, `{"requirements":[{"event":"tool.before","effects":["inject"],"inject":{"context":{"deliverAt":["now","later"]}}}]}`, "/requirements/0/inject/context/deliverAt/1"},
		{"a manifest without the event", registered, `{"manifest":` + manifest + `}`, "/hooks/0/subscriptions/0"},
		{"a manifest with it", registered, `{"manifest":` + rows + `}`, ""},
		{"a manifest without the transport", authenticated, `{"environment":{"T":"x"},"manifest":` + rows + `}`, "/hooks/0/transport/type /hooks/0/authentication/type"},
		{"beyond the manifest", registered, `{"interactive":true,"manifest":` + rows + `,"requirements":[{"event":"tool.before","effects":["ask","modify"],"modify":{"input":{"merge":true}}},{"event":"tool.after"}]}`,
			"/requirements/0/effects/0 /requirements/0/modify/input/merge /requirements/1/event"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := validate.DecodeRegistrationContext([]byte(tt.context))
			if err != nil {
				t.Fatal(err)
			}
			r, err := validate.Message([]byte(tt.text), validate.Registration, validate.Options{Registration: c})
			if err != nil {
				t.Fatal(err)
			}
			var at []string
			for _, f := range r.Findings {
				at = append(at, f.Pointer)
			}
			if got := strings.Join(at, " "); got != tt.pointers {
				t.Errorf("got %s, want findings at %q", list(r.Findings), tt.pointers)
			}
		})
	}
}
