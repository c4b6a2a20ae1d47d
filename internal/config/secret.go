package config

import (
	"fmt"
	"io"
)

// secretText stands for a secret wherever one would be printed.
const secretText = "[secret]"

// Secret holds a value that must not be printed. Every way of printing,
// formatting and encoding one gives "[secret]"; only Reveal gives the value. The
// zero Secret is none and prints so too.
type Secret struct {
	// A pointer, because package fmt prints an unexported field of somebody
	// else's struct without asking its methods: it then shows an address.
	value *string
}

// NewSecret wraps value; the empty value gives the zero Secret.
func NewSecret(value string) Secret {
	if value == "" {
		return Secret{}
	}
	return Secret{value: &value}
}

// IsZero reports whether there is no secret.
func (s Secret) IsZero() bool { return s.value == nil }

// Reveal returns the value, "" for the zero Secret. Hand it to the one place
// that needs it and to nothing that prints.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// String returns "[secret]".
func (s Secret) String() string { return secretText }

// GoString returns "[secret]".
func (s Secret) GoString() string { return secretText }

// Format writes "[secret]" whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, secretText) }

// MarshalText returns "[secret]"; JSON encoders use it.
func (s Secret) MarshalText() ([]byte, error) { return []byte(secretText), nil }
