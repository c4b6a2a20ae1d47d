package session

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/abhed/abhed/internal/chain"
)

// Problem is something wrong with a record, and where.
type Problem = chain.Problem

// Report is the result of Verify.
type Report struct {
	// Session is the session's id; Events counts the events that are chained to
	// the first, Head is the last of them.
	Session string
	Events  int64
	Head    chain.Head
	// OK says that there are no problems. Problems are in the order of the file.
	OK       bool
	Problems []Problem
	// SignedHead is the last head with a verified signature, KeyID the key's name;
	// zero if there is none. UnsignedTail counts the events behind that signature:
	// anybody who can write the file could have added or cut such events.
	SignedHead   chain.Head
	KeyID        string
	UnsignedTail int64
	// OtherKeys are the names of keys that signed and were not given.
	OtherKeys []string
}

// VerifyOptions says what a record is held against.
type VerifyOptions struct {
	// Keys are the public keys whose signatures count. With none, signatures are
	// read but not verified.
	Keys []chain.PublicKey
	// Anchors are heads of this record that were kept elsewhere: each must be in
	// the chain.
	Anchors []chain.Head
}

// Verify checks the record at path: form, chain, numbers, signatures by keys, and
// the long texts beside it. See VerifyWith.
func Verify(path string, keys ...chain.PublicKey) (*Report, error) {
	return VerifyWith(path, VerifyOptions{Keys: keys})
}

// VerifyWith checks every line of the record at path, and looks on behind a
// fault. It needs no lock and changes nothing. If keys are given, a record
// without a head signed by one of them has a problem. The error is that of
// reading.
func VerifyWith(path string, o VerifyOptions) (*Report, error) {
	f, err := openRecord(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	v := newVerifier(o)
	dir := blobDir(path)
	s := newScanner(f, func(sum string, size int64) (string, error) { return readBlob(dir, sum, size) })
	for {
		it, err := s.next()
		if err == io.EOF {
			return v.finish(), nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		v.item(&it)
	}
}

type verifier struct {
	o       VerifyOptions
	keys    map[string]chain.PublicKey
	rep     Report
	signed  int64            // number of the event with the last verified signature
	anchors map[int64]string // hash of each event that an anchor names
	more    int              // problems beyond maxProblems
}

func newVerifier(o VerifyOptions) *verifier {
	v := &verifier{o: o, keys: map[string]chain.PublicKey{}, anchors: map[int64]string{}}
	for _, k := range o.Keys {
		v.keys[chain.KeyID(k)] = k
	}
	return v
}

// maxProblems bounds a report: behind one fault every line can be another.
const maxProblems = 1000

func (v *verifier) problem(it *item, what string) {
	if v.more++; len(v.rep.Problems) >= maxProblems {
		return
	}
	v.more = 0
	p := it.problem()
	p.What = what
	v.rep.Problems = append(v.rep.Problems, p)
}

func (v *verifier) item(it *item) {
	if it.what != "" {
		v.problem(it, it.what)
	}
	if !it.accepted() {
		return
	}
	switch {
	case it.class != sound: // said already
	case !it.line.Whole:
		v.problem(it, chain.Form(it.line).Error())
	default:
		if err := chain.Canonical(it.line.Data); err != nil {
			v.problem(it, err.Error())
		}
	}
	v.signature(it)
	v.rep.Session = it.ev.SessionID
	v.rep.Events++
	v.rep.Head = chain.Head{Log: it.ev.SessionID, Seq: it.ev.Seq, Hash: it.ev.Hash}
	if slices.ContainsFunc(v.o.Anchors, func(a chain.Head) bool { return a.Seq == it.ev.Seq }) {
		v.anchors[it.ev.Seq] = it.ev.Hash
	}
}

func (v *verifier) signature(it *item) {
	sig, what := signatureOf(it, v.rep.Head)
	if what != "" {
		v.problem(it, what)
	}
	if sig.key == "" {
		return
	}
	key, known := v.keys[sig.key]
	switch {
	case !known:
		if !slices.Contains(v.rep.OtherKeys, sig.key) {
			v.rep.OtherKeys = append(v.rep.OtherKeys, sig.key)
		}
	case !chain.VerifyHead(key, sig.head, sig.sig):
		v.problem(it, "the signature is not that of the key it names")
	default:
		v.rep.SignedHead, v.rep.KeyID, v.signed = sig.head, sig.key, sig.at
	}
}

func (v *verifier) finish() *Report {
	rep := &v.rep
	rep.UnsignedTail = rep.Head.Seq - v.signed
	whole := func(what string) { rep.Problems = append(rep.Problems, Problem{What: what}) }
	if v.more > 0 {
		whole(fmt.Sprintf("%d further problems are not listed", v.more))
	}
	if rep.Events == 0 {
		whole("it holds no event")
	}
	if len(v.keys) > 0 && v.signed == 0 {
		what := "no head is signed by a key that was given"
		if len(rep.OtherKeys) > 0 {
			what += "; it is signed by " + strings.Join(rep.OtherKeys, ", ")
		}
		whole(what)
	}
	for _, a := range v.o.Anchors {
		switch got := v.anchors[a.Seq]; {
		case a.Log != rep.Session:
			whole(fmt.Sprintf("the anchored head belongs to the session %s", a.Log))
		case got == "":
			whole(fmt.Sprintf("event %d was anchored and is not in the chain, which ends with event %d: events were cut off", a.Seq, rep.Head.Seq))
		case got != a.Hash:
			whole(fmt.Sprintf("event %d was anchored with the hash %s and has %s: the record was rewritten", a.Seq, a.Hash, got))
		}
	}
	rep.OK = len(rep.Problems) == 0
	return rep
}
