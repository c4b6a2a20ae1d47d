package vectors_test

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp/conformance/vectors"
)

const goodMessage = `id: a
about: something
kind: request
expect: shape
requirements: AHP-RPC-001
-- message --
{}
`

const goodExchange = `id: a
about: something
requirements: AHP-RPC-001
-- harness --
{"event":{},"capabilities":{}}
-- backend --
{"effects":[]}
-- outcome --
{"permission":"none","executes":true,"denials":[],"synthetic":0,"flow":"none","instructions":[],"messages":[],"injections":0,"asked":1,"failed":0}
`

// TestLoaderRefuses: a file that isn't wholly understood isn't loaded.
func TestLoaderRefuses(t *testing.T) {
	message := func(data string) error { _, err := vectors.ParseMessage("a.txtar", []byte(data)); return err }
	exchange := func(data string) error { _, err := vectors.ParseExchange("a.txtar", []byte(data)); return err }
	if err := message(goodMessage); err != nil {
		t.Fatal(err)
	}
	if err := exchange(goodExchange); err != nil {
		t.Fatal(err)
	}
	replace := strings.Replace
	for name, tt := range map[string]struct {
		err  error
		says string
	}{
		"an unknown section":        {message(goodMessage + "-- notes --\nx\n"), `a.txtar:8: unknown section "notes"`},
		"a section twice":           {message(goodMessage + "-- message --\n{}\n"), "is there twice"},
		"an unknown header":         {message("author: me\n" + goodMessage), "is no line of a header"},
		"a header twice":            {message("id: b\n" + goodMessage), "is there twice"},
		"no id":                     {message(replace(goodMessage, "id: a\n", "", 1)), `lacks "id"`},
		"no message":                {message(replace(goodMessage, "-- message --\n{}\n", "", 1)), `lacks "message"`},
		"an unknown layer":          {message(replace(goodMessage, "expect: shape", "expect: taste", 1)), "is no layer"},
		"an unknown kind":           {message(replace(goodMessage, "kind: request", "kind: letter", 1)), `kind "letter"`},
		"a reply without a request": {message(replace(goodMessage, "kind: request", "kind: reply", 1)), "a reply has"},
		"valid without a value":     {message(replace(goodMessage, "expect: shape", "expect: ok", 1)), "canonical"},
		"invalid with a value":      {message(goodMessage + "-- canonical --\n{}\n"), "canonical"},
		"another encoding":          {message("encoding: base64\n" + goodMessage), "expected quoted"},
		"a quote that isn't one":    {message("encoding: quoted\n" + goodMessage), "quoted string"},
		"no outcome":                {exchange(replace(goodExchange, "-- outcome --", "-- config --", 1)), "a.txtar"},
		"outcomes of one policy":    {exchange(replace(goodExchange, "-- outcome --", "-- outcome fail-open --", 1)), "0 outcomes for 1 steps"},
		"an outcome for nothing":    {exchange(replace(goodExchange, "-- outcome --", "-- config --\n{\"policies\":[\"fail-open\"]}\n-- outcome fail-closed --\n{}\n-- outcome --", 1)), "for no policy"},
		"an unknown member":         {exchange(replace(goodExchange, `"asked":1`, `"ask":1`, 1)), "ask"},
		"effects and a fault":       {exchange(replace(goodExchange, `{"effects":[]}`, `{"effects":[],"fault":"never"}`, 1)), "effects or a fault"},
		"neither":                   {exchange(replace(goodExchange, `{"effects":[]}`, `{}`, 1)), "effects or a fault"},
		"more steps than outcomes":  {exchange(replace(goodExchange, "-- harness --\n", "-- harness --\n{\"event\":{},\"capabilities\":{}}\n", 1)), "1 outcomes for 2 steps"},
	} {
		if tt.err == nil || !strings.Contains(tt.err.Error(), tt.says) {
			t.Errorf("%s: %v, expected it to say %q", name, tt.err, tt.says)
		}
	}
}

// TestVectorsAreDistinct: no two messages are the same bytes read as the same.
func TestVectorsAreDistinct(t *testing.T) {
	list, err := vectors.Messages()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for _, m := range list {
		key := fmt.Sprintf("%s %s %s", m.Kind, m.Request, m.Message)
		if other, twice := seen[key]; twice {
			t.Errorf("%s is %s again", m.ID, other)
		}
		seen[key] = m.ID
		if m.About == "" || len(m.Requirements) == 0 {
			t.Errorf("%s says too little", m.ID)
		}
	}
}

// How a program in Go reads the vectors; another reads the files.
func ExampleMessages() {
	list, err := vectors.Messages()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range list {
		if m.ID == "reply-deny-no-reason" {
			fmt.Printf("%s: %s\nrefused by: %s\n", m.About, m.Message, m.Expect)
		}
	}
	files, err := fs.Glob(vectors.Files(), "messages/reply-deny-no-*.txtar")
	fmt.Println(files, err)
	// Output:
	// a denial without a reason: {"jsonrpc":"2.0","id":"e-1","result":{"protocolVersion":"draft","effects":[{"type":"deny"}]}}
	// refused by: shape
	// [messages/reply-deny-no-reason.txtar] <nil>
}
