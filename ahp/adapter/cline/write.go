package cline

import (
	"strings"

	"github.com/abhed/abhed/ahp/adapter"
)

// control is what the host reads in its line.
type control struct {
	Cancel  bool   `json:"cancel,omitzero"`
	Error   string `json:"errorMessage,omitzero"`
	Context string `json:"contextModification,omitzero"`
}

// prefix marks the line that counts for the command line: with it an answer is read
// whatever else a process that shares standard output prints. The extension's
// documentation has nothing but the document.
const prefix = "HOOK_CONTROL\t"

// write says a verdict.
func write(e *adapter.Event, v *adapter.Verdict) ([]byte, error) {
	c := control{Context: strings.Join(v.Context, "\n")}
	switch {
	case v.Deny != "":
		c = control{Cancel: true, Error: adapter.Reason(v.Deny)}
	case v.Stop != "":
		c.Cancel, c.Error = true, v.Stop
	case v.Silent():
		return nil, nil
	}
	b, err := adapter.Encode(c)
	if err != nil {
		return nil, err
	}
	if e.Detail == extension {
		return b, nil
	}
	return append([]byte(prefix), b...), nil
}
