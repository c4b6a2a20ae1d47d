package backend_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/backend"
)

// ask returns a decision request at t that advertises the effects.
func ask(e *ahp.Event, effects ...ahp.EffectType) *ahp.Intercept {
	return &ahp.Intercept{Event: e, Capabilities: *ahp.NewCapabilities(e.Type, effects...)}
}

// written returns the effects of a draft as the wire has them.
func written(t *testing.T, d *backend.Draft) string {
	t.Helper()
	effects, err := d.Effects()
	if err != nil {
		t.Fatal(err)
	}
	reply, err := ahp.EncodeEffects(ahp.StringID("e"), effects)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := strings.CutPrefix(string(reply), `{"jsonrpc":"2.0","id":"e","result":{"protocolVersion":"draft","effects":`)
	return strings.TrimSuffix(text, "}}")
}

func TestDraftWritesEachEffect(t *testing.T) {
	before := ahptest.ToolBefore("e", `{"command":"ls"}`)
	after := ahptest.ToolAfter("e", "out")
	note := ahp.TextMessage("m", ahp.RoleUser, "x")
	wire := `{"id":"m","role":"user","parts":[{"id":"m:text","kind":"text","mediaType":"text/plain","selection":"body","text":"x"}]}`
	for name, tt := range map[string]struct {
		event *ahp.Event
		write func(d *backend.Draft)
		want  string
	}{
		"nothing":       {before, func(*backend.Draft) {}, `[]`},
		"deny":          {before, func(d *backend.Draft) { d.Deny("no") }, `[{"type":"deny","reason":"no"}]`},
		"allow":         {before, func(d *backend.Draft) { d.Allow() }, `[{"type":"allow"}]`},
		"ask":           {before, func(d *backend.Draft) { d.Ask() }, `[{"type":"ask"}]`},
		"ask or deny":   {before, func(d *backend.Draft) { d.AskOrDeny("no") }, `[{"type":"ask"}]`},
		"replace input": {before, func(d *backend.Draft) { d.ReplaceInput(map[string]string{"command": "<pwd>"}) }, `[{"type":"modify","target":"input","operation":"replace","value":{"command":"<pwd>"}}]`},
		"merge raw":     {before, func(d *backend.Draft) { d.MergeInput(ahp.Raw(`{"n":1.0}`)) }, `[{"type":"modify","target":"input","operation":"merge","value":{"n":1.0}}]`},
		"replace items": {after, func(d *backend.Draft) { d.ReplaceItems(note) }, `[{"type":"modify","target":"output","operation":"replace","value":[` + wire + `]}]`},
		"no items":      {after, func(d *backend.Draft) { d.ReplaceItems() }, `[{"type":"modify","target":"output","operation":"replace","value":[]}]`},
		"append items":  {after, func(d *backend.Draft) { d.AppendItems(note) }, `[{"type":"modify","target":"output","operation":"merge","value":[` + wire + `]}]`},
		"modify":        {before, func(d *backend.Draft) { d.Modify(ahp.OpMerge, struct{}{}) }, `[{"type":"modify","target":"input","operation":"merge","value":{}}]`},
		"return null":   {before, func(d *backend.Draft) { d.Return(nil) }, `[{"type":"return","value":null}]`},
		"stop":          {before, func(d *backend.Draft) { d.Stop("over") }, `[{"type":"flow","reason":"over","operation":"stop"}]`},
		"inject":        {before, func(d *backend.Draft) { d.Inject(ahp.DeliverNow, note) }, `[{"type":"inject","target":"context","operation":"append","deliverAt":"now","value":[` + wire + `]}]`},
		"in order":      {before, func(d *backend.Draft) { d.Message("one").Message("").Deny("two") }, `[{"type":"message","text":"one"},{"type":"message","text":""},{"type":"deny","reason":"two"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			d := backend.Reply(ask(tt.event, tt.event.Type.Effects()...))
			tt.write(d)
			if diff := cmp.Diff(tt.want, written(t, d)); diff != "" {
				t.Error(diff)
			}
		})
	}
	q := ask(after, ahp.EffectFlow)
	q.Capabilities.Flow = &ahp.FlowCapability{Operations: []ahp.FlowOperation{ahp.FlowContinue}, RemainingContinuations: ahptest.Int64(1), ContinuationCount: ahptest.Int64(0)}
	if got := written(t, backend.Reply(q).Continue("")); got != `[{"type":"flow","operation":"continue"}]` {
		t.Error(got)
	}
}

// TestDraftRefusesWhatIsNotAdvertised holds that each helper fails where its effect
// isn't advertised, that nothing of the answer is then returned, and that a fallback
// is only what the author asked for (AHP-CAP-001).
func TestDraftRefusesWhatIsNotAdvertised(t *testing.T) {
	before, after := ahptest.ToolBefore("e", `{}`), ahptest.ToolAfter("e", "out")
	for name, tt := range map[string]struct {
		event *ahp.Event
		write func(d *backend.Draft)
	}{
		"deny":              {before, func(d *backend.Draft) { d.Deny("no") }},
		"allow":             {before, func(d *backend.Draft) { d.Allow() }},
		"ask":               {before, func(d *backend.Draft) { d.Ask() }},
		"ask or deny":       {before, func(d *backend.Draft) { d.AskOrDeny("no") }},
		"replace input":     {before, func(d *backend.Draft) { d.ReplaceInput(struct{}{}) }},
		"merge input":       {before, func(d *backend.Draft) { d.MergeInput(struct{}{}) }},
		"replace items":     {after, func(d *backend.Draft) { d.ReplaceItems() }},
		"append items":      {after, func(d *backend.Draft) { d.AppendItems() }},
		"return":            {before, func(d *backend.Draft) { d.Return(1) }},
		"stop":              {before, func(d *backend.Draft) { d.Stop("x") }},
		"continue":          {after, func(d *backend.Draft) { d.Continue("x") }},
		"inject":            {before, func(d *backend.Draft) { d.Inject(ahp.DeliverNow) }},
		"after a good one":  {before, func(d *backend.Draft) { d.Message("kept").Ask().Message("not reached") }},
		"input at an after": {after, func(d *backend.Draft) { d.ReplaceInput(struct{}{}) }},
	} {
		t.Run(name, func(t *testing.T) {
			d := backend.Reply(ask(tt.event, ahp.EffectMessage))
			tt.write(d)
			effects, err := d.Effects()
			var bad *ahp.Error
			if effects != nil || !errors.As(err, &bad) || bad.Kind != ahp.KindCapability {
				t.Errorf("%v, %v", effects, err)
			}
		})
	}
	d := backend.Reply(ask(before, ahp.EffectDeny))
	if d.Can(ahp.EffectAsk, ahp.EffectDeny) || !d.Can(ahp.EffectDeny) {
		t.Error("Can doesn't say what the request advertises")
	}
	if got := written(t, d.AskOrDeny("nobody is there")); got != `[{"type":"deny","reason":"nobody is there"}]` {
		t.Error(got)
	}
	for name, d := range map[string]*backend.Draft{
		"an empty reason":   backend.Reply(ask(before, ahp.EffectDeny)).Deny(""),
		"a value not UTF-8": backend.Reply(ask(before, ahp.EffectReturn)).Return("\xff"),
		"a list as input":   backend.Reply(ask(before, ahp.EffectModify)).ReplaceInput([]int{}),
	} {
		if effects, err := d.Message("x").Effects(); err == nil || effects != nil {
			t.Errorf("%s: %v", name, effects)
		}
	}
}

func TestHandlers(t *testing.T) {
	seen := 0
	h := &backend.Handlers{
		On: map[ahp.EventType]backend.Func{ahp.ToolBefore: func(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
			return backend.Reply(q).Deny("no").Effects()
		}},
		Seen: func(context.Context, *ahp.Event) { seen++ },
	}
	s := backend.New(h, backend.Options{})
	if reply, _ := s.Handle(t.Context(), request(t, "e", "ls")); !bytes.Contains(reply, []byte(`"deny"`)) {
		t.Errorf("%s", reply)
	}
	after, err := ask(ahptest.ToolAfter("a", "x"), ahp.EffectMessage).Encode()
	if err != nil {
		t.Fatal(err)
	}
	if reply, _ := s.Handle(t.Context(), after); !bytes.Contains(reply, []byte(`"code":-32002`)) {
		t.Errorf("an event that nobody judges: %s", reply)
	}
	if s.Handle(t.Context(), notification(t, "n")); seen != 1 {
		t.Errorf("observed %d", seen)
	}
	discover, _ := (&ahp.Discover{ID: ahp.IntID(1)}).Encode()
	reply, _ := s.Handle(t.Context(), discover)
	m, err := ahp.DecodeManifestReply(reply, ahp.IntID(1))
	if err != nil || m.Advertises(ahp.ToolBefore, ahp.ModeIntercept) == nil || m.Advertises(ahp.ToolAfter, ahp.ModeIntercept) != nil || m.Advertises(ahp.SessionEnd, ahp.ModeObserve) == nil {
		t.Errorf("%+v, %v", m, err)
	}
	h.Else, h.Seen = h.On[ahp.ToolBefore], nil
	if m := h.Manifest(); m.Advertises(ahp.TurnStart, ahp.ModeIntercept) == nil || m.Advertises(ahp.SessionEnd, ahp.ModeObserve) != nil {
		t.Errorf("%+v", m)
	}
	if reply, _ := s.Handle(t.Context(), after); !bytes.Contains(reply, []byte(`"code":-32004`)) {
		t.Errorf("Else denies, which isn't advertised: %s", reply)
	}
}

// TestLogHoldsNoBodies holds that nothing of an event but its ids gets into the log.
func TestLogHoldsNoBodies(t *testing.T) {
	var log bytes.Buffer
	s := backend.New(&judge{}, backend.Options{Logger: slog.New(slog.NewJSONHandler(&log, nil))})
	for _, msg := range [][]byte{
		request(t, "e1", "deny hunter2"), request(t, "e2", "panic hunter2"), request(t, "e3", "allow hunter2"),
		bytes.Replace(request(t, "e4", "hunter2"), []byte(`"path":"native"`), []byte(`"path":{"x":"hunter2"}`), 1),
		[]byte("hunter2"),
	} {
		s.Handle(t.Context(), msg)
	}
	for _, want := range []string{`"msg":"answered","type":"tool.before","event":"e1"`, `"effects":["deny"]`, `"msg":"the handler panicked"`, `"msg":"refused","kind":"capability"`, `"msg":"refused","kind":"shape","pointer":"/params/event/path"`, `"kind":"syntax"`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %s in\n%s", want, &log)
		}
	}
	if strings.Contains(log.String(), "hunter2") || strings.Contains(log.String(), "secret-text") {
		t.Errorf("the log quotes an event:\n%s", &log)
	}
}

func TestTimeoutEndsTheHandlersContext(t *testing.T) {
	s := backend.New(backend.Func(func(ctx context.Context, _ *ahp.Intercept) ([]ahp.Effect, error) {
		if _, has := ctx.Deadline(); !has {
			t.Error("no deadline")
		}
		<-ctx.Done()
		return nil, backend.ErrUnavailable
	}), backend.Options{Timeout: time.Millisecond})
	if reply, _ := s.Handle(t.Context(), request(t, "e", "ls")); !bytes.Contains(reply, []byte(`"code":-32003`)) {
		t.Errorf("%s", reply)
	}
}
