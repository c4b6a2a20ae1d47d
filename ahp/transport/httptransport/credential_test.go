package httptransport

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
)

// hopeful is a credential that always wants another try.
type hopeful struct{ anonymous }

func (hopeful) refused(proof, http.Header) error { return nil }

// TestTwoTriesAtMost holds that a 401 leads to one other try and no more, whatever
// the credential says.
func TestTwoTriesAtMost(t *testing.T) {
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked > 5 {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer s.Close()
	_, err := sendAs(t.Context(), s.Client(), hopeful{}, func(ctx context.Context) (*http.Request, error) {
		return http.NewRequestWithContext(ctx, http.MethodPost, s.URL, nil)
	})
	if f := ahp.AsFailure(err); f == nil || f.Class != ahp.FailAuth || asked != 2 {
		t.Errorf("%v after %d requests", err, asked)
	}
}

// TestPlainHTTPStaysHere holds that plain http is dialled on this machine only,
// whatever a name resolved to.
func TestPlainHTTPStaysHere(t *testing.T) {
	p := newPool(false)
	defer p.close()
	for _, addr := range []string{"192.0.2.1:80", "[2001:db8::1]:80", "169.254.169.254:80"} {
		if c, err := p.dial(t.Context(), "tcp", addr); err == nil || !strings.Contains(err.Error(), "doesn't lead to this machine") {
			t.Errorf("%s: %v, %v", addr, c, err)
		}
	}
}
