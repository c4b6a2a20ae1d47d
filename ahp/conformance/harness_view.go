package conformance

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/abhed/abhed/ahp"
)

type harnessCheck = scenario[*harnessEnv]

// harnessRow is a check of a harness: it looks at plays, and runs nothing itself.
type harnessRow struct {
	id, requirements, about string
	profile                 Profile
	level                   Level     // "" is MUST
	bindings                []Binding // nil is everywhere
	after                   []string  // beside the root
	plays                   []string
	judge                   func(v *view, r ...*played)
}

// asked is the check that every other depends on.
const asked = "asked"

// harnessChecks returns the checks of the role harness, in the order in which they
// run.
func harnessChecks() []harnessCheck {
	var out []harnessCheck
	for _, row := range harnessRows() {
		c := harnessCheck{Check: Check{
			ID: row.id, About: row.about, Requirements: strings.Fields(row.requirements), Level: row.level, Role: RoleHarness,
			Profile: row.profile, Bindings: row.bindings,
		}, run: row.run}
		if c.Level == "" {
			c.Level = Must
		}
		if c.Bindings == nil {
			c.Bindings = everywhere()
		}
		if row.id != asked {
			c.DependsOn = append([]string{asked}, row.after...)
		}
		out = append(out, c)
	}
	return out
}

// harnessRows returns all rows.
func harnessRows() []harnessRow {
	var out []harnessRow
	for _, part := range [][]harnessRow{messageRows(), registrationRows(), decisionRows(), chainRows(), failureRows(), policyRows(), observerRows(), bindingRows()} {
		out = append(out, part...)
	}
	return out
}

// playsOf returns the plays that a check looks at.
func playsOf(id string) []string {
	for _, row := range harnessRows() {
		if row.id == id {
			return row.plays
		}
	}
	return nil
}

func (row *harnessRow) run(_ context.Context, p *probe, e *harnessEnv) error {
	v := &view{p: p, env: e}
	var list []*played
	for _, name := range row.plays {
		if e.play(name) == nil {
			continue // of another binding
		}
		r, err := e.get(name)
		if err != nil {
			return err
		}
		list = append(list, r)
	}
	row.judge(v, list...)
	return v.verdict()
}

// view is what a check makes of plays.
type view struct {
	p     *probe
	env   *harnessEnv
	found []blame
	good  []cited
	seen  int // things that the check could say something about
	none  string
}

// blame is one thing that the harness does wrong.
type blame struct {
	cited
	text string
}

// blame notes that the harness breaks the check, with the lines of a play that prove
// it; none stand for its end.
func (v *view) blame(r *played, lines []int, format string, args ...any) {
	v.seen++
	v.found = append(v.found, blame{cited{r, lines}, fmt.Sprintf(format, args...)})
}

// fine notes that the check had something to look at, and found it in order; lines
// are those that show it, none stand for the end of the play.
func (v *view) fine(r *played, lines ...int) {
	v.seen++
	v.shows(r, lines...)
}

// shows notes lines that a pass is seen from, beside those of fine.
func (v *view) shows(r *played, lines ...int) { v.good = append(v.good, cited{r, lines}) }

// nothing says why the check has nothing to look at, if it should turn out so.
func (v *view) nothing(format string, args ...any) { v.none = fmt.Sprintf(format, args...) }

// verdict returns the check's result: not applicable if nothing was looked at.
func (v *view) verdict() error {
	if v.seen == 0 {
		if v.none == "" {
			v.none = "nothing of the kind was seen"
		}
		return v.p.notApplicable("%s", v.none)
	}
	if len(v.found) == 0 {
		v.p.shown = v.cite(v.good, maxPassed, maxAround)
		return nil
	}
	var texts []string
	var bad []cited
	for _, b := range v.found {
		bad = append(bad, b.cited)
		if !slices.Contains(texts, b.text) {
			texts = append(texts, b.text)
		}
	}
	return &finding{verdict: Fail, proof: v.cite(bad, maxProof, maxLines), reason: v.p.readable([]byte(strings.Join(texts, "; ")))}
}

// of returns the messages of a play that are about a call and have the method and
// type.
func (r *played) of(call int, method string, t ahp.EventType) []*arrival {
	var out []*arrival
	for _, a := range r.arrivals {
		if a.call == call && a.method() == method && a.eventType() == t {
			out = append(out, a)
		}
	}
	return out
}

// asks returns the decision requests about a call, in the order in which they
// came.
func (r *played) asks(call int) []*arrival { return r.of(call, ahp.MethodIntercept, ahp.ToolBefore) }

// about returns the lines of the decision requests about a call and of the
// answers.
func (r *played) about(call int) []int {
	var out []int
	for _, a := range r.asks(call) {
		out = append(out, a.line, a.reply)
	}
	return append(out, r.endLine, r.filesLine)
}

// ran holds that a call was asked about and was run, or was not.
func (v *view) ran(r *played, call int, want bool, what string) {
	switch {
	case len(r.asks(call)) == 0:
		v.blame(r, nil, "%s: the backend was not asked", what)
	case r.ran[call] && !want:
		v.blame(r, r.about(call), "%s: the call was run all the same", what)
	case !r.ran[call] && want:
		v.blame(r, r.about(call), "%s: the call was not run", what)
	default:
		v.fine(r, r.about(call)...)
	}
}

// capability returns the capabilities that a request advertises.
func (a *arrival) capabilities() object {
	params, _ := a.body["params"].(object)
	c, _ := params["capabilities"].(object)
	return c
}

// offers reports whether a request advertises an effect.
func (a *arrival) offers(e ahp.EffectType) bool {
	list, _ := a.capabilities()["effects"].([]any)
	return slices.Contains(list, any(string(e)))
}

// offersEdit reports whether a request advertises an edit of the input.
func (a *arrival) offersEdit(operation string) bool {
	modify, _ := a.capabilities()["modify"].(object)
	input, _ := modify["input"].(object)
	return a.offers(ahp.EffectModify) && input[operation] == true
}

// offersStop reports whether a request advertises the end of the turn.
func (a *arrival) offersStop() bool {
	flow, _ := a.capabilities()["flow"].(object)
	operations, _ := flow["operations"].([]any)
	return a.offers(ahp.EffectFlow) && slices.Contains(operations, any("stop"))
}

// input returns the tool's input in a message.
func (a *arrival) input() object {
	tool, _ := a.event()["tool"].(object)
	input, _ := tool["input"].(object)
	return input
}
