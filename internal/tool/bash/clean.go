package bash

import (
	"bytes"
	"fmt"
	"unicode"
	"unicode/utf8"
)

const (
	// maxSequence is how long an escape sequence may be before it counts as text, so
	// that one that never ends hides nothing.
	maxSequence = 4 << 10
	// maxPending is how much of a line is held back for a carriage return that may
	// overwrite it.
	maxPending = 8 << 10
)

// cleaner turns the raw output of a program into text: valid UTF-8 without control
// characters other than newline and tab. Escape sequences are dropped, what a
// carriage return would overwrite is dropped, and bytes that are no text are shown
// as \xNN. Feed it with write, in pieces of any size, and end with flush.
type cleaner struct {
	emit func([]byte)
	// over, if set, gets a line that is dropped because it is overwritten.
	over  func([]byte)
	line  []byte // the line so far that a carriage return may still take back
	held  []byte // the begin of an escape sequence or of a character
	state state
	// returned is set after a carriage return: what comes next, but for a newline,
	// overwrites the line.
	returned bool
}

type state uint8

const (
	plain    state = iota
	escape         // after ESC
	control        // in a control sequence, ESC [
	text           // in a string sequence, ESC ] and its like, until BEL or ESC \
	textEsc        // after an ESC in one
	between        // after ESC and an intermediate byte
	halfRune       // in a character of several bytes
)

func (c *cleaner) write(p []byte) {
	for i := 0; i < len(p); i++ {
		if c.state == plain {
			// Most of all output: characters that need no thought.
			n := 0
			for n < len(p)-i && p[i+n] >= ' ' && p[i+n] < 0x7f {
				n++
			}
			if n > 0 {
				c.put(p[i : i+n])
				i += n - 1
				continue
			}
		}
		c.step(p[i])
	}
}

// flush ends the text: what is held back is given out.
func (c *cleaner) flush() {
	c.giveUp()
	c.out()
}

// giveUp shows the held bytes as they are.
func (c *cleaner) giveUp() {
	held := c.held
	c.held, c.state = nil, plain
	for _, b := range held {
		switch {
		case b == '\n':
			c.newline()
		case b == '\t' || b >= ' ' && b < 0x7f:
			c.put([]byte{b})
		default:
			c.escaped(b)
		}
	}
}

// escaped shows a byte that is no text.
func (c *cleaner) escaped(b byte) {
	const digits = "0123456789abcdef"
	c.put([]byte{'\\', 'x', digits[b>>4], digits[b&15]})
}

func (c *cleaner) step(b byte) {
	switch c.state {
	case plain:
		c.begin(b)
		return
	case halfRune:
		c.rune(b)
		return
	}
	c.held = append(c.held, b)
	switch c.state {
	case escape:
		switch {
		case b == '[':
			c.state = control
		case b == ']' || b == 'P' || b == 'X' || b == '^' || b == '_':
			c.state = text
		case b >= 0x20 && b <= 0x2f:
			c.state = between
		case b >= 0x30 && b <= 0x7e:
			c.drop()
		default:
			c.giveUp()
		}
	case control, between:
		switch {
		case b >= 0x40 && b <= 0x7e, c.state == between && b >= 0x30 && b <= 0x7e:
			c.drop()
		case b < 0x20 || b > 0x7e:
			c.giveUp()
		}
	case text:
		switch b {
		case 0x07:
			c.drop()
		case 0x1b:
			c.state = textEsc
		}
	case textEsc:
		switch b {
		case '\\':
			c.drop()
		case 0x1b:
		default:
			c.state = text
		}
	}
	if len(c.held) > maxSequence {
		c.giveUp()
	}
}

func (c *cleaner) drop() { c.held, c.state = c.held[:0], plain }

// begin takes a byte that no sequence claims.
func (c *cleaner) begin(b byte) {
	switch {
	case b == '\n':
		c.newline()
	case b == '\r':
		c.returned = true
	case b == '\t':
		c.put([]byte{b})
	case b == 0x1b:
		c.held, c.state = append(c.held[:0], b), escape
	case b == '\b':
		c.erase()
	case b >= 0x80:
		c.held, c.state = c.held[:0], halfRune
		c.rune(b)
	default: // the other control characters, NUL and DEL
		c.escaped(b)
	}
}

// rune takes one byte of a character of several.
func (c *cleaner) rune(b byte) {
	c.held = append(c.held, b)
	if !utf8.FullRune(c.held) {
		return
	}
	r, size := utf8.DecodeRune(c.held)
	if r == utf8.RuneError && size == 1 {
		// The first byte is none of a character; the others may begin one.
		first, rest := c.held[0], append([]byte(nil), c.held[1:]...)
		c.drop()
		c.escaped(first)
		c.write(rest)
		return
	}
	if unicode.IsControl(r) {
		c.put(fmt.Appendf(nil, `\u%04x`, r))
	} else {
		c.put(c.held)
	}
	c.drop()
}

func (c *cleaner) put(p []byte) {
	if c.returned {
		if c.over != nil && len(c.line) > 0 {
			c.over(c.line)
		}
		c.returned, c.line = false, c.line[:0]
	}
	c.line = append(c.line, p...)
	if len(c.line) > maxPending {
		c.out()
	}
}

func (c *cleaner) newline() {
	c.returned = false
	c.line = append(c.line, '\n')
	c.out()
}

// erase takes the last character back, as a backspace that is followed by another
// character does on a terminal.
func (c *cleaner) erase() {
	if c.returned {
		return
	}
	if _, size := utf8.DecodeLastRune(c.line); size > 0 && !bytes.HasSuffix(c.line, []byte{'\n'}) {
		c.line = c.line[:len(c.line)-size]
	}
}

func (c *cleaner) out() {
	if len(c.line) > 0 {
		c.emit(c.line)
		c.line = c.line[:0]
	}
}
