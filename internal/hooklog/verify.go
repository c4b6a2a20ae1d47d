package hooklog

import (
	"fmt"

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
	// Files counts the files, Lines the sound lines in them, and Cut how often a line
	// that was half written has been removed, as after a crash.
	Files int   `json:"files"`
	Lines int64 `json:"lines"`
	Cut   int   `json:"cut"`
	// Torn is how many bytes of a line half written stand at the end: a process was
	// killed while it wrote a decision, which so was never acted on. The next line
	// removes them.
	Torn int64 `json:"torn"`
	// Missing tells that the oldest file continues one that is no longer there, which is
	// what rotation does.
	Missing bool `json:"missing"`
	// Signed counts the files with a signature by the given key.
	Signed   int       `json:"signed"`
	Problems []Problem `json:"problems"`
}

// OK reports whether nothing is wrong.
func (r *Report) OK() bool { return len(r.Problems) == 0 }

// Verify checks every line of the log in dir, that each file continues the one before
// it, and with a key that each is signed by it. Lines that somebody cut off at the end
// of the newest file are found only by a signature. The error is that of reading.
func Verify(dir string, key chain.PublicKey) (*Report, error) {
	all, err := parts(dir)
	if err != nil {
		return nil, err
	}
	defer closeAll(all)
	r := &Report{Problems: []Problem{}, Files: len(all)}
	var before *chain.Link
	for i := range all {
		if i == len(all)-1 {
			r.untorn(&all[i])
		}
		if before, err = r.verify(&all[i], before, key); err != nil {
			return nil, fmt.Errorf("%s: %w", all[i].name(), err)
		}
	}
	return r, nil
}

// untorn leaves a line half written out of p.
func (r *Report) untorn(p *part) {
	end, err := chain.End(p.file, p.size)
	if err != nil {
		return // there are no lines, as the check of them says
	}
	r.Torn, p.size = p.size-end, end
}

// verify checks one file, which is to continue what ends with before, and returns its
// own end.
func (r *Report) verify(p *part, before *chain.Link, key chain.PublicKey) (*chain.Link, error) {
	visit := func(l chain.Line, k chain.Link) error {
		e, err := Decode(l.Data)
		if err != nil {
			r.Problems = append(r.Problems, Problem{File: p.name(), Line: l.Number, Seq: k.Seq, What: "it isn't a decision: " + err.Error()})
			return nil
		}
		if e.Cut > 0 {
			r.Cut++
		}
		if what := continues(e, before); what != "" {
			r.Problems = append(r.Problems, Problem{File: p.name(), Line: l.Number, Seq: k.Seq, What: what})
		}
		r.Missing = r.Missing || before == nil && e.Continues != nil
		return nil
	}
	found := &chain.SignedReport{}
	var err error
	if key != nil && p.head != nil {
		found, err = chain.VerifySigned(p.content(0), p.head, key, visit)
	} else {
		found.Report, err = chain.Verify(p.content(0), visit)
	}
	if err != nil {
		return nil, err
	}
	if key != nil && p.head == nil && p.size > 0 {
		found.Problems = append(found.Problems, chain.Problem{What: p.headErr.Error()})
	}
	if found.Signed {
		r.Signed++
	}
	for _, q := range found.Problems {
		r.Problems = append(r.Problems, Problem{File: p.name(), Line: q.Line, Seq: q.Seq, What: q.What})
	}
	r.Lines += found.Lines
	return &found.Head, nil
}

// continues says what is wrong with how e follows the file that ends with before; nil
// is none.
func continues(e *Entry, before *chain.Link) string {
	switch c := e.Continues; {
	case e.Seq != 1 && c != nil:
		return "it says that it begins a file, and it doesn't"
	case e.Seq != 1 || before == nil || before.Seq == 0:
		return ""
	case c == nil:
		return "the file doesn't say that it continues the one before it: that one was put there, or the first line of this one was removed"
	case c.Hash != before.Hash || c.Seq != before.Seq:
		return fmt.Sprintf("the file continues one that ends with line %d (hash %.12s…), the one before it ends with line %d (hash %.12s…): lines at that end, or a whole file, are missing", c.Seq, c.Hash, before.Seq, before.Hash)
	}
	return ""
}
