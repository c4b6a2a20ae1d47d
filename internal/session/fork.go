package session

import (
	"errors"
	"fmt"
	"os"

	"github.com/abhed/abhed/internal/event"
)

// Fork makes a new session of what the session that id names was up to event at,
// which 0 makes the last one, in the workspace at root. The other session isn't
// changed, and may be open. The events are recorded again, with their own numbers and
// times, after session.forked, which names where they come from. It returns what the
// new session has come to; the caller appends session.resumed as with Resume.
//
// It fails as Resume does, but for *LockedError.
func (s *Store) Fork(id string, at int64, root string, o ResumeOptions) (*Session, *State, ResumeInfo, error) {
	path, err := s.Find(id)
	if err != nil {
		return nil, nil, ResumeInfo{}, err
	}
	r, err := s.replay(path)
	if err == nil {
		err = s.accept(path, r, o)
	}
	if err == nil && (at < 0 || at > r.head.Seq) {
		err = fmt.Errorf("session %s has %d events; there is no event %d to fork at", r.id, r.head.Seq, at)
	}
	if err != nil {
		return nil, nil, ResumeInfo{}, err
	}
	if at == 0 {
		at = r.head.Seq
	}
	ses, err := s.Create(root, CreateOptions{})
	if err != nil {
		return nil, nil, ResumeInfo{}, err
	}
	fold, err := ses.copyFrom(path, r.id, at)
	if err != nil { // half a session is none
		err = errors.Join(fmt.Errorf("the session can't be forked: %w", err), ses.Close(), os.RemoveAll(ses.path), os.RemoveAll(blobDir(ses.path)))
		return nil, nil, ResumeInfo{}, err
	}
	state := fold.State()
	r.info.Interrupted = state.Interrupted
	return ses, state, r.info, nil
}

// errEnough ends the reading of a record early.
var errEnough = errors.New("enough") // never changed

// copyFrom records again what a session was up to event at.
func (s *Session) copyFrom(path, id string, at int64) (*Fold, error) {
	fold := &Fold{}
	_, err := Read(path, func(e event.Event) error {
		if e.Seq > at {
			return errEnough
		}
		switch e.Payload.(type) {
		case *event.HeadSigned, *event.RecordRepaired:
			return nil // they speak of the other file
		}
		if _, err := s.Append(event.Draft{Actor: e.Actor, Trust: e.Trust, Payload: e.Payload}); err != nil {
			return err
		}
		fold.Apply(e)
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, err
	}
	p := &event.SessionForked{From: id, At: at}
	if _, err := s.AppendDurable(event.Draft{Actor: event.ActorSystem, Trust: event.TrustHarness, Payload: p}); err != nil {
		return nil, err
	}
	return fold, s.Sign()
}
