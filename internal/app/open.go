package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/session"
)

// openRecord opens the record of a new session or of the one to go on with.
func (e *engine) openRecord(context.Context) error {
	values, warnings, err := secrets(e.o.loaded, e.sys)
	if err != nil {
		return err
	}
	e.warnings = append(e.warnings, warnings...)
	dir := e.sys.stateDir()
	if dir == "" {
		return errors.New("there is no place for the record: neither XDG_STATE_HOME nor HOME is an absolute path")
	}
	store, err := session.OpenStore(dir, session.Options{Secrets: values})
	if err != nil {
		return &operationalError{err}
	}
	e.key = store.Key()
	if err := e.resumeOrCreate(store); err != nil {
		return err
	}
	e.onClose(e.log.Close)
	e.id, e.record = e.log.ID(), func(d event.Draft) error { _, err := e.log.Append(d); return err }
	e.log.Subscribe(func(ev event.Event) { e.meter.hear(ev, e.priceOf) })
	if e.o.sink != nil {
		e.ear = newEar(e.o.sink)
		e.log.Subscribe(e.ear.event)
	}
	return nil
}

func (e *engine) resumeOrCreate(store *session.Store) error {
	id, workspace := e.o.resume, e.o.loaded.workspace
	if e.o.resumeNewest {
		infos, err := store.ListWorkspace(workspace)
		if err != nil {
			return &operationalError{err}
		}
		if len(infos) == 0 {
			return fmt.Errorf("there is no session of the workspace %s to go on with", workspace)
		}
		id = infos[0].ID
	}
	if id == "" {
		if e.o.fork {
			return errors.New("a fork needs the session that it is of")
		}
		var err error
		if e.log, err = store.Create(workspace, session.CreateOptions{}); err != nil {
			return &operationalError{err}
		}
		e.state = &session.State{}
		return nil
	}
	file, err := store.Find(id)
	if err != nil {
		return err
	}
	if err := sameWorkspace(store, file, workspace); err != nil {
		return err
	}
	var info session.ResumeInfo
	how := session.ResumeOptions{AcceptUnsigned: e.o.acceptUnsigned, AcceptBroken: e.o.acceptBroken}
	if e.o.fork {
		e.origin = strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
		e.log, e.state, info, err = store.Fork(id, e.o.forkAt, workspace, how)
	} else {
		e.log, e.state, info, err = store.Resume(id, how)
	}
	if err != nil {
		return err
	}
	e.resumed, e.agentsBefore = &info, e.state.Agents
	return nil
}

// sameWorkspace refuses to go on in another workspace than the session's: its
// history speaks of other files.
func sameWorkspace(store *session.Store, file, workspace string) error {
	infos, err := store.List()
	if err != nil {
		return &operationalError{err}
	}
	for _, i := range infos {
		if i.Path == file && i.Root != "" && i.Root != workspace {
			return fmt.Errorf("session %s belongs to the workspace %s, and this is %s; go on with -C %s", i.ID, i.Root, workspace, i.Root)
		}
	}
	return nil
}
