package session

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/abhed/abhed/internal/chain"
	"github.com/abhed/abhed/internal/event"
)

// ResumeOptions says what a person accepts in a record. The zero value accepts
// nothing doubtful.
type ResumeOptions struct {
	// AcceptUnsigned takes a record in which no head is signed by this
	// installation's key.
	AcceptUnsigned bool
	// AcceptBroken takes the part of a broken record that is chained to its first
	// event, and leaves the rest out.
	AcceptBroken bool
}

// ResumeInfo is what a resume found; session.resumed records it (Resumed).
type ResumeInfo struct {
	// Interrupted lists the calls that had no outcome.
	Interrupted []string
	// UnsignedTail counts the events behind the last signed head. AcceptedUnsigned
	// says that there is none at all, AcceptedBroken, if not "", where the chain
	// is broken.
	UnsignedTail     int64
	AcceptedUnsigned bool
	AcceptedBroken   string
	// Skipped says what was passed over, and where.
	Skipped []string
	// Repaired is the number of bytes of a torn last line that were cut off.
	Repaired int64
}

// Resumed returns the event that records the resume; started is the situation of
// now.
func (i ResumeInfo) Resumed(started event.SessionStarted) *event.SessionResumed {
	return &event.SessionResumed{
		SessionStarted: started, Interrupted: i.Interrupted, UnsignedTail: i.UnsignedTail, AcceptedUnsigned: i.AcceptedUnsigned,
		AcceptedBroken: i.AcceptedBroken, Skipped: i.Skipped,
	}
}

// RefusedError says that a record is not taken over as it is.
type RefusedError struct {
	Path string
	// Unsigned: no head is signed by the key KeyID. Broken: what is wrong with
	// the chain.
	Unsigned bool
	KeyID    string
	Broken   []chain.Problem
}

// Error names the faults and how to go on.
func (e *RefusedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "the record %s is not resumed", e.Path)
	var flags []string
	if e.Unsigned {
		fmt.Fprintf(&b, "; no head in it is signed by this installation's key %.16s…, so it comes from elsewhere or was made up", e.KeyID)
		flags = append(flags, "--accept-unsigned")
	}
	if len(e.Broken) > 0 {
		fmt.Fprintf(&b, "; its chain is broken: %s", brokenText(e.Broken))
		flags = append(flags, "--accept-broken")
	}
	fmt.Fprintf(&b, "; look at it with `abhed record verify`, and if you trust it all the same, add %s", strings.Join(flags, " "))
	return b.String()
}

func brokenText(list []chain.Problem) string {
	s := list[0].String()
	if n := len(list) - 1; n > 0 {
		s += fmt.Sprintf("; and %d further lines are not chained to what is before", n)
	}
	return s
}

// maxSkipped bounds how many notes one resume keeps.
const maxSkipped = 100

// replay is what reading a record for a resume brings.
type replay struct {
	fold    Fold
	info    ResumeInfo
	id      string
	head    chain.Head
	broken  []chain.Problem // not accepted by a later event
	sigs    []signature     // by this installation's key, unverified
	more    int             // notes beyond maxSkipped
	size    int64           // of what stays of the file
	lineEnd bool            // the last event's line has its end
	torn    []byte
}

// Resume opens the session that id names (an id, the start of one, or a path) to
// go on with it, and returns what it has come to. A torn last line is cut off,
// which is recorded. The caller appends session.resumed (ResumeInfo.Resumed) as
// the first event, and must Close the session.
//
// It fails with *NotFoundError, *LockedError or *RefusedError; the record is then
// unchanged.
func (s *Store) Resume(id string, o ResumeOptions) (*Session, *State, ResumeInfo, error) {
	path, err := s.Find(id)
	if err != nil {
		return nil, nil, ResumeInfo{}, err
	}
	l, err := acquire(lockPath(path))
	if err != nil {
		return nil, nil, ResumeInfo{}, err
	}
	r, err := s.replay(path)
	if err == nil {
		err = s.accept(path, r, o)
	}
	if err != nil {
		l.release()
		return nil, nil, ResumeInfo{}, err
	}
	ses, err := s.reopen(path, r, l)
	if err != nil {
		l.release()
		return nil, nil, ResumeInfo{}, err
	}
	state := r.fold.State()
	r.info.Interrupted = state.Interrupted
	return ses, state, r.info, nil
}

func openRecord(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("the record can't be read: %w", err)
	}
	return f, nil
}

func (s *Store) replay(path string) (*replay, error) {
	f, err := openRecord(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := &replay{lineEnd: true}
	dir := blobDir(path)
	sc := newScanner(f, func(sum string, size int64) (string, error) {
		text, err := readBlob(dir, sum, size)
		if err != nil {
			// The event is chained, only a text of it is gone: the session goes on.
			r.note(fmt.Sprintf("a long text is left out: %v", err))
			return fmt.Sprintf("[a text of %d bytes, SHA-256 %s, that is no longer stored]", size, sum), nil
		}
		return text, nil
	})
	for {
		it, err := sc.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		s.replayItem(r, &it)
	}
	if r.head.Seq == 0 && len(r.broken) == 0 {
		return nil, fmt.Errorf("the record %s holds no event: there is nothing to resume", path)
	}
	if r.more > 0 {
		r.info.Skipped = append(r.info.Skipped, fmt.Sprintf("and %d things more", r.more))
	}
	return r, nil
}

func (r *replay) note(text string) {
	if len(r.info.Skipped) >= maxSkipped {
		r.more++
		return
	}
	r.info.Skipped = append(r.info.Skipped, text)
}

func (s *Store) replayItem(r *replay, it *item) {
	switch {
	case it.class == torn:
		r.torn = append([]byte(nil), it.line.Data...)
		r.info.Repaired = it.line.Size
		return
	case it.class == broken:
		r.broken = append(r.broken, it.problem())
	case it.what != "":
		r.note(it.problem().String())
	}
	r.size = it.line.Offset + it.line.Size
	r.lineEnd = it.line.Whole
	if !it.accepted() {
		return
	}
	sig, what := signatureOf(it, r.head)
	switch {
	case what != "":
		p := it.problem()
		p.What = what
		r.broken = append(r.broken, p)
	case sig.key == s.key.ID():
		r.sigs = append(r.sigs, sig)
	}
	if p, ok := it.ev.Payload.(*event.SessionResumed); ok && p.AcceptedBroken != "" && len(r.broken) > 0 {
		r.note(fmt.Sprintf("accepted by event %d: %s", it.ev.Seq, p.AcceptedBroken))
		r.broken = nil
	}
	r.id = it.ev.SessionID
	r.head = chain.Head{Log: r.id, Seq: it.ev.Seq, Hash: it.ev.Hash}
	r.fold.Apply(it.ev)
}

// accept verifies the last signature and holds what was found against o.
func (s *Store) accept(path string, r *replay, o ResumeOptions) error {
	signedAt := int64(0)
	for i := len(r.sigs) - 1; i >= 0; i-- {
		sig := r.sigs[i]
		if chain.VerifyHead(s.key.Public(), sig.head, sig.sig) {
			// It vouches for everything before it, other signatures included.
			signedAt = sig.at
			break
		}
		sig.item.What = "the signature is not this installation's, though it bears its key's name"
		r.broken = append(r.broken, sig.item)
	}
	r.info.UnsignedTail = r.head.Seq - signedAt
	r.info.AcceptedUnsigned = signedAt == 0
	refusal := &RefusedError{Path: path, KeyID: s.key.ID(), Unsigned: signedAt == 0 && !o.AcceptUnsigned}
	if !o.AcceptBroken {
		refusal.Broken = r.broken
	}
	if refusal.Unsigned || len(refusal.Broken) > 0 {
		return refusal
	}
	if len(r.broken) > 0 {
		r.info.AcceptedBroken = brokenText(r.broken)
	}
	if r.head.Seq == 0 {
		return fmt.Errorf("the record %s holds no readable event: there is nothing to resume", path)
	}
	return nil
}

// reopen opens the file for writing and repairs its end.
func (s *Store) reopen(path string, r *replay, l *lock) (*Session, error) {
	f, err := s.opts.open(path, os.O_WRONLY|os.O_APPEND)
	if err != nil {
		return nil, fmt.Errorf("the record can't be opened for writing: %w", err)
	}
	ses := newSession(s, r.id, path, f, l)
	ses.head, ses.synced = r.head, r.head.Seq
	if r.info.UnsignedTail == 0 {
		ses.signed = r.head.Seq
	}
	err = nil
	if len(r.torn) > 0 {
		err = f.Truncate(r.size)
	}
	if err == nil && !r.lineEnd {
		_, err = f.Write([]byte("\n"))
	}
	if err == nil && len(r.torn) > 0 {
		sum := sha256.Sum256(r.torn)
		ses.mu.Lock()
		if _, err = ses.add(event.Draft{Actor: event.ActorSystem, Trust: event.TrustHarness, Payload: &event.RecordRepaired{
			DroppedBytes: r.info.Repaired, DroppedHash: hex.EncodeToString(sum[:]),
		}}, true); err == nil {
			err = ses.commit(ses.head.Seq)
		}
		ses.mu.Unlock()
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("the end of the record %s can't be repaired: %w", path, err)
	}
	return ses, nil
}
