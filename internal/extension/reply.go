package extension

import (
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/abhed/abhed/internal/strictjson"
)

// reply is what an extension answered. Pointers are nil for what was absent or
// null.
type reply struct {
	block, ask bool
	reason     string
	// args is the whole new arguments object in canonical form, nil if absent.
	args    []byte
	content *string
	isError *bool
	result  *string
	// keep is nil if absent; a pointer to an empty list keeps nothing.
	keep    *[]int64
	system  *string
	summary *string
	cancel  bool
	tools   []toolReply
	log     string
	seq     *int64
	// set lists the known fields that say something: neither null nor false.
	set []string
	// unknown lists the fields that the protocol doesn't have, those inside of tools
	// included.
	unknown []string
}

// toolReply is one entry of tools.
type toolReply struct {
	name, description string
	schema            []byte
	mutates           bool
}

// replyFields are the known fields and the JSON kind of each: s string, b bool,
// i integer, o object, k list of integers, t list of tools.
var replyFields = map[string]byte{
	"block": 'b', "ask": 'b', "reason": 's', "args": 'o', "content": 's', "is_error": 'b', "keep": 'k',
	"system": 's', "summary": 's', "cancel": 'b', "tools": 't', "result": 's', "log": 's', "seq": 'i',
}

var toolFields = []string{"name", "description", "schema", "mutates"}

// replyDepth leaves room for arguments that are as deep as a call's may be.
const replyDepth = strictjson.DefaultMaxDepth + 2

// decodeReply reads one reply strictly (spec/extensions.md, Wire): a known field
// of another type and a repeated name are errors, null is absent, unknown fields
// are listed.
func decodeReply(data []byte) (*reply, *failure) {
	var fields map[string]jsontext.Value
	if err := strictjson.Unmarshal(data, &fields, strictjson.Options{MaxBytes: maxReply, MaxDepth: replyDepth}); err != nil {
		return nil, invalidf("the reply can't be used: %v", err)
	}
	r := &reply{}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		kind, known := replyFields[name]
		v := fields[name]
		switch {
		case !known:
			r.unknown = append(r.unknown, name)
			continue
		case v.Kind() == 'n':
			continue
		case v.Kind() != 'f':
			r.set = append(r.set, name)
		}
		if err := r.field(name, kind, v); err != nil {
			return nil, invalidf("the reply's %q can't be used: %v", name, err)
		}
	}
	return r, nil
}

// field decodes one known field that is not null.
func (r *reply) field(name string, kind byte, v jsontext.Value) error {
	switch kind {
	case 's':
		var s string
		if err := decodeField(v, &s); err != nil {
			return err
		}
		r.setString(name, s)
	case 'b':
		var b bool
		if err := decodeField(v, &b); err != nil {
			return err
		}
		r.setBool(name, b)
	case 'i':
		r.seq = new(int64)
		return decodeField(v, r.seq)
	case 'k':
		r.keep = &[]int64{}
		return decodeField(v, r.keep)
	case 'o':
		if v.Kind() != '{' {
			return fmt.Errorf("found %s, expected an object", kindName(v))
		}
		canon, err := strictjson.Canonical(v)
		r.args = canon
		return err
	case 't':
		return r.toolList(v)
	}
	return nil
}

func (r *reply) setString(name, s string) {
	switch name {
	case "reason":
		r.reason = s
	case "content":
		r.content = &s
	case "result":
		r.result = &s
	case "log":
		r.log = s
	case "system":
		r.system = &s
	case "summary":
		r.summary = &s
	}
}

func (r *reply) setBool(name string, b bool) {
	switch name {
	case "block":
		r.block = b
	case "ask":
		r.ask = b
	case "is_error":
		r.isError = &b
	case "cancel":
		r.cancel = b
	}
}

// toolList decodes tools; what is merely missing or senseless in an entry is the
// host's to judge.
func (r *reply) toolList(v jsontext.Value) error {
	var list []map[string]jsontext.Value
	if err := decodeField(v, &list); err != nil {
		return err
	}
	for i, entry := range list {
		t := toolReply{mutates: true}
		for _, name := range slices.Sorted(maps.Keys(entry)) {
			v := entry[name]
			if v.Kind() == 'n' {
				continue
			}
			var err error
			switch name {
			case "name":
				err = decodeField(v, &t.name)
			case "description":
				err = decodeField(v, &t.description)
			case "mutates":
				err = decodeField(v, &t.mutates)
			case "schema":
				t.schema = v
			default:
				r.unknown = append(r.unknown, "tools/"+name)
			}
			if err != nil {
				return fmt.Errorf("entry %d, %q: %w", i, name, err)
			}
		}
		r.tools = append(r.tools, t)
	}
	return nil
}

// decodeField decodes a value that has passed the door as part of a reply.
func decodeField(v jsontext.Value, into any) error {
	return strictjson.Unmarshal(v, into, strictjson.Options{MaxBytes: maxReply, MaxDepth: replyDepth})
}

func kindName(v jsontext.Value) string {
	switch v.Kind() {
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '[':
		return "a list"
	case 't', 'f':
		return "a boolean"
	default:
		return "an object"
	}
}
