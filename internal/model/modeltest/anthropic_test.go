package modeltest

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// postMessages sends a request of the Messages API.
func postMessages(t *testing.T, s *Server, body string) (int, string) {
	t.Helper()
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/messages", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("x-api-key", "k")
	resp, err := (&http.Client{Transport: tr, Timeout: 5 * time.Second}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp.StatusCode, string(b)
}

const (
	mu   = `{"role":"user","content":[{"type":"text","text":"a"}]}`
	ma   = `{"role":"assistant","content":[{"type":"text","text":"b"}]}`
	mc   = `{"role":"assistant","content":[{"type":"tool_use","id":"i","name":"f","input":{}}]}`
	mr   = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"i","content":"r"}]}`
	mark = `"cache_control":{"type":"ephemeral"}`
)

func messagesBody(messages string) string {
	return `{"model":"m","stream":true,"max_tokens":9,"tools":[{"name":"f","input_schema":{}}],"messages":[` + messages + `]}`
}

// thinkingOf is a block of thinking that a server without a key has signed.
func thinkingOf(s string) string {
	return `{"type":"thinking","thinking":"` + s + `","signature":"` + seal("", s) + `"}`
}

// strictCases are requests and what is said of them, "" of a good one.
func strictCases() [][2]string {
	with := func(message, block string) string { return strings.Replace(message, `[{`, `[`+block+`,{`, 1) }
	on := func(messages string) string {
		return strings.Replace(messagesBody(messages), `"tools"`, `"thinking":{"type":"enabled","budget_tokens":8},"tools"`, 1)
	}
	return [][2]string{
		{messagesBody(mu), ""},
		{messagesBody(mu + "," + ma + "," + mu), ""},
		{messagesBody(mu + "," + mc + "," + mr + "," + ma + "," + mu), ""},
		{messagesBody(mu + "," + mc + "," + with(mr, `{"type":"tool_result","tool_use_id":"i"}`)), "no corresponding tool_use"},
		{messagesBody(mu + "," + mc + "," + with(mr, `{"type":"text","text":"x"}`)), "stands after"},
		{messagesBody(mu + "," + with(mc, thinkingOf("t")) + "," + mr), ""},
		{messagesBody(mu + "," + with(mc, strings.Replace(thinkingOf("t"), `"t"`, `"u"`, 1)) + "," + mr), "signature"},
		{messagesBody(mu + "," + strings.Replace(ma, `{"type":"text","text":"b"}`, thinkingOf("t"), 1) + "," + mu), "final block"},
		{messagesBody(``), "not the user's"},
		{messagesBody(mu + "," + ma), "not the user's"},
		{messagesBody(ma + "," + mu), "alternate"},
		{messagesBody(mu + "," + mu), "alternate"},
		{messagesBody(mu + "," + mc + "," + mu), "have no tool_result"},
		{messagesBody(mu + "," + ma + "," + mr), "no corresponding tool_use"},
		{messagesBody(mu + "," + mc + "," + mr + "," + mc + "," + mr), "used twice"},
		{messagesBody(mu + "," + strings.Replace(mc, `"i"`, `"a.b"`, 1) + "," + mr), `"a.b"`},
		{messagesBody(mu + "," + strings.Replace(mc, `{}`, `"{}"`, 1) + "," + mr), "valid dictionary"},
		{messagesBody(mu + "," + mc + "," + strings.Replace(mr, `"r"`, `" "`, 1)), "non-empty"},
		{messagesBody(mu + "," + mc + "," + strings.Replace(mr, `"r"`, `[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"x"}}],"is_error":true`, 1)), "is_error"},
		{messagesBody(mu + "," + mc + "," + strings.Replace(mr, `"r"`, `[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"x"}}]`, 1)), ""},
		{messagesBody(strings.Replace(mu, `"a"`, `""`, 1)), "empty"},
		{messagesBody(strings.Replace(mu, `{"type":"text","text":"a"}`, "", 1)), "non-empty content"},
		{messagesBody(with(mu, `{"type":"text_delta","text":"x"}`)), "text_delta"},
		{messagesBody(with(mu, `{"type":"text","text":"x","partial_json":""}`)), "partial_json"},
		{messagesBody(with(mu, strings.Repeat(`{"type":"text","text":"x",`+mark+`},`, 4)+`{"type":"text","text":"x"}`)), ""},
		{messagesBody(with(mu, strings.Repeat(`{"type":"text","text":"x",`+mark+`},`, 5)+`{"type":"text","text":"x"}`)), "maximum of 4"},
		{strings.Replace(messagesBody(mu), `"max_tokens":9,`, "", 1), "max_tokens: Field required"},
		{strings.Replace(messagesBody(mu), `"max_tokens":9,`, `"max_tokens":9,"seed":1,`, 1), "seed: Extra inputs"},
		{strings.Replace(messagesBody(mu), `"stream":true,`, "", 1), "stream"},
		{strings.Replace(messagesBody(mu), `"stream":true,`, `"stream":true,"system":[{"type":"text","text":""}],`, 1), "system.0"},
		{strings.Replace(messagesBody(mu), `{"name":"f","input_schema":{}}`, ``, 1), "empty list"},
		{strings.Replace(messagesBody(mu), `"name":"f"`, `"name":"a b"`, 1), `"a b"`},
		{strings.Replace(messagesBody(mu+","+mc+","+mr), `"tools":[{"name":"f","input_schema":{}}],`, "", 1), "must define tools"},
		{strings.Replace(messagesBody(mu), `"tools":[{"name":"f","input_schema":{}}],`, "", 1), ""},
		{on(mu), ""},
		{on(mu + "," + with(mc, thinkingOf("t")) + "," + mr), ""},
		{on(mu + "," + mc + "," + mr), "must begin with it"},
		{strings.Replace(on(mu), `"stream":true,`, `"stream":true,"temperature":1,`, 1), "temperature"},
		{strings.Replace(on(mu), `:8}`, `:9}`, 1), "must be greater"},
	}
}

func TestStrictMessages(t *testing.T) {
	for _, c := range strictCases() {
		body, want := c[0], c[1]
		s := Start(Options{APIKey: "k", Turns: []Turn{{Text: "ok"}}})
		status, got := postMessages(t, s, body)
		v := strings.Join(s.Violations(), "\n")
		if want == "" && (status != 200 || v != "" || !strings.Contains(got, "message_stop")) {
			t.Errorf("%s: %d %q %s", body, status, v, got)
		}
		seals := want == "signature" // refused, but no violation
		if want != "" && (status != 400 || !strings.Contains(got, "invalid_request_error") || strings.Contains(v, want) == seals || seals && !strings.Contains(got, want)) {
			t.Errorf("%s: %d, violations %q, want %q: %s", body, status, v, want, got)
		}
		s.Close()
	}
}

func TestMessagesInTheCommonForm(t *testing.T) {
	s := New(t, Turn{Text: "ok", Expect: "r"})
	body := `{"model":"m","stream":true,"max_tokens":9,"tools":[{"name":"f","input_schema":{}}],"system":[{"type":"text","text":"s",` + mark + `}],"messages":[` + mu + `,` + strings.Replace(mc, `[{`, `[`+thinkingOf("t")+`,{"type":"text","text":"b"},{`, 1) + `,` + mr + `]}`
	if status, got := postMessages(t, s, body); status != 200 {
		t.Fatal(got)
	}
	ms := s.Requests()[0].Messages
	var roles []string
	for _, m := range ms {
		roles = append(roles, m.Role)
	}
	if strings.Join(roles, " ") != "system user assistant tool" || ms[2].Text() != "b" || ms[2].ReasoningContent == nil || *ms[2].ReasoningContent != "t" || len(ms[2].ToolCalls) != 1 || *ms[3].ToolCallID != "i" {
		t.Errorf("%v %+v", roles, ms)
	}
	if status, got := postMessages(t, NewWith(t, Options{APIKey: "another"}), body); status != 401 || !strings.Contains(got, "authentication_error") {
		t.Errorf("%d %s", status, got)
	}
}
