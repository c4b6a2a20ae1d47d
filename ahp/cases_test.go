package ahp_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/backend"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/ahp/transport"
	"github.com/abhed/abhed/internal/require"
)

// Tests that begin with a row's id hold what was seen to go wrong elsewhere; the
// siblings beside it are of the same kind.

// served starts a backend that denies everything, and returns what sends it a line
// and what reads its next one.
func served(t *testing.T) (send func(line string), next func() string) {
	t.Helper()
	in, toBackend := io.Pipe()
	fromBackend, out := io.Pipe()
	deny := backend.Func(func(context.Context, *ahp.Intercept) ([]ahp.Effect, error) {
		return []ahp.Effect{&ahp.Deny{Reason: "r"}}, nil
	})
	done := make(chan error, 1)
	go func() {
		done <- backend.New(deny, backend.Options{Manifest: ahp.NewManifest()}).ServeStdio(context.Background(), in, out)
		out.Close()
	}()
	t.Cleanup(func() {
		toBackend.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	lines := bufio.NewReader(fromBackend)
	send = func(line string) {
		if _, err := io.WriteString(toBackend, line+"\n"); err != nil {
			t.Error(err)
		}
	}
	next = func() string {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSuffix(line, "\n")
	}
	return send, next
}

func discover(id string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"hooks/capabilities","params":{"protocolVersion":"draft"}}`
}

// wantReply checks that a line is a response with exactly this id and, for a code
// that isn't 0, this error.
func wantReply(t *testing.T, line, id string, code int64) {
	t.Helper()
	p, err := ahp.Peek([]byte(line))
	if err != nil || !p.HasID || p.ID.String() != id {
		t.Errorf("got %s, want a reply to %s", line, id)
		return
	}
	_, err = ahp.DecodeManifestReply([]byte(line), p.ID)
	var rpc *ahp.RPCError
	if code == 0 && err != nil || code != 0 && (!errors.As(err, &rpc) || rpc.Code != code) {
		t.Errorf("got %s, %v, want code %d", line, err, code)
	}
}

func TestI188IDsKeepTheirType(t *testing.T) {
	send, next := served(t)
	ids := []string{`"1"`, `1`, `"a"`, `9007199254740993`, `-9007199254740993`, `1.0`, `1e2`, `"1.0"`, `"\u00e9"`, `123456789012345678901234567890`}
	go func() { // as fast as the pipe takes them
		for _, id := range ids {
			send(discover(id))
		}
	}()
	for _, id := range ids {
		want := id
		if id == `"\u00e9"` {
			want = `"é"` // the same text
		}
		wantReply(t, next(), want, 0)
	}
	for _, id := range []string{`1.5`, `true`, `[]`, `{}`, `""`} {
		go send(discover(id))
		wantReply(t, next(), "null", ahp.CodeInvalidRequest)
	}
	// The two don't cross, whoever of them asks.
	for _, pair := range [][2]string{{`1`, `"1"`}, {`"1"`, `1`}, {`1`, `1.5`}} {
		reply := `{"jsonrpc":"2.0","id":` + pair[0] + `,"result":{"protocolVersion":"draft","effects":[]}}`
		var e *ahp.Error
		_, err := ahp.DecodeEffectsReply([]byte(reply), mustID(t, pair[1]))
		if !errors.As(err, &e) || e.Kind != ahp.KindCorrelation {
			t.Errorf("a reply to %s was taken for one to %s: %v", pair[0], pair[1], err)
		}
	}
}

func mustID(t *testing.T, text string) ahp.ID {
	t.Helper()
	p, err := ahp.Peek([]byte(`{"id":` + text + `}`))
	if err != nil {
		t.Fatal(err)
	}
	return p.ID
}

// shell returns a transport to a shell script as a backend.
func shell(t *testing.T, lifecycle, script string) transport.Transport {
	t.Helper()
	require.Path(t, "sh")
	link, err := transport.Stdio(ahp.TransportConfig{Type: ahp.TransportStdio, Command: "sh", Args: []string{"-c", script}, Lifecycle: lifecycle}, transport.StdioOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = link.Close() })
	return link
}

// asked dispatches a tool.before to one backend with a deadline far away, and
// returns the trace of its answer and how long that took.
func asked(t *testing.T, link transport.Transport, policy ahp.FailurePolicy) (*harness.Outcome, time.Duration) {
	t.Helper()
	b := ahp.Backend{ID: "com.example.a", Transport: ahp.TransportConfig{Type: ahp.TransportStdio, Command: "x", Lifecycle: ahp.LifecyclePersistent},
		Subscriptions: []ahp.Subscription{ahptest.Intercept(policy, time.Minute, "tool.before")}}
	h, err := harness.New(&ahp.Registration{ProtocolVersion: ahp.Version, Hooks: []ahp.Backend{b}}, harness.Options{
		Manifest: ahp.NewManifest(ahp.NewManifestEvent(ahp.ToolBefore, ahp.ModeIntercept)),
		Open:     func(*ahp.Backend) (transport.Transport, error) { return link, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	e, err := ahp.DecodeEvent([]byte(eventText(ahp.ToolBefore, leastEvents[ahp.ToolBefore])))
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	out, err := h.Dispatch(t.Context(), e, ahp.NewCapabilities(e.Type, e.Type.Effects()...), nil, harness.DispatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return out, time.Since(began)
}

// wantFailure checks that an outcome is a failure of one of the classes, that the
// policy was applied, and that nobody waited for the deadline.
func wantFailure(t *testing.T, out *harness.Outcome, took time.Duration, classes ...ahp.FailureClass) {
	t.Helper()
	a := out.Trace[0]
	if a.Kind != ahp.AnswerFailure || took > 30*time.Second {
		t.Fatalf("after %v: %+v", took, a)
	}
	for _, c := range classes {
		if a.Failure.Class == c {
			if a.Policy == ahp.FailClosed && (out.Denial() == nil || !out.Denial().Synthetic) || a.Policy == ahp.FailOpen && !out.MayExecute() {
				t.Errorf("the policy %s was not applied: %+v", a.Policy, out.Outcome)
			}
			return
		}
	}
	t.Errorf("failed as %s, want %v", a.Failure.Class, classes)
}

func TestI189RepliesToNobody(t *testing.T) {
	for name, id := range map[string]string{"always 0": `0`, "always null": `null`, "the id as a number": `1`, "another text": `"f"`, "an empty text": `""`} {
		for _, lifecycle := range []string{ahp.LifecyclePersistent, ahp.LifecyclePerEvent} {
			t.Run(name+" "+lifecycle, func(t *testing.T) {
				script := `while read -r line; do echo '{"jsonrpc":"2.0","id":` + id + `,"result":{"protocolVersion":"draft","effects":[{"type":"allow"}]}}'; done`
				out, took := asked(t, shell(t, lifecycle, script), ahp.FailClosed)
				wantFailure(t, out, took, ahp.FailIDMismatch, ahp.FailMalformed)
			})
		}
	}
}

func TestI191ErrorWithoutID(t *testing.T) {
	for _, lifecycle := range []string{ahp.LifecyclePersistent, ahp.LifecyclePerEvent} {
		for code, class := range map[string]ahp.FailureClass{"-32700": ahp.FailRPCError, "-32001": ahp.FailVersion, "-32002": ahp.FailEvent} {
			script := `while read -r line; do echo '{"jsonrpc":"2.0","id":null,"error":{"code":` + code + `,"message":"m"}}'; done`
			for _, policy := range []ahp.FailurePolicy{ahp.FailClosed, ahp.FailOpen} {
				out, took := asked(t, shell(t, lifecycle, script), policy)
				// A process that stays may have meant another message: then the line is one
				// that answers nothing, which fails the request as well.
				classes := []ahp.FailureClass{class}
				if lifecycle == ahp.LifecyclePersistent {
					classes = append(classes, ahp.FailMalformed)
				}
				wantFailure(t, out, took, classes...)
			}
		}
	}
}

func TestI192WrongTypes(t *testing.T) {
	send, next := served(t)
	for _, row := range []struct {
		message, id string
		code        int64
	}{
		{`{"jsonrpc":"2.0","id":"a","method":"hooks/capabilities","params":"x"}`, `"a"`, ahp.CodeInvalidParams},
		{`{"jsonrpc":"2.0","id":2,"method":"hooks/capabilities","params":5}`, `2`, ahp.CodeInvalidParams},
		{`{"jsonrpc":"2.0","id":3,"method":"hooks/intercept","params":null}`, `3`, ahp.CodeInvalidParams},
		{`{"jsonrpc":"2.0","id":4,"method":"hooks/intercept","params":[]}`, `4`, ahp.CodeInvalidParams},
		{`{"jsonrpc":"2.0","id":5,"method":"hooks/intercept","params":{}}`, `5`, ahp.CodeInvalidParams},
		{`{"params":7,"method":"hooks/intercept","id":6,"jsonrpc":"2.0"}`, `6`, ahp.CodeInvalidParams},
		{`{"jsonrpc":"2.0","id":7,"method":1,"params":{}}`, `7`, ahp.CodeInvalidRequest},
		{`{"jsonrpc":"2.0","id":8,"params":{}}`, `8`, ahp.CodeInvalidRequest},
		{`{"jsonrpc":"2.0","id":9,"method":"hooks/capabilities"}`, `9`, ahp.CodeInvalidRequest},
		{`{"jsonrpc":2.0,"id":10,"method":"hooks/capabilities","params":{"protocolVersion":"draft"}}`, `10`, ahp.CodeInvalidRequest},
		{`{"jsonrpc":"2.0","id":11,"method":"hooks/x","params":[]}`, `11`, ahp.CodeMethodNotFound},
		{`[]`, `null`, ahp.CodeInvalidRequest},
		{`[` + discover(`12`) + `,1]`, `null`, ahp.CodeInvalidRequest},
		{`7`, `null`, ahp.CodeInvalidRequest},
		{`null`, `null`, ahp.CodeInvalidRequest},
		{`{"jsonrpc":"2.0","id":13,`, `null`, ahp.CodeParse},
	} {
		go send(row.message)
		wantReply(t, next(), row.id, row.code)
		go send(discover(`"still there"`))
		wantReply(t, next(), `"still there"`, 0)
	}
}

func TestI193TheIDIsTheMessages(t *testing.T) {
	send, next := served(t)
	event := eventText(ahp.ToolBefore, strings.Replace(leastEvents[ahp.ToolBefore], `"input":{}`, `"input":{"id":8,"x":"\"id\":9,"}`, 1))
	for _, text := range []string{
		`{"params":{"id":8,"protocolVersion":"draft"},"jsonrpc":"2.0","id":1203,"method":"hooks/capabilities"}`,
		`{"x":"\"id\":8","jsonrpc":"2.0","y":[{"id":8}],"id":1203,"method":"hooks/capabilities","params":{"protocolVersion":"draft","id":8}}`,
		`{"result":{"id":8},"jsonrpc":"2.0","id":1203,"params":{"id":8},"method":"hooks/x"}`,
	} {
		go send(text)
		if line := next(); !strings.Contains(line, `"id":1203,`) || strings.Contains(line, `"id":8`) {
			t.Errorf("%s is answered with %s", text, line)
		}
	}
	go send(`{"params":{"id":"8","protocolVersion":"draft","event":` + event + `,"capabilities":{"effects":["deny"]}},"id":"e","method":"hooks/intercept","jsonrpc":"2.0"}`)
	if effects, err := ahp.DecodeEffectsReply([]byte(next()), ahp.StringID("e")); err != nil || len(effects) != 1 {
		t.Errorf("%v, %v", effects, err)
	}
}

// TestI244NothingIsCut holds that no body reaches a backend in part: a message
// beyond the bound isn't sent and isn't read, and content that was left out says so.
func TestI244NothingIsCut(t *testing.T) {
	e, err := ahp.DecodeEvent([]byte(eventText(ahp.ToolBefore, leastEvents[ahp.ToolBefore])))
	if err != nil {
		t.Fatal(err)
	}
	e.Tool.Input = ahp.Raw(`{"a":"` + strings.Repeat("x", ahp.MaxMessageBytes) + `"}`)
	q := &ahp.Intercept{Event: e, Capabilities: *ahp.NewCapabilities(e.Type, ahp.EffectDeny)}
	if b, err := q.Encode(); err == nil {
		t.Errorf("a message of %d bytes was encoded", len(b))
	}
	if _, err := ahp.DecodeRequest([]byte(`{"x":"` + strings.Repeat("x", ahp.MaxMessageBytes) + `"}`)); err == nil {
		t.Error("a message beyond the bound was decoded")
	}
	whole := interceptText("", "")
	for n := range len(whole) {
		if _, err := ahp.DecodeRequest([]byte(whole[:n])); err == nil {
			t.Errorf("the first %d bytes of a message were accepted", n)
		}
	}
	for part, valid := range map[string]bool{
		`"selection":"body","text":"cut"`:                        true,
		`"selection":"body","gap":{"reason":"too large"}`:        true,
		`"selection":"metadata","size":99999999`:                 true,
		`"selection":"body"`:                                     false,
		`"selection":"body","text":"cut","size":99999999`:        false,
		`"selection":"body","text":"cut","gap":{"reason":"cut"}`: false,
		`"selection":"metadata","text":"cut"`:                    false,
		`"selection":"body","text":"cut","truncated":true`:       false,
		`"selection":"body","text":"cut","partial":true`:         false,
	} {
		text := eventText(ahp.ToolBefore, leastEvents[ahp.ToolBefore]+`,"items":[{"id":"i","kind":"text","mediaType":"text/plain",`+part+`}]`)
		if _, err := ahp.DecodeEvent([]byte(text)); (err == nil) != valid {
			t.Errorf("%s: %v", part, err)
		}
	}
}

// TestI245NothingElseIsAllow holds that what isn't the effect allow permits nothing:
// it is refused as a whole, so that the failure policy decides.
func TestI245NothingElseIsAllow(t *testing.T) {
	for _, result := range []string{`{}`, `null`, `true`, `[]`, `"allow"`, `{"result":null}`, `{"allow":"true"}`, `{"allow":true}`, `{"decision":"ALLOW "}`,
		`{"protocolVersion":"draft"}`, `{"protocolVersion":"draft","decision":"allow"}`, `{"protocolVersion":"draft","effects":null}`,
		`{"protocolVersion":"draft","effects":"allow"}`, `{"protocolVersion":"draft","effects":["allow"]}`, `{"protocolVersion":"draft","effects":[null]}`,
		`{"protocolVersion":"draft","effects":[{}]}`, `{"protocolVersion":"draft","effects":[{"type":"ALLOW"}]}`, `{"protocolVersion":"draft","effects":[{"type":"allow "}]}`,
		`{"protocolVersion":"draft","effects":[{"Type":"allow"}]}`, `{"protocolVersion":"draft","effects":[{"type":"permit"}]}`, `{"protocolVersion":"draft","effects":[{"type":"allow","reason":"r"}]}`,
		`{"protocolVersion":"draft","effects":[{"type":"allow"},{"type":"x"}]}`, `{"protocolVersion":"draft","Effects":[{"type":"allow"}]}`,
	} {
		link := transport.InProcess(func(context.Context, []byte) ([]byte, error) {
			return []byte(`{"jsonrpc":"2.0","id":"e","result":` + result + `}`), nil
		})
		out, took := asked(t, link, ahp.FailClosed)
		if out.Trace[0].Kind != ahp.AnswerFailure || out.MayExecute() || out.Permission != ahp.PermissionDeny {
			t.Errorf("%s after %v: %+v", result, took, out.Outcome)
		}
	}
	// An empty list abstains: it isn't a grant either (AHP-DEC-003).
	link := transport.InProcess(func(context.Context, []byte) ([]byte, error) {
		return []byte(`{"jsonrpc":"2.0","id":"e","result":{"protocolVersion":"draft","effects":[]}}`), nil
	})
	if out, _ := asked(t, link, ahp.FailClosed); out.Permission != ahp.PermissionNone {
		t.Errorf("nothing gives %s", out.Permission)
	}
}
