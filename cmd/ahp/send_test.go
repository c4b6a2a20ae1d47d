package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/strictjson"
)

const toolEvent = `{"id":"e","source":"urn:test","type":"tool.before","time":"2026-01-01T00:00:00Z","call":{"id":"c"},"path":"native","tool":{"name":"n","origin":"native","input":{}}}`

// httpRegistration returns a file that registers an HTTP backend with a token, for
// one interception and one observation.
func httpRegistration(t *testing.T, url string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "registration.json")
	text := `{"protocolVersion":"draft","hooks":[{"id":"com.example.http","transport":{"type":"http","url":"` + url + `"},` +
		`"authentication":{"type":"bearer","tokenEnv":"TEST_TOKEN"},"subscriptions":[` +
		`{"events":["tool.before"],"mode":"intercept","timeoutMs":20000,"failurePolicy":"fail-open","content":{"default":"body"}},` +
		`{"events":["tool.before"],"mode":"observe","content":{"default":"body"}}]}]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// sendEvent runs "ahp send --json" with the token in the environment.
func sendEvent(ctx context.Context, t *testing.T, registration string) (result, sent) {
	t.Helper()
	var out, errs bytes.Buffer
	sys := system{stdin: strings.NewReader(toolEvent), stdout: &out, stderr: &errs, environ: []string{"TEST_TOKEN=s3cret-value", "AHP_HOME=" + t.TempDir()}}
	code := execute(ctx, []string{"send", "--json", "--registration", registration, "-"}, sys)
	var s sent
	if out.Len() > 0 {
		if err := strictjson.Unmarshal(out.Bytes(), &s, strictjson.Options{}); err != nil {
			t.Fatalf("%v in %s", err, out.String())
		}
	}
	if all := out.String() + errs.String(); strings.Contains(all, "s3cret-value") {
		t.Errorf("the token is shown: %s", all)
	}
	return result{code, out.String(), errs.String()}, s
}

func TestSendOverHTTP(t *testing.T) {
	defer goleak.VerifyNone(t)
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("Authorization") != "Bearer s3cret-value" {
			t.Errorf("%v, authorization %q", err, r.Header.Get("Authorization"))
		}
		if p, _ := ahp.Peek(body); p.Method == ahp.MethodObserve {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":"e","result":{"protocolVersion":"draft","effects":[{"type":"ask"}]}}`)
	}))
	defer server.Close()
	file := httpRegistration(t, server.URL)

	r, s := sendEvent(t.Context(), t, file)
	if r.code != exitOK || s.Outcome == nil || s.Outcome.Decision != "ask" || len(s.Exchanges) != 2 || len(s.Observations) != 1 || s.Observations[0].Failure != nil {
		t.Errorf("%+v", r)
	}
	for _, x := range s.Exchanges {
		if (x.Method == ahp.MethodIntercept) != (x.Answer != nil) || x.Failure != nil || !x.Request.IsObject() || x.At == "" {
			t.Errorf("%+v", x)
		}
	}
	status = http.StatusForbidden
	r, s = sendEvent(t.Context(), t, file)
	if r.code != exitFailed || len(s.Answers) != 1 || s.Answers[0].Failure == nil || s.Answers[0].Policy != ahp.FailOpen || s.Outcome.Decision != "allow" {
		t.Errorf("%+v", r)
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

// TestSendInterrupted holds that a cancelled call ends at once, with what it knows.
func TestSendInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body) // so that the server notices the end of the connection
		cancel()
		<-release
	}))
	defer server.Close()
	defer close(release)
	r, s := sendEvent(ctx, t, httpRegistration(t, server.URL))
	if r.code != exitFailed || s.Outcome == nil || !s.Outcome.Interrupted || s.Outcome.Executed || len(s.Observations) != 0 {
		t.Errorf("%+v", r)
	}
	if len(s.Exchanges) != 1 || s.Exchanges[0].Failure == nil || s.Exchanges[0].Failure.Class != "interrupted" {
		t.Errorf("%+v", s.Exchanges)
	}
}
