package validate

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/abhed/abhed/ahp"
)

// maxLineFindings bounds the findings of one text of lines.
const maxLineFindings = 1000

// Lines judges data by the framing of the stdio binding (§16): one message of the
// kind a line, each ended by one line feed. Kind of the report stays as given. The
// error is Message's. After 1,000 findings it stops looking.
func Lines(data []byte, kind Kind, opts Options) (*Report, error) {
	out := &Report{Kind: kind}
	frame := func(line int, offset int, found, expected string) Finding {
		return Finding{Line: line, Layer: "schema", Offset: int64(offset), Found: found, Expected: expected, Requirement: "AHP-STDIO-001"}
	}
	if len(data) == 0 {
		out.Findings = append(out.Findings, frame(1, 0, "nothing", "one message a line"))
	}
	offset := 0
	for line := 1; offset < len(data) && len(out.Findings) < maxLineFindings; line++ {
		text, rest, ended := bytes.Cut(data[offset:], []byte("\n"))
		switch {
		case len(bytes.TrimSpace(text)) == 0:
			out.Findings = append(out.Findings, frame(line, offset, "an empty line", "one message a line"))
		case len(text) > ahp.MaxMessageBytes:
			out.Findings = append(out.Findings, frame(line, offset, fmt.Sprintf("a line of %d bytes", len(text)), fmt.Sprintf("at most %d", ahp.MaxMessageBytes)))
		default:
			r, err := Message(text, kind, opts)
			if err != nil {
				return nil, err
			}
			out.Findings = append(out.Findings, r.moved(r.Findings, line, offset)...)
			out.Warnings = append(out.Warnings, r.moved(r.Warnings, line, offset)...)
			if bytes.HasSuffix(text, []byte("\r")) {
				out.Warnings = append(out.Warnings, frame(line, offset+len(text)-1, "a carriage return before the line feed", "a line feed alone"))
			}
		}
		if !ended {
			out.Findings = append(out.Findings, frame(line, len(data), "the end of the text", "a line feed after the message"))
		}
		offset = len(data) - len(rest)
	}
	return out, nil
}

// moved returns findings of one line as findings of the whole.
func (r *Report) moved(list []Finding, line, offset int) []Finding {
	for i := range list {
		list[i].Line = line
		if list[i].In == "" && list[i].Offset >= 0 {
			list[i].Offset += int64(offset)
		}
	}
	return list
}

// escape returns name as a token of a JSON pointer.
func escape(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}
