// Package strictjson is the only door through which foreign JSON enters the
// program.
//
// What passes the door is exactly one JSON value: strict UTF-8 without a byte
// order mark, without a lone surrogate, without a repeated member name, within
// the given bounds of bytes and nesting, followed by nothing but white space.
// Member names match Go field names exactly: case is never folded. A null
// reaches only a place that can hold it (a pointer, an interface, a raw value);
// anywhere else it is an error instead of a silent zero.
//
// Errors are of type *Error and name the JSON pointer and the byte offset.
//
// Do not assume that a decoded value is meaningful: shape and meaning are the
// caller's to check.
package strictjson

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	// DefaultMaxBytes is the size bound that a zero Options.MaxBytes means: 16 MiB.
	DefaultMaxBytes = 16 << 20
	// DefaultMaxDepth is the nesting bound that a zero Options.MaxDepth means.
	DefaultMaxDepth = 128
)

// Options bounds what the door lets in. The zero value is the strict default
// that ignores unknown members of structs.
type Options struct {
	// MaxBytes is the largest accepted input in bytes; zero means DefaultMaxBytes.
	MaxBytes int
	// MaxDepth is the deepest accepted nesting of arrays and objects; zero means
	// DefaultMaxDepth.
	MaxDepth int
	// RejectUnknown refuses an object member that has no field in the Go struct.
	RejectUnknown bool
}

// Error tells what was wrong with foreign JSON and where.
type Error struct {
	// Pointer is the JSON pointer (RFC 6901) of the value at fault; "" is the
	// whole document.
	Pointer string
	// Offset is the byte offset at which the fault was noticed, from 0.
	Offset int64
	// Msg says what was found, and what was expected where that is known.
	Msg string
	// Err is the cause, when there is one below this package.
	Err error
}

// Error returns the message with pointer and offset.
func (e *Error) Error() string {
	at := "at the top level"
	if e.Pointer != "" {
		at = "at " + e.Pointer
	}
	return fmt.Sprintf("%s (%s, byte %d)", e.Msg, at, e.Offset)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Check reports whether data may pass the door, without decoding it.
func Check(data []byte, o Options) error {
	if err := bounds(data, o); err != nil {
		return err
	}
	dec := jsontext.NewDecoder(bytes.NewReader(data))
	if err := dec.SkipValue(); err != nil {
		return wrap(data, err)
	}
	end := dec.InputOffset()
	rest := bytes.TrimLeft(data[end:], " \t\r\n")
	if len(rest) > 0 {
		return &Error{Offset: int64(len(data) - len(rest)), Msg: "data after the JSON value"}
	}
	return nil
}

// Unmarshal checks data and decodes it into v, which must be a non-nil pointer.
// On error v holds nothing that may be used.
func Unmarshal(data []byte, v any, o Options) error {
	if err := bounds(data, o); err != nil {
		return err
	}
	opts := []json.Options{json.RejectUnknownMembers(o.RejectUnknown)}
	// A null in a place that can't hold it leaves the zero value silently. To look at
	// every value costs time, so it is done where there may be a null.
	if bytes.Contains(data, []byte("null")) {
		opts = append(opts, json.WithUnmarshalers(noNulls))
	}
	if err := json.Unmarshal(data, v, opts...); err != nil {
		return wrap(data, err)
	}
	return nil
}

// Marshal encodes v as compact JSON in which no character is escaped that need
// not be. It fails on a string that isn't valid UTF-8.
func Marshal(v any) ([]byte, error) { return json.Marshal(v, json.Deterministic(true)) }

// Canonical returns data as canonical JSON: RFC 8785, except that number
// literals stay as written. data must be valid JSON within the default bounds.
func Canonical(data []byte) ([]byte, error) {
	if len(data) <= DefaultMaxBytes {
		if IsCanonical(data) {
			return bytes.Clone(data), nil
		}
		if text := ordered(data); text != nil {
			return text, nil
		}
	}
	return canonicalize(data)
}

// canonicalize is Canonical by the library alone.
func canonicalize(data []byte) ([]byte, error) {
	if err := bounds(data, Options{}); err != nil {
		return nil, err
	}
	v := jsontext.Value(bytes.Clone(data))
	if err := v.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)); err != nil {
		return nil, wrap(data, err)
	}
	return v, nil
}

// Equal reports whether a and b are the same value: whether their canonical
// forms are the same bytes. Invalid JSON equals nothing.
func Equal(a, b []byte) bool {
	ca, err := Canonical(a)
	if err != nil {
		return false
	}
	cb, err := Canonical(b)
	return err == nil && bytes.Equal(ca, cb)
}

// LineColumn returns the line and the column (in bytes), both from 1, of the
// byte offset in data.
func LineColumn(data []byte, offset int64) (line, column int) {
	offset = min(max(offset, 0), int64(len(data)))
	head := data[:offset]
	return 1 + bytes.Count(head, []byte("\n")), int(offset) - bytes.LastIndexByte(head, '\n')
}

// bounds checks what must hold before a parser may look at data.
func bounds(data []byte, o Options) error {
	maxBytes, maxDepth := o.MaxBytes, o.MaxDepth
	if maxBytes == 0 {
		maxBytes = DefaultMaxBytes
	}
	if maxDepth == 0 {
		maxDepth = DefaultMaxDepth
	}
	if len(data) > maxBytes {
		return &Error{Offset: int64(maxBytes), Msg: fmt.Sprintf("%d bytes, the limit is %d", len(data), maxBytes)}
	}
	if bytes.HasPrefix(data, []byte("\xef\xbb\xbf")) {
		return &Error{Msg: "the input starts with a byte order mark, which JSON doesn't allow"}
	}
	if len(bytes.TrimLeft(data, " \t\r\n")) == 0 {
		return &Error{Offset: int64(len(data)), Msg: "empty input, expected a JSON value"}
	}
	if at := TooDeep(data, maxDepth); at >= 0 {
		return &Error{Offset: int64(at), Msg: fmt.Sprintf("nested deeper than %d levels", maxDepth)}
	}
	return nil
}

// TooDeep returns the offset at which data, which need not be valid JSON, opens
// more than limit levels of arrays and objects, or -1.
func TooDeep(data []byte, limit int) int {
	// Counting is many times faster than looking, and enough for almost any input.
	if bytes.Count(data, []byte("{"))+bytes.Count(data, []byte("[")) <= limit {
		return -1
	}
	depth, inString := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > limit {
				return i
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return -1
}

// wrap turns an error of the JSON library into an *Error.
func wrap(data []byte, err error) error {
	if null := (*misplacedNull)(nil); errors.As(err, &null) {
		return &null.fault
	}
	out := &Error{Msg: "not valid JSON: " + strings.TrimPrefix(err.Error(), "jsontext: "), Err: err}
	var syn *jsontext.SyntacticError
	var sem *json.SemanticError
	switch {
	case errors.As(err, &syn):
		out.Pointer, out.Offset = string(syn.JSONPointer), syn.ByteOffset
		switch {
		case errors.Is(err, jsontext.ErrDuplicateName):
			out.Msg = "the same member name twice in one object"
		case errors.Is(syn.Err, io.ErrUnexpectedEOF):
			out.Msg, out.Offset = "the JSON ends too early", int64(len(data))
		default:
			out.Msg = "not valid JSON: " + strings.TrimPrefix(syn.Err.Error(), "jsontext: ")
		}
	case errors.As(err, &sem):
		out.Pointer, out.Offset = string(sem.JSONPointer), sem.ByteOffset
		out.Msg = semanticMessage(sem)
	}
	return out
}

func semanticMessage(e *json.SemanticError) string {
	if errors.Is(e.Err, json.ErrUnknownName) {
		return fmt.Sprintf("unknown member %q", e.JSONPointer.LastToken())
	}
	kinds := map[jsontext.Kind]string{'n': "null", 'f': "a boolean", 't': "a boolean", '"': "a string", '0': "a number", '{': "an object", '[': "a list"}
	found, ok := kinds[e.JSONKind]
	if e.JSONKind == '0' && len(e.JSONValue) > 0 && len(e.JSONValue) < 40 {
		found = "the number " + string(e.JSONValue)
	}
	var number *strconv.NumError
	if ok && e.GoType != nil && (e.Err == nil || errors.Is(e.Err, strconv.ErrSyntax) || errors.Is(e.Err, strconv.ErrRange) || errors.As(e.Err, &number)) {
		return fmt.Sprintf("found %s, expected %s", found, expected(e.GoType))
	}
	if e.Err != nil {
		return e.Err.Error()
	}
	return "unexpected value"
}
