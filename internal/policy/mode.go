package policy

import "fmt"

// Mode says what runs without a question when no rule objects (gate.md §2). The
// order is that of strictness: ModePlan is the strictest. The zero Mode is none;
// an evaluation with it behaves as ModePlan.
type Mode uint8

const (
	// ModePlan lets read-only tools run as ModeDefault does, and nothing else.
	ModePlan Mode = iota + 1
	// ModeDefault lets read-only tools run inside the roots.
	ModeDefault
	// ModeAcceptEdits also lets write and edit run inside the roots.
	ModeAcceptEdits
	// ModeAuto also lets judgeable, not destructive commands run in a sandbox
	// without network.
	ModeAuto
	// ModeBypass lets everything run that nothing above the mode stops.
	ModeBypass
)

var modeNames = [...]string{"", "plan", "default", "accept-edits", "auto", "bypass"}

// String returns the name as settings spell it, or "" for the zero Mode.
func (m Mode) String() string {
	if int(m) >= len(modeNames) {
		return ""
	}
	return modeNames[m]
}

// ParseMode returns the mode named s.
func ParseMode(s string) (Mode, error) {
	for m := ModePlan; m <= ModeBypass; m++ {
		if modeNames[m] == s {
			return m, nil
		}
	}
	return 0, fmt.Errorf("unknown mode %q; expected plan, default, accept-edits, auto or bypass", s)
}

// MarshalText encodes the mode as its name.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText decodes a name; "" is the zero Mode.
func (m *Mode) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*m = 0
		return nil
	}
	v, err := ParseMode(string(b))
	if err == nil {
		*m = v
	}
	return err
}

// Strictest returns the stricter of two modes; a zero Mode is no bound.
func Strictest(a, b Mode) Mode {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
