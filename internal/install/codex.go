package install

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/internal/confedit"
	"github.com/abhed/abhed/internal/hostconf"
	"github.com/abhed/abhed/internal/strictjson"
)

// CodexHook is a command hook in a hooks.json of Codex, with what its trust hangs on.
type CodexHook struct {
	Event, Command string
	// Key is the name of its table under [hooks.state] of the user's config.toml, and
	// Hash the trusted_hash that it has to hold.
	Key, Hash string
	// Line tells that it is a line of ours.
	Line bool
}

// CodexHooks returns the command hooks of the hooks.json at path. The hash covers the
// command line, not the program behind it (measured with 0.171.0).
func CodexHooks(path string, data []byte) ([]CodexHook, error) {
	d, err := confedit.ParseJSON(data, confedit.JSONOptions{Name: path})
	if err != nil {
		return nil, err
	}
	var out []CodexHook
	for _, f := range d.List("hooks", "*", "*") {
		var group struct {
			Matcher *string `json:"matcher"`
			Hooks   []struct {
				Type    string `json:"type"`
				Command string `json:"command"`
				Timeout *int64 `json:"timeout"`
				Async   bool   `json:"async"`
			} `json:"hooks"`
		}
		if err := strictjson.Unmarshal(f.JSON, &group, strictjson.Options{}); err != nil {
			return nil, &confedit.Error{Name: path, Line: f.Line, Column: f.Column, Msg: err.Error()}
		}
		for i, h := range group.Hooks {
			if h.Type != "command" {
				continue
			}
			timeout := int64(600)
			if h.Timeout != nil {
				timeout = *h.Timeout
			}
			event := f.Path[1]
			out = append(out, CodexHook{
				Event: event, Command: h.Command, Line: IsLine(h.Command),
				Key:  fmt.Sprintf("%s:%s:%s:%d", path, snake(event), f.Path[2], i),
				Hash: codexHash(event, h.Command, timeout, h.Async, group.Matcher),
			})
		}
	}
	return out, nil
}

// codexHash is Codex's trusted_hash: over the compact JSON of the hook as it reads it,
// with its names in order.
func codexHash(event, command string, timeout int64, async bool, matcher *string) string {
	hook := object{}
	hook.add("async", fmt.Sprint(async))
	hook.add("command", text(command))
	hook.add("timeout", fmt.Sprint(timeout))
	hook.add("type", `"command"`)
	o := object{}
	o.add("event_name", text(snake(event)))
	o.add("hooks", "["+hook.String()+"]")
	if matcher != nil {
		o.add("matcher", text(*matcher))
	}
	sum := sha256.Sum256([]byte(o.String()))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// snake writes PreToolUse as pre_tool_use.
func snake(event string) string {
	var b strings.Builder
	for i, r := range event {
		if r >= 'A' && r <= 'Z' {
			if i > 0 {
				b.WriteByte('_')
			}
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// codexUnits are the files beside hooks.json: the user's, which holds the trust, and
// the machine's, which keeps a project from switching hooks off.
func codexUnits(h hostconf.Host, dialect *adapter.Host, o Options, hooks string) ([]unit, error) {
	if o.Scope == hostconf.Managed {
		path := filepath.Join(filepath.Dir(hooks), "requirements.toml")
		u := unit{path: path, strip: func(data []byte, traces []confedit.Trace) ([]byte, error) {
			return stripTOML(path, data, traces, func(*confedit.TOML) error { return nil })
		}}
		if dialect != nil {
			u.put = func(data []byte) ([]byte, []confedit.Trace, error) {
				return putTOML(path, data, func(d *confedit.TOML) error { return d.Ensure("features", "hooks", "true") })
			}
		}
		return []unit{u}, nil
	}
	path := o.Roots.Path(codexConfig(h))
	u := unit{path: path, mode: 0o600, outside: true, strip: func(data []byte, traces []confedit.Trace) ([]byte, error) {
		return stripTOML(path, data, traces, func(d *confedit.TOML) error { return distrust(d, hooks) })
	}}
	if dialect != nil && o.Trust {
		list, err := entries(h.In(o.Scope)[0], dialect, h, o.Call)
		if err != nil {
			return nil, err
		}
		u.put = func(data []byte) ([]byte, []confedit.Trace, error) {
			return putTOML(path, data, func(d *confedit.TOML) error { return trust(d, h.In(o.Scope)[0], hooks, list) })
		}
	}
	return []unit{u}, nil
}

// codexConfig is the user's config.toml.
func codexConfig(h hostconf.Host) hostconf.File {
	for _, f := range h.Files {
		if f.Scope == hostconf.User && f.Format == hostconf.TOML {
			return f
		}
	}
	return hostconf.File{}
}

func putTOML(path string, data []byte, edit func(*confedit.TOML) error) ([]byte, []confedit.Trace, error) {
	d, err := confedit.ParseTOML(data, path)
	if err != nil {
		return nil, nil, err
	}
	if err := edit(d); err != nil {
		return nil, nil, err
	}
	return d.Bytes(), d.Traces(), nil
}

func stripTOML(path string, data []byte, traces []confedit.Trace, edit func(*confedit.TOML) error) ([]byte, error) {
	d, err := confedit.ParseTOML(data, path)
	if err != nil {
		return nil, err
	}
	if err := edit(d); err != nil {
		return nil, err
	}
	if err := d.Undo(traces); err != nil {
		return nil, err
	}
	return d.Bytes(), nil
}

// trust writes the hashes of our hooks, as hooks.json will be.
func trust(d *confedit.TOML, t hostconf.Target, path string, list []entry) error {
	s, err := confedit.Read(path)
	if err != nil {
		return err
	}
	j, err := confedit.ParseJSON(s.Data, confedit.JSONOptions{Name: path})
	if err != nil {
		return err
	}
	if err := merge(j, t, list); err != nil {
		return err
	}
	hooks, err := CodexHooks(path, j.Bytes())
	if err != nil {
		return err
	}
	for _, h := range hooks {
		if !h.Line {
			continue
		}
		hash := confedit.TOMLString(h.Hash)
		blocks := d.Blocks("hooks", "state", h.Key)
		switch {
		case len(blocks) == 0:
			err = d.Append([]string{"hooks", "state", h.Key}, false, confedit.Pair{Key: "trusted_hash", Value: hash})
		case blocks[0].Values["trusted_hash"] != h.Hash:
			err = d.SetValue(blocks[0], "trusted_hash", hash)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// distrust removes the trust in our hooks, as hooks.json is now.
func distrust(d *confedit.TOML, path string) error {
	s, err := confedit.Read(path)
	if err != nil || !s.Exists {
		return err
	}
	hooks, err := CodexHooks(path, s.Data)
	if err != nil {
		return err
	}
	for _, h := range hooks {
		for _, b := range d.Blocks("hooks", "state", h.Key) {
			if h.Line {
				if err := d.Remove(b); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
