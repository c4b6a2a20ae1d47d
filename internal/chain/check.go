package chain

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/abhed/abhed/internal/strictjson"
)

// Problem is something wrong with a log, and where.
type Problem struct {
	// Line counts from 1 and is 0 for a problem of the log as a whole; Offset is
	// the byte offset of the line's start from 0.
	Line   int
	Offset int64
	// Seq is the number that the line bears; 0 if it bears none.
	Seq int64
	// What says what is wrong, what was expected, and what it means.
	What string
}

// String returns the problem in one line of text.
func (p Problem) String() string {
	if p.Line == 0 {
		return "the log as a whole: " + p.What
	}
	s := fmt.Sprintf("line %d (byte %d)", p.Line, p.Offset)
	if p.Seq != 0 {
		s += fmt.Sprintf(", event %d", p.Seq)
	}
	return s + ": " + p.What
}

// Checker follows a chain. The zero Checker stands before the first line.
type Checker struct {
	head Link
}

// Head returns the last accepted link; the zero Link before the first.
func (c *Checker) Head() Link { return c.head }

// Check accepts the line, whose link was read from it, as the next of the chain,
// or says why it isn't; the chain's head then stays. It hashes the stored bytes:
// a line in another than the canonical form has to be found by Canonical.
func (c *Checker) Check(line []byte, l Link) error {
	computed, stated, err := HashOf(line)
	switch {
	case err != nil:
		return err
	case stated != l.Hash:
		return fmt.Errorf("the hash in canonical place is %s, the line's member is %s", stated, l.Hash)
	case computed != l.Hash:
		return fmt.Errorf("the line was changed: its content has the hash %s, it states %s", computed, l.Hash)
	case l.Seq != c.head.Seq+1:
		return fmt.Errorf("it is number %d, expected %d: lines are missing, inserted, repeated or moved", l.Seq, c.head.Seq+1)
	case l.Prev != c.head.Hash:
		return fmt.Errorf("it follows a line with the hash %s, the line before has %s", orNone(l.Prev), orNone(c.head.Hash))
	}
	c.head = l
	return nil
}

func orNone(hash string) string {
	if hash == "" {
		return "(none)"
	}
	return hash
}

// Canonical reports whether a stored line is in canonical form; the error says
// what it isn't.
func Canonical(line []byte) error {
	line = bytes.TrimSuffix(line, []byte("\n"))
	if strictjson.IsCanonical(line) && len(line) <= MaxLine {
		return nil
	}
	c, err := canonical(line)
	if err != nil {
		return err
	}
	if !bytes.Equal(c, line) {
		i := 0
		for i < len(c) && i < len(line) && c[i] == line[i] {
			i++
		}
		return fmt.Errorf("the line isn't in canonical form from its byte %d on", i)
	}
	return nil
}

// Line is one line of a log as it is stored.
type Line struct {
	// Number counts from 1, Offset is the byte offset of the start from 0.
	Number int
	Offset int64
	// Data is the line without its line end. It is valid until the next call.
	Data []byte
	// Size is the number of stored bytes, line end included.
	Size int64
	// Whole is false for a last line without line end.
	Whole bool
	// TooLong says that the line is longer than MaxLine; Data is then its start.
	TooLong bool
}

// Reader reads a log line by line in bounded memory, whatever the lines hold. A
// line ends with a line feed alone. It is not safe for concurrent use.
type Reader struct {
	r    *bufio.Reader
	next Line
	buf  []byte
}

// NewReader returns a Reader of r, which it reads ahead of.
func NewReader(r io.Reader) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, 64<<10), next: Line{Number: 1}}
}

// Next returns the next line, or io.EOF behind the last.
func (r *Reader) Next() (Line, error) {
	l := r.next
	r.buf = r.buf[:0]
	for {
		part, err := r.r.ReadSlice('\n')
		l.Size += int64(len(part))
		if room := MaxLine + 1 - len(r.buf); room > 0 {
			r.buf = append(r.buf, part[:min(room, len(part))]...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && err != io.EOF {
			return Line{}, fmt.Errorf("line %d (byte %d) can't be read: %w", l.Number, l.Offset, err)
		}
		l.Whole = err == nil
		break
	}
	if l.Size == 0 {
		return Line{}, io.EOF
	}
	l.Data = r.buf
	if l.Whole && len(l.Data) == int(l.Size) {
		l.Data = l.Data[:len(l.Data)-1]
	}
	l.TooLong = len(l.Data) > MaxLine
	r.next = Line{Number: l.Number + 1, Offset: l.Offset + l.Size}
	return l, nil
}

// Report is the result of Verify.
type Report struct {
	// Lines counts the lines that belong to the chain, Problems lists all that
	// is wrong, in order.
	Lines    int64
	Head     Link
	Problems []Problem
}

// OK reports whether nothing is wrong.
func (r *Report) OK() bool { return len(r.Problems) == 0 }

// Verify checks every line of a log: strict JSON, canonical form, hash, number
// and link. It looks on behind a fault: lines that link to the last sound one
// count again. visit, if not nil, sees each sound line. The error is visit's, or
// that of reading.
func Verify(r io.Reader, visit func(Line, Link) error) (*Report, error) {
	rep, lines := &Report{}, NewReader(r)
	var c Checker
	for {
		l, err := lines.Next()
		if err == io.EOF {
			rep.Head = c.Head()
			return rep, nil
		}
		if err != nil {
			return rep, err
		}
		link, what := verifyLine(&c, l)
		if what != nil {
			rep.Problems = append(rep.Problems, Problem{Line: l.Number, Offset: l.Offset, Seq: link.Seq, What: what.Error()})
			continue
		}
		rep.Lines++
		if visit != nil {
			if err := visit(l, link); err != nil {
				return rep, err
			}
		}
	}
}

func verifyLine(c *Checker, l Line) (Link, error) {
	if err := Form(l); err != nil {
		return Link{}, err
	}
	link, err := ParseLink(l.Data)
	if err != nil {
		return link, err
	}
	if err := c.Check(l.Data, link); err != nil {
		return link, err
	}
	return link, Canonical(l.Data)
}

// Form checks what can be said of a line before its content is read.
func Form(l Line) error {
	switch {
	case l.TooLong:
		return fmt.Errorf("the line has %d bytes, the limit is %d", l.Size, MaxLine)
	case !l.Whole:
		return errors.New("the last line has no line end: writing it was cut off")
	case len(l.Data) == 0:
		return errors.New("the line is empty")
	}
	return nil
}
