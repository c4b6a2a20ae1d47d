package hookd

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Between "ahp hook" and the service goes one frame each way: a count of fields, and
// each field with its length before it, in four bytes each, big endian. A hook forwards
// what it read without looking at it.

// maxFields bounds the fields of a frame, and maxSmall all of them but the event.
const (
	maxFields = 64
	maxSmall  = 1 << 20
)

// appendFrame appends a frame of the fields.
func appendFrame(b []byte, fields ...[]byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(fields)))
	for _, f := range fields {
		b = binary.BigEndian.AppendUint32(b, uint32(len(f)))
		b = append(b, f...)
	}
	return b
}

// readFrame reads a frame, whose fields have at most limit bytes together.
func readFrame(r io.Reader, limit int) ([][]byte, error) {
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
		fields[i] = make([]byte, size)
		if _, err := io.ReadFull(r, fields[i]); err != nil {
			return nil, unexpected(err)
		}
	}
	return fields, nil
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// encodeAnswer returns a as a frame.
func encodeAnswer(a Answer) []byte {
	return appendFrame(nil, []byte{byte(a.Code)}, a.Stdout, a.Stderr)
}

// answerOf reads an answer's fields.
func answerOf(fields [][]byte) (Answer, error) {
	if len(fields) != 3 || len(fields[0]) != 1 {
		return Answer{}, errors.New("found something else than an answer")
	}
	return Answer{int(fields[0][0]), fields[1], fields[2]}, nil
}

// decodeAnswer is the inverse of encodeAnswer.
func decodeAnswer(b []byte) (Answer, error) {
	fields, err := readFrame(bytes.NewReader(b), len(b))
	if err != nil {
		return Answer{}, err
	}
	return answerOf(fields)
}
