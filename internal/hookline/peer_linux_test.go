package hookline_test

import (
	"bytes"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/abhed/abhed/internal/hookline"
)

// TestAnotherProgramIsNotAsked: what another program says in the service's place counts
// for nothing, and it gets no event.
func TestAnotherProgramIsNotAsked(t *testing.T) {
	state := t.TempDir()
	if err := os.Chmod(state, 0o700); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(state, "hook.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.Chmod(socket, 0o600); err != nil {
		t.Fatal(err)
	}
	got := make(chan []byte, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		b := make([]byte, 1<<16)
		n, _ := conn.Read(b)
		got <- b[:n]
		_, _ = conn.Write(append([]byte{hookline.Taken}, hookline.EncodeAnswer(hookline.Answer{Code: hookline.ExitPass})...))
	}()
	self, err := os.Executable() // it is this program that listens: the hook is another's
	if err != nil {
		t.Fatal(err)
	}
	id, err := hookline.IdentityOf(self)
	if err != nil {
		t.Fatal(err)
	}
	id.Inode++
	call := &hookline.Call{Host: "claude-code", Limit: 10 * time.Second, Data: []byte(`{"secret":"words"}`)}
	a, err := hookline.Ask(socket, call, id, time.Now().Add(5*time.Second))
	if !errors.Is(err, hookline.ErrNoService) {
		t.Errorf("%+v, %v", a, err)
	}
	if b := <-got; len(b) == 0 || bytes.Contains(b, []byte("secret")) {
		t.Errorf("the other program got %q", b)
	}
}
