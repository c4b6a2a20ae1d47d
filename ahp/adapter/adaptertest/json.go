package adaptertest

import (
	"maps"
	"slices"
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/strictjson"
)

// pretty returns a JSON document over several lines, members in the order of names.
func pretty(data []byte) string {
	var b strings.Builder
	indentInto(&b, ahp.Raw(data), "")
	return b.String() + "\n"
}

func indentInto(b *strings.Builder, v ahp.Raw, margin string) {
	if members, is := object(v); is && len(members) > 0 {
		b.WriteString("{\n")
		for i, name := range slices.Sorted(maps.Keys(members)) {
			if i > 0 {
				b.WriteString(",\n")
			}
			b.WriteString(margin + "  " + quote(name) + ": ")
			indentInto(b, members[name], margin+"  ")
		}
		b.WriteString("\n" + margin + "}")
		return
	}
	var list []ahp.Raw
	if len(v) > 0 && v[0] == '[' && strictjson.Unmarshal(v, &list, strictjson.Options{}) == nil && len(list) > 0 {
		b.WriteString("[\n")
		for i := range list {
			if i > 0 {
				b.WriteString(",\n")
			}
			b.WriteString(margin + "  ")
			indentInto(b, list[i], margin+"  ")
		}
		b.WriteString("\n" + margin + "]")
		return
	}
	b.WriteString(strings.TrimSpace(string(v)))
}

func quote(s string) string {
	b, err := strictjson.Marshal(s)
	if err != nil {
		return `"?"`
	}
	return string(b)
}

// object returns the members of a JSON object.
func object(v ahp.Raw) (map[string]ahp.Raw, bool) {
	var members map[string]ahp.Raw
	if !v.IsObject() || strictjson.Unmarshal(v, &members, strictjson.Options{}) != nil {
		return nil, false
	}
	return members, true
}

// paths calls f for every member of a document, objects as "outer.inner".
func paths(v ahp.Raw, outer string, f func(path string, v ahp.Raw)) {
	members, _ := object(v)
	for name, inner := range members {
		path := strings.TrimPrefix(outer+"."+name, ".")
		f(path, inner)
		paths(inner, path, f)
	}
}

// with returns the document with the member at path changed by edit: an empty one removes it.
// changed tells whether it was there.
func with(v ahp.Raw, path string, edit func(ahp.Raw) ahp.Raw) (out ahp.Raw, changed bool) {
	members, is := object(v)
	if !is {
		return v, false
	}
	name, rest, deeper := strings.Cut(path, ".")
	inner, there := members[name]
	if !there {
		return v, false
	}
	if deeper {
		inner, changed = with(inner, rest, edit)
	} else {
		inner, changed = edit(inner), true
	}
	if !changed {
		return v, false
	}
	if len(inner) == 0 {
		delete(members, name)
	} else {
		members[name] = inner
	}
	return join(members), true
}

func join(members map[string]ahp.Raw) ahp.Raw {
	var b strings.Builder
	b.WriteByte('{')
	for i, name := range slices.Sorted(maps.Keys(members)) {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(quote(name) + ":" + string(members[name]))
	}
	b.WriteByte('}')
	return ahp.Raw(b.String())
}
