package extension

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// maxReply is the size of the largest reply in bytes, its line end not counted.
const maxReply = 16 << 20

// framer cuts one reply out of a stream: a JSON object that may span lines and
// ends at the LF after its closing brace. It looks at every byte once, so the
// result doesn't depend on how the stream was split. The zero framer is ready.
type framer struct {
	buf     []byte
	depth   int
	str     bool // inside a string
	escaped bool // after a backslash inside a string
	closed  bool // the closing brace was seen
	cr      bool // a CR was seen after the closing brace
	// check is the length from which the next LF has the text so far looked at, so
	// that garbage with an opening brace needs no time-out to be noticed.
	check int
}

// feed takes the next bytes. When they complete the reply it returns the object
// and the bytes after its LF, and is ready for the next one. After an error the
// framer can't be used.
func (f *framer) feed(p []byte) (reply, rest []byte, err *failure) {
	for i := 0; i < len(p); i++ {
		if f.str && !f.escaped {
			n := min(plainRun(p[i:]), maxReply-len(f.buf))
			f.buf = append(f.buf, p[i:i+n]...)
			if i += n; i == len(p) {
				break
			}
		}
		c := p[i]
		if f.closed {
			switch {
			case c == '\n':
				reply = f.buf
				*f = framer{}
				return reply, p[i+1:], nil
			case c == '\r' && !f.cr:
				f.cr = true
				continue
			}
			return nil, nil, invalidf("after the reply's closing brace found %s, expected the end of the line", quoteStart(p[i:]))
		}
		if len(f.buf) == 0 && c != '{' {
			return nil, nil, invalidf("the reply starts with %s, expected one JSON object that starts with \"{\"", quoteStart(p[i:]))
		}
		if len(f.buf) == maxReply {
			return nil, nil, &failure{class: failTooLarge, msg: fmt.Sprintf("a reply of more than %d bytes", maxReply)}
		}
		f.buf = append(f.buf, c)
		if err := f.step(c); err != nil {
			return nil, nil, err
		}
	}
	return nil, nil, nil
}

// plainRun returns how many bytes p begins with that neither end a string nor
// need a look.
func plainRun(p []byte) int {
	for i, c := range p {
		if c < ' ' || c == '"' || c == '\\' {
			return i
		}
	}
	return len(p)
}

// step follows the object's structure by one byte.
func (f *framer) step(c byte) *failure {
	switch {
	case f.str && c < ' ':
		return invalidf("byte %d of the reply is the control character 0x%02x inside a string; write it as an escape", len(f.buf)-1, c)
	case f.escaped:
		f.escaped = false
	case f.str:
		f.escaped = c == '\\'
		f.str = c != '"'
	case c == '"':
		f.str = true
	case c == '{' || c == '[':
		f.depth++
	case c == '}' || c == ']':
		f.depth--
		f.closed = f.depth == 0
	case c == '\n' && len(f.buf) >= f.check:
		if len(f.buf) > 4<<10 {
			f.check = 2 * len(f.buf)
		}
		return prefixFault(f.buf)
	}
	return nil
}

// partial reports whether a reply has begun and not ended.
func (f *framer) partial() bool { return len(f.buf) > 0 }

// prefixFault returns what is wrong with the beginning of a JSON value, or nil if
// it can still become one.
func prefixFault(p []byte) *failure {
	dec := jsontext.NewDecoder(bytes.NewReader(p))
	for {
		if _, err := dec.ReadToken(); err != nil {
			if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
				return nil
			}
			return invalidf("the reply is no JSON: %v", err)
		}
	}
}

// quoteStart shows the beginning of p so that a person can find it in a program.
func quoteStart(p []byte) string {
	if bytes.HasPrefix(p, []byte("\xef\xbb\xbf")) {
		return "a byte order mark"
	}
	const most = 40
	if len(p) > most {
		return fmt.Sprintf("%q…", p[:most])
	}
	return fmt.Sprintf("%q", p)
}
