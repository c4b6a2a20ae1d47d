package httptransport_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/backend"
	"github.com/abhed/abhed/ahp/backend/httpbackend"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/ahp/oauth"
	"github.com/abhed/abhed/ahp/transport/httptransport"
)

// A backend over HTTP is asked for what it can do.
func ExampleNew() {
	server := httptest.NewServer(httpbackend.Handler(backend.New(backend.Func(allowAll), backend.Options{}), httpbackend.Options{Token: "from-the-vault"}))
	defer server.Close()
	link, err := httptransport.New(&ahp.Backend{
		ID:             "com.example.policy",
		Transport:      ahp.TransportConfig{Type: ahp.TransportHTTP, URL: server.URL},
		Authentication: &ahp.Authentication{Type: "bearer", TokenRef: "vault:policy"},
	}, httptransport.Options{ResolveRef: func(context.Context, string) (string, error) { return "from-the-vault", nil }})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer link.Close()
	_, err = harness.Discover(context.Background(), link)
	fmt.Println(err)
	// Output: ahp: rpc_error: JSON-RPC error -32601: no manifest here
}

// Without registered authentication, a backend that asks for a token gets one only
// where the local policy has a client for it.
func ExampleOptions() {
	link, err := httptransport.New(&ahp.Backend{
		ID:        "com.example.policy",
		Transport: ahp.TransportConfig{Type: ahp.TransportHTTP, URL: "https://policy.example.com/ahp"},
	}, httptransport.Options{
		Trust: []oauth.Client{{
			Resource: "https://policy.example.com/", Issuer: "https://login.example.com", ClientID: "abhed",
			Flow: oauth.ClientCredentials, SecretRef: "keychain:policy", Scopes: []string{"ahp.intercept"},
		}},
		ResolveRef: func(context.Context, string) (string, error) { return "from-the-keychain", nil },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer link.Close()
	fmt.Println(link.Ready(context.Background()))
	// Output: <nil>
}
