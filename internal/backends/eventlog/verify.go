package eventlog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/abhed/abhed/internal/chain"
	"github.com/abhed/abhed/internal/strictjson"
)

const headSuffix = ".head"

// signedHead is the content of FILE.head.
type signedHead struct {
	Log       string `json:"log"`
	Seq       int64  `json:"seq"`
	Hash      string `json:"hash"`
	Key       string `json:"key"`
	Signature string `json:"signature"`
}

// sign writes where the log stands; the file is locked.
func (l *Log) sign(head chain.Link) error {
	if l.opts.Key == nil {
		return nil
	}
	h := chain.Head{Log: filepath.Base(l.path), Seq: head.Seq, Hash: head.Hash}
	text, err := strictjson.Marshal(signedHead{Log: h.Log, Seq: h.Seq, Hash: h.Hash, Key: l.opts.Key.ID(), Signature: l.opts.Key.Sign(h)})
	if err != nil {
		return err
	}
	// It appears at once and whole, so that a reader never sees half of it.
	part := l.path + headSuffix + ".part"
	if err := os.WriteFile(part, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("eventlog: sign: %w", err)
	}
	if err := os.Rename(part, l.path+headSuffix); err != nil {
		return fmt.Errorf("eventlog: sign: %w", err)
	}
	return nil
}

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
// its signature over one of them: a log that was cut off behind that line is found,
// one that was cut off and signed anew by whoever has the key is not. The error is
// that of reading.
func Verify(path string, key chain.PublicKey) (*Report, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var head signedHead
	var headErr error
	if key != nil {
		head, headErr = readHead(path)
	}
	at := ""
	found, err := chain.Verify(f, func(_ chain.Line, l chain.Link) error {
		if l.Seq == head.Seq {
			at = l.Hash
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	r := &Report{Lines: found.Lines, Seq: found.Head.Seq, Hash: found.Head.Hash, Problems: []string{}}
	for _, p := range found.Problems {
		r.Problems = append(r.Problems, p.String())
	}
	if key == nil {
		return r, nil
	}
	signed := chain.Head{Log: head.Log, Seq: head.Seq, Hash: head.Hash}
	switch {
	case headErr != nil:
		r.Problems = append(r.Problems, headErr.Error())
	case !chain.VerifyHead(key, signed, head.Signature):
		r.Problems = append(r.Problems, "the signature isn't one of the given key")
	case at != head.Hash:
		r.Problems = append(r.Problems, fmt.Sprintf("the signed line %d isn't in the log: lines were removed or changed", head.Seq))
	default:
		r.Signed, r.SignedSeq = true, head.Seq
	}
	return r, nil
}

func readHead(path string) (signedHead, error) {
	var h signedHead
	data, err := os.ReadFile(path + headSuffix)
	if errors.Is(err, os.ErrNotExist) {
		return h, fmt.Errorf("there is no %s%s, which holds the signature", filepath.Base(path), headSuffix)
	}
	if err == nil {
		err = strictjson.Unmarshal(data, &h, strictjson.Options{MaxBytes: 1 << 12})
	}
	return h, err
}
