package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// read turns one source into checked values. Faults are collected; the error is
// only for a Source that the caller built wrongly.
func (l *loader) read(src *Source) (*node, error) {
	var root *node
	var err error
	switch {
	case src.Layer == CommandLine && src.Data == nil && src.Environ == nil:
		root, err = fromArgs(l.table, src)
	case src.Layer == Environment && src.Data == nil && src.Args == nil:
		root = l.environment(src)
	case (src.Layer == Managed || src.Layer == User || src.Layer == Project) && src.Args == nil && src.Environ == nil:
		root, err = parse(src)
		if broken, is := err.(*Errors); is {
			for _, e := range broken.List {
				l.faults.add(e)
			}
			return nil, nil
		}
	default:
		err = fmt.Errorf("config: a %s source can't hold what it was given (file %q)", src.Layer, src.File)
	}
	if err != nil || root == nil {
		return nil, err
	}
	if !l.check(root) {
		return nil, nil
	}
	resolvePaths(root, l.table, src)
	if src.Layer == Project && !src.Trusted {
		root = l.untrusted(root)
	}
	return root, nil
}

// check compares a source with the table and reports whether it is sound. Each
// source may give maxFaults faults of its own, so that none hides another's.
func (l *loader) check(root *node) bool {
	var own faults
	(&checker{root: l.table, faults: &own}).value(root, l.table)
	for _, e := range own.list {
		l.faults.add(e)
	}
	return len(own.list) == 0
}

// fromArgs builds the values that flags set.
func fromArgs(table *spec, src *Source) (*node, error) {
	root := &node{kind: '{', origin: Origin{Layer: CommandLine, File: src.File}}
	for _, a := range src.Args {
		names := strings.Split(a.Key, ".")
		at, s := root, table
		for _, name := range names[:len(names)-1] {
			if s = s.field(name); s == nil {
				return nil, fmt.Errorf("config: flag %s sets %q, which is no setting", a.Flag, a.Key)
			}
			next := at.get(name)
			if next == nil {
				next = &node{kind: '{', origin: root.origin}
				at.members = append(at.members, member{name: name, value: next, origin: root.origin})
			}
			at = next
		}
		name := names[len(names)-1]
		leaf := s.field(name)
		if leaf == nil || leaf.shape == shapeObject || leaf.shape == shapeMap || leaf.shape != shapeList && len(a.Values) != 1 {
			return nil, fmt.Errorf("config: flag %s can't set %q from %d values", a.Flag, a.Key, len(a.Values))
		}
		at.set(name, argValue(a, leaf, at.get(name)))
	}
	return root, nil
}

// set adds a member or replaces its value.
func (n *node) set(name string, v *node) {
	for i := range n.members {
		if n.members[i].name == name {
			n.members[i].value = v
			return
		}
	}
	n.members = append(n.members, member{name: name, value: v, origin: v.origin})
}

// argValue returns the value of a flag; the elements of a list come after those
// that an earlier flag gave.
func argValue(a Arg, s *spec, earlier *node) *node {
	origin := Origin{Layer: CommandLine, File: a.Flag, Key: a.Key}
	if s.shape != shapeList {
		return scalar(a.Values[0], s.shape, origin)
	}
	list := &node{kind: '[', origin: origin}
	if earlier != nil {
		list.elems = slices.Clone(earlier.elems)
	}
	for _, v := range a.Values {
		origin.Key = indexKey(a.Key, len(list.elems))
		list.elems = append(list.elems, scalar(v, s.elem.shape, origin))
	}
	return list
}

// scalar returns the value that text stands for in a setting of that shape. Text
// that doesn't fit becomes a string, which the checker then refuses.
func scalar(text string, s shape, origin Origin) *node {
	n := &node{kind: '"', text: text, origin: origin}
	v := jsontext.Value(text)
	if k := v.Kind(); s != shapeString && fits(k, s) && v.IsValid() && strings.TrimSpace(text) == text {
		n.kind = k
	}
	return n
}

// resolvePaths makes every path in n absolute, as far as the source says what
// relative paths start at (abhed.md, Configuration).
func resolvePaths(n *node, s *spec, src *Source) {
	switch s.shape {
	case shapeString:
		if s.path || s.prog && strings.Contains(n.text, "/") && !strings.Contains(n.text, "://") {
			n.text = resolvePath(n.text, src)
		}
	case shapeList:
		for _, e := range n.elems {
			resolvePaths(e, s.elem, src)
		}
	case shapeMap:
		for _, m := range n.members {
			resolvePaths(m.value, s.elem, src)
		}
	case shapeObject:
		for _, m := range n.members {
			resolvePaths(m.value, s.field(m.name), src)
		}
		// A scripted provider's base_url is a file, which only its api tells.
		if api, script := n.get("api"), n.get("base_url"); api != nil && script != nil && api.text == APIScript {
			script.text = resolvePath(script.text, src)
		}
	}
}

func resolvePath(path string, src *Source) string {
	if path == "~" || strings.HasPrefix(path, "~/") {
		if src.Home == "" {
			return path
		}
		return filepath.Join(src.Home, path[1:])
	}
	if src.Dir == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(src.Dir, path)
}
