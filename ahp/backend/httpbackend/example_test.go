package httpbackend_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/abhed/abhed/ahp/backend"
	"github.com/abhed/abhed/ahp/backend/httpbackend"
)

// A backend takes the tokens of an OAuth issuer, and tells harnesses which one.
func ExampleResource() {
	r := httpbackend.Resource{
		ID: "https://policy.example.com/ahp", Issuers: []string{"https://login.example.com"}, Scopes: []string{"ahp.intercept"},
		Verify: func(_ context.Context, token string) error {
			// Check signature, issuer, expiry and audience here, or ask the issuer.
			return httpbackend.ErrToken
		},
	}
	h := httpbackend.Handler(backend.New(backend.Func(deny), backend.Options{}), httpbackend.Options{Resource: &r})
	mux := http.NewServeMux()
	mux.Handle("/ahp", h)
	mux.Handle(r.MetadataPath(), h)

	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest("POST", "/ahp", nil))
	fmt.Println(w.Code, w.Header().Get("WWW-Authenticate"))
	w = httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest("GET", "/.well-known/oauth-protected-resource/ahp", nil))
	fmt.Println(w.Code, w.Body)
	// Output:
	// 401 Bearer resource_metadata="https://policy.example.com/.well-known/oauth-protected-resource/ahp", scope="ahp.intercept"
	// 200 {"resource":"https://policy.example.com/ahp","authorization_servers":["https://login.example.com"],"scopes_supported":["ahp.intercept"],"bearer_methods_supported":["header"]}
}
