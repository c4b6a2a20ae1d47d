package hooklog

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/abhed/abhed/internal/chain"
)

// Problem is something wrong with a log, and where.
type Problem struct {
	// File is the path; Line counts from 1 and is 0 for the file as a whole.
	File string `json:"file"`
	Line int    `json:"line"`
	// Seq is the number that the line bears, 0 if none.
	Seq int64 `json:"seq,omitzero"`
	// What says what is wrong, and what that means.
	What string `json:"what"`
}

// Report is the result of Verify.
type Report struct {
	// Files counts the files, Lines the sound lines in them.
	Files    int       `json:"files"`
	Lines    int64     `json:"lines"`
	Problems []Problem `json:"problems"`
}

// OK reports whether nothing is wrong.
func (r *Report) OK() bool { return len(r.Problems) == 0 }

// Verify checks every line of the log in dir, and that each file continues the one
// before it. The error is that of reading.
func Verify(dir string) (*Report, error) {
	all, err := parts(dir)
	if err != nil {
		return nil, err
	}
	defer closeAll(all)
	r := &Report{Problems: []Problem{}, Files: len(all)}
	var before *chain.Link
	for _, p := range all {
		name := p.file.Name()
		found, err := chain.Verify(io.NewSectionReader(p.file, 0, p.size), func(l chain.Line, k chain.Link) error {
			if k.Seq != 1 {
				return nil
			}
			e, err := decode(l.Data)
			if err != nil {
				return fmt.Errorf("%s:%d: %w", name, l.Number, err)
			}
			if before != nil && (e.Continues == nil || e.Continues.Hash != before.Hash || e.Continues.Seq != before.Seq) {
				r.Problems = append(r.Problems, Problem{File: name, Line: l.Number, Seq: k.Seq, What: "the file doesn't continue the one before it: lines at its end, or a whole file, are missing"})
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		for _, q := range found.Problems {
			r.Problems = append(r.Problems, Problem{File: name, Line: q.Line, Seq: q.Seq, What: q.What})
		}
		r.Lines += found.Lines
		head := found.Head
		before = &head
	}
	return r, nil
}

var _ = filepath.Base
