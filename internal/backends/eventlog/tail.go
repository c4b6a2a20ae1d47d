package eventlog

import (
	"fmt"
	"io"

	"github.com/abhed/abhed/internal/chain"
)

// lastLine returns the last whole line of a file of the given size, and the offset
// behind it.
func lastLine(f io.ReaderAt, size int64) (line []byte, end int64, err error) {
	step := int64(64 << 10)
	var tail []byte // what was read, from offset at
	at, last := size, -1
	for at > 0 && len(tail) <= 2*chain.MaxLine {
		n := min(step, at)
		chunk := make([]byte, n, int(n)+len(tail))
		if _, err := f.ReadAt(chunk, at-n); err != nil {
			return nil, 0, err
		}
		at -= n
		if last >= 0 {
			last += int(n)
		}
		for i := int(n) - 1; i >= 0; i-- {
			if chunk[i] != '\n' {
				continue
			}
			if last >= 0 {
				whole := append(chunk, tail...)
				return whole[i+1 : last], at + int64(last) + 1, nil
			}
			last = i
		}
		tail = append(chunk, tail...)
		step *= 2
	}
	switch {
	case at > 0:
		return nil, 0, fmt.Errorf("no line within its last %d bytes", len(tail))
	case last < 0:
		return nil, 0, nil // nothing but a line half written
	}
	return tail[:last], int64(last) + 1, nil
}
