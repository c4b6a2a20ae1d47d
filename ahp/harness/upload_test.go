package harness_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/ahp/transport"
	"github.com/abhed/abhed/ahp/transport/httptransport"
)

// library is a host's attachments by its own names.
type library struct {
	content harness.Content
	files   map[string]string
	mu      sync.Mutex
	opened  map[string]int
}

// newLibrary lends the given bytes, and uploads over HTTP with the given tokens.
func newLibrary(files map[string]string, tokens map[string]string) *library {
	l := &library{files: files, opened: map[string]int{}}
	l.content = harness.Content{
		Open: func(_ context.Context, _ *ahp.Event, p *ahp.Part) (io.ReadCloser, error) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.opened[p.Body.Ref]++
			body, ok := files[p.Body.Ref]
			if !ok {
				return nil, errors.New("no such file")
			}
			return io.NopCloser(strings.NewReader(body)), nil
		},
		Receiver: func(_ ahp.SubscriptionID, u *ahp.Upload) (harness.Receiver, error) {
			return httptransport.NewUploader(u, httptransport.Options{LookupEnv: func(name string) (string, bool) { v, ok := tokens[name]; return v, ok }})
		},
	}
	return l
}

func (l *library) opens(name string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.opened[name]
}

func image(id, name string) ahp.Part {
	return ahp.Part{ID: id, Kind: ahp.KindAttachment, MediaType: "image/png", Selection: ahp.SelectBody, Body: &ahp.BodyRef{Ref: name}}
}

// prompt is a turn.start with a text and attachments.
func prompt(id string, parts ...ahp.Part) *ahp.Event {
	m := ahp.Message{ID: id + ":m", Role: ahp.RoleUser, Parts: append([]ahp.Part{ahp.TextPart("text", "look")}, parts...)}
	return &ahp.Event{ID: id, Source: "urn:ahp:test", Type: ahp.TurnStart, Time: ahp.Timestamp(time.Unix(1767225600, 0)), Turn: &ahp.Turn{ID: "turn"},
		Trigger: "user", Items: ahp.MessageItems(m)}
}

func uploading(policy ahp.FailurePolicy, u *ahp.Upload) ahp.Subscription {
	s := ahptest.Intercept(policy, 20*time.Second, "turn.start")
	s.Upload = u
	return s
}

func begin(t *testing.T, h *harness.Harness, e *ahp.Event) *harness.Outcome {
	t.Helper()
	out, err := h.Dispatch(t.Context(), e, ahptest.FullCapabilities(ahp.TurnStart), nil, harness.DispatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	settle(t, out)
	return out
}

// partOf returns the part with the id in the messages that a backend was shown.
func partOf(e *ahp.Event, id string) *ahp.Part {
	for i := range e.Items.Messages {
		for j := range e.Items.Messages[i].Parts {
			if p := &e.Items.Messages[i].Parts[j]; p.ID == id {
				return p
			}
		}
	}
	return nil
}

func refOf(p *ahp.Part) string {
	if p == nil || p.Body == nil {
		return ""
	}
	return p.Body.Ref
}

// stored returns what a receiver holds.
func stored(t *testing.T, s *ahptest.UploadServer, scope, ref string) string {
	t.Helper()
	in, _, err := s.Receiver.Open(scope, ref)
	if err != nil {
		t.Fatalf("scope %q, ref %q: %v", scope, ref, err)
	}
	defer in.Close()
	b, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestUploadsToEachSubscription(t *testing.T) {
	tokens := map[string]string{"ONE": "token-one", "TWO": "token-two"}
	s := ahptest.NewUploadServer(t, ahptest.UploadOptions{Tokens: map[string]string{"token-one": "a", "token-two": "b"}})
	lib := newLibrary(map[string]string{"local:1": "pixels", "local:2": ""}, tokens)
	one, two, meta, watch := ahptest.NewFake(nil), ahptest.NewFake(nil), ahptest.NewFake(nil), ahptest.NewFake(nil)
	metadata := uploading(ahp.FailClosed, s.Config("ONE"))
	metadata.Content = map[string]ahp.Selection{"default": ahp.SelectMetadata}
	omit := uploading(ahp.FailClosed, s.Config("ONE"))
	omit.Content = map[string]ahp.Selection{"default": ahp.SelectBody, "images": ahp.SelectOmit}
	observe := ahptest.Observe("turn.start")
	observe.Upload = s.Config("TWO")
	h := newHarness(t, harness.Options{Content: &lib.content},
		party{one, []ahp.Subscription{uploading(ahp.FailClosed, s.Config("ONE"))}}, party{two, []ahp.Subscription{uploading(ahp.FailClosed, s.Config("TWO"))}},
		party{meta, []ahp.Subscription{metadata, omit}}, party{watch, []ahp.Subscription{observe}})
	out := begin(t, h, prompt("e", image("p1", "local:1"), image("p2", "local:2")))
	if !out.MayExecute() || partOf(out.Event, "p1").Body.Ref != "local:1" {
		t.Fatalf("%+v", out.Trace)
	}
	if lib.opens("local:1") != 1 || lib.opens("local:2") != 1 {
		t.Errorf("opened %d and %d times", lib.opens("local:1"), lib.opens("local:2"))
	}
	if n := len(s.Requests()); n != 6 {
		t.Errorf("%d uploads, want 2 for each of 3", n)
	}
	seen := map[string]bool{}
	for scope, e := range map[string]*ahp.Event{"a": one.Requests()[0].Event, "b": two.Requests()[0].Event, "b ": watch.Observed()[0]} {
		for id, want := range map[string]string{"p1": "pixels", "p2": ""} {
			ref := refOf(partOf(e, id))
			if got := stored(t, s, strings.TrimSpace(scope), ref); got != want {
				t.Errorf("scope %q, part %s: %q", scope, id, got)
			}
			if seen[ref] || strings.HasPrefix(ref, "local:") {
				t.Errorf("the ref %q serves two, or is the host's", ref)
			}
			seen[ref] = true
		}
	}
	for _, q := range meta.Requests() {
		if p := partOf(q.Event, "p1"); p != nil && (p.Body != nil || p.Selection != ahp.SelectMetadata) {
			t.Errorf("%+v", p)
		}
	}
	if c := one.Requests()[0].Capabilities; !c.Modify[ahp.TargetPrompt].Replace {
		t.Error("a list that is all shown may not be replaced")
	}
}

func TestNothingIsOpenedForMetadata(t *testing.T) {
	s := ahptest.NewUploadServer(t, ahptest.UploadOptions{})
	lib := newLibrary(map[string]string{"local:1": "pixels"}, nil)
	sub := uploading(ahp.FailClosed, s.Config(""))
	sub.Content = map[string]ahp.Selection{"default": ahp.SelectMetadata, "images": ahp.SelectOmit}
	none := uploading(ahp.FailClosed, nil) // asks for bodies, and has no receiver
	h := newHarness(t, harness.Options{Content: &lib.content}, party{ahptest.NewFake(nil), []ahp.Subscription{sub, none}})
	file := image("p2", "local:1")
	file.MediaType = "application/pdf"
	shown := image("p3", "local:1")
	shown.Selection, shown.Body = ahp.SelectMetadata, nil
	if out := begin(t, h, prompt("e", image("p1", "local:1"), file, shown)); !out.MayExecute() || out.Trace[1].Content != nil {
		t.Errorf("%+v", out.Trace)
	}
	if lib.opens("local:1") != 0 || len(s.Requests()) != 0 {
		t.Errorf("opened %d times, %d uploads", lib.opens("local:1"), len(s.Requests()))
	}
}

// contentCase is content that can't be had.
type contentCase struct {
	fault   ahptest.UploadFault
	name    string // of the attachment; empty means one that is there
	content func(*harness.Content)
	cfg     func(*ahp.Upload)
	// texts tells that texts are withheld as well.
	texts bool
}

func contentCases() map[string]contentCase {
	cases := map[string]contentCase{
		"no such file":           {name: "local:none"},
		"too large":              {cfg: func(u *ahp.Upload) { u.MaxBytes = 5 }},
		"too large for the host": {content: func(c *harness.Content) { c.MaxBytes = 5 }},
		"too much in one event":  {content: func(c *harness.Content) { c.MaxEventBytes = 5 }},
		"too much at a time":     {content: func(c *harness.Content) { c.MaxHeldBytes = 5 }},
		"a read that never ends": {content: func(c *harness.Content) {
			c.OpenTimeout = 30 * time.Millisecond
			c.Open = func(ctx context.Context, _ *ahp.Event, _ *ahp.Part) (io.ReadCloser, error) { return &stuck{ctx}, nil }
		}},
		"a read that fails": {content: func(c *harness.Content) {
			c.Open = func(context.Context, *ahp.Event, *ahp.Part) (io.ReadCloser, error) {
				return io.NopCloser(io.MultiReader(strings.NewReader("pix"), &stuck{cancelled()})), nil
			}
		}},
		"not permitted": {content: func(c *harness.Content) {
			c.Authorize = func(_ ahp.SubscriptionID, _ *ahp.Event, p *ahp.Part) bool { return p.Kind == ahp.KindText }
		}},
		"a text that is not permitted": {texts: true, content: func(c *harness.Content) {
			c.Authorize = func(_ ahp.SubscriptionID, _ *ahp.Event, p *ahp.Part) bool { return p.Kind != ahp.KindText }
		}},
		"a permission that panics": {texts: true, content: func(c *harness.Content) {
			c.Authorize = func(ahp.SubscriptionID, *ahp.Event, *ahp.Part) bool { panic("no") }
		}},
	}
	for _, f := range ahptest.UploadFaults() {
		cases[f.Name] = contentCase{fault: f, cfg: func(u *ahp.Upload) {
			if f.Class == ahp.FailDeadline {
				u.TimeoutMs = 50
			}
		}}
	}
	return cases
}

// TestContentFailures holds what a subscription's policy makes of content that it
// asks for and can't have.
func TestContentFailures(t *testing.T) {
	for name, c := range contentCases() {
		for _, policy := range []ahp.FailurePolicy{ahp.FailClosed, ahp.FailOpen} {
			t.Run(name+"/"+string(policy), func(t *testing.T) {
				t.Parallel()
				c.run(t, policy)
			})
		}
	}
}

func (c *contentCase) run(t *testing.T, policy ahp.FailurePolicy) {
	s := ahptest.NewUploadServer(t, ahptest.UploadOptions{Fault: c.fault})
	lib := newLibrary(map[string]string{"local:1": "pixels"}, nil)
	cfg, file := s.Config(""), "local:1"
	if c.name != "" {
		file = c.name
	}
	if c.cfg != nil {
		c.cfg(cfg)
	}
	if c.content != nil {
		c.content(&lib.content)
	}
	first, second := ahptest.NewFake(nil), ahptest.NewFake(nil)
	h := newHarness(t, harness.Options{Content: &lib.content}, party{first, []ahp.Subscription{uploading(policy, cfg)}}, party{second, []ahp.Subscription{uploading(ahp.FailClosed, nil)}})
	out := begin(t, h, prompt("e", image("p1", file)))
	a := out.Trace[0]
	if a.Content == nil || a.Content.Class != ahp.FailContent || strings.Contains(a.Content.Detail, s.URL) {
		t.Fatalf("%+v", a)
	}
	if policy == ahp.FailClosed {
		d := out.Denial()
		if d == nil || !d.Synthetic || d.Reason != harness.SyntheticReason || a.Failure != a.Content || a.Attempts != 0 || len(first.Requests()) != 0 || len(out.Trace) != 1 {
			t.Fatalf("%+v, %+v", out.Denials, out.Trace)
		}
		return
	}
	if a.Kind != ahp.AnswerEffects || a.Failure != nil || len(first.Requests()) != 1 {
		t.Fatalf("%+v", a)
	}
	gaps := 0
	for _, p := range first.Requests()[0].Event.Items.Messages[0].Parts {
		if p.Gap != nil && p.Selection == ahp.SelectBody && p.Body == nil && p.Text == nil {
			gaps++
		}
	}
	if gaps == 0 {
		t.Errorf("no gap in %+v", first.Requests()[0].Event.Items)
	}
	if c := first.Requests()[0].Capabilities; c.Modify[ahp.TargetPrompt].Replace {
		t.Error("a list with a gap may be replaced")
	}
	// The second is fail-closed, and has no receiver: only texts could fail it.
	if out.MayExecute() == c.texts {
		t.Errorf("%+v", out.Trace)
	}
}

func cancelled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// stuck is a reader that ends with a context.
type stuck struct{ ctx context.Context }

func (s *stuck) Read([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}
func (s *stuck) Close() error { return nil }

// TestUploadsHaveTheirOwnTime lets an upload take longer than the decision may.
func TestUploadsHaveTheirOwnTime(t *testing.T) {
	hold := make(chan struct{})
	s := ahptest.NewUploadServer(t, ahptest.UploadOptions{Hold: hold})
	lib := newLibrary(map[string]string{"local:1": "pixels"}, nil)
	sub := uploading(ahp.FailClosed, s.Config(""))
	sub.TimeoutMs = ahptest.Int64(600)
	h := newHarness(t, harness.Options{Content: &lib.content}, party{ahptest.NewFake(nil), []ahp.Subscription{sub}})
	time.AfterFunc(800*time.Millisecond, func() { close(hold) })
	if out := begin(t, h, prompt("e", image("p1", "local:1"))); !out.MayExecute() {
		t.Errorf("%+v", out.Trace[0])
	}
}

// TestUploadsBeginTogether holds that all uploads are on their way before the first
// interceptor is asked, and that the order of interceptors stays.
func TestUploadsBeginTogether(t *testing.T) {
	slow, quick := make(chan struct{}), ahptest.NewUploadServer(t, ahptest.UploadOptions{})
	s := ahptest.NewUploadServer(t, ahptest.UploadOptions{Hold: slow})
	lib := newLibrary(map[string]string{"local:1": "pixels"}, nil)
	var order []string
	var asked atomic.Int32
	link := func(name string) transport.Transport {
		return ahptest.NewFake(func(context.Context, *ahp.Intercept) ([]ahp.Effect, error) {
			order = append(order, name)
			asked.Add(1)
			return nil, nil
		})
	}
	h := newHarness(t, harness.Options{Content: &lib.content},
		party{link("slow"), []ahp.Subscription{uploading(ahp.FailClosed, s.Config(""))}}, party{link("quick"), []ahp.Subscription{uploading(ahp.FailClosed, quick.Config(""))}})
	done := make(chan *harness.Outcome)
	go func() { done <- begin(t, h, prompt("e", image("p1", "local:1"))) }()
	for len(s.Requests()) == 0 || len(quick.Requests()) == 0 {
		time.Sleep(time.Millisecond)
	}
	if asked.Load() != 0 {
		t.Error("somebody was asked before the first upload ended")
	}
	close(slow)
	if out := <-done; !out.MayExecute() || !slices.Equal(order, []string{"slow", "quick"}) {
		t.Errorf("%+v in the order %q", out.Trace, order)
	}
}

func TestUploadThatIsInterrupted(t *testing.T) {
	s := ahptest.NewUploadServer(t, ahptest.UploadOptions{Hold: make(chan struct{})})
	lib := newLibrary(map[string]string{"local:1": "pixels"}, nil)
	fake := ahptest.NewFake(nil)
	for _, how := range []string{"cancel", "close"} {
		h := newHarness(t, harness.Options{Content: &lib.content, CloseTimeout: 10 * time.Millisecond}, party{fake, []ahp.Subscription{uploading(ahp.FailOpen, s.Config(""))}})
		ctx, cancel := context.WithCancel(t.Context())
		stop := cancel
		if how == "close" {
			stop = func() { h.Close() }
		}
		before := len(s.Requests())
		go func() {
			for len(s.Requests()) == before {
				time.Sleep(time.Millisecond)
			}
			stop()
		}()
		began := time.Now()
		out, err := h.Dispatch(ctx, prompt("e", image("p1", "local:1")), ahptest.FullCapabilities(ahp.TurnStart), nil, harness.DispatchOptions{})
		cancel()
		switch {
		case how == "cancel" && (err != nil || !out.Interrupted):
			t.Errorf("%+v, %v", out, err)
		case how == "close" && !errors.Is(err, harness.ErrClosed):
			t.Errorf("%+v, %v", out, err)
		case time.Since(began) > 4*time.Second:
			t.Errorf("%s took %v", how, time.Since(began))
		}
		h.Close()
	}
	if len(fake.Requests()) != 0 {
		t.Error("an interrupted call asked")
	}
}
