package app

import (
	"testing"

	"github.com/abhed/abhed/internal/event"
)

// TestStderrOfABackendIsBounded holds that a backend can't fill the record by what it
// writes to standard error.
func TestStderrOfABackendIsBounded(t *testing.T) {
	var got []*event.ExtensionLogged
	line := stderrLines("com.example.b", func(p event.Payload) { got = append(got, p.(*event.ExtensionLogged)) })
	for range 2 * maxStderrLines {
		line("noise\x00")
	}
	if n := len(got); n != maxStderrLines+1 {
		t.Fatalf("%d lines are recorded", n)
	}
	first, last := got[0], got[maxStderrLines]
	if first.Name != "backend com.example.b" || first.Level != "log" || first.Line != `noise\x00` || last.Level != "warning" {
		t.Errorf("%+v, %+v", first, last)
	}
}
