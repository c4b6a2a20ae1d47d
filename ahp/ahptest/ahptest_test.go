package ahptest_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
)

func TestMain(m *testing.M) {
	ahptest.RunIfChild()
	goleak.VerifyTestMain(m)
}

func TestMenu(t *testing.T) {
	seen := map[string]bool{}
	covered := map[ahp.FailureClass]bool{}
	for _, f := range append(ahptest.Faults(), ahptest.NotifyFaults()...) {
		if seen[f.Name] || f.About == "" || len(f.Classes) == 0 {
			t.Errorf("fault %q is incomplete or there twice", f.Name)
		}
		seen[f.Name] = true
		for _, class := range f.Classes {
			covered[class] = true
		}
		if got, ok := ahptest.FindFault(f.Name); !ok || got.About != f.About {
			t.Errorf("fault %q isn't found", f.Name)
		}
	}
	// launch, late, content and closed need no backend: tests of transports and of
	// the harness have them.
	for _, class := range ahp.FailureClasses() {
		if !covered[class] && class != ahp.FailLaunch && class != ahp.FailLate && class != ahp.FailContent && class != ahp.FailShutdown {
			t.Errorf("no fault of class %s", class)
		}
	}
	if _, ok := ahptest.FindFault("nothing of the kind"); ok {
		t.Error("found what isn't there")
	}
}

func TestRunFault(t *testing.T) {
	f, _ := ahptest.FindFault("dies_after")
	var out, stderr bytes.Buffer
	code := ahptest.RunFault(f, strings.NewReader(`{"jsonrpc":"2.0","id":"x"}`+"\n"), &out, &stderr)
	if code != 3 || !strings.Contains(out.String(), `"id":"x"`) {
		t.Errorf("code %d, %s", code, out.String())
	}
}

func TestSamplesAreValid(t *testing.T) {
	if _, err := ahptest.Manifest().Encode(); err != nil {
		t.Error(err)
	}
	for _, e := range []*ahp.Event{ahptest.ToolBefore("e", `{}`), ahptest.ToolAfter("e", "x")} {
		if err := e.Validate(); err != nil {
			t.Error(err)
		}
	}
	for _, typ := range ahp.EventTypes() {
		if err := ahptest.FullCapabilities(typ).Validate(typ); err != nil {
			t.Errorf("%s: %v", typ, err)
		}
	}
	less := ahptest.Without(ahptest.FullCapabilities(ahp.ToolBefore), ahp.EffectModify, ahp.EffectFlow)
	if err := less.Validate(ahp.ToolBefore); err != nil || less.Has(ahp.EffectModify) || less.Modify != nil {
		t.Errorf("%+v, %v", less, err)
	}
}

// A fake remembers what it was sent.
func ExampleFake() {
	f := ahptest.NewFake(ahptest.Says(&ahp.Ask{}))
	defer f.Close()
	msg, err := (&ahp.Intercept{Event: ahptest.ToolBefore("e", `{}`), Capabilities: *ahptest.FullCapabilities(ahp.ToolBefore)}).Encode()
	if err != nil {
		fmt.Println(err)
		return
	}
	reply, err := f.Exchange(context.Background(), msg)
	fmt.Println(string(reply), err)
	fmt.Println(f.Requests()[0].Event.Tool.Name)
	// Output:
	// {"jsonrpc":"2.0","id":"e","result":{"protocolVersion":"draft","effects":[{"type":"ask"}]}} <nil>
	// bash
}
