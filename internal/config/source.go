package config

import (
	"fmt"
	"strconv"
)

// Layer says how high a source ranks; a greater Layer wins where the highest
// source counts (gate.md §4).
type Layer uint8

const (
	// Default is the layer of a value that no source set.
	Default Layer = iota
	// Project is the workspace's own settings file. It needs trust.
	Project
	// User is the person's settings file, or the one that --config names.
	User
	// Environment holds the ABHED_* variables.
	Environment
	// CommandLine holds flags and the fields of an rpc start.
	CommandLine
	// Managed is the machine's settings file, which nothing may loosen.
	Managed
)

// String returns the layer's name in messages.
func (l Layer) String() string {
	switch l {
	case Default:
		return "default"
	case Project:
		return "project"
	case User:
		return "user"
	case Environment:
		return "environment"
	case CommandLine:
		return "command line"
	case Managed:
		return "managed"
	}
	return "layer " + strconv.Itoa(int(l))
}

// MarshalText returns String.
func (l Layer) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// Source is one place that settings come from. Managed, User and Project
// sources carry Data, the Environment source carries Environ, CommandLine
// sources carry Args; another combination is a programming error that Load
// reports. Load keeps no reference to any of it.
type Source struct {
	// Layer ranks the source. Of two sources in one layer the earlier one in the
	// list counts as the higher.
	Layer Layer
	// File names the source in messages; for a settings file its path.
	File string
	// Dir is the folder that relative paths in the source start at: a settings
	// file's own folder, for a project the workspace root, for the command line
	// the working directory. Empty leaves relative paths as they are.
	Dir string
	// Home is what a leading "~/" of a path stands for. Empty leaves it.
	Home string
	// Data is the settings file: one JSON object in UTF-8, with // and /* */
	// comments, trailing commas and a byte order mark allowed.
	Data []byte
	// Trusted says that a person trusts this project file; it has no meaning in
	// other layers.
	Trusted bool
	// Args are settings given as flags.
	Args []Arg
	// Environ holds variables as NAME=value; those that don't start with ABHED_
	// are passed over.
	Environ []string
}

// Arg is a setting given outside a file: Flag is its name in messages
// ("--max-turns"), Key the setting's path ("limits.max_turns"), and Values its
// value as text. A key that holds a list takes each of Values as an element;
// any other takes exactly one.
type Arg struct {
	Flag   string
	Key    string
	Values []string
}

// Origin is where a value came from. The zero Origin is a built-in default.
type Origin struct {
	Layer Layer `json:"layer"`
	// File is the settings file's path, the flag or the variable's name; empty
	// for a default.
	File string `json:"file,omitzero"`
	// Line and Column count from 1, Column in characters; both are 0 where the
	// value stands in no file.
	Line   int `json:"line,omitzero"`
	Column int `json:"column,omitzero"`
	// Key is the path of the value in its source, such as permissions.deny[0].
	Key string `json:"key,omitzero"`
}

// String returns the layer and the place, without the key: "managed
// /etc/abhed/config.json:3:14", "command line --mode", "default".
func (o Origin) String() string {
	switch place := o.place(); {
	case place == "":
		return o.Layer.String()
	default:
		return o.Layer.String() + " " + place
	}
}

// place returns "file:line:column", "file" or "".
func (o Origin) place() string {
	if o.File == "" || o.Line == 0 {
		return o.File
	}
	return fmt.Sprintf("%s:%d:%d", o.File, o.Line, o.Column)
}
