package modelserver_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/abhed/abhed/e2e/modelserver"
	"github.com/abhed/abhed/internal/strictjson"
)

// talk is one API as its clients speak it: a request that offers the tool, with
// and without the result of a first call, and a request on the side.
type talk struct {
	api                 modelserver.API
	path, streamed      string
	first, second, side string
	// calls and stops are what an answer must hold for the call and for
	// the end of the conversation, beside the texts themselves.
	calls, stops string
}

func talks() []talk {
	const anthropicTool = `"tools":[{"name":"sh","input_schema":{"type":"object"}}]`
	const chatTool = `"tools":[{"type":"function","function":{"name":"sh"}}]`
	const responsesTool = `"tools":[{"type":"function","name":"sh"},{"type":"web_search"}]`
	const geminiTool = `"tools":[{"functionDeclarations":[{"name":"sh"}]}]`
	return []talk{
		{
			api: modelserver.Anthropic, path: "/v1/messages", streamed: "/v1/messages",
			first: `{"model":"m",STREAM` + anthropicTool + `,"messages":[{"role":"user","content":"hi"}]}`,
			second: `{"model":"m",STREAM` + anthropicTool + `,"messages":[{"role":"user","content":"hi"},{"role":"user","content":[` +
				`{"type":"tool_result","tool_use_id":"toolu_0_0","content":[{"type":"text","text":"made "},{"type":"text","text":"it"}]}]}]}`,
			side:  `{"model":"m","messages":[],"output_config":{"format":{"type":"json_schema","schema":SCHEMA}}}`,
			calls: `"stop_reason":"tool_use"`, stops: `"stop_reason":"end_turn"`,
		}, {
			api: modelserver.Chat, path: "/v1/chat/completions", streamed: "/v1/chat/completions",
			first:  `{"model":"m",STREAM` + chatTool + `,"messages":[{"role":"user","content":"hi"}]}`,
			second: `{"model":"m",STREAM` + chatTool + `,"messages":[{"role":"tool","tool_call_id":"call_0_0","content":"made it"}]}`,
			side:   `{"model":"m","messages":[],"response_format":{"json_schema":{"schema":SCHEMA}}}`,
			calls:  `"finish_reason":"tool_calls"`, stops: `"finish_reason":"stop"`,
		}, {
			api: modelserver.Responses, path: "/v1/responses", streamed: "/v1/responses",
			first:  `{"model":"m",STREAM` + responsesTool + `,"input":[{"role":"user","content":"hi"}]}`,
			second: `{"model":"m",STREAM` + responsesTool + `,"input":[{"type":"function_call_output","call_id":"call_0_0","output":"made it"}]}`,
			side:   `{"model":"m","input":"hi","text":{"format":{"type":"json_schema","schema":SCHEMA}}}`,
			calls:  `"call_id":"call_0_0"`, stops: `"status":"completed"`,
		}, {
			api: modelserver.Gemini, path: "/v1beta/models/m:generateContent", streamed: "/v1beta/models/m:streamGenerateContent",
			first:  `{` + geminiTool + `,"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`,
			second: `{` + geminiTool + `,"contents":[{"parts":[{"functionResponse":{"name":"sh","response":"made it"}}]}]}`,
			side:   `{"contents":[],"generationConfig":{"responseJsonSchema":SCHEMA}}`,
			calls:  `"functionCall"`, stops: `"finishReason":"STOP"`,
		},
	}
}

func newServer(t *testing.T) (*modelserver.Server, string) {
	t.Helper()
	s, err := modelserver.New([]modelserver.Turn{{Calls: []modelserver.Call{{Name: "sh", Args: `{"command":"make it"}`}}}, {Text: "All is done."}},
		modelserver.Options{MainTool: "sh"})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return s, server.URL
}

func post(t *testing.T, url, body string, more ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(more); i += 2 {
		req.Header.Set(more[i], more[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
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

// wellFormed fails unless an answer is JSON, or a stream of events each of which
// is.
func wellFormed(t *testing.T, answer string, stream bool) {
	t.Helper()
	if !stream {
		if err := strictjson.Check([]byte(answer), strictjson.Options{}); err != nil {
			t.Errorf("%v in %s", err, answer)
		}
		return
	}
	if !strings.HasSuffix(answer, "\n\n") {
		t.Errorf("the stream ends inside an event: %s", answer)
	}
	events := 0
	for block := range strings.SplitSeq(strings.TrimSuffix(answer, "\n\n"), "\n\n") {
		name, data, named := strings.Cut(block, "\n")
		if !named {
			name, data = "", block
		}
		data, is := strings.CutPrefix(data, "data: ")
		if !is {
			t.Errorf("no data in the event %q", block)
			continue
		}
		events++
		if data == "[DONE]" {
			continue
		}
		var fields struct {
			Type string `json:"type"`
		}
		if err := strictjson.Unmarshal([]byte(data), &fields, strictjson.Options{}); err != nil {
			t.Errorf("%v in %s", err, data)
		}
		if named && name != "event: "+fields.Type {
			t.Errorf("%q names an event of type %q", name, fields.Type)
		}
	}
	if events == 0 {
		t.Error("a stream of no events")
	}
}

// TestScript plays the script in each API, as a stream and whole.
func TestScript(t *testing.T) {
	for _, talk := range talks() {
		for _, stream := range []bool{false, true} {
			name, path, flag := string(talk.api), talk.path, ""
			if stream {
				name, path, flag = name+" streamed", talk.streamed, `"stream":true,`
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s, url := newServer(t)
				if s.Called() {
					t.Error("called before any request")
				}
				first := strings.Replace(talk.first, "STREAM", flag, 1)
				_, asked := post(t, url+path, first)
				_, again := post(t, url+path, first)
				_, ended := post(t, url+path, strings.Replace(talk.second, "STREAM", flag, 1))
				for _, answer := range []string{asked, ended} {
					wellFormed(t, answer, stream)
				}
				if asked != again {
					t.Errorf("the same request got %s and then %s", asked, again)
				}
				if !strings.Contains(asked, `"sh"`) || !strings.Contains(asked, "make it") || !strings.Contains(asked, talk.calls) {
					t.Errorf("no call in %s", asked)
				}
				if !strings.Contains(ended, "All is done.") || !strings.Contains(ended, talk.stops) || strings.Contains(ended, "make it") {
					t.Errorf("want the last turn, got %s", ended)
				}
				told := []string{"made it"}
				if talk.api == modelserver.Gemini {
					told = []string{`"made it"`} // what it is told is JSON
				}
				if diff := cmp.Diff(told, s.Told()); diff != "" {
					t.Errorf("what the model was told (-want +got):\n%s", diff)
				}
				last := s.Requests()[2]
				if !s.Called() || !last.Main || last.Turn != 1 || last.API != talk.api || last.Tools[0] != "sh" || last.Err != nil {
					t.Errorf("recorded %+v", last)
				}
			})
		}
	}
}

// TestSide has every API answer what is not of the conversation.
func TestSide(t *testing.T) {
	const schema = `{"type":"object","properties":{"isNew":{"type":["boolean","null"]},"n":{"type":"INTEGER"},"l":{"type":"array"},` +
		`"mode":{"enum":["one","two"]},"any":{"anyOf":[{"type":"string"}]},"fixed":{"const":7}}}`
	const fits = `{"isNew":false,"n":1,"l":[],"mode":"one","any":"ok","fixed":7}`
	for _, talk := range talks() {
		t.Run(string(talk.api), func(t *testing.T) {
			t.Parallel()
			s, url := newServer(t)
			_, plain := post(t, url+talk.path, strings.Replace(talk.side, "SCHEMA", "null", 1))
			if !strings.Contains(plain, "a title") {
				t.Errorf("want a short text, got %s", plain)
			}
			_, shaped := post(t, url+talk.path, strings.Replace(talk.side, "SCHEMA", schema, 1))
			if !strictjson.Equal([]byte(textIn(t, shaped)), []byte(fits)) {
				t.Errorf("got %s, want a text that is %s", shaped, fits)
			}
			_, other := post(t, url+talk.path, strings.NewReplacer("STREAM", "", `"sh"`, `"other"`).Replace(talk.first))
			if !strings.Contains(other, "a title") {
				t.Errorf("without the main tool: want a short text, got %s", other)
			}
			if s.Called() || len(s.Requests()) != 3 {
				t.Errorf("requests on the side count as the conversation: %+v", s.Requests())
			}
		})
	}
}

// textIn returns the answer's text, which is its only string that is an object.
func textIn(t *testing.T, answer string) string {
	t.Helper()
	_, rest, found := strings.Cut(answer, `"{`)
	text, _, ended := strings.Cut(rest, `}"`)
	var out string
	if err := strictjson.Unmarshal([]byte(`"{`+text+`}"`), &out, strictjson.Options{}); err != nil || !found || !ended {
		t.Fatalf("no object as a text in %s", answer)
	}
	return out
}

// TestMeta asks what clients ask beside answers.
func TestMeta(t *testing.T) {
	s, url := newServer(t)
	for path, want := range map[string]string{"/v1/models": `"mock-model"`, "/v1beta/models": `"models/mock-model"`, "/health": "{}"} {
		resp, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s: got %s, %v; want %s", path, b, err, want)
		}
	}
	if _, answer := post(t, url+"/v1/messages/count_tokens", `{}`); !strings.Contains(answer, `"input_tokens":100`) {
		t.Errorf("tokens: %s", answer)
	}
	if s.Called() || len(s.Requests()) != 4 {
		t.Errorf("%+v", s.Requests())
	}
}

// TestRefused sends bodies that can't be read.
func TestRefused(t *testing.T) {
	s, url := newServer(t)
	for i, c := range []struct{ body, coding, want string }{
		{`{"model":`, "", "/v1/messages"},
		{`{"model":"a","model":"b"}`, "", "model"},
		{`{}`, "zstd", `coding "zstd"`},
		{`{}`, "gzip", "gzip"},
	} {
		status, answer := post(t, url+"/v1/messages", c.body, "Content-Encoding", c.coding)
		if status != http.StatusBadRequest || !strings.Contains(answer, c.want) {
			t.Errorf("%s in %q: status %d, %s; want 400 and %s", c.body, c.coding, status, answer, c.want)
		}
		if seen := s.Requests(); len(seen) != i+1 || seen[i].Err == nil || seen[i].Main {
			t.Errorf("%s: recorded %+v", c.body, seen)
		}
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	io.WriteString(w, strings.Replace(talks()[0].first, "STREAM", "", 1))
	w.Close()
	if status, answer := post(t, url+"/v1/messages", packed.String(), "Content-Encoding", "gzip"); status != http.StatusOK || !strings.Contains(answer, "make it") {
		t.Errorf("gzip: status %d, %s", status, answer)
	}
}

// TestTogether has several clients ask at once: none disturbs another's place in
// the script.
func TestTogether(t *testing.T) {
	s, url := newServer(t)
	talk := talks()[1]
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for body, want := range map[string]string{talk.first: "make it", talk.second: "All is done."} {
				if _, answer := post(t, url+talk.path, strings.Replace(body, "STREAM", `"stream":true,`, 1)); !strings.Contains(answer, want) {
					t.Errorf("got %s, want %s", answer, want)
				}
			}
		})
	}
	all.Wait()
	if n := len(s.Requests()); n != 16 {
		t.Errorf("%d requests recorded, want 16", n)
	}
}

// TestNew refuses scripts that can't be played.
func TestNew(t *testing.T) {
	for _, script := range [][]modelserver.Turn{
		nil,
		{{Calls: []modelserver.Call{{Name: "sh", Args: `["not an object"]`}}}},
		{{Calls: []modelserver.Call{{Name: "sh", Args: `{`}}}},
	} {
		if _, err := modelserver.New(script, modelserver.Options{}); err == nil || !strings.HasPrefix(err.Error(), "modelserver: ") {
			t.Errorf("%+v: %v, want a refusal", script, err)
		}
	}
}

// TestSeveralCalls plays a turn of two calls: it is over when both have results.
func TestSeveralCalls(t *testing.T) {
	call := modelserver.Call{Name: "sh", Args: `{}`}
	var turns []int // the requests come one after the other
	s, err := modelserver.New([]modelserver.Turn{{Text: "Both.", Calls: []modelserver.Call{call, call}}, {Calls: []modelserver.Call{call}}, {Text: "End."}},
		modelserver.Options{OnTurn: func(turn int) { turns = append(turns, turn) }})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	defer server.Close()
	for results, turn := range []int{0, 0, 1, 2, 2} {
		messages := strings.TrimSuffix(strings.Repeat(`{"role":"tool","content":"r"},`, results), ",")
		post(t, server.URL+"/v1/chat/completions", `{"tools":[{"function":{"name":"sh"}}],"messages":[`+messages+`]}`)
		if got := s.Requests()[results].Turn; got != turn {
			t.Errorf("after %d results: turn %d, want %d", results, got, turn)
		}
	}
	if diff := cmp.Diff([]int{0, 0, 1, 2, 2}, turns); diff != "" {
		t.Errorf("turns that were announced (-want +got):\n%s", diff)
	}
}
