package modeltest

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// postTo sends a request to a path of the server.
func postTo(t *testing.T, s *Server, path, body string) (int, string) {
	t.Helper()
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	resp, err := (&http.Client{Transport: tr}).Post(s.URL+path, "application/json", strings.NewReader(body))
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

func TestStrictResponses(t *testing.T) {
	in := func(items string) string {
		return `{"model":"m","stream":true,"store":false,"input":[` + items + `]}`
	}
	const (
		u   = `{"type":"message","role":"user","content":[{"type":"input_text","text":"a"}]}`
		a   = `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"b"}]}`
		c   = `{"type":"function_call","call_id":"i","name":"f","arguments":"{}"}`
		out = `{"type":"function_call_output","call_id":"i","output":"x"}`
		pic = `{"type":"input_image","image_url":"data:image/png;base64,AA"}`
	)
	r := `{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"` + seal("", "rs_1hm") + `"}`
	cases := []struct{ body, want string }{ // want "" for a good one
		{in(u), ""},
		{in(u + "," + a + "," + u), ""},
		{in(u + "," + r + "," + a + "," + c + "," + out), ""},
		{in(u + "," + c + "," + strings.Replace(out, `"x"`, `[{"type":"input_text","text":"x"},`+pic+`]`, 1)), ""},
		{in(`{"type":"message","role":"user","content":[` + pic + `]}`), ""},
		{`{"model":"m","stream":true,"store":false,"instructions":"s","input":[` + u + `],"tools":[{"type":"function","name":"f","strict":false,"parameters":{}}]}`, ""},
		{`{"model":"m","stream":true,"store":false,"input":[` + u + `],"tools":[{"type":"function","name":"f","parameters":{}}]}`, "strict"},
		{`{"model":"m","stream":true,"input":[` + u + `]}`, "store"},
		{`{"model":"m","store":false,"input":[` + u + `]}`, "stream"},
		{`{"model":"m","stream":true,"store":false}`, "no member input"},
		{in(""), "last item"},
		{in(u + "," + a), "last item"},
		{in(u + "," + c), "no answer"},
		{in(u + "," + out), "answers no open call"},
		{in(u + "," + c + "," + c + "," + out), "used twice"},
		{in(u + "," + c + "," + strings.Replace(out, `"x"`, `7`, 1)), "neither text nor"},
		{in(u + "," + strings.Replace(c, `"{}"`, `"{"`, 1) + "," + out), "arguments"},
		{in(u + "," + strings.Replace(c, `"f"`, `"f g"`, 1) + "," + out), `"f g"`},
		{in(u + "," + strings.Replace(a, "output_text", "input_text", 1) + "," + u), "input_text"},
		{in(`{"type":"message","role":"user","content":[]}`), "no content"},
		{in(`{"type":"message","role":"user","content":[{"type":"input_text","text":""}]}`), "empty"},
		{in(u + "," + r + "," + u), "without its required following item"},
		{in(u + "," + a + "," + u + "," + r), "no following item"},
		{in(u + `,{"type":"novel"}`), "unknown type"},
	}
	for _, k := range cases {
		s := Start(Options{Turns: []Turn{{Text: "ok"}}})
		status, got := postTo(t, s, "/responses", k.body)
		v := strings.Join(s.Violations(), "\n")
		if k.want == "" && (status != 200 || v != "" || !strings.Contains(got, "response.completed")) {
			t.Errorf("%s: %d %q %s", k.body, status, v, got)
		}
		if k.want != "" && (status != 400 || !strings.Contains(v, k.want)) {
			t.Errorf("%s: %d, violations %q, want %q", k.body, status, v, k.want)
		}
		s.Close()
	}
	// A seal that isn't the server's, or whose text was changed, is refused but is no
	// violation; what options ask for is one.
	s := Start(Options{NeedReasoning: true, Turns: make([]Turn, 4)})
	defer s.Close()
	for _, bad := range []string{strings.Replace(r, "hm", "HM", 1), strings.Replace(r, `"encrypted_content":"`, `"encrypted_content":"A`, 1)} {
		if status, got := postTo(t, s, "/responses", in(u+","+bad+","+c+","+out)); status != 400 || !strings.Contains(got, "invalid_encrypted_content") || len(s.Violations()) != 0 {
			t.Errorf("%d %s, violations %q", status, got, s.Violations())
		}
	}
	if status, _ := postTo(t, s, "/responses", in(u+","+c+","+out)); status != 400 || len(s.Violations()) != 1 {
		t.Errorf("a call without its reasoning: %d, violations %q", status, s.Violations())
	}
}
