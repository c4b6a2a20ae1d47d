package hookline

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// Between "ahp hook" and the service goes one frame each way, and before the second the
// byte Taken. A frame is a count of fields, and each field with its length before it, in
// four bytes each, big endian. The event is a call's last field: a hook forwards what it
// read without looking at it.

// The bounds of a frame: its fields, and the bytes of all of them but the event.
const (
	maxFields = 64
	MaxSmall  = 1 << 20
)

// AppendFrame appends a frame of the fields.
func AppendFrame(b []byte, fields ...[]byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(fields)))
	for _, f := range fields {
		b = appendField(b, f)
	}
	return b
}

func appendField[T string | []byte](b []byte, field T) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(field)))
	return append(b, field...)
}

// step is how much memory is taken for a field on the word of its length alone.
const step = 64 << 10

// ReadFrame reads a frame, whose fields have at most limit bytes together. A length that
// isn't followed by as much costs no memory.
func ReadFrame(r io.Reader, limit int) ([][]byte, error) {
	var word [4]byte
	number := func() (int, error) {
		_, err := io.ReadFull(r, word[:])
		return int(binary.BigEndian.Uint32(word[:])), err
	}
	n, err := number()
	if err != nil {
		return nil, err
	}
	if n > maxFields {
		return nil, fmt.Errorf("found a frame of %d fields, expected at most %d", n, maxFields)
	}
	fields := make([][]byte, n)
	for i := range fields {
		size, err := number()
		if err != nil {
			return nil, unexpected(err)
		}
		if limit -= size; limit < 0 {
			return nil, errors.New("the frame is larger than its bound")
		}
		if fields[i], err = readField(r, size); err != nil {
			return nil, unexpected(err)
		}
	}
	return fields, nil
}

// readField reads size bytes.
func readField(r io.Reader, size int) ([]byte, error) {
	b := make([]byte, min(size, step))
	for have := 0; ; {
		n, err := io.ReadFull(r, b[have:])
		if have += n; err != nil || have == size {
			return b, err
		}
		b = append(b, make([]byte, min(size-have, have))...)
	}
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// A call begins with magic and the version of what follows the identity, which stands
// at the same place in every version: so an older service knows a newer program's call.
const (
	magic   = "ahp-hook "
	version = "3"
)

// fixed is how many fields every call has.
const fixed = 10

// appendCall appends the frame of c but for the bytes of the event, its last field.
func appendCall(b []byte, c *Call, id *Identity) []byte {
	flags := byte(0)
	if c.Open {
		flags |= 1
	}
	if c.Unprotected {
		flags |= 2
	}
	var limit [8]byte
	binary.BigEndian.PutUint64(limit[:], uint64(c.Limit))
	n := min(len(c.Markers), (maxFields-fixed)/2)
	b = binary.BigEndian.AppendUint32(b, uint32(fixed+2*n))
	b = appendField(b, magic+version)
	b = appendField(b, id.encode())
	for _, s := range [...]string{c.Host, c.Native, c.Registration, c.Home, c.Dir} {
		b = appendField(b, s)
	}
	b = appendField(b, []byte{flags})
	b = appendField(b, limit[:])
	for k, v := range c.Markers {
		if n--; n < 0 {
			break
		}
		b = appendField(appendField(b, k), v)
	}
	return binary.BigEndian.AppendUint32(b, uint32(len(c.Data)))
}

// EncodeCall returns c as a frame.
func EncodeCall(c *Call, id Identity) []byte {
	return append(appendCall(make([]byte, 0, len(c.Data)+1024), c, &id), c.Data...)
}

// DecodeCall is the inverse of EncodeCall, of a frame that was read. The call is nil if
// only who calls could be read, because the call is of another version.
func DecodeCall(f [][]byte) (*Call, Identity, error) {
	if len(f) < 2 || !strings.HasPrefix(string(f[0]), magic) {
		return nil, Identity{}, errors.New("found something else than a call")
	}
	id, err := decodeIdentity(f[1])
	if err != nil || string(f[0]) != magic+version {
		return nil, id, err
	}
	if len(f) < fixed || len(f)%2 != 0 || len(f[7]) != 1 || len(f[8]) != 8 {
		return nil, Identity{}, errors.New("found something else than a call of this version")
	}
	last := len(f) - 1
	c := &Call{
		Host: string(f[2]), Native: string(f[3]), Registration: string(f[4]), Home: string(f[5]), Dir: string(f[6]),
		Open: f[7][0]&1 != 0, Unprotected: f[7][0]&2 != 0, Limit: time.Duration(binary.BigEndian.Uint64(f[8])), Data: f[last],
	}
	for i := fixed - 1; i < last; i += 2 {
		if c.Markers == nil {
			c.Markers = map[string]string{}
		}
		c.Markers[string(f[i])] = string(f[i+1])
	}
	return c, id, nil
}

// EncodeAnswer returns a as a frame.
func EncodeAnswer(a Answer) []byte {
	return AppendFrame(make([]byte, 0, len(a.Stdout)+len(a.Stderr)+32), []byte{byte(a.Code)}, a.Stdout, a.Stderr)
}

// AnswerOf reads an answer's fields.
func AnswerOf(fields [][]byte) (Answer, error) {
	if len(fields) != 3 || len(fields[0]) != 1 {
		return Answer{}, errors.New("found something else than an answer")
	}
	return Answer{int(fields[0][0]), fields[1], fields[2]}, nil
}
