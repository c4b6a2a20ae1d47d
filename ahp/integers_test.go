package ahp_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
)

// TestEveryIntegerMember holds §2 for each integer of the protocol: 1.0 is one, a
// boolean, a text and a fraction aren't. # stands for the number.
func TestEveryIntegerMember(t *testing.T) {
	decode := map[string]func([]byte) error{
		"event":        func(b []byte) error { _, err := ahp.DecodeEvent(b); return err },
		"request":      func(b []byte) error { _, err := ahp.DecodeRequest(b); return err },
		"manifest":     func(b []byte) error { _, err := ahp.DecodeManifest(b); return err },
		"registration": func(b []byte) error { _, err := ahp.DecodeRegistration(b); return err },
		"receipt":      func(b []byte) error { _, err := ahp.DecodeReceipt(b); return err },
		"message":      ahp.CheckMessage,
	}
	event := func(typ ahp.EventType, body string) string { return eventText(typ, body) }
	usage := func(member string) string {
		return event(ahp.ModelResponseAfter, `"model":{"id":"m","provider":"p"},"attempt":{"id":"a","number":1},"execution":{"status":"executed"},"items":[],"finishReason":"f",`+
			`"usage":{"kind":"amount","scope":"attempt","completeness":"complete","provenance":"provider","`+member+`":#}`)
	}
	caps := func(flow string) string {
		return `{"jsonrpc":"2.0","id":"e","method":"hooks/intercept","params":{"protocolVersion":"draft","event":` +
			event(ahp.TurnFinishBefore, `"turn":{"id":"t"},"outcome":"completed","continuationCount":0,"items":[]`) +
			`,"capabilities":{"effects":["flow"],"flow":{"operations":["continue"],` + flow + `}}}}`
	}
	limits := func(member string) string {
		return `{"events":[],"gaps":[],"transports":[],"authentication":[],"toolPaths":[],"contentCategories":[],"limits":{"` + member + `":#},` +
			`"managedPolicy":{"scopes":[],"disableable":true},"correlationIdentityFields":[]}`
	}
	subscription := func(rest string) string {
		return `{"protocolVersion":"draft","hooks":[{"id":"a.b","transport":{"type":"http","url":"https://a.example/"},"subscriptions":[{"events":["tool.before"],` +
			`"mode":"intercept","failurePolicy":"fail-open","content":{"default":"body"},` + rest + `}]}]}`
	}
	model := `"model":{"id":"m","provider":"p"},"attempt":{"id":"a","number":#},"params":{},"items":[]`
	docs := map[string][]string{
		"event": {
			event(ahp.ModelRequestBefore, model),
			event(ahp.TurnEnd, `"turn":{"id":"t"},"outcome":"completed","continuationCount":#,"items":[]`),
			event(ahp.ModelErrorEvent, `"model":{"id":"m","provider":"p"},"attempt":{"id":"a","number":1},"execution":{"status":"executed"},"error":{"class":"c","message":"m"},"latencyMs":#`),
			event(ahp.SessionEnd, `"session":{"id":"s"},"outcome":"completed","reason":"r","counters":{"a":#}`),
			event(ahp.ToolAfter, leastEvents[ahp.ToolAfter]+`,"durationMs":#`),
			event(ahp.ContextCompactBefore, `"trigger":"auto","items":[],"tokenCounts":{"before":#}`),
			event(ahp.ContextCompactAfter, `"summary":[],"removed":[],"execution":{"status":"executed"},"tokenCounts":{"after":#}`),
			event(ahp.ToolBefore, leastEvents[ahp.ToolBefore]+`,"items":[{"id":"i","kind":"text","mediaType":"text/plain","selection":"metadata","size":#}]`),
			usage("inputTokens"), usage("outputTokens"), usage("cacheReadTokens"), usage("cacheWriteTokens"),
		},
		"request": {
			caps(`"remainingContinuations":#,"continuationCount":0`), caps(`"remainingContinuations":1,"continuationCount":#`),
			caps(`"remainingContinuations":1,"continuationCount":0,"maxContinuations":#`),
		},
		"manifest": {limits("maxUploadBytes"), limits("maxContinuations"), limits("minTimeoutMs"), limits("maxTimeoutMs")},
		"registration": {
			subscription(`"timeoutMs":#`), subscription(`"timeoutMs":1,"upload":{"endpoint":"https://a.example/","timeoutMs":#,"maxBytes":0}`),
			subscription(`"timeoutMs":1,"upload":{"endpoint":"https://a.example/","timeoutMs":1,"maxBytes":#}`),
		},
		"receipt": {`{"ref":"r","size":#,"sha256":"` + strings.Repeat("0", 64) + `"}`},
		"message": {`{"jsonrpc":"2.0","id":1,"error":{"code":#,"message":"m"}}`, `{"jsonrpc":"2.0","id":#,"result":{}}`},
	}
	for kind, list := range docs {
		for _, doc := range list {
			for _, n := range []string{"1", "1.0", "10e-1", "0.1e1", "1.000"} {
				if err := decode[kind]([]byte(strings.Replace(doc, "#", n, 1))); err != nil {
					t.Errorf("%s as %s: %v", n, kind, err)
				}
			}
			for _, n := range []string{"1.5", "true", "false", "null", "[1]", "{}", "01", "+1", "1.", "NaN"} {
				if decode[kind]([]byte(strings.Replace(doc, "#", n, 1))) == nil {
					t.Errorf("accepted %s in %s", n, doc)
				}
			}
			if !strings.Contains(doc, `"id":#`) && decode[kind]([]byte(strings.Replace(doc, "#", `"1"`, 1))) == nil {
				t.Errorf("accepted a text in %s", doc)
			}
		}
	}
}

// TestLongIntegerCostsLittle holds that a number of many digits with an exponent is
// refused without being written out.
func TestLongIntegerCostsLittle(t *testing.T) {
	reply := []byte(`{"jsonrpc":"2.0","id":"e","error":{"code":` + strings.Repeat("1", 1<<20) + `e400,"message":"m"}}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := ahp.DecodeEffectsReply(reply, ahp.StringID("e"))
	runtime.ReadMemStats(&after)
	if err == nil || ahp.ReplyFailure(err).Class != ahp.FailMalformed {
		t.Errorf("%v", err)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20 {
		t.Errorf("%d bytes were allocated for a reply of %d", used, len(reply))
	}
}
