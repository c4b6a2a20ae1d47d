package chain

import (
	"errors"
	"fmt"
	"io"
)

// lastLine returns the last whole line of a file of the given size, and the offset
// behind it.
func lastLine(f io.ReaderAt, size int64) (line []byte, end int64, err error) {
	step := int64(8 << 10)
	var tail []byte // what was read, from offset at
	at, last := size, -1
	for at > 0 && len(tail) <= 2*MaxLine {
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

// lastLink returns the link of the last whole line of a file of the given size, the
// zero Link if there is none, and the offset behind it.
func lastLink(f io.ReaderAt, size int64) (Link, int64, error) {
	line, end, err := lastLine(f, size)
	if err != nil || end == 0 {
		return Link{}, 0, err
	}
	computed, stated, err := HashOf(line)
	if err == nil && computed != stated {
		err = errors.New("its hash doesn't fit")
	}
	var head Link
	if err == nil {
		head, err = ParseLink(line)
	}
	if err != nil {
		return Link{}, 0, fmt.Errorf("the last line isn't one of a log: %w; move the file away to begin another", err)
	}
	return head, end, nil
}

// End returns the offset behind the last whole line of a log of the given size: what
// follows is a line half written.
func End(f io.ReaderAt, size int64) (int64, error) {
	_, end, err := lastLine(f, size)
	return end, err
}
