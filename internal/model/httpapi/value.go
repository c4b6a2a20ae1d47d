package httpapi

import (
	"math"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/strictjson"
)

// Absent reports whether v is missing or null, which servers don't keep apart.
func Absent(v jsontext.Value) bool { return len(v) == 0 || v.Kind() == 'n' }

// Scalar returns a string's value; of a number or boolean it returns the literal,
// and "" of anything else.
func Scalar(v jsontext.Value) string {
	if Absent(v) {
		return ""
	}
	switch v.Kind() {
	case '"':
		b, err := jsontext.AppendUnquote(nil, v)
		if err != nil {
			return ""
		}
		return string(b)
	case '0', 't', 'f':
		return strings.TrimSpace(string(v))
	default:
		return ""
	}
}

// Integer returns the whole number that v holds, as a number or as a string.
func Integer(v jsontext.Value) (int64, bool) {
	s := Scalar(v)
	if s == "" || strings.TrimLeft(s, "-0123456789.eE+") != "" {
		return 0, false
	}
	var f float64
	if err := strictjson.Unmarshal([]byte(s), &f, strictjson.Options{}); err != nil {
		return 0, false
	}
	if f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// Count returns the first of vs that is a count (a whole number, not negative), nil
// if none is.
func Count(vs ...jsontext.Value) *int64 {
	for _, v := range vs {
		if n, ok := Integer(v); ok && n >= 0 {
			return &n
		}
	}
	return nil
}

// WithoutCached subtracts the cached tokens from u.Input, for APIs whose count of
// the input includes them. It returns a note, "" if all is well.
func WithoutCached(u *model.Usage) string {
	if u.Input == nil {
		return ""
	}
	cached := int64(0)
	for _, p := range []*int64{u.CacheRead, u.CacheWrite} {
		if p != nil {
			cached += *p
		}
	}
	if cached > *u.Input {
		return "usage counts more cached tokens than prompt tokens; the cached ones were taken as not included"
	}
	*u.Input -= cached
	return ""
}

// Smaller returns the smaller of two limits, of which 0 is none.
func Smaller(a, b int64) int64 {
	if a <= 0 || b > 0 && b < a {
		return max(b, 0)
	}
	return a
}
