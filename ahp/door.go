package ahp

import (
	"bytes"
	"errors"
	"strings"

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
	dec := jsontext.NewDecoder(bytes.NewReader(data))
	var best int64
	for {
		before := dec.InputOffset()
		k := dec.PeekKind()
		if _, err := dec.ReadToken(); err != nil {
			return best
		}
		if k == '}' || k == ']' {
			continue
		}
		at := string(dec.StackPointer())
		if at != pointer && !strings.HasPrefix(pointer, at+"/") {
			continue
		}
		if index, length := dec.StackIndex(dec.StackDepth()); index == '{' && length%2 == 1 {
			continue // the name of a member: its value follows
		}
		best = before + int64(len(data[before:])-len(bytes.TrimLeft(data[before:], " \t\r\n:,")))
		if at == pointer {
			return best
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
