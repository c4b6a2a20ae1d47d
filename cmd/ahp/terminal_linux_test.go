package main

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"unsafe"
)

// terminal returns both ends of a pseudo terminal.
func terminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { person.Close() })
	var unlock, number int32
	for _, call := range []struct {
		request uintptr
		value   *int32
	}{{syscall.TIOCSPTLCK, &unlock}, {syscall.TIOCGPTN, &number}} {
		if _, _, code := syscall.Syscall(syscall.SYS_IOCTL, person.Fd(), call.request, uintptr(unsafe.Pointer(call.value))); code != 0 {
			t.Fatal(code)
		}
	}
	program, err = os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close() })
	return person, program
}

// TestTrustAsks holds that nothing but a typed yes counts on a terminal.
func TestTrustAsks(t *testing.T) {
	for answer, want := range map[string]int{"yes\n": exitOK, "y\n": exitNegative, "\n": exitNegative, "Yes please\n": exitNegative, "\x04": exitNegative} {
		h := newHome(t)
		dir, file := project(t, projectRegistration)
		person, program := terminal(t)
		if _, err := person.WriteString(answer); err != nil {
			t.Fatal(err)
		}
		text := "Not trusted."
		if want == exitOK {
			text = "Trusted, with exactly this content."
		}
		h.run(t.Context(), program, dir, newTrust).want(t, want, "May this decide about your agents?", text)
		if h.trusts(file, projectRegistration) != (want == exitOK) {
			t.Errorf("%q: trusted %v", answer, want != exitOK)
		}
	}
}
