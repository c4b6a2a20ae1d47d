package rpcmode

import (
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/control"
)

func TestFork(t *testing.T) {
	engine := &fakeEngine{}
	c := connect(t, engine, Options{})
	c.send(`{"method":"fork","id":0}`)
	c.replyTo("0", "error")
	c.send(`{"method":"start","mode":"plan","approve":"client"}`, `{"method":"prompt","id":1,"prompt":"say one"}`)
	c.replyTo("1", "answer")
	// What follows in the same breath waits for the fork.
	c.send(`{"method":"fork","id":2}`, `{"method":"prompt","id":3,"prompt":"hang"}`)
	if r := c.replyTo("2", "ready"); r.str("session_id") != "s-2" {
		t.Errorf("fork: %s", r.line)
	}
	o := engine.starts[1]
	if o.Resume != "s-1" || o.ForkAt != 3 || o.Mode != "plan" || o.Approver == nil {
		t.Errorf("forked with %+v", o)
	}
	if !engine.session(0).isClosed() {
		t.Error("the old session is open")
	}
	c.notice("hanging")
	c.send(`{"method":"fork","id":4,"at":1}`)
	if r := c.replyTo("4", "error"); r.str("code") != "busy" {
		t.Errorf("fork during a prompt: %s", r.line)
	}
	c.send(`{"method":"interrupt"}`)
	c.replyTo("3", "error")
	engine.refuse = &control.Error{Code: control.CodeNotFound, Msg: "there is no such event"}
	c.send(`{"method":"fork","id":5,"at":99}`, `{"method":"prompt","id":6,"prompt":"say still here"}`)
	c.replyTo("5", "error")
	c.replyTo("6", "answer")
	if n := len(engine.session(1).prompts); n != 2 {
		t.Errorf("after a fork that failed the session has %d prompts, want 2", n)
	}
}

// TestForkKeepsWhatWasSet: the model and the mode are those that the session has, not
// those that it was started with; and the mode can become as wide as that again.
func TestForkKeepsWhatWasSet(t *testing.T) {
	engine := &fakeEngine{}
	c := connect(t, engine, Options{})
	c.send(`{"method":"start","mode":"default"}`, `{"method":"fork","id":1}`)
	c.replyTo("1", "ready")
	c.send(`{"method":"set_model","model":"m/2"}`, `{"method":"set_mode","mode":"plan"}`, `{"method":"fork","id":2}`)
	if r := c.replyTo("2", "ready"); r.str("mode") != "plan" || r.str("model") != "m/2" {
		t.Errorf("fork: %s", r.line)
	}
	if m := engine.starts[1].Model; m != "" {
		t.Errorf("a fork of a session whose model was not changed names the model %s", m)
	}
	c.send(`{"method":"fork","id":3}`, `{"method":"set_mode","id":4,"mode":"default"}`)
	if r := c.replyTo("3", "ready"); r.str("mode") != "plan" || r.str("model") != "m/2" {
		t.Errorf("fork of the fork: %s", r.line)
	}
	if r := c.replyTo("4", "ready"); r.str("mode") != "default" {
		t.Errorf("set_mode: %s", r.line)
	}
	// A mode that the new session can't have leaves the old one open.
	engine.session(3).mode = "bypass"
	c.send(`{"method":"fork","id":5}`, `{"method":"usage","id":6}`)
	if r := c.replyTo("5", "error"); !strings.Contains(r.str("error"), "can't have the mode bypass") {
		t.Errorf("fork: %s", r.line)
	}
	c.replyTo("6", "usage")
	if !engine.session(4).isClosed() || engine.session(3).isClosed() {
		t.Errorf("closed: the new session %v, the old one %v", engine.session(4).isClosed(), engine.session(3).isClosed())
	}
}
