package policy

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/abhed/abhed/internal/strictjson"
)

// Agent identifies who made a call: the main agent has depth 0.
type Agent struct {
	ID    string `json:"id"`
	Depth int    `json:"depth"`
}

// Call is one tool call as the gate judges it (gate.md §1). Build it with
// NewCall; the zero Call is no call. A Call is immutable.
type Call struct {
	ID          string
	Tool        string
	ToolVersion string
	// Args holds the arguments as canonical JSON; the bytes are shared and must
	// not be changed.
	Args    []byte
	WorkDir string
	Roots   []string
	Session string
	Turn    int
	Agent   Agent
}

// WithArgs returns a copy of c whose arguments are args in canonical form.
func (c Call) WithArgs(args []byte) (Call, error) {
	canon, err := strictjson.Canonical(args)
	if err != nil {
		return Call{}, err
	}
	c.Args = canon
	return c, nil
}

// Hash returns the SHA-256, in lower-case hex, that an approval and a permit
// are bound to: it covers call id, tool, version, arguments, working directory
// and roots.
func (c Call) Hash() string {
	h := sha256.New()
	field := func(s string) {
		var n [8]byte
		for i := range n {
			n[i] = byte(len(s) >> (8 * i))
		}
		h.Write(n[:])
		h.Write([]byte(s))
	}
	field(c.ID)
	field(c.Tool)
	field(c.ToolVersion)
	field(string(c.Args))
	field(c.WorkDir)
	for _, r := range c.Roots {
		field(r)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// SubjectKind says what a tool's subject is, and so which rules can match it.
type SubjectKind uint8

const (
	// SubjectNone means that the tool has no subject; only bare tool rules match.
	SubjectNone SubjectKind = iota
	// SubjectCommand is a shell command line.
	SubjectCommand
	// SubjectPath is a file path as the model gave it.
	SubjectPath
	// SubjectURL is an absolute URL.
	SubjectURL
	// SubjectText is any other string, compared as it is.
	SubjectText
)

// Declaration is what a tool says of one call, before anybody judges it.
type Declaration struct {
	Kind SubjectKind
	// Subject is the command, path, URL or text; empty with SubjectNone.
	Subject string
	// Mutates reports whether the call may change anything. A tool that doesn't
	// know says true.
	Mutates bool
}
