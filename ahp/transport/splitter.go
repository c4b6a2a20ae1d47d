package transport

import (
	"bytes"

	"github.com/abhed/abhed/ahp"
)

// splitter makes lines of chunks, however they are cut.
type splitter struct {
	held []byte // the start of a line whose end hasn't come
}

// feed gives each line that chunk completes to deliver, without its line feed. The
// lines share memory with chunk, which the caller gives away. It fails for a line
// beyond the limit, and stops at the first error of deliver.
func (s *splitter) feed(chunk []byte, deliver func(line []byte) error) error {
	for {
		part, rest, found := bytes.Cut(chunk, []byte("\n"))
		if len(s.held)+len(part) > ahp.MaxMessageBytes {
			return &ahp.Failure{Class: ahp.FailMalformed, Detail: "a line of output is longer than the limit"}
		}
		if !found {
			s.held = append(s.held, part...)
			return nil
		}
		line := part
		if len(s.held) > 0 {
			line = append(s.held, part...)
			s.held = nil
		}
		if err := deliver(line); err != nil {
			return err
		}
		chunk = rest
	}
}
