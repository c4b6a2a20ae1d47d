package eventlog

import "github.com/abhed/abhed/internal/chain"

// Scrubber returns a function for Options.Scrub: see chain.Scrubber.
func Scrubber(values []string) (func(event []byte) ([]byte, error), error) {
	return chain.Scrubber(values)
}
