package policy

// nesting returns how deep src may be nested, counted without regard to quotes:
// never less than what the parser would meet.
func nesting(src string) int {
	depth, deepest, ticks := 0, 0, 0
	for i := 0; i < len(src); i++ {
		switch src[i] {
		case '(', '{', '[':
			depth++
		case ')', '}', ']':
			depth = max(depth-1, 0)
		case '`':
			ticks++
		case 'i', 'w', 'u', 'c', 'f', 's', 'd', 'e', 't', '!':
			n, d := keyword(src, i)
			depth = max(depth+d, 0)
			i += n
		case '-', '~', '+':
			// Unary operators of arithmetic nest as well.
			run := 1
			for i+1 < len(src) && (src[i+1] == '-' || src[i+1] == '~' || src[i+1] == '+' || src[i+1] == ' ') {
				run++
				i++
			}
			deepest = max(deepest, depth+run/8)
		}
		deepest = max(deepest, depth)
	}
	return deepest + ticks/8
}

// keyword returns how many further bytes a reserved word at i has and how it
// changes the depth.
func keyword(src string, i int) (further, depth int) {
	if i > 0 && isWordByte(src[i-1]) {
		return 0, 0
	}
	end := i
	for end < len(src) && isWordByte(src[end]) {
		end++
	}
	switch src[i:end] {
	case "if", "while", "until", "case", "for", "select", "time", "coproc", "function":
		return end - i - 1, 1
	case "fi", "done", "esac":
		return end - i - 1, -1
	}
	if src[i] == '!' {
		return 0, 0
	}
	return max(end-i-1, 0), 0
}

func isWordByte(c byte) bool {
	return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9'
}
