package bash

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"unicode/utf8"
)

// maxSpill bounds the file that holds the full output, in bytes.
const maxSpill = 64 << 20

// keeper keeps the begin and the end of a text, and the whole of it in a file if
// there is a folder for that. What a program overwrote on its line is in the file only.
// Bounds are in bytes.
type keeper struct {
	headMax, tailMax int
	dir              *os.Root // nil keeps no file

	head, tail []byte
	total      int64

	first   []byte // the begin of the whole text, while there is no file
	whole   int64  // what the file should hold
	file    *os.File
	name    string // of the file in dir
	spilled int64
	failed  error
}

func (k *keeper) write(p []byte) {
	k.spill(p)
	k.total += int64(len(p))
	if room := k.headMax - len(k.head); room > 0 {
		n := min(room, len(p))
		k.head = append(k.head, p[:n]...)
		p = p[n:]
	}
	if len(p) > k.tailMax {
		p = p[len(p)-k.tailMax:]
	}
	if len(k.tail)+len(p) > 2*k.tailMax {
		k.tail = append(k.tail[:0], k.tail[len(k.tail)-k.tailMax:]...)
	}
	k.tail = append(k.tail, p...)
}

// overwritten takes a line that was overwritten by what follows.
func (k *keeper) overwritten(line []byte) {
	k.spill(line)
	k.spill([]byte{'\n'})
}

// spill adds to the whole text. The file is made once that outgrows the head.
func (k *keeper) spill(p []byte) {
	if k.dir == nil || k.failed != nil || len(p) == 0 {
		return
	}
	k.whole += int64(len(p))
	if k.file == nil {
		if k.first = append(k.first, p...); len(k.first) <= k.headMax {
			return
		}
		k.name = "output-" + rand.Text() + ".txt"
		if k.file, k.failed = k.dir.OpenFile(k.name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); k.failed != nil {
			return
		}
		p, k.first = k.first, nil
	}
	if room := maxSpill - k.spilled; room > 0 {
		n, err := k.file.Write(p[:min(int64(len(p)), room)])
		k.spilled += int64(n)
		k.failed = err
	}
}

// end returns the kept text with a mark where something is missing. The file stays
// if it holds more than the text; note names it.
func (k *keeper) end() (text, note string) {
	tail := k.tail[max(0, len(k.tail)-k.tailMax):]
	missing := k.total - int64(len(k.head)) - int64(len(tail))
	if k.file != nil {
		defer k.file.Close()
	}
	more := missing > 0 || k.whole > k.total
	switch {
	case !more && k.file != nil:
		k.dir.Remove(k.name)
	case k.failed != nil:
		note = fmt.Sprintf("the full output could not be kept: %v", k.failed)
	case k.file != nil && k.spilled == k.whole:
		note = fmt.Sprintf("the full output of %d bytes is in %s", k.whole, k.path())
	case k.file != nil:
		note = fmt.Sprintf("the first %d of %d bytes of output are in %s", k.spilled, k.whole, k.path())
	}
	if missing <= 0 {
		return string(k.head) + string(tail), note
	}
	head := k.head
	for len(head) > 0 && !utf8.Valid(lastRune(head)) { // don't cut a character
		head = head[:len(head)-1]
	}
	for len(tail) > 0 && !utf8.RuneStart(tail[0]) {
		tail = tail[1:]
	}
	missing = k.total - int64(len(head)) - int64(len(tail))
	return fmt.Sprintf("%s\n… (%d bytes left out) …\n%s", head, missing, tail), note
}

// path is where the file is to be found.
func (k *keeper) path() string { return filepath.Join(k.dir.Name(), k.name) }

// lastRune returns the bytes of the last character, whole or not.
func lastRune(p []byte) []byte {
	i := len(p) - 1
	for i > 0 && i > len(p)-utf8.UTFMax && !utf8.RuneStart(p[i]) {
		i--
	}
	return p[i:]
}
