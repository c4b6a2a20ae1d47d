package ahp_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
)

func TestCheckMessage(t *testing.T) {
	for text, pointer := range map[string]string{
		`{"jsonrpc":"2.0","id":"a","method":"m","params":{}}`:                          "valid",
		`{"jsonrpc":"2.0","id":1.0,"method":"m","params":{"a":[]},"x":1}`:              "valid",
		`{"jsonrpc":"2.0","method":"m","params":{}}`:                                   "valid",
		`{"jsonrpc":"2.0","id":"a","result":{}}`:                                       "valid",
		`{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":""}}`:                  "valid",
		`{"jsonrpc":"2.0","id":2,"error":{"code":-32003.0,"message":"m","data":null}}`: "valid",
		`{"jsonrpc":"2.0","id":null,"method":"m","params":{}}`:                         "",
		`{"jsonrpc":"2.0","id":"a","method":"m"}`:                                      "",
		`{"jsonrpc":"2.0","id":"a","method":"m","params":[]}`:                          "/params",
		`{"jsonrpc":"2.0","id":"a","method":1,"params":{}}`:                            "/method",
		`{"jsonrpc":"2.0","id":"a","method":"","params":{}}`:                           "/method",
		`{"jsonrpc":"2.0","id":"","method":"m","params":{}}`:                           "/id",
		`{"jsonrpc":"2.0","id":true,"method":"m","params":{}}`:                         "/id",
		`{"jsonrpc":"2.0","id":"a","method":"m","params":{},"result":{}}`:              "",
		`{"jsonrpc":"2.0","id":"a","result":{},"error":{"code":1,"message":"m"}}`:      "",
		`{"jsonrpc":"2.0","id":"a","result":null}`:                                     "/result",
		`{"jsonrpc":"2.0","id":"a","result":[]}`:                                       "/result",
		`{"jsonrpc":"2.0","id":null,"result":{}}`:                                      "",
		`{"jsonrpc":"2.0","result":{}}`:                                                "",
		`{"jsonrpc":"2.0","error":{"code":1,"message":"m"}}`:                           "",
		`{"jsonrpc":"2.0","id":"a","error":{"code":true,"message":"m"}}`:               "/error/code",
		`{"jsonrpc":"2.0","id":"a","error":{"code":1.5,"message":"m"}}`:                "/error/code",
		`{"jsonrpc":"2.0","id":"a","error":{"code":1,"message":null}}`:                 "/error/message",
		`{"jsonrpc":"2.0","id":"a","error":"m"}`:                                       "/error",
		`{"jsonrpc":"2.0","id":"a"}`:                                                   "",
		`{"jsonrpc":2.0,"id":"a","result":{}}`:                                         "/jsonrpc",
		`{"id":"a","result":{}}`:                                                       "",
		`[{"jsonrpc":"2.0","id":"a","result":{}}]`:                                     "",
		`{"jsonrpc":"2.0","id":"a","id":"a","result":{}}`:                              "/id",
		`{"jsonrpc":"2.0","id":"a","result":{"a":1,"a":2}}`:                            "/result/a",
	} {
		err := ahp.CheckMessage([]byte(text))
		if pointer == "valid" {
			if err != nil {
				t.Errorf("%s: %v", text, err)
			}
			continue
		}
		var e *ahp.Error
		if !errors.As(err, &e) || e.Pointer != pointer || e.Kind != ahp.KindEnvelope && e.Kind != ahp.KindSyntax || e.Offset < 0 {
			t.Errorf("%s: got %v, want a fault of the envelope at %q", text, err, pointer)
		}
	}
}

// TestLiteralSecretsAreLint holds that a literal secret is a matter of the linter
// and not of the shape, and that the linter finds each one where it stands.
func TestLiteralSecretsAreLint(t *testing.T) {
	text := `{"protocolVersion":"draft","hooks":[{"id":"com.example.a","transport":{"type":"http","url":"https://a.example/"},` +
		`"authentication":{"type":"bearer","tokenEnv":"T","token":"abc"},"password":"d\u0065f","subscriptions":[{"events":["tool.after"],"mode":"observe","content":{"default":"body"}}]}]}`
	if _, err := ahp.DecodeRegistrationShape([]byte(text)); err != nil {
		t.Error(err)
	}
	found := ahp.LintSecrets([]byte(text))
	if len(found) != 2 || found[0].Pointer != "/hooks/0/authentication/token" || found[1].Pointer != "/hooks/0/password" {
		t.Fatalf("found %v", found)
	}
	for i, value := range []string{`"abc"`, `"d\u0065f"`} {
		if at := found[i].Offset; !strings.HasPrefix(text[at:], value) {
			t.Errorf("%s is looked for at %q", value, text[at:at+10])
		}
	}
	if _, err := ahp.DecodeRegistration([]byte(text)); !errors.As(err, new(*ahp.Error)) {
		t.Errorf("got %v", err)
	}
	if found := ahp.LintSecrets([]byte("[" + strings.Repeat(`{"password":"x"},`, 5000) + "{}]")); len(found) != 100 {
		t.Errorf("%d findings in a hostile text", len(found))
	}
	if found := ahp.LintSecrets([]byte(text[:180])); len(found) != 1 {
		t.Errorf("in half of the text: %v", found)
	}
}
