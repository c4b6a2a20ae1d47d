package probe

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/strictjson"
)

// speaker is a model that does what its function does.
type speaker func(ctx context.Context, req *model.Request, onDelta func(model.Delta)) (*model.Response, error)

func (s speaker) Stream(ctx context.Context, req *model.Request, onDelta func(model.Delta)) (*model.Response, error) {
	return s(ctx, req, onDelta)
}

func (speaker) Name() string { return "fake/" + testKey }

func spoken(text string) *model.Response {
	return &model.Response{Message: &model.Message{Role: "assistant", Parts: []model.Part{{Text: &text}}}, Finish: model.FinishStop}
}

// TestLump tells pieces that come as they are made from those that a proxy held back.
func TestLump(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		before, after time.Duration
		want          Outcome
		saw           string
	}{
		{"as they are made", 3 * time.Second, 100 * time.Millisecond, OK, "10 pieces, the first after 3s, the last after 3.9s"},
		{"a fast model", 200 * time.Millisecond, time.Millisecond, OK, "10 pieces"},
		{"at once, all", 0, 0, OK, "10 pieces"},
		{"held back", 5 * time.Second, time.Millisecond, No, "in one lump: the first after 5s, the last 9ms later"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := Run(t.Context(), Options{Secrets: [][]byte{[]byte(testKey)}, Client: speaker(func(_ context.Context, _ *model.Request, on func(model.Delta)) (*model.Response, error) {
					for i := range 10 {
						if i == 0 {
							time.Sleep(c.before)
						} else {
							time.Sleep(c.after)
						}
						on(model.Delta{Text: "x"})
					}
					return spoken("xxxxxxxxxx"), nil
				})})
				whole(t, r)
				if p := find(t, r, Stream); p.Outcome != c.want || !strings.Contains(p.Saw, c.saw) {
					t.Errorf("%+v", p)
				}
			})
		})
	}
}

// TestSameID: calls that can't be told apart are of no use. The clients of this module
// mend that; another may not.
func TestSameID(t *testing.T) {
	t.Parallel()
	r := Run(t.Context(), Options{Secrets: [][]byte{[]byte(testKey)}, Client: speaker(func(_ context.Context, req *model.Request, _ func(model.Delta)) (*model.Response, error) {
		resp := spoken("x")
		keys := []string{"colour"}
		if req.Messages[0].Text() == twoPrompt {
			keys = []string{"one", "two"}
		}
		for _, k := range keys {
			if len(req.Tools) > 0 {
				resp.Message.Parts = append(resp.Message.Parts, model.Part{ToolCall: &model.ToolCall{ID: "a", Name: toolName, Args: `{"key":"` + k + `"}`}})
			}
		}
		return resp, nil
	})})
	whole(t, r)
	if p := find(t, r, TwoCalls); p.Outcome != No || p.Saw != "2 calls came under 1 id" {
		t.Errorf("%+v", p)
	}
	if p := find(t, r, ToolCall); p.Outcome != OK {
		t.Errorf("%+v", p)
	}
}

// TestBounds: however slow an endpoint is, each request ends in time, and its output is
// bounded.
func TestBounds(t *testing.T) {
	t.Parallel()
	for slow, want := range map[int]time.Duration{1: DefaultTimeout, 2: DefaultTimeout, 4: DefaultTimeout} {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			began := time.Now()
			r := Run(t.Context(), Options{Secrets: [][]byte{[]byte(testKey)}, Client: speaker(func(ctx context.Context, req *model.Request, on func(model.Delta)) (*model.Response, error) {
				if req.MaxOutput != DefaultMaxOutput {
					t.Errorf("output of %d", req.MaxOutput)
				}
				if n++; n >= slow {
					on(model.Delta{Text: "x"})
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return spoken("x"), nil
			})})
			whole(t, r)
			if took := time.Since(began); took != want || r.Requests != slow || r.Milliseconds != want.Milliseconds() {
				t.Errorf("%d requests in %v", r.Requests, took)
			}
		})
	}
}

// TestNoSecrets: nothing that an endpoint or a client says brings a secret into a
// report, in any of the forms in which it may be echoed.
func TestNoSecrets(t *testing.T) {
	t.Parallel()
	const odd = `pa"ss\wörd +/=%`
	forms := []string{testKey, odd, fmt.Sprintf("%q", odd), strings.ReplaceAll(fmt.Sprintf("%q", odd), `\"`, "'"), url.QueryEscape(odd), url.PathEscape(odd),
		base64.StdEncoding.EncodeToString([]byte(odd)), base64.RawURLEncoding.EncodeToString([]byte(testKey)), "Bearer abcdefghijkl", "basic dXNlcjpwYXNz",
		`"` + testKey[:len(testKey)-3] + `"… (4000 bytes)`, testKey + "\n" + testKey}
	secret := []string{testKey[:8], `pa"ss`, `pa\"ss`, "pa'ss", "pa%22", base64.StdEncoding.EncodeToString([]byte(odd))[:8], base64.RawURLEncoding.EncodeToString([]byte(testKey))[:8], "abcdefgh", "dXNlcjpwYXNz"}
	for _, form := range forms {
		for n := range 8 { // the request that fails with it; before that, replies hold it
			asked := 0
			r := Run(t.Context(), Options{Images: true, Secrets: [][]byte{[]byte(testKey), []byte(" " + odd + "\n"), []byte("a"), nil}, Client: speaker(func(_ context.Context, req *model.Request, on func(model.Delta)) (*model.Response, error) {
				if asked++; asked > n {
					return nil, &model.Error{Kind: model.ErrRequest, Status: 400, Detail: "no: " + form, Endpoint: "http://x/" + form}
				}
				resp := spoken("said " + form)
				resp.Model, resp.Note = form, "noted "+form
				if len(req.Tools) > 0 && asked == 2 {
					resp.Message.Parts = append(resp.Message.Parts, model.Part{ToolCall: &model.ToolCall{ID: form, Name: toolName, Args: `{"key":"x"}`}})
				}
				on(model.Delta{Text: form})
				return resp, nil
			})})
			data, err := strictjson.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			var back Report
			if err := strictjson.Unmarshal(data, &back, strictjson.Options{}); err != nil {
				t.Fatal(err)
			}
			for _, s := range secret {
				for _, out := range []string{r.Text(), string(data), fmt.Sprint(back)} {
					if strings.Contains(out, s) {
						t.Fatalf("%q is in the report for %q: %s", s, form, out)
					}
				}
			}
		}
	}
}

// TestTexts: what comes from outside stays in its line, is bounded, and moves no
// cursor.
func TestTexts(t *testing.T) {
	t.Parallel()
	h := newHider([][]byte{[]byte("abc")}) // too short to be looked for
	for in, want := range map[string]string{
		"a\nb\tc":                 "a b c",
		"\x1b[31mred\u202e\xff":   "\uFFFD[31mred\uFFFD\uFFFD",
		"abc":                     "abc",
		strings.Repeat("é", 1000): strings.Repeat("é", maxText/2) + "…",
	} {
		if got := h.clean(in); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}
