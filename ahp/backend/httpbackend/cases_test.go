package httpbackend_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/backend"
	"github.com/abhed/abhed/ahp/backend/httpbackend"
)

// post sends one message over a connection and returns status and body.
func post(t *testing.T, s *httptest.Server, msg string) (int, string) {
	t.Helper()
	resp, err := s.Client().Post(s.URL, "application/json", strings.NewReader(msg))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// TestI192WrongParams holds that params, methods and frames of the wrong type are
// answered with the right code and the right id, and that the server goes on.
func TestI192WrongParams(t *testing.T) {
	s := httptest.NewServer(httpbackend.Handler(backend.New(backend.Func(deny), backend.Options{}), httpbackend.Options{}))
	defer s.Close()
	good, err := (&ahp.Intercept{Event: ahptest.ToolBefore("e", `{}`), Capabilities: *ahptest.FullCapabilities(ahp.ToolBefore)}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ msg, id, code string }{
		{`{"jsonrpc":"2.0","id":"a","method":"hooks/intercept","params":"x"}`, `"a"`, "-32602"},
		{`{"jsonrpc":"2.0","id":"b","method":"hooks/intercept","params":5}`, `"b"`, "-32602"},
		{`{"jsonrpc":"2.0","id":"c","method":"hooks/intercept","params":null}`, `"c"`, "-32602"},
		{`{"jsonrpc":"2.0","id":"d","method":"hooks/intercept","params":[]}`, `"d"`, "-32602"},
		{`{"jsonrpc":"2.0","id":"e","method":"hooks/capabilities","params":[]}`, `"e"`, "-32602"},
		{`{"jsonrpc":"2.0","id":7,"method":1,"params":{}}`, `7`, "-32600"},
		{`{"jsonrpc":"2.0","id":8,"method":"hooks/nothing","params":{}}`, `8`, "-32601"},
		{`[]`, `null`, "-32600"},
		{`[` + string(good) + `,5]`, `null`, "-32600"},
		{`5`, `null`, "-32600"},
	} {
		status, body := post(t, s, tt.msg)
		if status != 200 || !strings.Contains(body, `"id":`+tt.id+`,`) || !strings.Contains(body, `"code":`+tt.code+`,`) || strings.Contains(body, `"result"`) {
			t.Errorf("%.80s: %d %s, want 200 with the id %s and the code %s", tt.msg, status, body, tt.id, tt.code)
		}
		if status, body := post(t, s, string(good)); status != 200 || !strings.Contains(body, `"type":"deny"`) {
			t.Fatalf("after %.80s: %d %s", tt.msg, status, body)
		}
	}
}

// TestI192Notifications is the same for what has no id, which never gets a body:
// 202 where it was accepted, 400 where not (§29, A14).
func TestI192Notifications(t *testing.T) {
	s := httptest.NewServer(httpbackend.Handler(backend.New(backend.Func(deny), backend.Options{}), httpbackend.Options{}))
	defer s.Close()
	good, err := (&ahp.Observe{Event: ahptest.ToolBefore("e", `{}`)}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	for msg, want := range map[string]int{
		string(good): 202,
		`{"jsonrpc":"2.0","method":"hooks/observe","params":"x"}`:                                           400,
		`{"jsonrpc":"2.0","method":"hooks/observe","params":5}`:                                             400,
		`{"jsonrpc":"2.0","method":"hooks/observe","params":null}`:                                          400,
		`{"jsonrpc":"2.0","method":"hooks/observe","params":[]}`:                                            400,
		`{"jsonrpc":"2.0","method":"hooks/observe"}`:                                                        400,
		`{"jsonrpc":"2.0","method":"hooks/nothing","params":{}}`:                                            400,
		`{"jsonrpc":"1.0","method":"hooks/observe","params":{}}`:                                            400,
		string(bytes.Replace(good, []byte(`"draft"`), []byte(`"2031-01-01"`), 1)):                           400,
		string(bytes.Replace(good, []byte(`"jsonrpc":"2.0",`), []byte(`"jsonrpc":"2.0","id":"e",`), 1)):     400,
		string(bytes.Replace(good, []byte(`"jsonrpc":"2.0",`), []byte(`"jsonrpc":"2.0","id":null,`), 1)):    400,
		string(bytes.Replace(good, []byte(`"path"`), []byte(`"lane"`), 1)):                                  400,
		string(bytes.Replace(good, []byte(`"tool.before"`), []byte(`"tool.error"`), 1)):                     400,
		`{"jsonrpc":"2.0","method":"hooks/observe","params":{`:                                              400,
		string(append([]byte("\xef\xbb\xbf"), good...)):                                                     400,
		string(bytes.Replace(good, []byte(`"draft"`), []byte(`"draft","protocolVersion":"2031-01-01"`), 1)): 400,
	} {
		if status, body := post(t, s, msg); status != want || body != "" {
			t.Errorf("%.100s: %d %q, want %d without a body", msg, status, body, want)
		}
	}
}

// TestHTTP2 holds that both versions of HTTP work.
func TestHTTP2(t *testing.T) {
	s := httptest.NewUnstartedServer(httpbackend.Handler(backend.New(backend.Func(deny), backend.Options{}), httpbackend.Options{}))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	note, err := (&ahp.Observe{Event: ahptest.ToolBefore("e", `{}`)}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.Client().Post(s.URL, "application/json", bytes.NewReader(note))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.ProtoMajor != 2 || resp.StatusCode != http.StatusAccepted {
		t.Errorf("%s, %s", resp.Proto, resp.Status)
	}
}
