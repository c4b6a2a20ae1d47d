package tool

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/abhed/abhed/internal/strictjson"
)

// maxInPlace bounds how many subschemas a validator applies to one and the same
// value.
const maxInPlace = 10_000

// errLoop is what checkSchema returns for a schema that has no end.
var errLoop = errors.New("its $ref lead back to where they started, so that checking arguments would never end")

// checkSchema refuses a schema that a validator would follow for ever: references
// that lead in a circle without going down into the arguments end the whole
// program by a stack overflow. To be sure of that it takes only references within
// the document.
func checkSchema(schema []byte) error {
	var root any
	if err := strictjson.Unmarshal(schema, &root, strictjson.Options{}); err != nil {
		return err
	}
	w := &schemaWalk{root: root, size: map[string]int{}}
	return w.all("", root)
}

// schemaWalk follows the subschemas that apply to the same value as their owner.
type schemaWalk struct {
	root any
	// size counts them by JSON pointer; -1 marks one that is being counted.
	size map[string]int
	refs bool
	ids  bool
}

// all looks at every object of the document, whether or not it is a schema.
func (w *schemaWalk) all(at string, v any) error {
	switch v := v.(type) {
	case map[string]any:
		if err := w.names(at, v); err != nil {
			return err
		}
		if _, err := w.count(at, v); err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if err := w.all(at+"/"+escapePointer(name), v[name]); err != nil {
				return err
			}
		}
	case []any:
		for i, e := range v {
			if err := w.all(at+"/"+strconv.Itoa(i), e); err != nil {
				return err
			}
		}
	}
	return nil
}

// names refuses the keywords by which a reference could mean something else than
// the place in this document.
func (w *schemaWalk) names(at string, m map[string]any) error {
	for _, name := range []string{"$dynamicRef", "$recursiveRef"} {
		if _, ok := m[name].(string); ok {
			return fmt.Errorf("%s at %q; use $ref of the form \"#/…\"", name, at)
		}
	}
	_, ref := m["$ref"].(string)
	_, id := m["$id"].(string)
	w.refs, w.ids = w.refs || ref, w.ids || id && at != ""
	if w.refs && w.ids {
		return errors.New("it has both $ref and an inner $id; use $ref of the form \"#/…\" alone")
	}
	return nil
}

// count returns how many subschemas apply where the one at the pointer does.
func (w *schemaWalk) count(at string, v any) (int, error) {
	m, ok := v.(map[string]any)
	if !ok {
		return 1, nil
	}
	switch n := w.size[at]; {
	case n < 0:
		return 0, errLoop
	case n > 0:
		return n, nil
	}
	w.size[at] = -1
	total := 1
	add := func(at string, v any) error {
		n, err := w.count(at, v)
		if total += n; err == nil && total > maxInPlace {
			err = fmt.Errorf("more than %d subschemas apply to one value", maxInPlace)
		}
		return err
	}
	for _, name := range []string{"not", "if", "then", "else"} {
		if err := add(at+"/"+name, m[name]); err != nil {
			return 0, err
		}
	}
	for _, name := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := m[name].([]any)
		for i, e := range list {
			if err := add(at+"/"+name+"/"+strconv.Itoa(i), e); err != nil {
				return 0, err
			}
		}
	}
	for _, name := range []string{"dependentSchemas", "dependencies"} {
		subs, _ := m[name].(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(subs)) {
			if err := add(at+"/"+name+"/"+escapePointer(key), subs[key]); err != nil {
				return 0, err
			}
		}
	}
	if ref, ok := m["$ref"].(string); ok {
		target, v, err := w.resolve(ref)
		if err != nil {
			return 0, err
		}
		if err := add(target, v); err != nil {
			return 0, err
		}
	}
	w.size[at] = total
	return total, nil
}

// resolve returns the pointer and the value that a reference means.
func (w *schemaWalk) resolve(ref string) (string, any, error) {
	fail := func() (string, any, error) {
		return "", nil, fmt.Errorf("$ref %q doesn't name a place in the schema; use \"#/…\"", ref)
	}
	at, ok := strings.CutPrefix(ref, "#")
	if !ok || strings.ContainsRune(at, '%') {
		return fail()
	}
	v, pointer := w.root, ""
	if at == "" {
		return pointer, v, nil
	}
	if at[0] != '/' {
		return fail()
	}
	for token := range strings.SplitSeq(at[1:], "/") {
		name := strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		switch t := v.(type) {
		case map[string]any:
			if v, ok = t[name]; !ok {
				return fail()
			}
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(t) {
				return fail()
			}
			v, name = t[i], strconv.Itoa(i)
		default:
			return fail()
		}
		pointer += "/" + escapePointer(name)
	}
	return pointer, v, nil
}

func escapePointer(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}
