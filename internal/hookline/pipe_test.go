package hookline

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// pipe returns both ends of a blocking pipe, as a host gives them.
func pipe(t *testing.T) (r int, w *os.File) {
	t.Helper()
	var p [2]int
	if err := syscall.Pipe(p[:]); err != nil {
		t.Fatal(err)
	}
	w = os.NewFile(uintptr(p[1]), "pipe")
	t.Cleanup(func() {
		syscall.Close(p[0])
		w.Close()
	})
	return p[0], w
}

func soon() time.Time { return time.Now().Add(time.Minute) }

func TestReadAll(t *testing.T) {
	for _, nonblocking := range []bool{false, true} {
		r, w := pipe(t)
		if err := syscall.SetNonblock(r, nonblocking); err != nil {
			t.Fatal(err)
		}
		want := strings.Repeat("0123456789abcdef", 20_000)
		done := make(chan error, 1)
		go func() {
			_, err := w.WriteString(want)
			done <- errors.Join(err, w.Close())
		}()
		got, err := readAll(r, []byte("head"), len(want), soon())
		if err != nil || string(got) != "head"+want {
			t.Errorf("found %d bytes, %v", len(got), err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestReadAllWithoutEnd(t *testing.T) {
	r, w := pipe(t)
	if err := writeAll(int(w.Fd()), []byte(`{"a":1}`), soon()); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	got, err := readAll(r, nil, 100, began.Add(50*time.Millisecond))
	if !errors.Is(err, ErrTime) || string(got) != `{"a":1}` || time.Since(began) < 50*time.Millisecond {
		t.Errorf("found %q, %v after %v", got, err, time.Since(began))
	}
	if _, err := readAll(r, nil, 100, began); !errors.Is(err, ErrTime) {
		t.Errorf("without time: %v", err)
	}
}

// TestReadAllDropsTheRest holds that who writes too much can end, and that it is told
// from who writes just enough.
func TestReadAllDropsTheRest(t *testing.T) {
	for _, size := range []int{1000, 1001, 5_000_000} {
		r, w := pipe(t)
		done := make(chan error, 1)
		go func() {
			_, err := w.Write(bytes.Repeat([]byte("x"), size))
			done <- errors.Join(err, w.Close())
		}()
		got, err := readAll(r, nil, 1000, soon())
		if (err == nil) != (size == 1000) || size == 1000 && len(got) != size {
			t.Errorf("%d bytes: found %d, %v", size, len(got), err)
		}
		if err != nil && (!strings.Contains(err.Error(), "more than 1000 bytes") || len(got) != 0) {
			t.Errorf("%d bytes: found %d, %v", size, len(got), err)
		}
		if err := <-done; err != nil {
			t.Errorf("who writes got %v", err)
		}
	}
}

func TestReadAllOfWhatCantBeRead(t *testing.T) {
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if _, err := readAll(int(dir.Fd()), nil, 10, soon()); err == nil || !strings.Contains(err.Error(), "can't be read") {
		t.Errorf("a folder: %v", err)
	}
}

func TestWriteAll(t *testing.T) {
	r, w := pipe(t)
	if err := syscall.SetNonblock(int(w.Fd()), true); err != nil {
		t.Fatal(err)
	}
	want := bytes.Repeat([]byte("y"), 300_000)
	done := make(chan []byte, 1)
	go func() {
		got, err := readAll(r, nil, len(want), soon())
		if err != nil {
			t.Error(err)
		}
		done <- got
	}()
	if err := writeAll(int(w.Fd()), want, soon()); err != nil {
		t.Error(err)
	}
	w.Close()
	if got := <-done; !bytes.Equal(got, want) {
		t.Errorf("%d of %d bytes came", len(got), len(want))
	}
	_, full := pipe(t)
	if err := syscall.SetNonblock(int(full.Fd()), true); err != nil {
		t.Fatal(err)
	}
	if err := writeAll(int(full.Fd()), want, time.Now().Add(20*time.Millisecond)); !errors.Is(err, ErrTime) {
		t.Errorf("nobody reads: %v", err)
	}
}

// TestWriteAllWithoutReader holds that a reader that has gone is an error: the process
// goes on, to say by its exit code that there is no answer.
func TestWriteAllWithoutReader(t *testing.T) {
	var p [2]int
	if err := syscall.Pipe(p[:]); err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(p[1])
	syscall.Close(p[0])
	if err := writeAll(p[1], []byte("x"), soon()); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("found %v", err)
	}
}
