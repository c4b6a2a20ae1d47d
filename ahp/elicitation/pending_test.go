package elicitation_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/elicitation"
)

const (
	askText    = `{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"string"}}}}`
	answerText = `{"action":"accept","content":{"a":"x"}}`
)

func asked(id string) *ahp.Event {
	part := ahp.TextPart("p", askText)
	return &ahp.Event{ID: id, Source: "urn:test", Type: ahp.UserElicitationRequest, Time: "2026-01-01T00:00:00Z",
		Session: &ahp.Session{ID: "s"}, Elicitation: &ahp.Elicitation{Server: "srv", Mode: "form", Request: &part}}
}

func answered(to string) *ahp.Event {
	part := ahp.TextPart("p", answerText)
	return &ahp.Event{ID: "answer-" + to, Source: "urn:test", Type: ahp.UserElicitationResult, Time: "2026-01-01T00:00:00Z", ParentEventID: to,
		Session: &ahp.Session{ID: "s"}, Elicitation: &ahp.Elicitation{Server: "srv", Mode: "form", Action: "accept", Result: &part}}
}

// TestCorrelation changes one thing of a good answer at a time: nothing of it is
// read, and the request waits on.
func TestCorrelation(t *testing.T) {
	for name, tt := range map[string]struct {
		change  func(*ahp.Event)
		pointer string
	}{
		"no parent":       {func(e *ahp.Event) { e.ParentEventID = "" }, "/parentEventId"},
		"another parent":  {func(e *ahp.Event) { e.ParentEventID = "other" }, "/parentEventId"},
		"another source":  {func(e *ahp.Event) { e.Source = "urn:other" }, "/parentEventId"},
		"another session": {func(e *ahp.Event) { e.Session = &ahp.Session{ID: "t"} }, "/session"},
		"no session":      {func(e *ahp.Event) { e.Session = nil }, "/session"},
		"another server":  {func(e *ahp.Event) { e.Elicitation.Server = "x" }, "/elicitation/server"},
		"another mode":    {func(e *ahp.Event) { e.Elicitation.Mode = "url" }, "/elicitation/mode"},
	} {
		t.Run(name, func(t *testing.T) {
			table := elicitation.NewPending(0)
			if _, err := table.Add(asked("q")); err != nil {
				t.Fatal(err)
			}
			e := answered("q")
			unreadable := "{"
			e.Elicitation.Result.Text = &unreadable // a reader of the content would say so
			tt.change(e)
			_, _, err := table.Take(e)
			wantPointer(t, err, tt.pointer, ahp.KindCorrelation)
			if q, r, err := table.Take(answered("q")); err != nil || q.Message != "m" || string(r.Content) != `{"a":"x"}` {
				t.Errorf("the request was consumed: %v", err)
			}
			if _, _, err := table.Take(answered("q")); err == nil {
				t.Error("a second answer was taken")
			}
		})
	}
}

func TestEnvelopeAgrees(t *testing.T) {
	url := asked("q")
	url.Elicitation.Mode = "url"
	_, err := elicitation.OfRequest(url)
	wantPointer(t, err, "/elicitation/mode", ahp.KindShape)

	attached := asked("q")
	attached.Elicitation.Request = &ahp.Part{ID: "p", Kind: ahp.KindAttachment, MediaType: "image/png", Selection: ahp.SelectBody, Body: &ahp.BodyRef{Ref: "r"}}
	_, err = elicitation.OfRequest(attached)
	wantPointer(t, err, "/elicitation/request/kind", ahp.KindShape)

	declined := answered("q")
	declined.Elicitation.Action = "decline"
	table := elicitation.NewPending(0)
	if _, err := table.Add(asked("q")); err != nil {
		t.Fatal(err)
	}
	_, _, err = table.Take(declined)
	wantPointer(t, err, "/elicitation/action", ahp.KindShape)
	bad := `{"action":"accept","content":{"a":1}}`
	wrong := answered("q")
	wrong.Elicitation.Result.Text = &bad
	_, _, err = table.Take(wrong)
	wantPointer(t, err, "/content/a", ahp.KindShape)
	if table.Len() != 1 {
		t.Error("an answer that can't be used consumed the request")
	}
	silent := answered("q")
	silent.Elicitation.Result = nil
	if _, r, err := table.Take(silent); err != nil || r != nil || table.Len() != 0 {
		t.Errorf("an answer without a body: %v, %v", r, err)
	}
	if _, err := elicitation.OfRequest(declined); err == nil {
		t.Error("a result was read as a request")
	}
	if _, err := elicitation.OfResult(url, nil); err == nil {
		t.Error("a request was read as a result")
	}
	for _, e := range []*ahp.Event{nil, {Type: ahp.UserElicitationResult}} {
		if _, _, err := table.Take(e); err == nil {
			t.Error("nothing was taken")
		}
	}
}

func TestPendingIsBounded(t *testing.T) {
	table := elicitation.NewPending(2)
	for _, id := range []string{"a", "b", "a"} {
		if _, err := table.Add(asked(id)); err != nil {
			t.Fatal(err) // adding the same again is no fault
		}
	}
	if _, err := table.Add(asked("c")); !errors.Is(err, elicitation.ErrFull) {
		t.Errorf("got %v", err)
	}
	part := ahp.TextPart("p", strings.Replace(askText, `"m"`, `"another question"`, 1))
	for _, change := range []func(e *ahp.Event){
		func(e *ahp.Event) { e.Elicitation.Server = "x" },
		func(e *ahp.Event) { e.Session.ID = "x" },
		func(e *ahp.Event) { e.Elicitation.Request = &part },
		func(e *ahp.Event) { e.Elicitation.Request = nil },
	} {
		other := asked("a")
		change(other)
		_, err := table.Add(other)
		wantPointer(t, err, "/id", ahp.KindCorrelation)
	}
	table.Drop("urn:test", "a")
	table.Drop("urn:test", "a")
	if _, err := table.Add(asked("c")); err != nil {
		t.Error(err)
	}
}

// TestPendingBytesAreBounded holds that large forms don't pile up, and that what is
// answered or dropped makes room.
func TestPendingBytesAreBounded(t *testing.T) {
	table := elicitation.NewPending(0)
	large := func(id string) *ahp.Event {
		e := asked(id)
		text := `{"message":"` + strings.Repeat("x", 1<<20-200) + askText[len(`{"message":"m`):]
		e.Elicitation.Request.Text = &text
		return e
	}
	n := 0
	for ; n < 100; n++ {
		if _, err := table.Add(large(fmt.Sprint(n))); err != nil {
			if !errors.Is(err, elicitation.ErrFull) {
				t.Fatal(err)
			}
			break
		}
	}
	if n != 4 {
		t.Fatalf("%d large requests wait", n)
	}
	if _, _, err := table.Take(answered("0")); err != nil {
		t.Fatal(err)
	}
	table.Drop("urn:test", "1")
	for _, id := range []string{"a", "b"} {
		if _, err := table.Add(large(id)); err != nil {
			t.Error(err)
		}
	}
}

// TestOneAnswerWins races answers to one request.
func TestOneAnswerWins(t *testing.T) {
	table := elicitation.NewPending(0)
	for i := range 50 {
		id := fmt.Sprint(i)
		if _, err := table.Add(asked(id)); err != nil {
			t.Fatal(err)
		}
		var won atomic.Int64
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if _, _, err := table.Take(answered(id)); err == nil {
					won.Add(1)
				}
			})
		}
		all.Wait()
		if won.Load() != 1 {
			t.Fatalf("%d answers were taken", won.Load())
		}
	}
}

// TestOldRequestsMakeRoom holds that what was begun and forgotten doesn't keep its
// place for ever, and that nothing is dropped before its time or without need.
func TestOldRequestsMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := elicitation.NewPending(2)
		add := func(id string, full bool) {
			t.Helper()
			if _, err := table.Add(asked(id)); errors.Is(err, elicitation.ErrFull) != full || err != nil && !full {
				t.Errorf("%s: %v", id, err)
			}
		}
		add("a", false)
		time.Sleep(40 * time.Minute)
		add("b", false)
		time.Sleep(20 * time.Minute)
		add("c", true) // a is an hour old, and no more
		time.Sleep(time.Nanosecond)
		add("c", false)
		if _, _, err := table.Take(answered("a")); err == nil {
			t.Error("what was dropped was answered")
		}
		time.Sleep(48 * time.Hour)
		if _, _, err := table.Take(answered("b")); err != nil {
			t.Error(err) // nobody needed its place
		}
	})
}
