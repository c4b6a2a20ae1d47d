package httpbackend_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/backend"
	"github.com/abhed/abhed/ahp/backend/httpbackend"
	"github.com/abhed/abhed/ahp/transport/httptransport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func deny(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
	return backend.Answer(q, &ahp.Deny{Reason: "no"})
}

func TestStatuses(t *testing.T) {
	h := httpbackend.Handler(backend.New(backend.Func(deny), backend.Options{}), httpbackend.Options{Token: "secret"})
	event := ahptest.ToolBefore("e", `{}`)
	request, _ := (&ahp.Intercept{Event: event, Capabilities: *ahptest.FullCapabilities(ahp.ToolBefore)}).Encode()
	note, _ := (&ahp.Observe{Event: event}).Encode()
	badNote := bytes.Replace(note, []byte(`"path"`), []byte(`"lane"`), 1)
	badRequest := bytes.Replace(request, []byte(`"path"`), []byte(`"lane"`), 1)
	tests := map[string]struct {
		method, token, media string
		body                 []byte
		status               int
		hasBody              bool
	}{
		"a request":                 {"POST", "secret", "application/json", request, 200, true},
		"with a charset":            {"POST", "secret", "application/json; charset=utf-8", request, 200, true},
		"a request that is invalid": {"POST", "secret", "application/json", badRequest, 200, true},
		"a notification":            {"POST", "secret", "application/json", note, 202, false},
		"a bad notification":        {"POST", "secret", "application/json", badNote, 400, false},
		"not JSON":                  {"POST", "secret", "application/json", []byte("what?"), 400, false},
		"another method":            {"GET", "secret", "application/json", nil, 405, false},
		"another type":              {"POST", "secret", "text/plain", request, 415, false},
		"another charset":           {"POST", "secret", "application/json; charset=latin1", request, 415, false},
		"another token":             {"POST", "secre", "application/json", request, 401, false},
		"no token":                  {"POST", "", "application/json", request, 401, false},
		"too large":                 {"POST", "secret", "application/json", bytes.Repeat([]byte(" "), ahp.MaxMessageBytes+1), 413, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(tt.method, "/", bytes.NewReader(tt.body))
			r.Header.Set("Content-Type", tt.media)
			if tt.token != "" {
				r.Header.Set("Authorization", "Bearer "+tt.token)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != tt.status || (w.Body.Len() > 0) != tt.hasBody {
				t.Errorf("status %d, body %q", w.Code, w.Body)
			}
			if tt.hasBody && w.Header().Get("Content-Type") != "application/json" {
				t.Errorf("content type %q", w.Header().Get("Content-Type"))
			}
			if tt.status == 405 && w.Header().Get("Allow") != "POST" {
				t.Error("no Allow header")
			}
		})
	}
}

// TestBothEnds joins our two ends over a real connection.
func TestBothEnds(t *testing.T) {
	s := httptest.NewServer(httpbackend.Handler(backend.New(backend.Func(deny), backend.Options{}), httpbackend.Options{Token: "secret"}))
	defer s.Close()
	b := &ahp.Backend{ID: "test.http", Transport: ahp.TransportConfig{Type: "http", URL: s.URL}, Authentication: &ahp.Authentication{Type: "bearer", TokenEnv: "T"}}
	link, err := httptransport.New(b, httptransport.Options{LookupEnv: func(string) (string, bool) { return "secret", true }, Client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}})
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	request, _ := (&ahp.Intercept{Event: ahptest.ToolBefore("e", `{}`), Capabilities: *ahptest.FullCapabilities(ahp.ToolBefore)}).Encode()
	reply, err := link.Exchange(t.Context(), request)
	if err != nil || !strings.Contains(string(reply), `"type":"deny"`) {
		t.Errorf("%s, %v", reply, err)
	}
}
