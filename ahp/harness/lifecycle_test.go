package harness_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
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
	uploads int
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
	l.h = newHarness(t, harness.Options{Manifest: lifecycleManifest()},
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

// lifecycleManifest offers what the rows use; they advertise allow and ask.
func lifecycleManifest() *ahp.Manifest { return ahptest.Manifest() }

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
		// The receiver of uploads has its own tests; here they are taken as done.
		l.uploads++
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
	if l.uploads != len(w.Uploads) {
		l.t.Errorf("%d uploads, want %d", l.uploads, len(w.Uploads))
	}
	l.got.States, w.States, l.got.Uploads, w.Uploads = nil, nil, nil, nil
	sameJSON := cmp.Comparer(func(a, b ahp.Raw) bool { return strictjson.Equal(a, b) })
	if diff := cmp.Diff(w, l.got, sameJSON); diff != "" {
		l.t.Errorf("want -, got +\n%s", diff)
	}
}

// memoryPeer answers inside the program.
type memoryPeer struct {
	t        *testing.T
	row      *lifecycle
	wire     transport.Transport
	mu       sync.Mutex
	came     map[string]int
	gates    map[string]chan struct{}
	released map[string]bool
}

func newMemoryPeer(t *testing.T, row *lifecycle) *memoryPeer {
	p := &memoryPeer{t: t, row: row, came: map[string]int{}, gates: map[string]chan struct{}{}, released: map[string]bool{}}
	p.wire = transport.InProcess(p.handle)
	t.Cleanup(func() { p.wire.Close() })
	return p
}

// gate is closed once key is released; the caller holds p.mu.
func (p *memoryPeer) gate(key string) chan struct{} {
	if p.gates[key] == nil {
		p.gates[key] = make(chan struct{})
	}
	return p.gates[key]
}

func (p *memoryPeer) handle(ctx context.Context, msg []byte) ([]byte, error) {
	key := keyOf(msg)
	p.mu.Lock()
	n := p.came[key]
	p.came[key]++
	gate := p.gate(key)
	p.mu.Unlock()
	select {
	case <-gate:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return p.row.response(key, n), nil
}

// keyOf returns the key of a request: its id is that of the row and the key.
func keyOf(msg []byte) string {
	id, _ := ahp.MessageID(msg)
	s, _ := id.Value()
	return s[strings.LastIndexByte(s, ':')+1:]
}

// response returns what the nth request of key is answered with.
func (s *lifecycle) response(key string, n int) ahp.Raw {
	if list := s.Sequences[key]; n < len(list) {
		return list[n]
	}
	return s.Responses[key]
}

func (p *memoryPeer) link() transport.Transport { return p.wire }

func (p *memoryPeer) wait(key string, n int) {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.came[key] != n {
		p.t.Fatalf("%d requests of %s, want %d", p.came[key], key, n)
	}
}

func (p *memoryPeer) release(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.released[key] {
		close(p.gate(key))
	}
	p.released[key] = true
}

func (p *memoryPeer) emit([]byte)  { p.t.Fatal("there is no stream to write to") }
func (p *memoryPeer) ignored() int { return 0 }
