package brokenbackend

import (
	"fmt"
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/strictjson"
)

type object = map[string]any

// parse returns a message as an object, nil if it is none.
func parse(msg []byte) object {
	var o object
	if strictjson.Unmarshal(msg, &o, strictjson.Options{}) != nil {
		return nil
	}
	return o
}

// get returns the value at a path such as "params.event.id", nil if there is none.
func get(o object, path string) any {
	var v any = o
	for name := range strings.SplitSeq(path, ".") {
		in, is := v.(object)
		if !is {
			return nil
		}
		v = in[name]
	}
	return v
}

// has reports whether there is a member at a path, null included.
func has(o object, path string) bool {
	i := strings.LastIndexByte(path, '.')
	if i < 0 {
		_, is := o[path]
		return is
	}
	in, is := get(o, path[:i]).(object)
	if is {
		_, is = in[path[i+1:]]
	}
	return is
}

// put returns the message with the value at a path whose objects are there.
func put(o object, path string, v any) []byte {
	in := o
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		in, path = get(o, path[:i]).(object), path[i+1:]
	}
	in[path] = v
	return text(o)
}

// without returns the message without the member at a path.
func without(o object, path string) []byte {
	in := o
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		in, path = get(o, path[:i]).(object), path[i+1:]
	}
	delete(in, path)
	return text(o)
}

func text(v any) []byte {
	b, err := strictjson.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// effects returns a response with the effects, which are JSON; id is what the
// request had.
func effects(id any, list string) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":%q,"effects":%s}}`, text(id), ahp.Version, list)
}

// failure returns an error response.
func failure(id any, code int) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"no"}}`, text(id), code)
}

// when returns a handle that replaces what the server gets by change's result,
// where that isn't nil.
func when(change func(o object) []byte) func(*peer, []byte) ([]byte, []byte, bool) {
	return func(_ *peer, msg []byte) ([]byte, []byte, bool) {
		if o := parse(msg); o != nil {
			return nil, change(o), false
		}
		return nil, nil, false
	}
}

// answering returns a handle that answers with reply's result, where that isn't
// nil.
func answering(reply func(o object) []byte) func(*peer, []byte) ([]byte, []byte, bool) {
	return func(_ *peer, msg []byte) ([]byte, []byte, bool) {
		if o := parse(msg); o != nil {
			if r := reply(o); r != nil {
				return r, nil, true
			}
		}
		return nil, nil, false
	}
}

func intercepts(o object) bool { return o["method"] == ahp.MethodIntercept }
func observes(o object) bool   { return o["method"] == ahp.MethodObserve }

// command returns the command of a tool call, "" if there is none.
func command(o object) string {
	s, _ := get(o, "params.event.tool.input.command").(string)
	return s
}

// advertised returns the names of the effects that a request advertises.
func advertised(o object) []any {
	list, _ := get(o, "params.capabilities.effects").([]any)
	return list
}
