package strictjson

import "github.com/go-json-experiment/json/jsontext"

// KindName returns what messages call a JSON value of kind k, with its article, or
// "no value".
func KindName(k jsontext.Kind) string {
	switch k {
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '{':
		return "an object"
	case '[':
		return "a list"
	}
	return "no value"
}
