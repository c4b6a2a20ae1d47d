package vectors

import (
	"fmt"
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/strictjson"
)

// Exchange is what a harness and its backends say to each other, and what comes of
// it.
type Exchange struct {
	ID, About    string
	Requirements []string
	// TimeoutMs is every interceptor's deadline.
	TimeoutMs int64
	// Policies are those that the exchange is for; both unless said.
	Policies []ahp.FailurePolicy
	// Backends are asked in this order.
	Backends []Backend
	// Steps are dispatched one after the other, over the same harness.
	Steps []Step
	// Outcomes holds what each step comes to, per failure policy.
	Outcomes map[ahp.FailurePolicy][]Outcome
}

// Backend is how one backend behaves, at every step the same.
type Backend struct {
	// Effects are what it always answers, whatever it is asked.
	Effects ahp.Raw `json:"effects"`
	// Fault is a name of the menu in package ahptest/fault, in place of effects.
	Fault string `json:"fault"`
}

// Step is one dispatch.
type Step struct {
	Event ahp.Raw `json:"event"`
	// Capabilities are what the harness advertises.
	Capabilities ahp.Raw `json:"capabilities"`
	// State is what was decided before; nil for nothing.
	State ahp.Raw `json:"state"`
}

// Outcome is what a dispatch comes to. Every member is compared, but for an Input
// that is nil.
type Outcome struct {
	Permission ahp.Permission `json:"permission"`
	// Executes tells that nothing stands against the operation; it is false where
	// there is none, that is anywhere but at tool.before.
	Executes bool `json:"executes"`
	// Denials are the reasons of explicit denials; Synthetic counts those that a
	// policy made.
	Denials   []string `json:"denials"`
	Synthetic int      `json:"synthetic"`
	// Input is the effective input of a tool call.
	Input ahp.Raw `json:"input"`
	// Result is the supplied result, nil for none: null is a value.
	Result       ahp.Raw       `json:"result"`
	Flow         ahp.FlowState `json:"flow"`
	Instructions []string      `json:"instructions"`
	Messages     []string      `json:"messages"`
	Injections   int           `json:"injections"`
	// Asked is how many of the exchange's own backends were asked, Failed how many
	// of those could not be.
	Asked  int `json:"asked"`
	Failed int `json:"failed"`
}

func fields(s string) []string { return strings.Fields(strings.ReplaceAll(s, ",", " ")) }

// ParseExchange reads an exchange vector; name is for errors.
func ParseExchange(name string, data []byte) (*Exchange, error) {
	closed, open := "outcome fail-closed", "outcome fail-open"
	a, err := parse(name, data, []string{"id", "about", "requirements"}, []string{"config", "harness", "backend", "outcome", closed, open},
		[]string{"id", "about", "requirements", "harness", "backend"})
	if err != nil {
		return nil, err
	}
	x := &Exchange{ID: a.header["id"], About: a.header["about"], Requirements: fields(a.header["requirements"]), TimeoutMs: 10_000, Outcomes: map[ahp.FailurePolicy][]Outcome{}}
	if a.has("config") {
		var config struct {
			TimeoutMs int64               `json:"timeoutMs"`
			Policies  []ahp.FailurePolicy `json:"policies"`
		}
		if err := decode(name, a.text("config"), &config); err != nil {
			return nil, err
		}
		x.Policies = config.Policies
		if config.TimeoutMs > 0 {
			x.TimeoutMs = config.TimeoutMs
		}
	}
	if x.Policies == nil {
		x.Policies = []ahp.FailurePolicy{ahp.FailClosed, ahp.FailOpen}
	}
	if x.Steps, err = decodeLines[Step](a, "harness"); err != nil {
		return nil, err
	}
	if x.Backends, err = decodeLines[Backend](a, "backend"); err != nil {
		return nil, err
	}
	for i, b := range x.Backends {
		if (b.Effects == nil) == (b.Fault == "") {
			return nil, fmt.Errorf("vectors: %s: backend %d has effects or a fault, one of them", name, i+1)
		}
	}
	return x, x.outcomes(a, map[ahp.FailurePolicy]string{ahp.FailClosed: closed, ahp.FailOpen: open})
}

// outcomes reads the sections of outcomes: one for both policies, or one each.
func (x *Exchange) outcomes(a *archive, own map[ahp.FailurePolicy]string) error {
	used := map[string]bool{}
	for _, policy := range x.Policies {
		section := "outcome"
		if a.has(own[policy]) {
			section = own[policy]
		}
		used[section] = true
		list, err := decodeLines[Outcome](a, section)
		if err != nil {
			return err
		}
		if len(list) != len(x.Steps) || len(x.Steps) == 0 {
			return fmt.Errorf("vectors: %s: %d outcomes for %d steps with %s", a.name, len(list), len(x.Steps), policy)
		}
		x.Outcomes[policy] = list
	}
	for section := range a.sections {
		if strings.HasPrefix(section, "outcome") && !used[section] {
			return fmt.Errorf("vectors: %s: the section %q is for no policy of the exchange", a.name, section)
		}
	}
	return nil
}

func decodeLines[T any](a *archive, section string) ([]T, error) {
	var out []T
	for _, line := range a.lines(section) {
		var v T
		if err := decode(a.name+" ("+section+")", line, &v); err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

func decode(name, text string, v any) error {
	if err := strictjson.Unmarshal([]byte(text), v, strictjson.Options{RejectUnknown: true}); err != nil {
		return fmt.Errorf("vectors: %s: %w", name, err)
	}
	return nil
}
