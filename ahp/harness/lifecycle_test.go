package harness_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/backend/httpbackend"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/ahp/transport"
	"github.com/abhed/abhed/internal/strictjson"
)

// lifecycle is one row of lifecycle-scenarios.json. Its last rows, which have a
// chain, are those of observation-chain-scenarios.json.
type lifecycle struct {
	ID         string               `json:"id"`
	Requests   map[string]ahp.Raw   `json:"requests"`
	Responses  map[string]ahp.Raw   `json:"responses"`
	Sequences  map[string][]ahp.Raw `json:"responseSequences"`
	Steps      []step               `json:"steps"`
	Expected   want                 `json:"expected"`
	Transports []string             `json:"transports"`
	chain      *chainScenario
}

type step struct {
	Op           string    `json:"op"`
	Key          string    `json:"key"`
	Slot         string    `json:"slot"`
	Count        int       `json:"count"`
	BypassSDK    bool      `json:"bypassSDK"`
	Subscription string    `json:"subscription"`
	Items        []ahp.Raw `json:"items"`
	Response     ahp.Raw   `json:"response"`
	Ref          string    `json:"ref"`
	Body         []byte    `json:"bodyBase64"`
	Size         int64     `json:"size"`
	SHA256       string    `json:"sha256"`
	Upload       ahp.Raw   `json:"upload"`
}

type want struct {
	Published    []string                      `json:"published"`
	Cancelled    []string                      `json:"cancelled"`
	Ignored      []string                      `json:"ignored"`
	States       map[string]map[string]ahp.Raw `json:"states"`
	Observations []observation                 `json:"observations"`
	Uploads      []int                         `json:"uploadStatuses"`
}

type observation struct {
	EventID      string  `json:"eventId"`
	Subscription string  `json:"subscription"`
	Input        ahp.Raw `json:"input"`
}

func TestLifecycles(t *testing.T) {
	for _, s := range readLifecycles(t) {
		switch {
		case s.chain != nil:
			t.Run(s.ID, func(t *testing.T) { runChain(t, s.chain) })
		case s.Transports != nil && !slices.Contains(s.Transports, "http"):
			// It is about a stream: TestLifecyclesOfAProcess runs it.
		default:
			t.Run(s.ID, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { playRow(t, &s, newMemoryPeer(t, &s), synctest.Wait) })
			})
		}
	}
}

func readLifecycles(t *testing.T) []lifecycle {
	var file struct {
		Scenarios []ahp.Raw `json:"scenarios"`
	}
	readShared(t, "interop/lifecycle-scenarios.json", &file)
	if len(file.Scenarios) < 21 {
		t.Fatalf("only %d rows", len(file.Scenarios))
	}
	var rows []lifecycle
	for _, raw := range file.Scenarios {
		var kind struct {
			ID    string  `json:"id"`
			Chain ahp.Raw `json:"chain"`
		}
		row := lifecycle{}
		var err error
		if err = strictjson.Unmarshal(raw, &kind, strictjson.Options{}); err == nil && kind.Chain != nil {
			row.ID, row.chain = kind.ID, &chainScenario{}
			err = strictjson.Unmarshal(raw, row.chain, strictjson.Options{})
		} else if err == nil {
			err = strictjson.Unmarshal(raw, &row, strictjson.Options{})
		}
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	return rows
}

// peer is a backend that answers when the row says so.
type peer interface {
	link() transport.Transport
	// wait returns when n requests of key have come.
	wait(key string, n int)
	// release answers the requests of key, those to come as well.
	release(key string)
	// emit writes a reply that nobody asked for. ignored tells how many such were
	// dropped so far.
	emit(reply []byte)
	ignored() int
}

// player holds what a row has come to.
type player struct {
	t       *testing.T
	row     *lifecycle
	peer    peer
	h       *harness.Harness
	settle  func() // returns when whatever goes on has come to rest
	events  map[string]*ahp.Event
	open    map[string]*harness.Exchange
	chains  map[string]*harness.Chain
	slots   map[string]chan arrival
	keyOf   map[string]string // of a slot
	got     want
	uploads *httpbackend.Uploads
}

// arrival is what a send brought.
type arrival struct {
	reply []byte
	err   error
}

func playRow(t *testing.T, s *lifecycle, p peer, settle func()) {
	l := &player{t: t, row: s, peer: p, settle: settle, events: map[string]*ahp.Event{}, open: map[string]*harness.Exchange{},
		chains: map[string]*harness.Chain{}, slots: map[string]chan arrival{}, keyOf: map[string]string{}}
	l.got = want{Published: []string{}, Cancelled: []string{}, Ignored: []string{}, States: map[string]map[string]ahp.Raw{}, Observations: []observation{}, Uploads: []int{}}
	l.h = newHarness(t, harness.Options{},
		party{link: p.link(), subs: []ahp.Subscription{ahptest.Intercept(ahp.FailOpen, 30*time.Second, "tool.before")}})
	for _, st := range s.Steps {
		l.play(&st)
	}
	for _, st := range s.Steps {
		// A chain that was played to its end can be finished; nothing is lost.
		if c := l.chains[st.Key]; c != nil {
			if out, err := c.Finish(); err != nil {
				t.Errorf("%s: %v", st.Key, err)
			} else if interrupted := slices.Contains(l.got.Cancelled, out.Event.ID); out.Interrupted != interrupted {
				t.Errorf("%s: interrupted %v, want %v", st.Key, out.Interrupted, interrupted)
			}
			delete(l.chains, st.Key)
		}
	}
	l.h.Close()
	l.check()
}

func (l *player) play(s *step) {
	switch s.Op {
	case "send":
		l.send(s)
	case "wait":
		l.peer.wait(s.Key, s.Count)
	case "release":
		l.peer.release(s.Key)
	case "receive":
		l.receive(s.Slot)
	case "accept":
		l.publish(l.open[s.Key].Accept(nil))
	case "failOpen":
		l.publish(l.open[s.Key].FailOpen())
	case "cancel":
		l.open[s.Key].Cancel()
		l.got.Cancelled = append(l.got.Cancelled, l.events[s.Key].ID)
	case "observe":
		l.observe(s)
	case "upload":
		l.upload(s)
	case "emit":
		before := l.peer.ignored()
		l.peer.emit(s.Response)
		if l.peer.ignored() == before+1 {
			p, err := ahp.Peek(s.Response)
			if err != nil {
				l.t.Fatal(err)
			}
			id, _ := p.ID.Value()
			l.got.Ignored = append(l.got.Ignored, "unsolicited:"+id)
		}
	default:
		l.t.Fatalf("no op %q", s.Op)
	}
}

// send starts a request; a row may send one again behind the harness's back.
func (l *player) send(s *step) {
	slot := make(chan arrival, 1)
	l.slots[s.Slot], l.keyOf[s.Slot] = slot, s.Key
	if s.BypassSDK {
		msg := l.open[s.Key].Message()
		go func() {
			reply, err := l.peer.link().Exchange(context.Background(), msg)
			slot <- arrival{reply, err}
		}()
		return
	}
	m, err := ahp.DecodeRequest(l.row.Requests[s.Key])
	if err != nil {
		l.t.Fatal(err)
	}
	q := m.(*ahp.Intercept)
	c, err := l.h.Begin(l.t.Context(), q.Event, &q.Capabilities, q.State, harness.DispatchOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
	x := c.Next()
	if x == nil {
		l.t.Fatal("nobody to ask")
	}
	if !strictjson.Equal(x.Message(), l.row.Requests[s.Key]) {
		l.t.Errorf("the request is %s", x.Message())
	}
	l.events[s.Key], l.open[s.Key], l.chains[s.Key] = q.Event, x, c
	go func() {
		reply, err := x.Send()
		slot <- arrival{reply, err}
	}()
}

// receive stages what came. A reply that nothing waits for any more is ignored.
func (l *player) receive(slot string) {
	l.settle()
	var a arrival
	select {
	case a = <-l.slots[slot]:
	case <-time.After(20 * time.Second):
		l.t.Fatalf("nothing in slot %s", slot)
	}
	x := l.open[l.keyOf[slot]]
	if a.err == nil {
		before := x.Ignored()
		a.err = x.Stage(a.reply)
		if errors.Is(a.err, harness.ErrIgnored) != (x.Ignored() == before+1) {
			l.t.Errorf("slot %s: %v, and %d ignored", slot, a.err, x.Ignored())
		}
	}
	switch {
	case errors.Is(a.err, harness.ErrIgnored), errors.Is(a.err, harness.ErrInterrupted):
		l.got.Ignored = append(l.got.Ignored, slot)
	case a.err != nil:
		l.t.Errorf("slot %s: %v", slot, a.err)
	}
}

// publish notes what was accepted.
func (l *player) publish(o *ahp.Outcome, err error) {
	switch {
	case errors.Is(err, harness.ErrNotStaged), errors.Is(err, harness.ErrInterrupted), errors.Is(err, harness.ErrSettled):
		if o != nil {
			l.t.Errorf("an outcome beside %v", err)
		}
		return
	case err != nil:
		l.t.Errorf("publish: %v", err)
		return
	}
	id := o.Event.ID
	key := strings.TrimPrefix(id, l.row.ID+":")
	l.got.Published = append(l.got.Published, id)
	m, err := ahp.DecodeRequest(l.row.Requests[key])
	if err != nil {
		l.t.Fatal(err)
	}
	l.got.States[id] = verdictOf(&harness.Outcome{Outcome: *o}, &m.(*ahp.Intercept).Capabilities, true)
	l.events[key] = o.Event
}

// observe tells one subscription of the event as it is by now.
func (l *player) observe(s *step) {
	var seen []*ahp.Event
	link := transport.InProcess(func(_ context.Context, msg []byte) ([]byte, error) {
		m, err := ahp.DecodeRequest(msg)
		if err != nil {
			l.t.Error(err)
			return nil, err
		}
		seen = append(seen, m.(*ahp.Observe).Event)
		return l.row.response(s.Key, 0), nil // an observer that answers, which is ignored
	})
	sub := ahptest.Observe("tool.before")
	sub.Content = map[string]ahp.Selection{"default": ahp.Selection(s.Subscription)}
	h := newHarness(l.t, harness.Options{}, party{link: link, subs: []ahp.Subscription{sub}})
	e := *l.events[s.Key]
	if s.Items != nil {
		e.Items = l.items(s.Items)
	}
	d, err := h.Observe(l.t.Context(), &e)
	if err != nil {
		l.t.Fatal(err)
	}
	if err := d.Wait(l.t.Context()); err != nil {
		l.t.Fatal(err)
	}
	h.Close()
	for _, e := range seen {
		l.got.Observations = append(l.got.Observations, observation{e.ID, s.Subscription, e.Tool.Input})
	}
}

// upload gives bytes to a receiver that knows one token. What it confirms it holds.
func (l *player) upload(s *step) {
	const token, scope = "a-token", "a-scope"
	if l.uploads == nil {
		var err error
		l.uploads, err = httpbackend.NewUploads(httpbackend.UploadOptions{Scope: func(_ context.Context, t string) (string, error) {
			if t != token {
				return "", httpbackend.ErrToken
			}
			return scope, nil
		}})
		if err != nil {
			l.t.Fatal(err)
		}
		l.t.Cleanup(func() { l.uploads.Close() })
	}
	r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(s.Body))
	r.ContentLength = s.Size
	r.Header.Set("Content-Type", "application/octet-stream")
	r.Header.Set("AHP-Content-SHA256", s.SHA256)
	r.Header.Set("Authorization", "Bearer "+token)
	if s.Upload != nil { // another subscription, whose token is good for nothing here
		r.Header.Set("Authorization", "Bearer another")
	}
	w := httptest.NewRecorder()
	l.uploads.ServeHTTP(w, r)
	l.got.Uploads = append(l.got.Uploads, w.Code)
	if w.Code != http.StatusCreated {
		return
	}
	receipt, err := ahp.DecodeReceipt(w.Body.Bytes())
	if err != nil {
		l.t.Fatal(err)
	}
	body, held, err := l.uploads.Open(scope, receipt.Ref)
	if err != nil {
		l.t.Fatal(err)
	}
	defer body.Close()
	if data, err := io.ReadAll(body); err != nil || !bytes.Equal(data, s.Body) || held.SHA256 != s.SHA256 || held.Size != s.Size {
		l.t.Errorf("ref %s: %d bytes, %+v, %v", s.Ref, len(data), held, err)
	}
}

// items decodes what an observed event holds.
func (l *player) items(list []ahp.Raw) ahp.Items {
	e := ahptest.ToolBefore("items", "{}")
	raw, err := e.Encode()
	if err != nil {
		l.t.Fatal(err)
	}
	var all [][]byte
	for _, item := range list {
		all = append(all, item)
	}
	raw = slices.Concat(raw[:len(raw)-1], []byte(`,"items":[`), bytes.Join(all, []byte(",")), []byte("]}"))
	if e, err = ahp.DecodeEvent(raw); err != nil {
		l.t.Fatal(err)
	}
	return e.Items
}

func (l *player) check() {
	w := l.row.Expected
	for id, state := range w.States {
		for name, value := range state {
			if got := l.got.States[id][name]; !strictjson.Equal(got, value) {
				l.t.Errorf("%s: %s is %s, want %s", id, name, got, value)
			}
		}
		if _, ok := state["flow"]; !ok && l.got.States[id]["flow"] != nil {
			l.t.Errorf("%s: flow %s", id, l.got.States[id]["flow"])
		}
	}
	for id := range l.got.States {
		if w.States[id] == nil {
			l.t.Errorf("%s was published", id)
		}
	}
	l.got.States, w.States = nil, nil
	sameJSON := cmp.Comparer(func(a, b ahp.Raw) bool { return strictjson.Equal(a, b) })
	if diff := cmp.Diff(w, l.got, sameJSON); diff != "" {
		l.t.Errorf("want -, got +\n%s", diff)
	}
}
