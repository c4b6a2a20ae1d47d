package modeltest

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// post sends a request and returns status and body; err is that of reading.
func post(t *testing.T, s *Server, body string) (int, string, error) {
	t.Helper()
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	c := &http.Client{Transport: tr, Timeout: 5 * time.Second}
	resp, err := c.Post(s.URL+"/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

func body(messages string) string { return `{"model":"m","stream":true,"messages":[` + messages + `]}` }

const (
	u  = `{"role":"user","content":"a"}`
	a  = `{"role":"assistant","content":"b"}`
	ac = `{"role":"assistant","content":null,"tool_calls":[{"id":"i","type":"function","function":{"name":"f","arguments":"{}"}}]}`
	tr = `{"role":"tool","tool_call_id":"i","content":""}`
)

func TestStrictRequests(t *testing.T) {
	cases := []struct {
		body, want string // want "" for a good one
	}{
		{body(u), ""},
		{body(`{"role":"system","content":"s"},` + u + "," + a + "," + u), ""},
		{body(u + "," + ac + "," + tr), ""},
		{body(u + "," + ac + "," + tr + "," + u), ""},
		{`{"model":"m","stream":true,"messages":[` + u + `],"temperature":0,"tools":[{"type":"function","function":{"name":"f","parameters":{}}}]}`, ""},
		{`{`, "too early"},
		{`{"model":"m","stream":true,"messages":[],"messages":[]}`, "twice"},
		{`{"model":"m","stream":true}`, "no member messages"},
		{`{"model":"","stream":true,"messages":[` + u + `]}`, "model is empty"},
		{`{"model":"m","messages":[` + u + `]}`, "stream"},
		{`{"model":"m","stream":true,"messages":[` + u + `],"tools":[]}`, "empty list"},
		{`{"model":"m","stream":true,"messages":[` + u + `],"tools":[{"type":"function","function":{"name":"a b","parameters":{}}}]}`, `"a b"`},
		{`{"model":"m","stream":true,"messages":[` + u + `],"tools":[{"type":"function","function":{"name":"f","parameters":[]}}]}`, "parameters"},
		{body(``), "last message"},
		{body(u + "," + a), "last message"},
		{body(a + "," + u), `follows ""`},
		{body(u + "," + a + "," + a + "," + u), `follows "assistant"`},
		{body(u + `,{"role":"system","content":"s"}`), "must be first"},
		{body(`{"role":"user","content":""}`), "no text"},
		{body(`{"role":"user","content":[{"type":"text","text":"x"}]}`), "no text"},
		{body(u + `,{"role":"assistant","content":""},` + u), "neither text nor calls"},
		{body(u + `,` + strings.Replace(ac, "null", `""`, 1) + `,` + tr), "empty text"},
		{body(u + `,` + strings.Replace(ac, `"content":null,`, "", 1) + `,` + tr), "no content member"},
		{body(u + "," + ac), "last message"},
		{body(u + "," + strings.Replace(ac, `}]`, `},{"id":"j","type":"function","function":{"name":"f","arguments":"{}"}}]`, 1) + "," + tr), "have no answer"},
		{body(u + "," + ac + "," + u), "before it have no answer"},
		{body(u + "," + ac + "," + tr + "," + tr), "answers no open call"},
		{body(u + "," + ac + "," + tr + "," + ac + "," + tr), "used twice"},
		{body(u + "," + strings.Replace(ac, `"{}"`, `"{"`, 1) + "," + tr), "arguments"},
		{body(u + "," + strings.Replace(ac, `"{}"`, `"[]"`, 1) + "," + tr), "arguments"},
		{body(u + "," + strings.Replace(ac, `"f"`, `"f g"`, 1) + "," + tr), `"f g"`},
		{body(u + "," + ac + "," + strings.Replace(tr, `""`, `null`, 1)), "content is not text"},
		{body(`{"role":"user","content":"a","delta":{}}`), "delta"},
		{body(`{"role":"robot","content":"a"}`), "unknown role"},
		{body(`{"role":"user","content":"a","reasoning_content":"x"}`), "only an assistant"},
	}
	for _, c := range cases {
		s := Start(Options{Turns: []Turn{{Text: "ok"}}})
		status, got, err := post(t, s, c.body)
		if err != nil {
			t.Error(err)
		}
		v := strings.Join(s.Violations(), "\n")
		if c.want == "" && (status != 200 || v != "" || !strings.Contains(got, "[DONE]")) {
			t.Errorf("%s: %d %q %s", c.body, status, v, got)
		}
		if c.want != "" && (status != 400 || !strings.Contains(v, c.want) || !strings.Contains(got, "invalid_request_error")) {
			t.Errorf("%s: %d, violations %q, want %q: %s", c.body, status, v, c.want, got)
		}
		s.Close()
	}
}

func TestReasoningRules(t *testing.T) {
	with := strings.Replace(ac, `"content":null`, `"content":null,"reasoning_content":"x"`, 1)
	for _, c := range []struct {
		o    Options
		call string
		want int
	}{
		{Options{}, ac, 200}, {Options{}, with, 200}, {Options{NeedReasoning: true}, with, 200}, {Options{NeedReasoning: true}, ac, 400},
		{Options{RefuseReasoning: true}, ac, 200}, {Options{RefuseReasoning: true}, with, 400},
	} {
		c.o.Turns = []Turn{{Text: "ok"}}
		s := Start(c.o)
		if status, got, _ := post(t, s, body(u+","+c.call+","+tr)); status != c.want {
			t.Errorf("%+v %s: %d %s", c.o, c.call, status, got)
		}
		s.Close()
	}
}

func TestScript(t *testing.T) {
	s := Start(Options{Turns: []Turn{{Expect: "zzz"}, {Text: "x", Expect: "a"}}})
	defer s.Close()
	if status, got, _ := post(t, s, body(u)); status != 400 || !strings.Contains(got, "zzz") {
		t.Errorf("unmet expectation: %d %s", status, got)
	}
	if s.Left() != 1 {
		t.Errorf("%d left", s.Left())
	}
	if status, _, err := post(t, s, body(u)); status != 200 || err != nil {
		t.Errorf("%d %v", status, err)
	}
	if status, got, _ := post(t, s, body(u)); status != 400 || !strings.Contains(got, "2 turns") {
		t.Errorf("beyond the end: %d %s", status, got)
	}
	if rs := s.Requests(); len(rs) != 3 || rs[2].Messages[0].Text() != "a" || len(s.Violations()) != 2 {
		t.Errorf("%d requests, violations %q", len(rs), s.Violations())
	}
	resp, err := http.Get(s.URL + "/models")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	if resp.StatusCode != 404 {
		t.Error(resp.Status)
	}
}

func TestTransportFaults(t *testing.T) {
	whole := string(Stream(Turn{Text: "hello", Usage: &Usage{}}))
	for name, c := range map[string]struct {
		f    Fault
		want string
		err  error
	}{
		"split": {SplitEvery(3), whole, nil},
		"at":    {SplitAt(5), whole, nil},
		"end":   {EndAt(10), whole[:10], nil},
		"cut":   {CutAt(10), whole[:10], io.ErrUnexpectedEOF},
		"cut 0": {CutAt(0), "", io.ErrUnexpectedEOF},
	} {
		s := New(t, Turn{Text: "hello", Usage: &Usage{}, Faults: []Fault{c.f}})
		if _, got, err := post(t, s, body(u)); got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %q %v", name, got, err)
		}
	}
	if _, _, err := post(t, &Server{URL: RefusedURL(t)}, body(u)); err == nil {
		t.Error("something listens on the refused URL")
	}
}

func TestCloseEndsAStall(t *testing.T) {
	s := Start(Options{Turns: []Turn{{Faults: []Fault{StallAt(10)}}}})
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	resp, err := (&http.Client{Transport: tr, Timeout: 5 * time.Second}).Post(s.URL+"/chat/completions", "application/json", strings.NewReader(body(u)))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.ReadFull(resp.Body, make([]byte, 10)); err != nil {
		t.Error(err)
	}
	s.Close()
	if b, err := io.ReadAll(resp.Body); err == nil || len(b) > 0 {
		t.Errorf("a stalled reply went on or ended well: %q %v", b, err)
	}
}
