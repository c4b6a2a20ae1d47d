package workspace

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Encoding is how the text of a file is stored.
type Encoding uint8

const (
	// UTF8 is UTF-8 without a mark.
	UTF8 Encoding = iota
	// UTF8BOM is UTF-8 behind a byte-order mark.
	UTF8BOM
	// UTF16LE is UTF-16, little-endian, behind a byte-order mark.
	UTF16LE
	// UTF16BE is UTF-16, big-endian, behind a byte-order mark.
	UTF16BE
	// EightBit is text in an unknown encoding that extends ASCII: not valid UTF-8,
	// without NUL. Its Text.Body holds the raw bytes.
	EightBit
)

// String returns the name for a reader.
func (e Encoding) String() string {
	return [...]string{"UTF-8", "UTF-8 with byte-order mark", "UTF-16LE", "UTF-16BE", "8-bit text that is not UTF-8"}[e]
}

// Text is a decoded file.
type Text struct {
	Encoding Encoding
	// Body is the text without its mark, line endings as they are.
	Body string
}

// errBinary is the cause of every refusal to take bytes as text.
var errBinary = errors.New("not text")

// Decode returns the text in data. The error, in words for the reader, says that
// the bytes are no text: they hold NUL, or a mark promises what doesn't follow.
// Encode gives back exactly data.
func Decode(data []byte) (Text, error) {
	switch {
	case bytes.HasPrefix(data, []byte{0xFF, 0xFE, 0, 0}), bytes.HasPrefix(data, []byte{0, 0, 0xFE, 0xFF}):
		return Text{}, fmt.Errorf("it looks like UTF-32, which is not handled: %w", errBinary)
	case bytes.HasPrefix(data, []byte{0xFF, 0xFE}):
		return decode16(data, UTF16LE)
	case bytes.HasPrefix(data, []byte{0xFE, 0xFF}):
		return decode16(data, UTF16BE)
	}
	if i := bytes.IndexByte(data, 0); i >= 0 {
		return Text{}, fmt.Errorf("it holds a NUL byte at offset %d: %w", i, errBinary)
	}
	if !utf8.Valid(data) {
		return Text{EightBit, string(data)}, nil
	}
	if body, ok := bytes.CutPrefix(data, []byte("\xEF\xBB\xBF")); ok {
		return Text{UTF8BOM, string(body)}, nil
	}
	return Text{UTF8, string(data)}, nil
}

func (e Encoding) order() binary.ByteOrder {
	if e == UTF16BE {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

func decode16(data []byte, e Encoding) (Text, error) {
	if len(data)%2 != 0 {
		return Text{}, fmt.Errorf("it begins like %v but has an odd number of bytes: %w", e, errBinary)
	}
	units := make([]uint16, 0, len(data)/2-1)
	for i := 2; i < len(data); i += 2 {
		units = append(units, e.order().Uint16(data[i:]))
	}
	t := Text{e, string(utf16.Decode(units))}
	// What utf16.Decode replaced would be lost on the way back.
	if back, err := t.Encode(t.Body); err != nil || !bytes.Equal(back, data) {
		return Text{}, fmt.Errorf("it begins like %v but holds broken surrogates: %w", e, errBinary)
	}
	if strings.IndexByte(t.Body, 0) >= 0 {
		return Text{}, fmt.Errorf("it begins like %v but holds NUL characters: %w", e, errBinary)
	}
	return t, nil
}

// Encode returns body as the bytes of a file with t's encoding and mark. It fails
// if body can't be stored so without loss.
func (t Text) Encode(body string) ([]byte, error) {
	switch t.Encoding {
	case EightBit:
		return []byte(body), nil
	case UTF8, UTF8BOM:
		if !utf8.ValidString(body) {
			return nil, errors.New("the new text is not valid UTF-8, which the file is")
		}
		if t.Encoding == UTF8BOM {
			return []byte("\uFEFF" + body), nil
		}
		return []byte(body), nil
	}
	if !utf8.ValidString(body) {
		return nil, errors.New("the new text is not valid UTF-8, so it can't be stored as UTF-16")
	}
	units := utf16.Encode([]rune(body))
	out := make([]byte, 2, 2*len(units)+2)
	t.Encoding.order().PutUint16(out, 0xFEFF)
	for _, u := range units {
		var two [2]byte
		t.Encoding.order().PutUint16(two[:], u)
		out = append(out, two[:]...)
	}
	return out, nil
}

// Endings is how the lines of a text end.
type Endings struct {
	// LF counts the lines that end in a newline alone, CRLF those that end in a
	// carriage return and a newline.
	LF, CRLF int
}

// EndingsOf counts the line endings of a text.
func EndingsOf(body string) Endings {
	crlf := strings.Count(body, "\r\n")
	return Endings{LF: strings.Count(body, "\n") - crlf, CRLF: crlf}
}

// Mixed reports whether both kinds occur.
func (e Endings) Mixed() bool { return e.LF > 0 && e.CRLF > 0 }

// Dominant returns the ending that new lines should have: CRLF only where most
// lines have it.
func (e Endings) Dominant() string {
	if e.CRLF > e.LF {
		return "\r\n"
	}
	return "\n"
}
