package adaptertest

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
)

// shapes holds that what isn't what the host is known to send is an error: a payload
// that can't be read is answered by policy, and what is misread runs.
func shapes(t *testing.T, h *adapter.Host, o Options) {
	tools := 0
	for _, s := range samples(t, o) {
		if o.unread(s.name) != "" {
			continue
		}
		e, err := read(h, &o, s.name, s.data)
		if err != nil {
			continue // readAll says so
		}
		data := ahp.Raw(bytes.TrimSpace(s.data))
		refused := func(what string, changed ahp.Raw) {
			t.Helper()
			if _, err := read(h, &o, s.name, changed); err == nil {
				t.Errorf("%s: %s was read as an event\n%.300s", s.name, what, changed)
			}
		}
		broken(t, data, refused)
		for _, value := range []string{`"Nonesuch"`, `7`, `"` + strings.ToUpper(e.Row.Native) + `x"`} {
			if changed, did := all(data, o.Event, func(ahp.Raw) ahp.Raw { return ahp.Raw(value) }); did {
				refused("an event of another name", changed)
			}
		}
		damaged(t, h, &o, s.name, data)
		without(data, o.Needed, refused)
		if e.AHP.Call == nil {
			continue
		}
		without(data, o.CallNeeded, refused)
		if nameless, did := all(data, o.Tool, func(ahp.Raw) ahp.Raw { return nil }); did {
			tools++
			refused("a call without the tool's name", nameless)
		}
		for _, value := range []string{`""`, `7`, `{}`, `null`} {
			if changed, did := all(data, o.Tool, func(ahp.Raw) ahp.Raw { return ahp.Raw(value) }); did {
				refused("a call of a tool named "+value, changed)
			}
		}
		for _, value := range []string{`7`, `true`, `["a"]`, `"text"`, `"{\"a\":1,\"a\":2}"`} {
			if changed, did := all(data, o.Input, func(ahp.Raw) ahp.Raw { return ahp.Raw(value) }); did {
				refused("a call with the input "+value, changed)
			}
		}
	}
	if tools == 0 && len(o.Tool) > 0 {
		t.Error("no sample is a call with the tool's name: nothing was tried without it")
	}
}

// damaged changes every member of an event in turn, but for those of a tool's input,
// which may be anything: what is still read must be a valid event.
func damaged(t *testing.T, h *adapter.Host, o *Options, name string, data ahp.Raw) {
	t.Helper()
	paths(data, "", func(path string, _ ahp.Raw) {
		if slices.ContainsFunc(o.Input, func(in string) bool { return strings.HasPrefix(path, in+".") }) {
			return
		}
		values := []string{"", `-7`, `""`, `{}`, `null`, `"x"`, `[]`, `[{}]`}
		if strings.Contains(path, ".") {
			values = values[:4]
		}
		for _, value := range values {
			changed, did := with(data, path, func(ahp.Raw) ahp.Raw { return ahp.Raw(value) })
			if !did { // a name with a dot
				return
			}
			e, err := read(h, o, name, changed)
			if err != nil {
				continue
			}
			Complete(e.AHP)
			if err := e.AHP.Validate(); err != nil || e.AHP.Type != e.Row.Type {
				t.Errorf("%s with %s changed to %q is read as %s, which is not valid: %v", name, path, value, e.AHP.Type, err)
			}
		}
	})
}

// without tries the event without one of the members, which other spellings may have.
func without(data ahp.Raw, members []string, refused func(string, ahp.Raw)) {
	for _, m := range members {
		if changed, did := with(data, m, func(ahp.Raw) ahp.Raw { return nil }); did {
			refused("an event without "+m, changed)
		}
	}
}

// broken tries what is no JSON object that passes the strict door.
func broken(t *testing.T, data ahp.Raw, refused func(string, ahp.Raw)) {
	t.Helper()
	inner := bytes.TrimSpace(data[1 : len(data)-1])
	member, _, _ := bytes.Cut(inner, []byte(":"))
	for _, n := range []int{1, len(data) / 4, len(data) / 2, len(data) - 2, len(data) - 1} {
		refused("a truncated event", data[:n])
	}
	refused("a repeated member", ahp.Raw("{"+string(member)+":null,"+string(inner)+"}"))
	refused("a lone surrogate", ahp.Raw(`{"stray":"\ud800",`+string(inner)+"}"))
	refused("bytes that are no UTF-8", ahp.Raw("{\"stray\":\"\xff\","+string(inner)+"}"))
	refused("two documents", ahp.Raw(string(data)+string(data)))
	refused("a line before it", ahp.Raw("log line\n"+string(data)))
	refused("a list", ahp.Raw("["+string(data)+"]"))
	for _, other := range []string{"", " ", "null", "7", "{}", `"text"`} {
		refused("another document", ahp.Raw(other))
	}
}

// all changes each of the members that is there.
func all(data ahp.Raw, members []string, edit func(ahp.Raw) ahp.Raw) (out ahp.Raw, changed bool) {
	out = data
	for _, m := range members {
		var did bool
		out, did = with(out, m, edit)
		changed = changed || did
	}
	return out, changed
}
