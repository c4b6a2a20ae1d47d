package backend_test

import (
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/backend"
)

func TestInputText(t *testing.T) {
	for input, want := range map[string]string{`{"command":"ls \u0041","x":[1]}`: "ls A", `{"command":""}`: "", `{"x":"y"}`: "none", `{"command":["git","push"]}`: "git push", `{"command":["git",1]}`: "none", `{"command":null}`: "none", `{"command":{}}`: "none"} {
		got, ok := backend.InputText(ahptest.ToolBefore("e", input), "command")
		if ok != (want != "none") || ok && got != want {
			t.Errorf("%s: %q, %v", input, got, ok)
		}
	}
	if _, ok := backend.InputText(&ahp.Event{}, "command"); ok {
		t.Error("an event without a tool")
	}
}

func TestDenyFunc(t *testing.T) {
	s := backend.New(backend.DenyFunc(func(e *ahp.Event) string {
		command, _ := backend.InputText(e, "command")
		return command
	}), backend.Options{})
	for command, want := range map[string]string{"": `"effects":[]`, "not this": `"effects":[{"type":"deny","reason":"not this"}]`} {
		if reply, _ := s.Handle(t.Context(), request(t, "e", command)); !strings.Contains(string(reply), want) {
			t.Errorf("%q: %s", command, reply)
		}
	}
}
