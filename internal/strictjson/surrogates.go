package strictjson

import "bytes"

// lowSurrogate and endSurrogate bound the second halves of pairs, firstSurrogate and
// lowSurrogate the first ones.
const (
	firstSurrogate = 0xd800
	lowSurrogate   = 0xdc00
	endSurrogate   = 0xe000

	// EscapeLen is the length of the escape of half a pair.
	EscapeLen = 6
)

// LoneSurrogates calls found for each escape of a surrogate that has no other half, in
// order, with where it begins and which it is. The door refuses a text that has one; who
// reads what programs write that cut texts between two halves can replace it before.
func LoneSurrogates(data []byte, found func(at int, half rune)) {
	if !bytes.Contains(data, []byte(`\u`)) {
		return
	}
	for i := 0; i < len(data); {
		if data[i] != '\\' {
			i++
			continue
		}
		v, ok := escaped(data[i:])
		if !ok {
			i += 2
			continue
		}
		next, okNext := escaped(data[min(i+EscapeLen, len(data)):])
		switch {
		case v < firstSurrogate || v >= endSurrogate:
			i += EscapeLen
		case v < lowSurrogate && okNext && next >= lowSurrogate && next < endSurrogate:
			i += 2 * EscapeLen
		default:
			found(i, v)
			i += EscapeLen
		}
	}
}

// escaped reads a \uXXXX escape at the start of b.
func escaped(b []byte) (rune, bool) {
	if len(b) < EscapeLen || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var v rune
	for _, c := range b[2:EscapeLen] {
		switch {
		case '0' <= c && c <= '9':
			v = v<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			v = v<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return v, true
}
