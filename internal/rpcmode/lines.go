package rpcmode

import (
	"bufio"
	"bytes"
	"io"
)

const (
	// maxLine bounds a request in bytes, its line end not counted: 64 MiB.
	maxLine = 64 << 20
	// headSize is how much of a longer line is kept, to look for its id.
	headSize = 64 << 10
)

// line is what stands between two line feeds.
type line struct {
	// text is the line without its LF, and without a CR in front of that; of a line
	// that is too long it is the beginning.
	text []byte
	// size counts the bytes of the whole line.
	size int64
	long bool
}

// lineReader cuts a stream at its line feeds, and nowhere else: U+2028 and U+2029
// are data. A line beyond max bytes is passed over in constant memory.
type lineReader struct {
	r   *bufio.Reader
	max int
}

func newLineReader(r io.Reader, limit int) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, headSize), max: limit}
}

// next returns the next line, which is the caller's. What stands behind the last
// line feed is a line too. At the end the error is io.EOF.
func (l *lineReader) next() (line, error) {
	var out line
	for {
		part, err := l.r.ReadSlice('\n')
		ended := err == nil
		if ended {
			part = part[:len(part)-1]
		}
		out.add(part, l.max)
		switch {
		case ended:
			out.text = bytes.TrimSuffix(out.text, []byte("\r"))
			return out, nil
		case err == bufio.ErrBufferFull:
		case err == io.EOF && out.size > 0:
			return out, nil
		default:
			return line{}, err
		}
	}
}

func (l *line) add(part []byte, limit int) {
	l.size += int64(len(part))
	switch {
	case l.long:
	case l.size > int64(limit):
		l.long = true
		head := append(bytes.Clone(l.text[:min(len(l.text), headSize)]), part...)
		l.text = bytes.Clone(head[:min(len(head), headSize)])
	default:
		l.text = append(l.text, part...)
	}
}
