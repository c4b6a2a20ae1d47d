package mcp_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/abhed/abhed/internal/mcp"
)

func TestResults(t *testing.T) {
	t.Parallel()
	png := base64.StdEncoding.EncodeToString([]byte("not really"))
	tests := []struct {
		name, result, want string
		isError            bool
		images             int
	}{
		{"texts", `{"content":[{"type":"text","text":"a"},{"type":"text","text":"b","annotations":{"x":1}}]}`, "a\nb", false, 0},
		{"error", `{"content":[{"type":"text","text":"no"}],"isError":true}`, "no", true, 0},
		{"image", `{"content":[{"type":"text","text":"see"},{"type":"image","mimeType":"image/png","data":"` + png + `"}]}`, "see\n[image 1: image/png]", false, 1},
		{"bad image", `{"content":[{"type":"image","mimeType":"image/png","data":"***"}]}`, `[an image of type "image/png", not shown: it isn't base64; it has 3]`, false, 0},
		{"svg", `{"content":[{"type":"image","mimeType":"image/svg+xml","data":""}]}`, `[an image of type "image/svg+xml", not shown: models don't take this type; it has 0]`, false, 0},
		{"many images", `{"content":[` + strings.Repeat(`{"type":"image","mimeType":"image/gif","data":"`+png+`"},`, 9) + `{"type":"text","text":"x"}]}`, "at most 8 images", false, 8},
		{"audio", `{"content":[{"type":"audio","mimeType":"audio/wav","data":"AAAA"}]}`, `[a piece of kind "audio" and type "audio/wav", not shown: 4 bytes of base64]`, false, 0},
		{"unknown", `{"content":[{"type":"hologram","x":1},{"type":"text","text":"t"}]}`, "[a piece of kind \"hologram\" and type \"\", not shown: 0 bytes of base64]\nt", false, 0},
		{"link", `{"content":[{"type":"resource_link","uri":"file:///x","name":"x"}]}`, `[a link to the resource "x": file:///x]`, false, 0},
		{"resource", `{"content":[{"type":"resource","resource":{"uri":"r:1","text":"inside"}}]}`, "[resource r:1]\ninside", false, 0},
		{"blob", `{"content":[{"type":"resource","resource":{"uri":"r:1","mimeType":"a/b","blob":"AAAA"}}]}`, `[resource r:1 of type "a/b", not shown: 4 bytes of base64]`, false, 0},
		{"wrong type", `{"content":[{"type":"text","text":7},{"type":"text","text":"t"}]}`, "can't be read: found a number, expected a string", false, 0},
		{"structured", `{"content":[],"structuredContent":{"b":1.50,"a":12345678901234567890}}`, `{"b":1.50,"a":12345678901234567890}`, false, 0},
		{"structured alone", `{"structuredContent":[1]}`, `[1]`, false, 0},
		{"both", `{"content":[{"type":"text","text":"t"}],"structuredContent":{"a":1}}`, "t", false, 0},
		{"empty", `{"content":[]}`, "empty result", false, 0},
	}
	r := start(t, mcp.Options{}, server(t, "s", script{Tools: named("raw")}))
	for _, tt := range tests {
		res := r.run("mcp__s__raw", tt.result)
		exact := tt.name != "many images" && tt.name != "wrong type" && tt.name != "empty" && !strings.HasPrefix(tt.name, "structured")
		if exact && res.Content != tt.want || !strings.Contains(res.Content, tt.want) && !strings.HasPrefix(tt.name, "structured") || res.IsError != tt.isError || len(res.Images) != tt.images {
			t.Errorf("%s: got %q, error %v, %d images; expected %q", tt.name, res.Content, res.IsError, len(res.Images), tt.want)
		}
	}
	// Arguments are canonical, so members change places; numbers stay as written.
	if got := r.run("mcp__s__raw", tests[12].result).Content; got != `{"a":12345678901234567890,"b":1.50}` {
		t.Errorf("structured: %s", got)
	}
	if got := r.run("mcp__s__raw", tests[13].result).Content; got != `[1]` {
		t.Errorf("structured alone: %s", got)
	}
	r.fails("mcp__s__raw", `{"something":"else"}`, "no result of a tool")
}

// TestOutputSchema is I181.
func TestOutputSchema(t *testing.T) {
	t.Parallel()
	out := `"outputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`
	r := start(t, mcp.Options{}, server(t, "s", script{Tools: []string{`{"name":"raw",` + open + `,` + out + `}`}}))
	pid := r.States()[0].Pid
	for range 5 {
		r.works("mcp__s__raw", `{"content":[{"type":"text","text":"fine"}],"structuredContent":{"n":"seven"}}`, "fine\n[Note: the structured part of this result doesn't fit")
	}
	if st := r.States()[0]; st.State != mcp.StateReady || st.Pid != pid || st.Error != "" {
		t.Errorf("I181: state %+v", st)
	}
	if res := r.run("mcp__s__raw", `{"content":[{"type":"text","text":"fine"}],"structuredContent":{"n":7}}`); res.Content != "fine" {
		t.Errorf("a result that fits: %q", res.Content)
	}
	if res := r.run("mcp__s__raw", `{"content":[{"type":"text","text":"bad"}],"structuredContent":{},"isError":true}`); res.Content != "bad" || !res.IsError {
		t.Errorf("an error: %+v", res)
	}
}

func TestHugeAndBroken(t *testing.T) {
	t.Parallel()
	s := server(t, "s", script{Tools: named("huge", "monster", "broken", "badbytes", "refuse", "echo")})
	s.Env = append(s.Env, "FAKE_TOKEN=very-secret-token")
	r := start(t, mcp.Options{}, s)
	res := r.run("mcp__s__huge", `{}`)
	if len(res.Content) > 66<<10 || !utf8.ValidString(res.Content) || !strings.HasPrefix(res.Content, "BEGIN") || !strings.HasSuffix(res.Content, "END") || !strings.Contains(res.Content, "of 2097160 bytes cut here") {
		t.Errorf("a huge result came as %d bytes: %.20q", len(res.Content), res.Content)
	}
	pid := r.States()[0].Pid
	r.fails("mcp__s__broken", `{}`, "isn't sound JSON", "same member name twice")
	r.works("mcp__s__badbytes", `{}`, "caf\uFFFD")
	if res := r.fails("mcp__s__refuse", `{}`, "error -32602: no, [secret]"); strings.Contains(res.Content, "very-secret") {
		t.Error("a secret in a refusal")
	}
	if r.States()[0].Pid != pid {
		t.Error("a broken message cost the server")
	}
	r.fails("mcp__s__monster", `{}`, fmt.Sprintf("a message of more than %d bytes", 16<<20))
	r.works("mcp__s__echo", `{}`, "echo")
}
