package main

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/abhed/abhed/ahp"
)

// lines returns what eachLine gives: "n:text", or "n:long".
func lines(r io.Reader) (string, error) {
	var out []string
	err := eachLine(r, func(n int, line []byte, err error) error {
		text := string(line)
		if err != nil {
			text = "long"
		}
		out = append(out, string(rune('0'+n))+":"+text)
		return nil
	})
	return strings.Join(out, " "), err
}

func TestEachLine(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "\n": "1:", "a": "1:a", "a\n": "1:a", "a\nb": "1:a 2:b", "a\n\nb\n": "1:a 2: 3:b", "a\r\n": "1:a\r", "\n\n": "1: 2:",
	} {
		for _, r := range []io.Reader{strings.NewReader(text), iotest.OneByteReader(strings.NewReader(text)), iotest.DataErrReader(strings.NewReader(text))} {
			if got, err := lines(r); got != want || err != nil {
				t.Errorf("%q: got %q, %v, want %q", text, got, err, want)
			}
		}
	}
	broken := errors.New("broken")
	var exit *exitError
	if got, err := lines(io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(broken))); got != "1:a" || !errors.Is(err, broken) || !errors.As(err, &exit) || exit.code != exitFailed {
		t.Errorf("got %q, %v", got, err)
	}
}

// endless is a line that never ends, until so many bytes were read.
type endless struct{ left int }

func (e *endless) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n := min(len(p), e.left)
	copy(p, bytes.Repeat([]byte("x"), n))
	e.left -= n
	return n, nil
}

// TestLongLines holds that a line beyond the bound is refused and passed over,
// wherever it is, and the lines around it are judged.
func TestLongLines(t *testing.T) {
	in := io.MultiReader(strings.NewReader("a\n"), &endless{maxLine + 1}, strings.NewReader("\nb\n"), &endless{maxLine + 1})
	if got, err := lines(in); got != "1:a 2:long 3:b 4:long" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	var out bytes.Buffer
	code := execute(t.Context(), []string{"validate", "--stream"}, system{stdin: io.MultiReader(&endless{ahp.MaxMessageBytes + 1}, strings.NewReader("\n{}\n")), stdout: &out, stderr: &out})
	if want := strings.Repeat(`{"accepted":false,"errorKind":"schema"}`+"\n", 2); code != exitOK || out.String() != want {
		t.Errorf("exit %d, %q", code, out.String())
	}
}

// brokenPipe is where nobody reads any more.
type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// TestOutputFails holds that a result that nobody gets is no success.
func TestOutputFails(t *testing.T) {
	for _, args := range [][]string{{"validate", "-"}, {"validate", "--json", "-"}, {"validate", "--stream"}} {
		var errs bytes.Buffer
		code := execute(t.Context(), args, system{stdin: strings.NewReader(`{"ref":"r"}`), stdout: brokenPipe{}, stderr: &errs})
		if code != exitFailed || !strings.Contains(errs.String(), "standard output") {
			t.Errorf("%v: exit %d, %q", args, code, errs.String())
		}
	}
}
