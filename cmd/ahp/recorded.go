package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/internal/chain"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/hookd"
	"github.com/abhed/abhed/internal/hooklog"
	"github.com/abhed/abhed/internal/strictjson"
)

// recorded is one event with what was decided about it.
type recorded struct {
	host, native string
	decision     hooklog.Decision
	effects      []string
	// kindOnly tells that the effects aren't recorded, so that only the kind of the
	// decision can be compared.
	kindOnly bool
	why      string
	event    *ahp.Event
	// skip says why it can't be judged again; nothing else is set then.
	skip string
}

// eachRecorded calls f with each event in a file or a folder, oldest first.
func eachRecorded(path string, f func(*recorded) error) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return failWith(exitUsage, fmt.Errorf("replay: %w", err))
	}
	if err != nil {
		return failWith(exitFailed, fmt.Errorf("replay: %w", err))
	}
	if info.IsDir() {
		err := hooklog.Read(path, func(e *hooklog.Entry) error { return ofEntry(e, f) })
		var damaged *hooklog.DamagedError
		switch {
		case errors.As(err, &damaged):
			for range damaged.Lines {
				if err := f(&recorded{skip: "the line can't be read: see ahp verify"}); err != nil {
					return err
				}
			}
			return nil
		case errors.Is(err, fs.ErrNotExist):
			return failWith(exitUsage, fmt.Errorf("replay: %w", err))
		}
		return err
	}
	if !info.Mode().IsRegular() {
		return failWith(exitUsage, fmt.Errorf("replay: %s: found %s, expected a regular file or a folder", path, info.Mode().Type()))
	}
	file, err := os.Open(path)
	if err != nil {
		return failWith(exitFailed, fmt.Errorf("replay: %w", err))
	}
	defer file.Close()
	return eachLineOf(path, file, f)
}

func eachLineOf(path string, r io.Reader, f func(*recorded) error) error {
	lines := chain.NewReader(r)
	for {
		l, err := lines.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return failWith(exitFailed, fmt.Errorf("replay: %s: %w", path, err))
		}
		err = chain.Form(l)
		isRecord := false
		if err == nil {
			isRecord, err = isAbhed(l.Data)
		}
		switch {
		case err != nil && l.Number == 1:
			return failWith(exitUsage, fmt.Errorf("replay: %s:1: %w; expected a decision log of ahp or the record of an Abhed session", path, err))
		case err != nil:
			err = f(&recorded{skip: "the line can't be read: see ahp verify"})
		case isRecord:
			err = ofRecord(l.Data, f)
		default:
			var e *hooklog.Entry
			if e, err = hooklog.Decode(l.Data); err != nil {
				return failWith(exitUsage, fmt.Errorf("replay: %s:%d: %w", path, l.Number, err))
			}
			err = ofEntry(e, f)
		}
		if err != nil {
			return err
		}
	}
}

// isAbhed reports whether a line is one of an Abhed record; the error says that it is
// none of a decision log either.
func isAbhed(line []byte) (bool, error) {
	var w struct {
		SessionID string  `json:"session_id"`
		Payload   ahp.Raw `json:"payload"`
		Seq       int64   `json:"seq"`
		Hash      string  `json:"hash"`
	}
	if err := strictjson.Unmarshal(line, &w, strictjson.Options{MaxBytes: chain.MaxLine, MaxDepth: chain.MaxDepth}); err != nil {
		return false, err
	}
	if w.Seq < 1 || w.Hash == "" {
		return false, errors.New("found an object without seq and hash")
	}
	return w.SessionID != "" && len(w.Payload) > 0, nil
}

// answered reports whether a backend, which may be none that is registered, answered.
func answered(e *hooklog.Entry, backend string) bool {
	return slices.ContainsFunc(e.Answers, func(a hooklog.Answer) bool { return a.Backend == backend })
}

// ofEntry gives f what a line of the decision log recorded, if it is about a decision.
func ofEntry(e *hooklog.Entry, f func(*recorded) error) error {
	switch {
	case e.ID == "" && len(e.Event) == 0 && e.Decision == "":
		return nil // about the log itself
	case len(e.Event) == 0:
		return f(&recorded{skip: "the event isn't in the log"})
	case answered(e, hookd.SelfProtection):
		return f(&recorded{skip: "self-protection decided, whatever is registered"})
	case answered(e, hookd.Canary):
		return f(&recorded{skip: "a canary of \"ahp doctor\""})
	}
	of, err := ahp.DecodeEvent(e.Event)
	switch {
	case err != nil:
		return f(&recorded{skip: "the recorded event isn't a valid one"})
	case !of.Type.Interceptable():
		return f(&recorded{skip: "nobody can decide about an event of this type"})
	case of.Type == ahp.UserElicitationResult:
		return f(&recorded{skip: "the answer to a question can't be judged without it"})
	}
	r := &recorded{host: e.Host, native: e.Native, decision: e.Decision, why: or(e.Problem, e.Reason), event: of}
	if e.Decision == hooklog.Rewrite || e.Decision == hooklog.Tell {
		for _, a := range e.Answers {
			for _, effect := range a.Effects {
				r.effects = append(r.effects, canonicalText(effect))
			}
		}
	}
	return f(r)
}

// canonicalText returns JSON as a text that is the same for the same value.
func canonicalText(raw []byte) string {
	if c, err := strictjson.Canonical(raw); err == nil {
		return string(c)
	}
	return string(raw)
}

// ofRecord gives f what an Abhed record's line holds, if it is the decision about a call.
func ofRecord(line []byte, f func(*recorded) error) error {
	ev, err := event.Decode(line)
	if err != nil {
		if bytes.Contains(line, []byte(`"type":"decision"`)) {
			return f(&recorded{skip: "the call isn't in the record itself: a part of it is kept beside, or can't be read"})
		}
		return nil
	}
	d, is := ev.Payload.(*event.Decision)
	switch {
	case !is:
		return nil
	case len(d.Original) == 0:
		return f(&recorded{skip: "the call has no arguments that could be judged"})
	case bytes.Contains(d.Original, []byte(`"$redacted"`)):
		return f(&recorded{skip: "the call is redacted"})
	}
	e := &ahp.Event{
		ID: ev.ID, Source: "urn:abhed:record", Type: ahp.ToolBefore, Time: ahp.Timestamp(ev.Time), Path: adapter.Path,
		Session: &ahp.Session{ID: ev.SessionID, Cwd: d.WorkDir, WorkspaceRoots: d.Roots},
		Call:    &ahp.Identity{ID: d.CallID}, Tool: &ahp.Tool{Name: d.Tool, Input: ahp.Raw(d.Original), Origin: ahp.OriginNative},
	}
	if text, err := e.Encode(); err != nil {
		return f(&recorded{skip: "the recorded call makes no valid event"})
	} else if e, err = ahp.DecodeEvent(text); err != nil {
		return f(&recorded{skip: "the recorded call makes no valid event"})
	}
	r := &recorded{host: "abhed", event: e, kindOnly: true}
	r.decision, r.why = ofBackends(d.Asked)
	return f(r)
}

// ofBackends returns what the backends that were asked about a call came to.
func ofBackends(asked []event.Asked) (hooklog.Decision, string) {
	order := []hooklog.Decision{hooklog.Pass, hooklog.Tell, hooklog.Rewrite, hooklog.Ask, hooklog.Deny}
	worst, why := 0, ""
	for i := range asked {
		a := &asked[i]
		if a.Kind != "backend" || a.Step != string(ahp.ToolBefore) {
			continue
		}
		for answer := range strings.SplitSeq(a.Answer, "+") {
			at := 0
			switch {
			case answer == "deny", answer == "failed" && a.Policy == string(ahp.FailClosed):
				at = 4
			case answer == "ask":
				at = 3
			case answer == "rewrite":
				at = 2
			case answer == "return", answer == "stop":
				at = 1
			}
			if at > worst {
				worst, why = at, strings.TrimSuffix(a.Name+": "+or(a.Reason, a.Failure), ": ")
			}
		}
	}
	return order[worst], why
}
