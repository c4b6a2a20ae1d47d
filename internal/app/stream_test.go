package app_test

import (
	"testing"
	"time"

	"github.com/abhed/abhed/internal/app"
	"github.com/abhed/abhed/internal/control"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model/modeltest"
)

// TestTextIsShownAsItArrives holds a piece of a reply back until the piece before it
// has been shown: nothing between the wire and the person waits for more.
func TestTextIsShownAsItArrives(t *testing.T) {
	const text = "one two three four five six seven eight"
	var out safeBuffer
	grown, last := 0, 0
	wait := func(shown func() int) func(i int) {
		return func(i int) {
			if i < 2 || last == len(text) {
				return
			}
			for deadline := time.Now().Add(5 * time.Second); shown() == last; time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Errorf("before frame %d only %d bytes were shown", i, last)
					return
				}
			}
			grown, last = grown+1, shown()
		}
	}
	w := newWorld(t, modeltest.Turn{Text: text, Before: wait(func() int { return len(out.String()) })})
	var errs safeBuffer
	if code := app.Run(t.Context(), w.opts, w.system(&out, &errs)); code != 0 || out.String() != text+"\n" || grown < 3 {
		t.Errorf("exit %d, said %q in %d pieces: %s", code, out.String(), grown, errs.String())
	}

	grown, last = 0, 0
	heard := &pieces{}
	w = newWorld(t, modeltest.Turn{Text: text, Before: wait(func() int { return len(heard.text.String()) })})
	if a := w.open(control.Start{Sink: heard}).Prompt(t.Context(), control.Prompt{Text: "go"}); a.Text != text || heard.text.String() != text || grown < 3 {
		t.Errorf("%q, heard %q in %d pieces", a.Text, heard.text.String(), grown)
	}
}

// pieces hears text.
type pieces struct{ text safeBuffer }

func (*pieces) Event(event.Event) {}

func (p *pieces) Delta(d control.Delta) {
	if d.Kind == "text" {
		_, _ = p.text.Write([]byte(d.Text))
	}
}
