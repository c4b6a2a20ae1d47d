package elicitation

import (
	"strconv"
	"strings"
)

// maxExponent bounds what a number may mean, so that comparing two is cheap.
const maxExponent = 999_999

// decimal is a JSON number, exactly: 0.digits times 10 to the exponent. digits has
// no zero at either end; zero has none at all, and no sign.
type decimal struct {
	negative bool
	digits   string
	exponent int
}

// parseDecimal reads a valid JSON number.
func parseDecimal(s string) (decimal, bool) {
	var d decimal
	if s, d.negative = strings.CutPrefix(s, "-"); s == "" {
		return d, false
	}
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		e, err := strconv.Atoi(s[i+1:])
		if err != nil || e < -maxExponent || e > maxExponent {
			return d, false
		}
		s, d.exponent = s[:i], e
	}
	whole, frac, _ := strings.Cut(s, ".")
	d.exponent += len(whole)
	digits := whole + frac
	d.digits = strings.TrimLeft(digits, "0")
	d.exponent -= len(digits) - len(d.digits)
	if d.digits = strings.TrimRight(d.digits, "0"); d.digits == "" {
		return decimal{}, true
	}
	return d, true
}

// integer reports whether d has no fraction: 1.0 and 1e2 are integers.
func (d decimal) integer() bool { return len(d.digits) <= d.exponent || d.digits == "" }

// compare returns -1, 0 or 1 as d is less than, equal to or more than e.
func (d decimal) compare(e decimal) int {
	sign := func(x decimal) int {
		switch {
		case x.digits == "":
			return 0
		case x.negative:
			return -1
		}
		return 1
	}
	s := sign(d)
	switch t := sign(e); {
	case s != t:
		return cmpInt(s, t)
	case s == 0:
		return 0
	case d.exponent != e.exponent:
		return s * cmpInt(d.exponent, e.exponent)
	}
	return s * strings.Compare(d.digits, e.digits)
}

func cmpInt(a, b int) int {
	if a < b {
		return -1
	}
	if a > b {
		return 1
	}
	return 0
}

// count returns d as an int64 of 0 or more.
func (d decimal) count() (int64, bool) {
	if d.negative || !d.integer() || d.exponent > len("9223372036854775807") {
		return 0, false
	}
	if d.digits == "" {
		return 0, true
	}
	n, err := strconv.ParseInt(d.digits+strings.Repeat("0", d.exponent-len(d.digits)), 10, 64)
	return n, err == nil
}
