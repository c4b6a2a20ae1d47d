package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/abhed/abhed/internal/strictjson"
)

// listed is one tool as its server describes it.
type listed struct {
	name, description string
	schema, output    jsontext.Value
	// digest covers all that the model is told of the tool.
	digest string
}

// list asks the server for its tools. faults says what could not be read of it.
func (l *link) list(ctx context.Context) (tools []listed, faults []string, err error) {
	params := &sdk.ListToolsParams{}
	seen := map[string]bool{}
	for page := 0; ; page++ {
		res, err := l.session.ListTools(ctx, params)
		wire := answered(err)
		switch {
		case wire != nil && wire.Code == jsonrpc.CodeMethodNotFound:
			return nil, append(faults, "it offers no tools"), nil
		case err != nil:
			return nil, nil, err
		}
		for _, t := range res.Tools {
			raw, ok := unwrap(t.Meta)
			if !ok {
				faults = append(faults, "its list of tools came in a form that this program doesn't know")
				continue
			}
			one, fault := readTool(raw)
			switch {
			case fault != "":
				faults = append(faults, fmt.Sprintf("entry %d of its tools is left out: %s", len(tools)+len(faults), fault))
			case seen[one.name]:
				faults = append(faults, fmt.Sprintf("its tool %s is listed twice; the first counts", quoted(one.name)))
			case len(tools) == maxTools:
				return tools, append(faults, fmt.Sprintf("it lists more than %d tools; the rest is left out", maxTools)), nil
			default:
				seen[one.name] = true
				tools = append(tools, one)
			}
		}
		if res.NextCursor == "" {
			return tools, faults, nil
		}
		if page+1 == maxPages || res.NextCursor == params.Cursor {
			return tools, append(faults, "its list of tools has no end; the rest is left out"), nil
		}
		params = &sdk.ListToolsParams{Cursor: res.NextCursor}
	}
}

// readTool reads one entry of a list of tools. Members of a wrong type other than
// the name are as good as missing.
func readTool(raw jsontext.Value) (t listed, fault string) {
	var m map[string]jsontext.Value
	if raw.Kind() != '{' || strictjson.Unmarshal(raw, &m, strictjson.Options{MaxBytes: maxMessage}) != nil {
		return t, fmt.Sprintf("it is %s, expected an object", strictjson.KindName(raw.Kind()))
	}
	if strictjson.Unmarshal(m["name"], &t.name, strictjson.Options{}) != nil || t.name == "" {
		return t, "it has no name"
	}
	if len(t.name) > 256 {
		return t, fmt.Sprintf("its name %s has %d bytes, the limit is 256", quoted(t.name), len(t.name))
	}
	if m["description"].Kind() == '"' {
		_ = strictjson.Unmarshal(m["description"], &t.description, strictjson.Options{}) // it passed the door as part of the list
	}
	t.schema, t.output = m["inputSchema"], m["outputSchema"]
	if t.output.Kind() != '{' {
		t.output = nil
	}
	h := sha256.New()
	for _, part := range []jsontext.Value{m["description"], t.schema, t.output} {
		canon, err := strictjson.Canonical(part)
		if err != nil {
			canon = part // absent, or nested too deep: then as it is
		}
		fmt.Fprintf(h, "%d:", len(canon))
		h.Write(canon)
	}
	t.digest = hex.EncodeToString(h.Sum(nil))
	return t, ""
}
