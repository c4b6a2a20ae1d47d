package harness_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/ahp/transport"
)

func TestReceiverThatBreaksItsContract(t *testing.T) {
	for name, r := range map[string]harness.Receiver{
		"an unknown error": badReceiver(func() (*ahp.Receipt, error) { return nil, errors.New("what") }),
		"a panic":          badReceiver(func() (*ahp.Receipt, error) { panic("what") }),
		"a failing panic":  badReceiver(func() (*ahp.Receipt, error) { panic(&ahp.Failure{Class: ahp.FailConnect}) }),
		"no receipt":       badReceiver(func() (*ahp.Receipt, error) { return nil, nil }),
	} {
		lib := newLibrary(map[string]string{"local:1": "pixels"}, nil)
		lib.content.Receiver = func(ahp.SubscriptionID, *ahp.Upload) (harness.Receiver, error) { return r, nil }
		h := newHarness(t, harness.Options{Content: &lib.content}, party{ahptest.NewFake(nil), []ahp.Subscription{uploading(ahp.FailOpen, &ahp.Upload{Endpoint: "https://r.example/", TimeoutMs: 1000, MaxBytes: 100})}})
		out, err := h.Dispatch(t.Context(), prompt("e", image("p1", "local:1")), ahptest.FullCapabilities(ahp.TurnStart), nil, harness.DispatchOptions{})
		if err == nil || out != nil {
			t.Errorf("%s: %+v, %v", name, out, err)
		}
	}
}

type badReceiver func() (*ahp.Receipt, error)

func (b badReceiver) Upload(context.Context, []byte) (*ahp.Receipt, error) { return b() }
func (b badReceiver) Close() error                                         { return nil }

func TestNewWithUploads(t *testing.T) {
	lib := newLibrary(nil, map[string]string{"THERE": "x"})
	u := func(env string) *ahp.Upload {
		return &ahp.Upload{Endpoint: "http://127.0.0.1:1/", TimeoutMs: 1, MaxBytes: 1, Auth: &ahp.Authentication{Type: "bearer", TokenEnv: env}}
	}
	for name, c := range map[string]struct {
		content *harness.Content
		upload  *ahp.Upload
		ok      bool
	}{
		"complete":         {&lib.content, u("THERE"), true},
		"no content":       {nil, u("THERE"), false},
		"nothing to open":  {&harness.Content{Receiver: lib.content.Receiver}, u("THERE"), false},
		"no credential":    {&lib.content, u("MISSING"), false},
		"a negative bound": {&harness.Content{MaxBytes: -1}, nil, false},
		"permission alone": {&harness.Content{Authorize: func(ahp.SubscriptionID, *ahp.Event, *ahp.Part) bool { return true }}, nil, true},
	} {
		reg := &ahp.Registration{ProtocolVersion: ahp.Version, Hooks: []ahp.Backend{{ID: "test.b",
			Transport: ahp.TransportConfig{Type: ahp.TransportStdio, Command: "unused", Lifecycle: ahp.LifecyclePersistent}, Subscriptions: []ahp.Subscription{uploading(ahp.FailClosed, c.upload)}}}}
		h, err := harness.New(reg, harness.Options{Manifest: ahptest.Manifest(), Content: c.content, Open: func(*ahp.Backend) (transport.Transport, error) { return ahptest.NewFake(nil), nil }})
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
		if h != nil {
			h.Close()
		}
	}
}

func TestManifestBoundsUploads(t *testing.T) {
	s := ahptest.NewUploadServer(t, ahptest.UploadOptions{})
	lib := newLibrary(map[string]string{"local:1": "pixels"}, nil)
	m := ahptest.Manifest()
	m.Limits.MaxUploadBytes = ahptest.Int64(5)
	h := newHarness(t, harness.Options{Manifest: m, Content: &lib.content}, party{ahptest.NewFake(nil), []ahp.Subscription{uploading(ahp.FailOpen, s.Config(""))}})
	if out := begin(t, h, prompt("e", image("p1", "local:1"))); out.Trace[0].Content == nil || len(s.Requests()) != 0 {
		t.Errorf("%+v, %d uploads", out.Trace[0], len(s.Requests()))
	}
}

// TestHeldBytesAreGivenBack runs more through the bound than it holds.
func TestHeldBytesAreGivenBack(t *testing.T) {
	s := ahptest.NewUploadServer(t, ahptest.UploadOptions{})
	lib := newLibrary(map[string]string{"local:1": strings.Repeat("x", 100)}, nil)
	lib.content.MaxHeldBytes = 150
	watch := ahptest.Observe("turn.start", "turn.end")
	watch.Upload = s.Config("")
	h := newHarness(t, harness.Options{Content: &lib.content}, party{ahptest.NewFake(nil), []ahp.Subscription{uploading(ahp.FailClosed, s.Config("")), watch}})
	for i := range 5 {
		e := prompt(fmt.Sprint("e", i), image("p1", "local:1"))
		if out := begin(t, h, e); !out.MayExecute() {
			t.Fatalf("dispatch %d: %+v", i, out.Trace)
		}
		d, err := h.Observe(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.Requests()); n != 15 {
		t.Errorf("%d uploads", n)
	}
	if !bytes.Equal(s.Requests()[14].Body, []byte(strings.Repeat("x", 100))) {
		t.Error("other bytes")
	}
}
