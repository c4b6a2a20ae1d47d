package fault_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/abhed/abhed/ahp/ahptest/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestNames(t *testing.T) {
	plain := regexp.MustCompile(`^[a-z0-9_]+$`)
	for _, f := range append(fault.Menu(), fault.NotifyMenu()...) {
		if !plain.MatchString(f.Name) {
			t.Errorf("%q can't be typed as a word", f.Name)
		}
	}
}

// TestLinksNoTests holds that a command can serve the menu without linking packages
// that are for tests.
func TestLinksNoTests(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for p := range strings.FieldsSeq(string(out)) {
		if p == "testing" || p == "flag" || strings.HasPrefix(p, "net/http/httptest") {
			t.Errorf("it links %s", p)
		}
	}
}

func TestRun(t *testing.T) {
	long := `{"jsonrpc":"2.0","id":"x","pad":"` + strings.Repeat("x", 1<<20) + `"}` + "\n"
	for name, tt := range map[string]struct {
		fault, in, out string
		code           int
	}{
		"two requests":   {"none", `{"id":"a"}` + "\n" + `{"id":"b"}` + "\n", "ab", 0},
		"a long request": {"none", long, "x", 0},
		"deaf":           {"dies_before", `{"id":"a"}` + "\n", "", 3},
		"exits":          {"dies_after", long + long, "x", 3},
	} {
		f, _ := fault.Find(tt.fault)
		var out bytes.Buffer
		code := f.Run(t.Context(), strings.NewReader(tt.in), &out, io.Discard)
		var ids strings.Builder
		for _, m := range regexp.MustCompile(`"id":"(.)"`).FindAllStringSubmatch(out.String(), -1) {
			ids.WriteString(m[1])
		}
		if code != tt.code || ids.String() != tt.out {
			t.Errorf("%s: code %d, replies to %q", name, code, ids.String())
		}
	}
}

// TestWaitsEnd holds that a fault which waits does so for as long as it says, and
// ends with its context.
func TestWaitsEnd(t *testing.T) {
	for _, name := range []string{"never", "late"} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			f, _ := fault.Find(name)
			var out bytes.Buffer
			began := time.Now()
			f.Run(ctx, strings.NewReader(`{"id":"a"}`+"\n"), &out, io.Discard)
			if _, err := f.Reply(ctx, []byte(`{"id":"a"}`)); out.Len() > 0 || err == nil || time.Since(began) != time.Second {
				t.Errorf("%s: %q, %v after %v", name, &out, err, time.Since(began))
			}
		})
	}
}

// TestRedirectLeadsToADenial holds that a client which follows the redirect can be
// told from one that doesn't.
func TestRedirectLeadsToADenial(t *testing.T) {
	f, _ := fault.Find("redirect")
	s := httptest.NewServer(f)
	defer s.Close()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Post(s.URL, "application/json", strings.NewReader(`{"id":"a"}`))
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.StatusCode != 200 || !strings.Contains(string(body), `"deny"`) {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}
