package memory

import (
	"errors"
	"fmt"
	"strings"
)

// frontMatter returns what a text says of itself between two lines of dashes at its
// begin, and the text behind. It reads as much of YAML as skills use: members "key:
// value" at the left margin, where the value is plain, in quotes, or a block behind ">"
// or "|", and goes on in lines that are indented. What such a line holds otherwise
// (lists, members of members) is not understood and belongs to no value that counts.
func frontMatter(text string) (members map[string]string, rest string, err error) {
	lines := strings.SplitAfter(text, "\n")
	if bare(lines[0]) != "---" {
		return nil, text, errors.New(`its first line is not "---"; begin it with a block of name and description`)
	}
	end := 1
	for ; end < len(lines) && bare(lines[end]) != "---"; end++ {
	}
	if end == len(lines) {
		return nil, text, errors.New(`the line "---" that ends the block at its begin is missing`)
	}
	members = map[string]string{}
	for i := 1; i < end; {
		line := bare(lines[i])
		next := i + 1
		for next < end && (bare(lines[next]) == "" || indented(lines[next])) {
			next++
		}
		if line != "" && !strings.HasPrefix(line, "#") {
			key, value, ok := strings.Cut(line, ":")
			if !ok || indented(line) || value != "" && value[0] != ' ' && value[0] != '\t' {
				return nil, text, fmt.Errorf("line %d %q is not of the form \"key: value\"", i+1, line)
			}
			if _, twice := members[key]; twice {
				return nil, text, fmt.Errorf("line %d gives %q a second time", i+1, key)
			}
			if members[key], err = scalar(strings.TrimSpace(value), lines[i+1:next]); err != nil {
				if key == "name" || key == "description" {
					return nil, text, fmt.Errorf("line %d: %w", i+1, err)
				}
				err = nil
			}
		}
		i = next
	}
	return members, strings.TrimLeft(strings.Join(lines[end+1:], ""), "\r\n"), nil
}

func bare(line string) string { return strings.TrimRight(line, " \t\r\n") }

func indented(line string) bool { return line != "" && (line[0] == ' ' || line[0] == '\t') }

// scalar returns one value; more are the lines that go on with it.
func scalar(first string, more []string) (string, error) {
	if first != "" && (first[0] == '>' || first[0] == '|') {
		sep := " "
		if first[0] == '|' {
			sep = "\n"
		}
		return join(more, sep), nil
	}
	whole := strings.TrimSpace(first + " " + join(more, " "))
	if whole == "" {
		return "", nil
	}
	switch whole[0] {
	case '"':
		return doubleQuoted(whole)
	case '\'':
		return singleQuoted(whole)
	}
	if i := strings.Index(whole, " #"); i >= 0 {
		whole = strings.TrimSpace(whole[:i])
	}
	return whole, nil
}

func join(lines []string, sep string) string {
	var parts []string
	for _, l := range lines {
		if l = strings.TrimSpace(l); l != "" {
			parts = append(parts, l)
		}
	}
	return strings.Join(parts, sep)
}

func singleQuoted(s string) (string, error) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		if s[i] != '\'' {
			b.WriteByte(s[i])
			continue
		}
		if i+1 < len(s) && s[i+1] == '\'' {
			b.WriteByte('\'')
			i++
			continue
		}
		return b.String(), after(s[i+1:])
	}
	return "", errors.New("the quote ' is not closed")
}

func doubleQuoted(s string) (string, error) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			return b.String(), after(s[i+1:])
		case '\\':
			if i++; i == len(s) {
				return "", errors.New("the quote \" is not closed")
			}
			switch s[i] {
			case 'n':
				b.WriteByte('\n')
			case 't':
				b.WriteByte('\t')
			case '"', '\\', '/', ' ':
				b.WriteByte(s[i])
			default:
				return "", fmt.Errorf("the escape \\%c is not known here; write the character itself", s[i])
			}
		default:
			b.WriteByte(s[i])
		}
	}
	return "", errors.New("the quote \" is not closed")
}

// after checks what follows a closed quote.
func after(rest string) error {
	if rest = strings.TrimSpace(rest); rest != "" && rest[0] != '#' {
		return fmt.Errorf("%q follows the closing quote", rest)
	}
	return nil
}
