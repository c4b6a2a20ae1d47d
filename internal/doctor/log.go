package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/abhed/abhed/internal/chain"
	"github.com/abhed/abhed/internal/hooklog"
)

// tailLines is how many of the log's last lines are checked, and tailBytes bounds what is
// read for that.
const (
	tailLines = 1000
	tailBytes = 64 << 20
)

// log checks the decision log.
func (d *doctor) log(context.Context) {
	dir := hooklog.LogDir(d.o.State)
	path := filepath.Join(dir, hooklog.File)
	bad := func(what, where string) {
		d.add(Finding{Level: Wrong, Check: "log", What: what, Where: where, Do: "see ahp verify; what is missing can't be had back"})
	}
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(d.anchorFile()); err == nil {
			bad("the log is gone; at an earlier run of the doctor it was there", path)
			return
		}
		d.add(Finding{Level: Note, Check: "log", What: "no decision was logged yet", Where: path})
		return
	}
	l, err := hooklog.Open(dir, hooklog.Options{})
	if err != nil {
		bad("no decision can be written down, so every call is refused: "+err.Error(), path)
		return
	}
	_ = l.Close() // nothing was appended
	if what := d.held(); what != "" {
		bad(what, path)
	}
	if d.o.WholeLog {
		r, err := hooklog.Verify(dir, nil)
		if err != nil {
			bad(err.Error(), dir)
			return
		}
		for _, p := range r.Problems {
			bad(p.What, at(p.File, p.Line))
		}
		if r.OK() {
			d.add(Finding{Level: OK, Check: "log", What: fmt.Sprintf("all %d lines of the log are chained", r.Lines), Where: dir})
		}
		return
	}
	n, err := checkTail(path)
	if err != nil {
		bad(err.Error(), path)
		return
	}
	d.add(Finding{Level: OK, Check: "log", What: fmt.Sprintf("the last %d lines of the log are chained", n), Where: path})
}

// checkTail checks the last lines of a log, and returns how many those are.
func checkTail(path string) (int, error) {
	data, whole, err := tail(path)
	if err != nil {
		return 0, err
	}
	end := bytes.LastIndexByte(data, '\n') + 1 // the next line cuts off what is half written
	lines := bytes.Split(data[:end], []byte("\n"))
	lines = lines[:len(lines)-1]
	if !whole && len(lines) > 0 {
		lines = lines[1:] // it began before
	}
	if len(lines) > tailLines {
		lines, whole = lines[len(lines)-tailLines:], false
	}
	var before chain.Link
	for i, line := range lines {
		link, err := chain.ParseLink(line)
		if err != nil {
			return 0, fmt.Errorf("line %d from the end isn't a line of a log: %w", len(lines)-i, err)
		}
		computed, stated, err := chain.HashOf(line)
		switch {
		case err != nil:
			return 0, err
		case computed != stated || stated != link.Hash:
			return 0, fmt.Errorf("line %d from the end (decision %d) was changed", len(lines)-i, link.Seq)
		case (i > 0 || whole) && (link.Seq != before.Seq+1 || link.Prev != before.Hash):
			return 0, fmt.Errorf("line %d from the end has the number %d and follows another than the line before it, number %d: lines are missing, inserted or moved", len(lines)-i, link.Seq, before.Seq)
		}
		before = link
	}
	return len(lines), nil
}

// tail returns the last part of a file, enough for tailLines in most cases, and whether
// that is all of it.
func tail(path string) (data []byte, whole bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, false, err
	}
	for size := int64(1 << 20); ; size *= 4 {
		from := max(0, info.Size()-size)
		data, err = io.ReadAll(io.NewSectionReader(f, from, info.Size()-from))
		if err != nil || from == 0 || size >= tailBytes || bytes.Count(data, []byte("\n")) > tailLines+1 {
			return data, from == 0, err
		}
	}
}
