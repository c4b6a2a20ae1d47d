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

// lists is what is read of a server's list.
type lists struct {
	tools  []listed
	faults []string
	seen   map[string]bool
	// looked counts the entries, unsaid the faults past the bound.
	looked, unsaid int
}

// fault notes what could not be read.
func (l *lists) fault(format string, a ...any) {
	if len(l.faults) == maxFaults {
		l.unsaid++
		return
	}
	l.faults = append(l.faults, fmt.Sprintf(format, a...))
}

// take looks at one entry and reports whether to go on.
func (l *lists) take(t *sdk.Tool) bool {
	if l.looked++; l.looked > maxEntries {
		l.unsaid++
		return false
	}
	raw, ok := unwrap(t.Meta)
	if !ok {
		l.fault("its list of tools came in a form that this program doesn't know")
		return true
	}
	one, fault := readTool(raw)
	switch {
	case fault != "":
		l.fault("entry %d of its tools is left out: %s", l.looked-1, fault)
	case l.seen[one.name]:
		l.fault("its tool %s is listed twice; the first counts", quoted(one.name))
	case len(l.tools) == maxTools:
		l.unsaid++
		return false
	default:
		l.seen[one.name] = true
		l.tools = append(l.tools, one)
	}
	return true
}

// end returns the tools, with what could not be read and why the rest was not.
func (l *lists) end(rest string) ([]listed, []string, error) {
	if l.unsaid > 0 && rest == "" {
		rest = fmt.Sprintf("%d more entries of its tools are left out", l.unsaid)
	}
	if rest != "" {
		l.faults = append(l.faults, rest)
	}
	return l.tools, l.faults, nil
}

// list asks the server for its tools. faults says what could not be read of it.
func (l *link) list(ctx context.Context) (tools []listed, faults []string, err error) {
	params, read := &sdk.ListToolsParams{}, &lists{seen: map[string]bool{}}
	for page := 0; ; page++ {
		res, err := l.session.ListTools(ctx, params)
		wire := answered(err)
		switch {
		case wire != nil && wire.Code == jsonrpc.CodeMethodNotFound:
			return read.end("it offers no tools")
		case err != nil:
			return nil, nil, err
		}
		for _, t := range res.Tools {
			if !read.take(t) {
				return read.end(fmt.Sprintf("it lists more than %d tools, or %d entries; the rest is left out", maxTools, maxEntries))
			}
		}
		switch {
		case res.NextCursor == "":
			return read.end("")
		case page+1 == maxPages || res.NextCursor == params.Cursor:
			return read.end("its list of tools has no end; the rest is left out")
		}
		params = &sdk.ListToolsParams{Cursor: res.NextCursor}
	}
}

// readTool reads one entry of a list of tools. Members of a wrong type other than
// the name are as good as missing.
func readTool(raw jsontext.Value) (t listed, fault string) {
	var m struct {
		Name        jsontext.Value `json:"name"`
		Description jsontext.Value `json:"description"`
		Input       jsontext.Value `json:"inputSchema"`
		Output      jsontext.Value `json:"outputSchema"`
	}
	if raw.Kind() != '{' || strictjson.Unmarshal(raw, &m, strictjson.Options{MaxBytes: maxMessage}) != nil {
		return t, fmt.Sprintf("it is %s, expected an object", strictjson.KindName(raw.Kind()))
	}
	if strictjson.Unmarshal(m.Name, &t.name, strictjson.Options{}) != nil || t.name == "" {
		return t, "it has no name"
	}
	if len(t.name) > 256 {
		return t, fmt.Sprintf("its name %s has %d bytes, the limit is 256", quoted(t.name), len(t.name))
	}
	if m.Description.Kind() == '"' {
		_ = strictjson.Unmarshal(m.Description, &t.description, strictjson.Options{}) // it passed the door as part of the list
	}
	t.schema, t.output = m.Input, m.Output
	if t.output.Kind() != '{' {
		t.output = nil
	}
	h := sha256.New()
	for _, part := range []jsontext.Value{m.Description, t.schema, t.output} {
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
