// Package bridge holds the plugins that connect AHP to agents whose hooks are code in
// their own process: opencode, Kilo and pi.
//
// It guarantees that a plugin's initialiser does no I/O and does not throw; that
// whatever ahp does (a crash, no answer, garbage, a missing program) ends inside the
// promise that the host waits for, in a refusal or in a pass as the policy says; that
// a rewrite which can't be made is a refusal; and that ahp and its children are ended
// at the timer.
//
// Do not assume that the host loads the file: opencode and Kilo skip one that does not
// load without a word. Every document carries [Version], so that the doctor can see
// when a bridge last spoke.
package bridge

import (
	"bytes"
	_ "embed" // the plugins' text
	"fmt"

	"github.com/abhed/abhed/internal/strictjson"
)

// Version is that of the bridge and of the documents that it sends.
const Version = "1"

// maxBytes bounds ahp's answer.
const maxBytes = 32 << 20

var (
	//go:embed core.js
	core string
	//go:embed opencode.js
	plugin string
	//go:embed pi.ts
	extension string
)

// Parameters are what is put into a plugin.
type Parameters struct {
	// Version is [Version] in a plugin that Source made.
	Version string `json:"version"`
	// Binary is the absolute path of ahp, and Args its arguments.
	Binary string   `json:"binary"`
	Args   []string `json:"args"`
	// OnMissing says what no answer means at a gate: deny or allow.
	OnMissing string `json:"onMissing"`
	// TimerMS ends ahp; it has to be longer than ahp's own budget.
	TimerMS int `json:"timerMS"`
	// MaxBytes bounds an answer.
	MaxBytes int `json:"maxBytes"`
	// NoAnswer and NotApplied are reasons of the bridge's own refusals.
	NoAnswer   string `json:"noAnswer"`
	NotApplied string `json:"notApplied"`
}

// FileName returns the name of a host's plugin file, "" if it has none.
func FileName(host string) string {
	switch host {
	case "opencode", "kilo":
		return "ahp.js"
	case "pi":
		return "ahp.ts"
	}
	return ""
}

const (
	first = "// ahp-bridge-" + Version + ": \"ahp install\" wrote this file, and \"ahp doctor\" compares it byte for byte.\n"
	start = "const parameters = "
)

// Source returns the text of a host's plugin.
func Source(host string, p Parameters) ([]byte, error) {
	tail := plugin
	switch FileName(host) {
	case "":
		return nil, fmt.Errorf("%s takes no bridge", host)
	case "ahp.ts":
		tail = extension
	}
	p.Version, p.MaxBytes = Version, maxBytes
	constants, err := strictjson.Marshal(p)
	if err != nil {
		return nil, err
	}
	return []byte(first + start + string(constants) + "\n\n" + core + tail), nil
}

// Is reports whether a file is a bridge of ours, as it was or changed.
func Is(data []byte) bool { return bytes.HasPrefix(data, []byte("// ahp-bridge-")) }

// Read returns the parameters of a plugin file. Whether the file is as Source makes it
// from them, the caller compares.
func Read(data []byte) (Parameters, error) {
	var p Parameters
	if !Is(data) {
		return p, fmt.Errorf("not a bridge that ahp installed: it begins with %.40q, expected %.16q", data, first)
	}
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		if constants, is := bytes.CutPrefix(line, []byte(start)); is {
			err := strictjson.Unmarshal(constants, &p, strictjson.Options{RejectUnknown: true})
			return p, err
		}
	}
	return p, fmt.Errorf("the bridge was changed: it has no line that begins with %q", start)
}
