package modeltest

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestStrictGemini: the server refuses what the API would refuse, or what would harm
// a session, and says so as the API does.
func TestStrictGemini(t *testing.T) {
	const (
		u    = `{"role":"user","parts":[{"text":"a"}]}`
		m    = `{"role":"model","parts":[{"text":"b"}]}`
		call = `{"role":"model","parts":[{"functionCall":{"id":"i","name":"f","args":{}}}]}`
		res  = `{"role":"user","parts":[{"functionResponse":{"id":"i","name":"f","response":{"output":"x"}}}]}`
	)
	contents := func(cs ...string) string { return `{"contents":[` + strings.Join(cs, ",") + `]}` }
	with := func(members string) string { return `{` + members + `,"contents":[` + u + `]}` }
	signed := strings.Replace(call, `}}]`, `},"thoughtSignature":"`+seal("k", "f")+`"}]`, 1)
	for _, c := range []struct {
		o          Options
		body, want string // want "" for a good one
	}{
		{Options{}, contents(u), ""},
		{Options{}, contents(u, m, u), ""},
		{Options{}, contents(u, call, res), ""},
		{Options{}, contents(u, call, strings.Replace(res, `}}}]`, `}}},{"inlineData":{"mimeType":"image/png","data":"AA"}}]`, 1)), ""},
		{Options{SealKey: "k", NeedReasoning: true}, contents(u, signed, res), ""},
		{Options{SealKey: "k", NeedReasoning: true}, contents(u, strings.Replace(signed, seal("k", "f"), UnsignedCall, 1), res), ""},
		{Options{}, with(`"systemInstruction":{"parts":[{"text":"s"}]},"tools":[{"functionDeclarations":[{"name":"f","parametersJsonSchema":{}}]}],"generationConfig":{"temperature":0}`), ""},
		{Options{}, with(`"generationConfig":{"responseMimeType":"application/json","responseJsonSchema":{}}`), ""},
		{Options{}, with(`"model":"m"`), "unknown member model"},
		{Options{}, with(`"tools":[]`), "empty list"},
		{Options{}, with(`"tools":[{"functionDeclarations":[{"name":"a b","parametersJsonSchema":{}}]}]`), `"a b"`},
		{Options{}, with(`"tools":[{"functionDeclarations":[{"name":"f","parameters":{}}]}]`), "parameters"},
		{Options{}, with(`"generationConfig":{"min_p":1}`), "min_p"},
		{Options{}, with(`"generationConfig":{"responseJsonSchema":{}}`), "MIME type"},
		{Options{}, with(`"generationConfig":{"responseMimeType":"application/json"},"tools":[{"functionDeclarations":[{"name":"f","parametersJsonSchema":{}}]}]`), "unsupported"},
		{Options{}, with(`"generationConfig":{"thinkingConfig":{"thinkingLevel":"low","thinkingBudget":1}}`), "only one"},
		{Options{}, with(`"systemInstruction":{"parts":[]}`), "one text"},
		{Options{}, contents(), "last content"},
		{Options{}, contents(u, m), "last content"},
		{Options{}, contents(m, u), "after a user"},
		{Options{}, contents(u, m, m, u), "after a user"},
		{Options{}, contents(`{"role":"tool","parts":[{"text":"a"}]}`), "unknown role"},
		{Options{}, contents(`{"role":"user","parts":[]}`), "no parts"},
		{Options{}, contents(`{"role":"user","parts":[{"text":""}]}`), "empty text"},
		{Options{}, contents(`{"role":"user","parts":[{"text":"a","thoughtSignature":"s"}]}`), "only the model"},
		{Options{}, contents(u, call, u), "empty text, or a text"},
		{Options{}, contents(u, call, `{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"AA"}}]}`), "1 calls before it have no answer"},
		{Options{}, contents(u, res), "no open call"},
		{Options{}, contents(u, call, strings.Replace(res, `"id":"i",`, "", 1)), "same id"},
		{Options{}, contents(u, call, strings.Replace(res, `"f"`, `"g"`, 1)), `answers "g"`},
		{Options{}, contents(u, call, strings.Replace(res, `"x"`, `1`, 1)), "one text"},
		{Options{}, contents(u, call, res, call, res), "used twice"},
		{Options{}, contents(u, strings.Replace(call, `{}`, `"{}"`, 1), res), "args is not an object"},
		{Options{}, contents(u, `{"role":"model","parts":[{"text":""}]}`, u), "empty text"},
		{Options{RefuseReasoning: true, SealKey: "k"}, contents(u, signed, res), "not supported"},
		{Options{SealKey: "other"}, contents(u, signed, res), "not valid"},
		{Options{NeedReasoning: true}, contents(u, call, res), "missing a thought_signature"},
	} {
		c.o.Turns = []Turn{{Text: "ok"}}
		s := Start(c.o)
		status, got := postGemini(t, s, c.body)
		v := strings.Join(s.Violations(), "\n")
		if c.want == "" && (status != 200 || v != "" || !strings.Contains(got, `"finishReason":"STOP"`)) {
			t.Errorf("%s: %d %q %s", c.body, status, v, got)
		}
		learned := strings.Contains(c.want, "not valid") || strings.Contains(c.want, "missing") // a client may have to find out
		if c.want != "" && (status != 400 || (v == "") != learned || !learned && !strings.Contains(v, c.want) || !strings.Contains(got, "INVALID_ARGUMENT")) {
			t.Errorf("%s: %d, violations %q, want %q: %s", c.body, status, v, c.want, got)
		}
		s.Close()
	}
}

func postGemini(t *testing.T, s *Server, body string) (int, string) {
	t.Helper()
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	c := &http.Client{Transport: tr, Timeout: 5 * time.Second}
	resp, err := c.Post(s.URL+"/models/m:streamGenerateContent?alt=sse", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}
