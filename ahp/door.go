package ahp

import (
	"bytes"
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/abhed/abhed/internal/strictjson"
)

// visitor takes part in the decoding that the strict door does, so that one pass
// over the text checks both its syntax and its shape.
type visitor struct {
	read func(*reader) error
}

// UnmarshalJSONFrom reads one value.
func (v *visitor) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	return v.read(&reader{dec: dec})
}

// open passes data through the strict door to read. The error is an *Error.
func open(data []byte, read func(*reader) error) error {
	err := strictjson.Unmarshal(data, &visitor{read: read}, strictjson.Options{MaxBytes: MaxMessageBytes, MaxDepth: MaxDepth})
	if err == nil {
		return nil
	}
	var mine *Error
	if errors.As(err, &mine) {
		if mine.Offset < 0 {
			mine.Offset = locate(data, mine.Pointer)
		}
		return mine
	}
	out := &Error{Kind: KindSyntax, Found: err.Error(), Expected: "one strict JSON value", Requirement: "AHP-RPC-001", Err: err}
	var door *strictjson.Error
	if errors.As(err, &door) {
		out.Pointer, out.Offset, out.Found = door.Pointer, door.Offset, door.Msg
	}
	return out
}

// locate returns the byte offset at which the value at pointer starts in data,
// or the offset of the nearest value around it.
func locate(data []byte, pointer string) int64 {
	_, offset, _ := seek(data, pointer)
	return offset
}

// seek reads data up to the value at pointer, in time linear in data. exact tells
// that it is there: then dec is in front of it. offset is where it starts, else
// where the nearest value around it does.
func seek(data []byte, pointer string) (dec *jsontext.Decoder, offset int64, exact bool) {
	dec = jsontext.NewDecoder(bytes.NewReader(data))
	for segment := range jsontext.Pointer(pointer).Tokens() {
		offset = startOfNext(data, dec)
		if !descend(dec, segment) {
			return dec, offset, false
		}
	}
	return dec, startOfNext(data, dec), true
}

func startOfNext(data []byte, dec *jsontext.Decoder) int64 {
	at := dec.InputOffset()
	return at + int64(len(data[at:])-len(bytes.TrimLeft(data[at:], " \t\r\n:,")))
}

// descend reads into the next value, up to its member or item named by segment.
func descend(dec *jsontext.Decoder, segment string) bool {
	kind := dec.PeekKind()
	if kind != '{' && kind != '[' {
		return false
	}
	if _, err := dec.ReadToken(); err != nil {
		return false
	}
	for i := 0; ; i++ {
		switch dec.PeekKind() {
		case '}', ']', jsontext.KindInvalid:
			return false
		}
		if kind == '[' && itoa(i) == segment {
			return true
		}
		if kind == '{' {
			name, err := dec.ReadToken()
			if err != nil {
				return false
			}
			if name.String() == segment {
				return true
			}
		}
		if dec.SkipValue() != nil {
			return false
		}
	}
}

// withoutOffset drops the offset of an error found in a text that the caller
// never saw.
func withoutOffset(err error) error {
	var e *Error
	if errors.As(err, &e) {
		e.Offset = -1
	}
	return err
}
