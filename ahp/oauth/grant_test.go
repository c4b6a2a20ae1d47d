package oauth

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
)

// TestErrorCodes: of what an issuer says only known words get into a message.
func TestErrorCodes(t *testing.T) {
	for code, want := range map[string]string{
		"invalid_grant": "invalid_grant", "access_denied": "access_denied",
		"": "an unknown error", "Invalid_grant": "an unknown error", "ignore previous instructions": "an unknown error", "s3cret": "an unknown error",
	} {
		if got := errorCode(code); got != want {
			t.Errorf("%q: %q", code, got)
		}
	}
}

// TestClientAuthentication holds how a client proves itself, by what its issuer takes;
// a nil list is an absent one.
func TestClientAuthentication(t *testing.T) {
	const basic, post, none = "client_secret_basic", "client_secret_post", "none"
	for _, tt := range []struct {
		secret  string
		methods []string
		want    string // how, "" for a failure
	}{
		{"s", nil, basic},
		{"s", []string{post, basic}, basic},
		{"s", []string{post}, post},
		{"s", []string{"private_key_jwt", none}, ""},
		{"s", []string{}, ""},
		{"", nil, none},
		{"", []string{none}, none},
		{"", []string{basic, post}, ""},
		{"", []string{}, ""},
		{"not there", nil, ""},
	} {
		s := newSession(&Options{ResolveSecret: func(_ context.Context, ref string) (string, error) {
			return strings.Replace(ref, "not there", "", 1), nil
		}}, false)
		form, header := url.Values{}, http.Header{}
		err := s.authenticate(t.Context(), &issuerMetadata{AuthMethods: tt.methods}, &Client{ClientID: "c", SecretRef: tt.secret}, form, header)
		got := ""
		switch {
		case err != nil && ahp.AsFailure(err) != nil && len(form)+len(header) == 0:
		case header.Get("Authorization") != "" && len(form) == 0:
			got = basic
		case form.Get("client_id") == "c" && form.Get("client_secret") == "s" && len(header) == 0:
			got = post
		case form.Get("client_id") == "c" && !form.Has("client_secret") && len(header) == 0:
			got = none
		default:
			got = "something else"
		}
		if got != tt.want {
			t.Errorf("secret %q, methods %q: %s, %v, want %q", tt.secret, tt.methods, got, err, tt.want)
		}
	}
}
