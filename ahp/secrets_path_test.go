package ahp

import "testing"

// TestPathsAreNoSecrets holds that a folder with a random name may be registered,
// and that the same text elsewhere may not.
func TestPathsAreNoSecrets(t *testing.T) {
	const random = "Zq8fT2mXw7Lr4KpVb9Ns3HdYc6Gj1Qe5"
	for command, ok := range map[string]bool{"/tmp/" + random + "/policy": true, "./" + random: true, random: false, "/tmp/ghp_0123456789abcdef0123": false} {
		doc := `{"protocolVersion":"draft","hooks":[{"id":"org.test.a","transport":{"type":"stdio","command":"` + command + `","lifecycle":"persistent"},
"subscriptions":[{"events":["tool.before"],"mode":"intercept","timeoutMs":1,"failurePolicy":"fail-open","content":{"default":"body"}}]}]}`
		if _, err := DecodeRegistration([]byte(doc)); (err == nil) != ok {
			t.Errorf("command %q: %v", command, err)
		}
	}
}
