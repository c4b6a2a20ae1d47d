package install

import (
	"fmt"
	"slices"
	"strings"

	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/internal/confedit"
	"github.com/abhed/abhed/internal/hostconf"
	"github.com/abhed/abhed/internal/strictjson"
)

// entry is one hook of ours as it is written into a list.
type entry struct {
	event   string
	command string
	// list is where the list is, and body the element.
	list []string
	body []byte
}

// entries returns what is written into a target's file, in the order of its events.
func entries(t hostconf.Target, dialect *adapter.Host, h hostconf.Host, c Call) ([]entry, error) {
	var out []entry
	for _, e := range t.Events {
		if dialect.Row(e.Name) == nil {
			continue // nothing would be done with it
		}
		line, err := eventLine(dialect, h, c, e.Name)
		if err != nil {
			return nil, err
		}
		one := entry{event: e.Name, command: line, list: []string{"hooks", e.Name}}
		if t.Shape == hostconf.List {
			one.list = []string{"hooks"}
		}
		if one.body, err = body(t, e, c, line); err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

// eventLine is the command line for an event.
func eventLine(dialect *adapter.Host, h hostconf.Host, c Call, event string) (string, error) {
	c.Host, c.LimitMS, c.Event = h.Name, hostconf.LimitMS, ""
	if h.EventArgument {
		c.Event = event
	}
	line, err := Line(c, dialect, event)
	if err == nil && h.Name == "cursor" && strings.Contains(line, "://") {
		err = fmt.Errorf("the command line would hold \"://\", for which Cursor drops the whole file without a word; use other paths")
	}
	return line, err
}

// body is the element of a list for one event.
func body(t hostconf.Target, e hostconf.Event, c Call, line string) ([]byte, error) {
	hook := object{}
	for _, f := range t.Fields {
		hook.add(f.Name, f.Value)
	}
	hook.add(t.Command, text(line))
	if t.LimitKey != "" {
		hook.add(t.LimitKey, fmt.Sprint(hostconf.LimitMS/t.LimitUnit))
	}
	if c.OnMissing != Allow && slices.Contains(t.ClosedFor, e.Name) {
		for _, f := range t.Closed {
			hook.add(f.Name, f.Value)
		}
	}
	matcher := ""
	if e.Tool {
		matcher = t.ToolMatcher
	}
	outer := object{}
	switch t.Shape {
	case hostconf.Nested:
		if matcher != "" {
			outer.add("matcher", text(matcher))
		}
		outer.add("hooks", "["+hook.String()+"]")
	case hostconf.Flat:
		outer = hook
		if matcher != "" {
			outer.add("matcher", text(matcher))
		}
	case hostconf.List:
		outer.add("name", text("ahp "+e.Name))
		outer.add("trigger", text(e.Name))
		if matcher != "" {
			outer.add("matcher", text(matcher))
		}
		outer.add("action", `{"type":"command",`+text(t.Command)+":"+text(line)+"}")
		outer.add(t.LimitKey, fmt.Sprint(hostconf.LimitMS/t.LimitUnit))
	default:
		return nil, nil // TOML is written from the command
	}
	return []byte(outer.String()), nil
}

// object is a JSON object with its members in order.
type object struct{ members []string }

func (o *object) add(name, value string) { o.members = append(o.members, text(name)+":"+value) }

func (o object) String() string { return "{" + strings.Join(o.members, ",") + "}" }

// text writes a string as JSON. Command lines are valid UTF-8.
func text(s string) string {
	b, _ := strictjson.AppendString(nil, s)
	return string(b)
}

// ours is what an element of a list holds of ours.
type ours struct {
	event string
	// commands are our command lines in it, and indexes their places among a group's
	// hooks.
	commands []string
	indexes  []int
	// whole tells that nothing but ours is in it.
	whole bool
}

// read looks into an element at a path.
func readOurs(shape hostconf.Shape, path []string, element []byte) (ours, bool) {
	type hook struct {
		Command string `json:"command"`
		Bash    string `json:"bash"`
	}
	var e struct {
		hook
		Trigger string `json:"trigger"`
		Action  hook   `json:"action"`
		Hooks   []hook `json:"hooks"`
	}
	if err := strictjson.Unmarshal(element, &e, strictjson.Options{}); err != nil {
		return ours{}, false
	}
	var o ours
	hooks := []hook{e.hook}
	switch shape {
	case hostconf.Nested:
		hooks = e.Hooks
	case hostconf.List:
		hooks = []hook{e.Action}
	}
	if o.event = e.Trigger; shape != hostconf.List && len(path) > 1 {
		o.event = path[1]
	}
	for i, h := range hooks {
		for _, command := range []string{h.Command, h.Bash} {
			if IsLine(command) {
				o.commands, o.indexes = append(o.commands, command), append(o.indexes, i)
			}
		}
	}
	o.whole = len(o.indexes) == len(hooks)
	return o, len(o.commands) > 0
}

// listPattern is where a shape's lists have their elements.
func listPattern(shape hostconf.Shape) []string {
	if shape == hostconf.List {
		return []string{"hooks", "*"}
	}
	return []string{"hooks", "*", "*"}
}

// merge makes our entries in a document those that are given: each once.
func merge(d *confedit.JSON, t hostconf.Target, list []entry) error {
	for _, f := range t.Head {
		if err := d.Set([]byte(f.Value), f.Name); err != nil {
			return err
		}
	}
	kept := map[string]bool{}
	err := eachOurs(d, t.Shape, func(path []string, element []byte, o ours) error {
		i := slices.IndexFunc(list, func(e entry) bool { return e.event == o.event })
		if i < 0 || kept[o.event] || !o.whole {
			return drop(d, path, o)
		}
		kept[o.event] = true
		if strictjson.Equal(element, list[i].body) {
			return nil
		}
		return d.Replace(list[i].body, path...)
	})
	if err != nil {
		return err
	}
	for _, e := range list {
		if !kept[e.event] {
			if err := d.Append(e.body, e.list...); err != nil {
				return err
			}
		}
	}
	return nil
}

// eachOurs calls f with what is ours, the last first, so that f may remove it.
func eachOurs(d *confedit.JSON, shape hostconf.Shape, f func(path []string, element []byte, o ours) error) error {
	found := d.List(listPattern(shape)...)
	for _, e := range slices.Backward(found) {
		if o, is := readOurs(shape, e.Path, e.JSON); is {
			if err := f(e.Path, e.JSON, o); err != nil {
				return err
			}
		}
	}
	return nil
}

// drop takes out what is ours in an element, and the element if it holds nothing else.
func drop(d *confedit.JSON, path []string, o ours) error {
	if o.whole {
		return d.Remove(path...)
	}
	for _, i := range slices.Backward(o.indexes) {
		if err := d.Remove(append(slices.Clone(path), "hooks", fmt.Sprint(i))...); err != nil {
			return err
		}
	}
	return nil
}

// dropAll takes out all that is ours. Where nobody remembers what else was made for it,
// containers go that it leaves empty.
func dropAll(d *confedit.JSON, shape hostconf.Shape, prune bool) error {
	return eachOurs(d, shape, func(path []string, _ []byte, o ours) error {
		if err := drop(d, path, o); err != nil || !prune {
			return err
		}
		for n := len(path) - 1; n > 0 && len(d.List(append(slices.Clone(path[:n]), "*")...)) == 0; n-- {
			if err := d.Remove(path[:n]...); err != nil {
				return err
			}
		}
		return nil
	})
}
