package bash

import (
	"fmt"
	"os"
	"unicode/utf8"
)

// maxSpill bounds the file that holds the full output, in bytes.
const maxSpill = 64 << 20

// keeper keeps the begin and the end of a text, and the whole of it in a file if
// there is a folder for that. Bounds are in bytes.
type keeper struct {
	headMax, tailMax int
	dir              string // "" keeps no file

	head, tail []byte
	total      int64
	file       *os.File
	spilled    int64
	failed     error
}

func (k *keeper) write(p []byte) {
	k.total += int64(len(p))
	if room := k.headMax - len(k.head); room > 0 {
		n := min(room, len(p))
		k.head = append(k.head, p[:n]...)
		if p = p[n:]; len(p) == 0 {
			return
		}
		k.open()
	} else if k.file == nil && k.failed == nil && len(p) > 0 {
		k.open()
	}
	k.spill(p)
	if len(p) > k.tailMax {
		p = p[len(p)-k.tailMax:]
	}
	if len(k.tail)+len(p) > 2*k.tailMax {
		k.tail = append(k.tail[:0], k.tail[len(k.tail)-k.tailMax:]...)
	}
	k.tail = append(k.tail, p...)
}

// open starts the file once the text outgrows the head.
func (k *keeper) open() {
	if k.dir == "" || k.file != nil || k.failed != nil {
		return
	}
	if k.file, k.failed = os.CreateTemp(k.dir, "output-*.txt"); k.failed == nil {
		k.spill(k.head)
	}
}

func (k *keeper) spill(p []byte) {
	if k.file == nil || k.failed != nil || k.spilled >= maxSpill {
		return
	}
	n, err := k.file.Write(p[:min(int64(len(p)), maxSpill-k.spilled)])
	k.spilled += int64(n)
	k.failed = err
}

// end returns the kept text with a mark where something is missing. The file stays
// if it holds more than the text; note names it.
func (k *keeper) end() (text, note string) {
	tail := k.tail[max(0, len(k.tail)-k.tailMax):]
	missing := k.total - int64(len(k.head)) - int64(len(tail))
	if k.file != nil {
		defer k.file.Close()
	}
	if missing <= 0 {
		if k.file != nil {
			os.Remove(k.file.Name())
		}
		return string(k.head) + string(tail), ""
	}
	head := k.head
	for len(head) > 0 && !utf8.Valid(lastRune(head)) { // don't cut a character
		head = head[:len(head)-1]
	}
	for len(tail) > 0 && !utf8.RuneStart(tail[0]) {
		tail = tail[1:]
	}
	missing = k.total - int64(len(head)) - int64(len(tail))
	switch {
	case k.file != nil && k.failed == nil && k.spilled == k.total:
		note = fmt.Sprintf("the full output of %d bytes is in %s", k.total, k.file.Name())
	case k.file != nil && k.failed == nil:
		note = fmt.Sprintf("the first %d of %d bytes of output are in %s", k.spilled, k.total, k.file.Name())
	case k.failed != nil:
		note = fmt.Sprintf("the full output could not be kept: %v", k.failed)
	}
	return fmt.Sprintf("%s\n… (%d bytes left out) …\n%s", head, missing, tail), note
}

// lastRune returns the bytes of the last character, whole or not.
func lastRune(p []byte) []byte {
	i := len(p) - 1
	for i > 0 && i > len(p)-utf8.UTFMax && !utf8.RuneStart(p[i]) {
		i--
	}
	return p[i:]
}
