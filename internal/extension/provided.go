package extension

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/strictjson"
	"github.com/abhed/abhed/internal/tool"
)

// toolName is what every model API and the grammar of rules accept as a name.
var toolName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// Bounds of what goes to the model with every request.
const (
	maxTools       = 256 // of one extension
	maxDescription = 16 << 10
	maxSchema      = 256 << 10
)

// provided is one tool of an extension.
type provided struct {
	ext     *ext
	spec    tool.Spec
	mutates bool
	// subject is the schema's first property of type string; "" if there is none.
	subject string
}

var _ tool.Tool = (*provided)(nil)

// offer takes over what list_tools answered.
func (e *ext) offer(list []toolReply) {
	for _, t := range list {
		e.tools = append(e.tools, &provided{
			ext: e, mutates: t.mutates, subject: firstString(t.schema),
			spec: tool.Spec{Name: t.name, Version: e.hash, Description: tool.Clean(t.description), Schema: t.schema},
		})
	}
}

// dropUnusable removes the tools that no model could call, each with a warning.
func (e *ext) dropUnusable() {
	var usable []*provided
	for i, t := range e.tools {
		err := t.usable()
		if err == nil && len(usable) == maxTools {
			err = fmt.Errorf("an extension provides at most %d tools", maxTools)
		}
		if err != nil {
			e.logged("warning", fmt.Sprintf("its tool %q (entry %d of tools) can't be used and is left out: %v", cut(t.spec.Name, 100), i, err))
			continue
		}
		usable = append(usable, t)
	}
	e.tools = usable
}

func (t *provided) usable() error {
	if !toolName.MatchString(t.spec.Name) {
		return errors.New("a tool's name is 1 to 64 of the characters A-Z a-z 0-9 _ -")
	}
	switch {
	case t.spec.Schema == nil:
		return errors.New("it has no schema; give a JSON Schema of type object")
	case len(t.spec.Schema) > maxSchema:
		return fmt.Errorf("its schema has %d bytes, the limit is %d", len(t.spec.Schema), maxSchema)
	case len(t.spec.Description) > maxDescription:
		return fmt.Errorf("its description has %d bytes, the limit is %d", len(t.spec.Description), maxDescription)
	}
	_, err := tool.NewRegistry(t)
	return err
}

// Spec returns what the extension said in list_tools.
func (t *provided) Spec() tool.Spec { return t.spec }

// Declare takes the first declared string as the subject (gate.md §1).
func (t *provided) Declare(args []byte) policy.Declaration {
	d := policy.Declaration{Mutates: t.mutates}
	if t.subject == "" {
		return d
	}
	d.Kind = policy.SubjectText
	var members map[string]jsontext.Value
	if strictjson.Unmarshal(args, &members, strictjson.Options{}) != nil {
		return d
	}
	if v := members[t.subject]; v.Kind() == '"' {
		var s string
		if json.Unmarshal(v, &s) == nil {
			d.Subject = s
		}
	}
	return d
}

// Run asks the extension's tool process.
func (t *provided) Run(ctx context.Context, g tool.Grant) (tool.Result, error) {
	a := t.ext.invoke.run(ctx, g.Call())
	if f := a.fail; f != nil && a.reply == nil {
		return tool.Result{
			IsError: true, TimedOut: f.class == failTimeout,
			Content: fmt.Sprintf("The tool %s of extension %q gave no result: %s", t.spec.Name, t.ext.cfg.Name, f.msg),
		}, nil
	}
	text := a.reply.result
	if text == nil {
		text = a.reply.content
	}
	if text == nil {
		return tool.Fail(fmt.Sprintf("The tool %s of extension %q answered without a result.", t.spec.Name, t.ext.cfg.Name)), nil
	}
	return tool.Result{Content: *text, IsError: a.reply.isError != nil && *a.reply.isError}, nil
}

// firstString returns the name of the first property of a schema that may be a
// string, in the order of the text; "" if there is none.
func firstString(schema []byte) string {
	var top map[string]jsontext.Value
	if strictjson.Unmarshal(schema, &top, strictjson.Options{}) != nil {
		return ""
	}
	props := top["properties"]
	if props.Kind() != '{' {
		return ""
	}
	dec := jsontext.NewDecoder(bytes.NewReader(props))
	if _, err := dec.ReadToken(); err != nil {
		return ""
	}
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			return ""
		}
		text := name.String()
		v, err := dec.ReadValue()
		if err != nil {
			return ""
		}
		if saysString(v) {
			return text
		}
	}
	return ""
}

// saysString reports whether a property's schema names the type string.
func saysString(prop jsontext.Value) bool {
	var members map[string]jsontext.Value
	if prop.Kind() != '{' || json.Unmarshal(prop, &members) != nil {
		return false
	}
	var types []string
	switch v := members["type"]; v.Kind() {
	case '"':
		types = []string{""}
		_ = json.Unmarshal(v, &types[0]) // it has passed the door as part of the schema
	case '[':
		if json.Unmarshal(v, &types) != nil {
			return false
		}
	}
	for _, t := range types {
		if t == "string" {
			return true
		}
	}
	return false
}
