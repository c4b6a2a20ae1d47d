package probe

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/model/anthropic"
	"github.com/abhed/abhed/internal/model/gemini"
	"github.com/abhed/abhed/internal/model/modeltest"
	"github.com/abhed/abhed/internal/model/openai"
	"github.com/abhed/abhed/internal/model/responses"
	"github.com/abhed/abhed/internal/strictjson"
)

const testKey = "sk-test-0123456789"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// closer is a client with connections to close.
type closer interface {
	model.Client
	Close()
}

// connect returns a client of an API.
func connect(t *testing.T, api modeltest.API, url, caFile string) model.Client {
	t.Helper()
	const name, m, env = "test", "m1", "TEST_KEY"
	var c closer
	var err error
	switch api {
	case modeltest.Chat:
		c, err = openai.New(openai.Config{BaseURL: url, Model: m, Name: name, APIKey: testKey, APIKeyEnv: env, CAFile: caFile})
	case modeltest.Responses:
		c, err = responses.New(responses.Config{BaseURL: url, Model: m, Name: name, APIKey: testKey, APIKeyEnv: env, CAFile: caFile})
	case modeltest.Messages:
		c, err = anthropic.New(anthropic.Config{BaseURL: url, Model: m, Name: name, APIKey: testKey, APIKeyEnv: env, CAFile: caFile})
	case modeltest.Gemini:
		c, err = gemini.New(gemini.Config{BaseURL: url, Model: m, Name: name, APIKey: testKey, APIKeyEnv: env, CAFile: caFile})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func apis() []modeltest.API {
	return []modeltest.API{modeltest.Chat, modeltest.Responses, modeltest.Messages, modeltest.Gemini}
}

// The places of a script's turns, in the order of the requests.
const (
	atPlain = iota
	atCall
	atResult
	atTwo
	atOutput
	atImage
	atLong
	atAgain
)

// script plays an endpoint that can do everything.
func script() []modeltest.Turn {
	first := &modeltest.Usage{Prompt: 5000, Completion: 4}
	second := &modeltest.Usage{Prompt: 5000, Cached: 4900, Completion: 4}
	return []modeltest.Turn{
		{Reasoning: "they want numbers", Text: strings.Repeat("one, two, three, ", 10), Expect: "forty"},
		{Reasoning: "a call", Calls: []modeltest.Call{{ID: "a", Name: toolName, Args: `{"key":"colour"}`}}, Expect: "colour"},
		{Text: "It is " + toolValue + ".", Expect: toolValue},
		{Calls: []modeltest.Call{{ID: "b", Name: toolName, Args: `{"key":"one"}`}, {ID: "c", Name: toolName, Args: `{"key":"two"}`}}, Expect: "twice"},
		{Text: `{"legs":12}`, Expect: "legs"},
		{Text: "Red.", Expect: "picture"},
		{Text: recallWord, Usage: first, Expect: "code word"},
		{Text: recallWord, Usage: second, Expect: "code word"},
	}
}

func options(c model.Client, url string) Options {
	return Options{Client: c, BaseURL: url, Images: true, Window: 128_000, Timeout: 20 * time.Second, Secrets: [][]byte{[]byte(testKey)}}
}

func find(t *testing.T, r *Report, name string) Probe {
	t.Helper()
	i := slices.IndexFunc(r.Probes, func(p Probe) bool { return p.Name == name })
	if i < 0 {
		t.Fatalf("no probe %q", name)
	}
	return r.Probes[i]
}

// whole checks what every report promises.
func whole(t *testing.T, r *Report) {
	t.Helper()
	var got []string
	for _, p := range r.Probes {
		got = append(got, p.Name)
		if !slices.Contains([]Outcome{OK, No, Unclear, NotTried}, p.Outcome) || p.Saw == "" || strings.Contains(p.Saw, "%!") {
			t.Errorf("%+v", p)
		}
		if notTried := strings.HasPrefix(p.Saw, "not tried: "); notTried != (p.Outcome == NotTried) || notTried && len(p.Saw) < 15 {
			t.Errorf("%+v: what isn't tried must say so, with the reason", p)
		}
	}
	if !slices.Equal(got, names()) {
		t.Errorf("probes %v", got)
	}
	if r.Requests > MaxRequests {
		t.Errorf("%d requests", r.Requests)
	}
	data, err := strictjson.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{r.Text(), string(data)} {
		if strings.Contains(out, testKey) || strings.Contains(out, "goroutine") {
			t.Errorf("%s", out)
		}
	}
}

// TestEverything: an endpoint of every API that can do all is said to.
func TestEverything(t *testing.T) {
	t.Parallel()
	for _, api := range apis() {
		t.Run(string(api), func(t *testing.T) {
			t.Parallel()
			s := modeltest.NewWith(t, modeltest.Options{Turns: script(), APIKey: testKey})
			r := Run(t.Context(), options(connect(t, api, s.URL, ""), s.URL))
			whole(t, r)
			for _, p := range r.Probes {
				want := OK
				if p.Name == TLS {
					want = NotTried // it is plain, on loopback
				}
				if p.Outcome != want {
					t.Errorf("%+v", p)
				}
			}
			if r.Verdict != OK || r.Requests != 8 || s.Left() != 0 || r.Model != "test/m1" || r.Endpoint != s.URL || r.InputTokens < 10_000 || r.OutputTokens < 8 {
				t.Errorf("%+v, %d turns left", r, s.Left())
			}
			if got := find(t, r, Cache).Saw; !strings.HasPrefix(got, "4900 tokens") {
				t.Errorf("%q", got)
			}
			// Two replies hold reasoning, which these APIs seal.
			seals := api == modeltest.Responses || api == modeltest.Messages
			if got := find(t, r, Reasoning).Saw; !strings.Contains(got, "23 bytes") || strings.Contains(got, "2 parts of replies came sealed") != seals && api != modeltest.Gemini {
				t.Errorf("%q", got)
			}
			for _, req := range s.Requests() {
				if body := string(req.Body); !strings.Contains(body, "2000") {
					t.Errorf("a request without the bound of the output: %.200s", body)
				}
			}
		})
	}
}

// TestText holds the form for people: aligned, one line a probe, and what to do.
func TestText(t *testing.T) {
	t.Parallel()
	r := &Report{Model: "p/m", Endpoint: "https://h/v1", Verdict: No, Requests: 3, InputTokens: 40, OutputTokens: 5, Probes: []Probe{
		{Name: "name", Outcome: OK, Saw: "found"}, {Name: "tool call", Outcome: No, Saw: "none came", Do: "another model"}, {Name: "x", Outcome: NotTried, Saw: "not tried: y"}}}
	want := `p/m at https://h/v1
  ok         name       found
  no         tool call  none came
                        to do: another model
  not tried  x          not tried: y
An agent can't work with this endpoint as it is. Requests made: 3 (40 tokens in, 5 out, as far as the endpoint says).
`
	if got := r.Text(); got != want {
		t.Errorf("got:\n%s", got)
	}
	data, err := strictjson.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, member := range []string{`"verdict":"no"`, `"model":"p/m"`, `"outcome":"not tried"`, `"do":"another model"`, `"input_tokens":40`} {
		if !strings.Contains(string(data), member) {
			t.Errorf("no %s in %s", member, data)
		}
	}
}

// TestSmallWindow: question and answer fit the window that is configured, and where it
// is too small for a long prompt there is none.
func TestSmallWindow(t *testing.T) {
	t.Parallel()
	for window, requests := range map[int64]int{4096: 7, 2000: 5} {
		turns := slices.Delete(script(), atImage, atImage+1)
		s := modeltest.NewWith(t, modeltest.Options{Turns: turns[:requests]})
		o := options(connect(t, modeltest.Chat, s.URL, ""), s.URL)
		o.Images, o.Window = false, window
		r := Run(t.Context(), o)
		whole(t, r)
		if r.Requests != requests || find(t, r, Image).Outcome != NotTried || (find(t, r, Cache).Outcome == NotTried) != (window == 2000) {
			t.Errorf("window %d: %s", window, r.Text())
		}
		for _, req := range s.Requests() {
			if got := string(req.Params["max_tokens"]); got != map[int64]string{4096: "1024", 2000: "500"}[window] || len(req.Body) > int(2*window)+2000 {
				t.Errorf("window %d: max_tokens %s, %d bytes", window, got, len(req.Body))
			}
		}
	}
}

// TestWithoutClient: where no client could be made, the network is still looked at.
func TestWithoutClient(t *testing.T) {
	t.Parallel()
	var got http.Header
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = r.Header.Clone()
		got.Set("Query", r.URL.RawQuery)
	}))
	defer s.Close()
	r := Run(t.Context(), Options{BaseURL: strings.Replace(s.URL, "//", "//name:hidden-word@", 1) + "/v1?key=hidden-in-query", Secrets: [][]byte{[]byte(testKey)}})
	whole(t, r)
	if find(t, r, HTTP).Outcome != OK || find(t, r, Reply).Outcome != NotTried || r.Verdict != Unclear || strings.Contains(r.Text(), "hidden") || r.Endpoint != s.URL+"/v1" {
		t.Errorf("%s", r.Text())
	}
	if got.Get("Authorization") != "" || got.Get("Query") != "" || got.Get("User-Agent") != "abhed" {
		t.Errorf("sent %v", got)
	}
}
