package install

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/internal/confedit"
	"github.com/abhed/abhed/internal/hostconf"
	"github.com/abhed/abhed/internal/install/bridge"
)

// unit is one file of an installation: how ours gets in, and out again.
type unit struct {
	path string
	mode os.FileMode
	// put returns the file with our entries, and what was made beside them.
	put func(data []byte) ([]byte, []confedit.Trace, error)
	// strip returns the file without them.
	strip func(data []byte, traces []confedit.Trace) ([]byte, error)
	// whole tells that the file is ours alone: without our text it goes.
	whole bool
	// remark says what in the file a person should look at; nil for nothing.
	remark func(data []byte) []string
	// outside tells that a project's installation has it in the person's home.
	outside bool
}

// units returns the files of an installation in a scope. Without a dialect they can
// only be stripped.
func units(h hostconf.Host, dialect *adapter.Host, o Options) ([]unit, error) {
	targets := h.In(o.Scope)
	if len(targets) == 0 {
		return nil, fmt.Errorf("%s has no %s scope; it has %s", h.Name, o.Scope, scopes(h))
	}
	mode := os.FileMode(0o644)
	if o.Scope == hostconf.User {
		mode = 0o600
	}
	var out []unit
	for _, t := range targets {
		paths, err := places(t, o)
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			list, err := targetUnits(h, dialect, t, o, path)
			if err != nil {
				return nil, err
			}
			out = append(out, list...)
		}
	}
	if h.Name == "codex" {
		more, err := codexUnits(h, dialect, o, out[0].path)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	for i := range out {
		if out[i].mode == 0 {
			out[i].mode = mode
		}
	}
	return out, nil
}

func scopes(h hostconf.Host) string {
	list := ""
	for _, s := range hostconf.Scopes() {
		if len(h.In(s)) > 0 {
			if list != "" {
				list += ", "
			}
			list += "--scope " + string(s)
		}
	}
	return list
}

// places returns the files or folders that a target stands for.
func places(t hostconf.Target, o Options) ([]string, error) {
	path := o.Roots.Path(t.File)
	if !t.Existing {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if match, _ := filepath.Match(filepath.Base(path), e.Name()); match && !e.IsDir() {
			out = append(out, filepath.Join(filepath.Dir(path), e.Name()))
		}
	}
	return out, nil
}

// targetUnits returns the files of one target.
func targetUnits(h hostconf.Host, dialect *adapter.Host, t hostconf.Target, o Options, path string) ([]unit, error) {
	switch t.Shape {
	case hostconf.Scripts:
		return scriptUnits(h, dialect, t, o, path)
	case hostconf.Bridge:
		return bridgeUnit(h, o, path)
	case hostconf.Tables:
		u := unit{path: path, strip: func(data []byte, traces []confedit.Trace) ([]byte, error) { return stripTables(path, data, traces) }}
		if dialect != nil {
			list, err := entries(t, dialect, h, o.Call)
			if err != nil {
				return nil, err
			}
			u.put = func(data []byte) ([]byte, []confedit.Trace, error) { return putTables(path, t, data, list) }
		}
		return []unit{u}, nil
	}
	read := func(data []byte) (*confedit.JSON, error) {
		return confedit.ParseJSON(data, confedit.JSONOptions{Name: path, Comments: t.Format == hostconf.JSONC})
	}
	u := unit{path: path, strip: func(data []byte, traces []confedit.Trace) ([]byte, error) {
		d, err := read(data)
		if err != nil {
			return nil, err
		}
		if err := dropAll(d, t.Shape, traces == nil); err != nil {
			return nil, err
		}
		if err := d.Undo(append(d.Traces(), traces...)); err != nil {
			return nil, err
		}
		return d.Bytes(), nil
	}}
	if dialect != nil {
		list, err := entries(t, dialect, h, o.Call)
		if err != nil {
			return nil, err
		}
		u.put = func(data []byte) ([]byte, []confedit.Trace, error) {
			d, err := read(data)
			if err != nil {
				return nil, nil, err
			}
			if err := merge(d, t, list); err != nil {
				return nil, nil, err
			}
			return d.Bytes(), d.Traces(), nil
		}
	}
	u.remark = func(data []byte) []string {
		d, err := read(data)
		if err != nil || t.Shape == hostconf.List {
			return nil
		}
		return foreignEvents(d, h, dialect, path)
	}
	return []unit{u}, nil
}

// foreignEvents finds hooks of others that never run, because their event is one of
// another host's. The host itself says so in a notice at most.
func foreignEvents(d *confedit.JSON, h hostconf.Host, dialect *adapter.Host, path string) []string {
	var out []string
	for _, f := range d.List("hooks", "*") {
		name := f.Path[1]
		if _, is := h.Event(name); is || h.Unregistered[name] != "" || dialect != nil && dialect.Row(name) != nil {
			continue
		}
		for _, other := range hostconf.All() {
			if _, is := other.Event(name); is {
				out = append(out, fmt.Sprintf("%s:%d: hooks.%s is an event of %s and none of %s: what is registered there never runs", path, f.Line, name, other.Name, h.Name))
				break
			}
		}
	}
	return out
}

// ownFile is a file that is ours alone.
func ownFile(path string, mode os.FileMode, is func([]byte) bool, content []byte) unit {
	u := unit{path: path, mode: mode, whole: true}
	u.strip = func(data []byte, _ []confedit.Trace) ([]byte, error) {
		if is(data) {
			return nil, nil
		}
		return data, nil
	}
	if content != nil {
		u.put = func(data []byte) ([]byte, []confedit.Trace, error) {
			if len(data) > 0 && !is(data) {
				return nil, nil, &confedit.Error{Name: path, Msg: "a file that ahp did not write is in the place of ahp's; move it away, it was left as it is"}
			}
			return content, nil, nil
		}
	}
	return u
}

func bridgeUnit(h hostconf.Host, o Options, folder string) ([]unit, error) {
	c := o.Call
	c.Host, c.LimitMS = h.Name, hostconf.LimitMS
	// The same paths are refused as in a command line.
	if _, err := shellWords(append([]string{c.Binary}, c.Args()...)); err != nil {
		return nil, err
	}
	var source []byte
	if o.Call.Binary != "" {
		var err error
		source, err = bridge.Source(h.Name, bridgeParameters(c))
		if err != nil {
			return nil, err
		}
	}
	return []unit{ownFile(filepath.Join(folder, bridge.FileName(h.Name)), 0, bridge.Is, source)}, nil
}

// bridgeParameters returns what is put into a bridge for a call.
func bridgeParameters(c Call) bridge.Parameters {
	return bridge.Parameters{
		Binary: c.Binary, Args: c.Args(), OnMissing: string(c.OnMissing), TimerMS: c.LimitMS,
		NoAnswer:   NoAnswer(c.Host),
		NotApplied: "AHP wanted this changed in a way that could not be made here, so it was refused.",
	}
}

const shebang = "#!/bin/sh\n"

// scriptUnits returns one executable per event. Where somebody else's file has the
// event's name, ours has the same with ".sh", which the host starts as well.
func scriptUnits(h hostconf.Host, dialect *adapter.Host, t hostconf.Target, o Options, folder string) ([]unit, error) {
	var out []unit
	for _, e := range t.Events {
		var content []byte
		if dialect != nil {
			if dialect.Row(e.Name) == nil {
				continue
			}
			line, err := eventLine(dialect, h, o.Call, e.Name)
			if err != nil {
				return nil, err
			}
			content = []byte(shebang + line + "\n")
		}
		path := filepath.Join(folder, e.Name)
		s, err := confedit.Read(path)
		if err != nil {
			return nil, err
		}
		if s.Exists && !isScript(s.Data) {
			path += ".sh"
		}
		out = append(out, ownFile(path, 0o755, isScript, content))
	}
	return out, nil
}

func isScript(data []byte) bool {
	return len(data) > len(shebang) && IsLine(string(data[len(shebang):]))
}

// putTables makes our [[hooks]] tables those of the list, each once.
func putTables(path string, t hostconf.Target, data []byte, list []entry) ([]byte, []confedit.Trace, error) {
	pairs := func(e entry) []confedit.Pair {
		return []confedit.Pair{
			{Key: "event", Value: confedit.TOMLString(e.event)}, {Key: t.Command, Value: confedit.TOMLString(e.command)},
			{Key: t.LimitKey, Value: fmt.Sprint(hostconf.LimitMS / t.LimitUnit)},
		}
	}
	d, err := confedit.ParseTOML(data, path)
	if err != nil {
		return nil, nil, err
	}
	kept := map[string]bool{}
	for _, e := range list {
		for _, b := range d.Blocks("hooks") {
			if b.Values["event"] == e.event && b.Values[t.Command] == e.command && b.Values[t.LimitKey] == fmt.Sprint(hostconf.LimitMS/t.LimitUnit) {
				kept[e.event] = true
			}
		}
	}
	if err := dropTables(d, func(b confedit.Block) bool { return !kept[b.Values["event"]] }); err != nil {
		return nil, nil, err
	}
	for _, e := range list {
		if !kept[e.event] {
			if err := d.Append([]string{"hooks"}, true, pairs(e)...); err != nil {
				return nil, nil, err
			}
		}
	}
	return d.Bytes(), d.Traces(), nil
}

// dropTables removes our tables for which f is true.
func dropTables(d *confedit.TOML, f func(b confedit.Block) bool) error {
	for i := 0; ; {
		blocks := d.Blocks("hooks")
		if i >= len(blocks) {
			return nil
		}
		if b := blocks[i]; !IsLine(b.Values["command"]) || !f(b) {
			i++
		} else if err := d.Remove(b); err != nil {
			return err
		}
	}
}

func stripTables(path string, data []byte, traces []confedit.Trace) ([]byte, error) {
	d, err := confedit.ParseTOML(data, path)
	if err != nil {
		return nil, err
	}
	if err := dropTables(d, func(confedit.Block) bool { return true }); err != nil {
		return nil, err
	}
	if err := d.Undo(traces); err != nil {
		return nil, err
	}
	return d.Bytes(), nil
}
