package eventlog

import (
	"os"

	"github.com/abhed/abhed/internal/chain"
)

// Report is the result of Verify.
type Report struct {
	// Lines counts the sound lines, Seq and Hash are the last one's.
	Lines int64  `json:"lines"`
	Seq   int64  `json:"seq"`
	Hash  string `json:"hash"`
	// Signed tells that FILE.head holds a signature by the given key over a line of
	// this log; SignedSeq is which. Lines behind it are chained and not signed.
	Signed    bool     `json:"signed"`
	SignedSeq int64    `json:"signedSeq,omitzero"`
	Problems  []string `json:"problems"`
}

// Verify checks every line of the log at path, and with a key that FILE.head holds
// its signature over one of them: see chain.VerifySigned. The error is that of reading.
func Verify(path string, key chain.PublicKey) (*Report, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var head *chain.SignedHead
	var headErr error
	if key != nil {
		head, headErr = chain.ReadHead(path)
	}
	found := &chain.SignedReport{}
	if head != nil {
		found, err = chain.VerifySigned(f, head, key, nil)
	} else {
		found.Report, err = chain.Verify(f, nil)
	}
	if err != nil {
		return nil, err
	}
	r := &Report{Lines: found.Lines, Seq: found.Head.Seq, Hash: found.Head.Hash, Signed: found.Signed, SignedSeq: found.SignedSeq, Problems: []string{}}
	for _, p := range found.Problems {
		what := p.String()
		if p.Line == 0 {
			what = p.What
		}
		r.Problems = append(r.Problems, what)
	}
	if headErr != nil {
		r.Problems = append(r.Problems, headErr.Error())
	}
	return r, nil
}
