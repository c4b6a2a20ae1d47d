package read

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/tool"
	"github.com/abhed/abhed/internal/workspace"
)

// window collects the lines of a file that are to be shown.
type window struct {
	o           Options
	first, last int // line numbers, from 1
	line        int // the number of the newest line
	shown       int // the number of the last line that is shown; 0 is none
	cut         int // how many lines were cut
	full        bool
	out         strings.Builder
}

func newWindow(o Options, a args) *window {
	w := &window{o: o, first: max(a.Offset, 1)}
	limit := a.Limit
	if limit == 0 {
		limit = o.MaxLines
	}
	w.last = w.first + limit - 1
	return w
}

// add takes the next line and reports whether more are wanted.
func (w *window) add(line string) bool {
	w.line++
	if w.line < w.first {
		return true
	}
	line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
	rest := 0
	if len(line) > w.o.MaxLine {
		end := w.o.MaxLine
		for end > 0 && end > w.o.MaxLine-utf8.UTFMax && !utf8.RuneStart(line[end]) {
			end--
		}
		line, rest = line[:end], len(line)-end
	}
	line = tool.Clean(line)
	if w.out.Len()+len(line)+10 > w.o.MaxBytes && w.shown > 0 {
		w.full = true
		return false
	}
	fmt.Fprintf(&w.out, "%d\t%s", w.line, line)
	if rest > 0 {
		w.cut++
		fmt.Fprintf(&w.out, " …(%d more bytes in this line)", rest)
	}
	w.out.WriteByte('\n')
	w.shown = w.line
	return w.line < w.last
}

// end returns the shown lines and what there is to say; total is the number of
// lines, or -1 if it isn't known.
func (w *window) end(path string, total int, notes string) string {
	of := fmt.Sprintf(" of %d", total)
	if total < 0 {
		of = ""
	}
	switch {
	case w.shown != total && w.shown > 0:
		why := ""
		if w.full {
			why = fmt.Sprintf("; the rest did not fit into %d bytes", w.o.MaxBytes)
		}
		fmt.Fprintf(&w.out, "(%s: lines %d-%d%s%s; go on with offset %d%s)\n", path, w.first, w.shown, of, why, w.shown+1, notes)
	case w.first > 1 || notes != "":
		fmt.Fprintf(&w.out, "(%s: lines %d-%d%s%s)\n", path, w.first, w.shown, of, notes)
	}
	return w.out.String()
}

// part shows lines of a file that is too large to be held whole. Such a file is
// not known to the tracker, since it can't be compared.
func (t *Tool) part(ctx context.Context, place policy.Place, a args) tool.Result {
	f, info, err := workspace.Open(place)
	if err != nil {
		return tool.Fail(err.Error())
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 256<<10)
	if head, _ := r.Peek(64 << 10); bytes.IndexByte(head, 0) >= 0 {
		return tool.Fail(fmt.Sprintf("%s is not a text file: it holds NUL bytes (%d bytes, %s).", a.Path, info.Size, http.DetectContentType(head)))
	}
	w := newWindow(t.o, a)
	for {
		if ctx.Err() != nil {
			return tool.Fail("Reading was interrupted.")
		}
		line, err := readLine(r, t.o.MaxLine)
		if err == io.EOF && line == "" {
			break
		}
		if err != nil && err != io.EOF {
			return tool.Fail(fmt.Sprintf("cannot read %s: %v", a.Path, err))
		}
		if !w.add(line) {
			return tool.OK(w.end(a.Path, -1, fmt.Sprintf("; %d bytes in all, too large to be edited here", info.Size)))
		}
	}
	if w.shown == 0 {
		return tool.Fail(fmt.Sprintf("%s has %d lines; offset %d is past its end.", a.Path, w.line, w.first))
	}
	return tool.OK(w.end(a.Path, w.line, fmt.Sprintf("; %d bytes in all, too large to be edited here", info.Size)))
}

// readLine returns the next line, of which it keeps a little more than limit bytes.
func readLine(r *bufio.Reader, limit int) (string, error) {
	var line []byte
	for {
		piece, err := r.ReadSlice('\n')
		if room := limit + 64 - len(line); room > 0 {
			line = append(line, piece[:min(room, len(piece))]...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return string(line), err
		}
	}
}
