package run_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"unsafe"

	"go.uber.org/goleak"

	"github.com/abhed/abhed/internal/run"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWaitReturnsAfterAll(t *testing.T) {
	g := run.New(context.Background())
	var n atomic.Int32
	for range 10 {
		g.Go(func(context.Context) error {
			g.Go(func(context.Context) error { n.Add(1); return nil })
			n.Add(1)
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if n.Load() != 20 {
		t.Fatalf("%d of 20 functions had ended when Wait returned", n.Load())
	}
}

func TestFirstErrorCancels(t *testing.T) {
	g := run.New(context.Background())
	cause := make(chan error, 1)
	g.Go(func(ctx context.Context) error {
		<-ctx.Done()
		cause <- context.Cause(ctx)
		return errors.New("second")
	})
	g.Go(func(context.Context) error { return io.ErrUnexpectedEOF })
	if err := g.Wait(); err != io.ErrUnexpectedEOF {
		t.Fatalf("Wait = %v, want the first error", err)
	}
	if err := <-cause; err != io.ErrUnexpectedEOF {
		t.Fatalf("cause = %v, want the first error", err)
	}
}

func TestParentCancels(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	g := run.New(ctx)
	g.Go(func(ctx context.Context) error { <-ctx.Done(); return nil })
	cancel()
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
}

func TestPanicIsCarried(t *testing.T) {
	g := run.New(context.Background())
	g.Go(func(ctx context.Context) error { <-ctx.Done(); return nil })
	g.Go(func(context.Context) error { explode(); return nil })
	err := g.Wait()
	var p *run.PanicError
	if !errors.As(err, &p) {
		t.Fatalf("Wait = %v, want a *PanicError", err)
	}
	if !strings.Contains(string(p.Stack), "explode") {
		t.Errorf("the stack does not name where it panicked:\n%s", p.Stack)
	}
	if strings.Contains(err.Error(), "goroutine") || !strings.Contains(err.Error(), "boom") {
		t.Errorf("text %q: want the value and no stack", err)
	}
}

func explode() { panic("boom") }

func TestPanicWithErrorUnwraps(t *testing.T) {
	err := run.Protect(func() error { panic(io.EOF) })
	if !errors.Is(err, io.EOF) {
		t.Fatalf("%v does not unwrap to the value of the panic", err)
	}
	if err := run.Protect(func() error { return io.EOF }); err != io.EOF {
		t.Fatalf("Protect = %v, want the function's own error", err)
	}
	if err := run.Protect(func() error { panic(nil) }); err == nil {
		t.Fatal("panic(nil) was lost")
	}
}

func TestGoexitIsAnError(t *testing.T) {
	g := run.New(context.Background())
	g.Go(func(context.Context) error { runtime.Goexit(); return nil })
	if err := g.Wait(); err == nil {
		t.Fatal("a function that left by Goexit counted as done")
	}
}

// TestDeep holds that a deep stack is one of the goroutine that asked for it, which goes
// on as before.
func TestDeep(t *testing.T) {
	var before, after uintptr
	done := make(chan struct{})
	go func() {
		defer close(done)
		var here [1]byte
		at := func() uintptr { return uintptr(unsafe.Pointer(&here)) }
		run.Deep(func() {
			before = at()
			use(64 << 10)
			after = at()
		})
	}()
	<-done
	if before == 0 || before != after {
		t.Errorf("the stack was moved from %#x to %#x while it was used", before, after)
	}
}

// use takes about n bytes of the stack.
func use(n int) byte {
	var frame [1 << 10]byte
	frame[n%len(frame)] = 1
	if n <= len(frame) {
		return frame[0]
	}
	return frame[0] + use(n-len(frame))
}
