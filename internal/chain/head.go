package chain

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/abhed/abhed/internal/strictjson"
)

// HeadSuffix ends the name of the file beside a log that holds the signature.
const HeadSuffix = ".head"

// SignedHead is the content of FILE.head: a Head and its signature.
type SignedHead struct {
	Log       string `json:"log"`
	Seq       int64  `json:"seq"`
	Hash      string `json:"hash"`
	Key       string `json:"key"`
	Signature string `json:"signature"`
}

// ReadHead reads the signature beside the log at path.
func ReadHead(path string) (*SignedHead, error) {
	f, err := os.Open(path + HeadSuffix)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("there is no %s%s, which holds the signature", filepath.Base(path), HeadSuffix)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	const limit = 1 << 12
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	h := &SignedHead{}
	if err := strictjson.Unmarshal(data, h, strictjson.Options{MaxBytes: limit}); err != nil {
		return nil, fmt.Errorf("%s%s: %w", path, HeadSuffix, err)
	}
	return h, nil
}

// sign writes where the log stands; the file is locked.
func (f *File) sign() error {
	if f.opts.Key == nil {
		return nil
	}
	h := Head{Log: filepath.Base(f.path), Seq: f.head.Seq, Hash: f.head.Hash}
	text, err := strictjson.Marshal(SignedHead{Log: h.Log, Seq: h.Seq, Hash: h.Hash, Key: f.opts.Key.ID(), Signature: f.opts.Key.Sign(h)})
	if err != nil {
		return err
	}
	// It appears at once and whole, so that a reader never sees half of it.
	part := f.path + HeadSuffix + ".part"
	if err := os.Remove(part); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("sign: %w", err)
	}
	file, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("sign: %w", err)
	}
	_, err = file.Write(append(text, '\n'))
	if e := file.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(part, f.path+HeadSuffix)
	}
	if err != nil {
		return fmt.Errorf("sign: %w", err)
	}
	return nil
}

// SignedReport is the result of VerifySigned.
type SignedReport struct {
	*Report
	// Signed tells that the signature is by the given key over a line of this log, of
	// which SignedSeq is the number. Lines behind it are chained and not signed.
	Signed    bool
	SignedSeq int64
}

// VerifySigned verifies the log in r, and that head, which was read before, is signed by
// the key over one of its lines: a log that was cut off behind that line is found,
// one that was cut off and signed anew by whoever has the key is not.
func VerifySigned(r io.Reader, head *SignedHead, key PublicKey, visit func(Line, Link) error) (*SignedReport, error) {
	at := ""
	found, err := Verify(r, func(line Line, l Link) error {
		if l.Seq == head.Seq {
			at = l.Hash
		}
		if visit == nil {
			return nil
		}
		return visit(line, l)
	})
	out := &SignedReport{Report: found}
	if err != nil {
		return out, err
	}
	signed := Head{Log: head.Log, Seq: head.Seq, Hash: head.Hash}
	switch {
	case !VerifyHead(key, signed, head.Signature):
		out.Problems = append(out.Problems, Problem{What: "the signature isn't one of the given key"})
	case at != head.Hash:
		out.Problems = append(out.Problems, Problem{What: fmt.Sprintf("the signed line %d isn't in the log: lines were removed or changed", head.Seq)})
	default:
		out.Signed, out.SignedSeq = true, head.Seq
	}
	return out, nil
}
