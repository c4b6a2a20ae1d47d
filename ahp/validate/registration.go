package validate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/internal/strictjson"
)

// RegistrationContext is the harness in which a registration is to be used.
type RegistrationContext struct {
	// Interactive tells that there is a person who can be asked.
	Interactive bool `json:"interactive"`
	// Environment holds the variables that credentials may be in.
	Environment map[string]string `json:"environment"`
	// Requirements is what the backends need to be able to do.
	Requirements []Requirement `json:"requirements"`
	// Manifest is what the harness offers; nil is not known, and then the protocol's
	// own bounds are all that counts.
	Manifest *ahp.Manifest `json:"-"`
	// RawManifest is Manifest as it is in JSON.
	RawManifest ahp.Raw `json:"manifest"`
}

// Requirement is one thing that a backend needs to be able to do: effects of an
// event in a mode, and their options.
type Requirement struct {
	Event   ahp.EventType    `json:"event"`
	Mode    ahp.Mode         `json:"mode"`
	Effects []ahp.EffectType `json:"effects"`
	// Modify names the targets, and whether they are replaced or merged.
	Modify map[ahp.Target]ahp.ModifyCapability `json:"modify"`
	Flow   struct {
		Operations []ahp.FlowOperation `json:"operations"`
	} `json:"flow"`
	Inject struct {
		Context struct {
			DeliverAt []ahp.Delivery `json:"deliverAt"`
		} `json:"context"`
	} `json:"inject"`
}

// DecodeRegistrationContext reads a RegistrationContext from JSON; members that it
// doesn't have are ignored. The error says where, what was found and what was
// expected.
func DecodeRegistrationContext(data []byte) (*RegistrationContext, error) {
	c := new(RegistrationContext)
	if err := strictjson.Unmarshal(data, c, strictjson.Options{MaxBytes: ahp.MaxMessageBytes, MaxDepth: ahp.MaxDepth}); err != nil {
		return nil, err
	}
	if c.RawManifest == nil {
		return c, nil
	}
	var err error
	if c.Manifest, err = ahp.DecodeManifest(c.RawManifest); err != nil {
		return nil, fmt.Errorf("the manifest of the context: %w", err)
	}
	return c, nil
}

// registration judges a registration document; literal secrets are warnings.
func (r *Report) registration(data []byte, c *RegistrationContext) {
	reg, err := ahp.DecodeRegistrationShape(data)
	for _, e := range ahp.LintSecrets(data) {
		r.Warnings = append(r.Warnings, findingOf(data, e))
	}
	if err != nil {
		r.fail(data, err)
		return
	}
	if c == nil {
		return
	}
	r.credentials(data, reg, c)
	for i := range c.Requirements {
		q := &c.Requirements[i]
		for _, f := range q.faults(c) {
			r.Findings = append(r.Findings, Finding{In: "context", Layer: "capability", Pointer: fmt.Sprintf("/requirements/%d%s", i, f.at), Offset: -1,
				Found: f.found, Expected: f.expected, Requirement: "AHP-CAP-001"})
		}
	}
	if c.Manifest == nil {
		return
	}
	for _, m := range harness.Misfits(reg, c.Manifest) {
		r.Findings = append(r.Findings, Finding{Layer: "capability", Pointer: m.Pointer, Offset: ahp.Locate(data, m.Pointer), Found: m.Why,
			Expected: "what the manifest offers", Requirement: "AHP-REG-001"})
	}
}

// credentials holds that every credential can be had (§15).
func (r *Report) credentials(data []byte, reg *ahp.Registration, c *RegistrationContext) {
	for i := range reg.Hooks {
		b := &reg.Hooks[i]
		r.credential(data, fmt.Sprintf("/hooks/%d/authentication", i), b.Authentication, c)
		for j := range b.Subscriptions {
			if u := b.Subscriptions[j].Upload; u != nil {
				r.credential(data, fmt.Sprintf("/hooks/%d/subscriptions/%d/upload/auth", i, j), u.Auth, c)
			}
		}
	}
}

func (r *Report) credential(data []byte, pointer string, a *ahp.Authentication, c *RegistrationContext) {
	if a == nil {
		return
	}
	add := func(list *[]Finding, member, found, expected string) {
		at := pointer + "/" + member
		*list = append(*list, Finding{Layer: "application", Pointer: at, Offset: ahp.Locate(data, at), Found: found, Expected: expected, Requirement: "AHP-AUTH-001"})
	}
	switch {
	case a.TokenEnv != "" && c.Environment[a.TokenEnv] == "":
		add(&r.Findings, "tokenEnv", "no variable "+a.TokenEnv+" in the environment", "the token in that variable")
	case a.TokenRef != "":
		add(&r.Warnings, "tokenRef", "a reference that can't be resolved here", "a store that knows it where the registration is used")
	case a.ClientSecretRef != "":
		add(&r.Warnings, "clientSecretRef", "a reference that can't be resolved here", "a store that knows it where the registration is used")
	}
	if a.Flow == "authorization_code_pkce" && !c.Interactive {
		add(&r.Warnings, "flow", "a flow that needs a person, and nobody is there", "a token from an earlier session, or client_credentials")
	}
}

// gap is one way in which a requirement can't be met; at is a pointer below it.
type gap struct{ at, found, expected string }

// faults returns why q can't be met, by the bounds of the protocol (§10), by who is
// there, and by the manifest.
func (q *Requirement) faults(c *RegistrationContext) []gap {
	if !q.Event.Known() {
		return []gap{{"/event", fmt.Sprintf("the event type %q", q.Event), "one of the 32 event types"}}
	}
	mode := q.Mode
	if mode == "" {
		mode = ahp.ModeIntercept
	}
	switch {
	case mode != ahp.ModeIntercept && mode != ahp.ModeObserve:
		return []gap{{"/mode", fmt.Sprintf("the mode %q", mode), `"intercept" or "observe"`}}
	case mode == ahp.ModeIntercept && !q.Event.Interceptable():
		return []gap{{"/event", string(q.Event), "an event that can be intercepted"}}
	case mode == ahp.ModeObserve && len(q.Effects) > 0:
		return []gap{{"/effects", "effects of an observation", "none"}}
	}
	widest := q.Event.Effects()
	offered := ahp.NewCapabilities(q.Event, widest...)
	if offered.Flow != nil {
		offered.Flow.Operations = q.Event.FlowOperations()
	}
	by := string(q.Event) + " allows"
	if c.Manifest != nil {
		row := c.Manifest.Advertises(q.Event, mode)
		if row == nil {
			return []gap{{"/event", fmt.Sprintf("%s in mode %s", q.Event, mode), "an event that the manifest advertises in that mode"}}
		}
		if row.Capabilities != nil {
			offered, by = row.Capabilities, "the manifest advertises"
		}
	}
	return q.beyond(offered, by, c.Interactive)
}

// beyond returns what q asks for that isn't offered.
func (q *Requirement) beyond(offered *ahp.Capabilities, by string, interactive bool) []gap {
	var out []gap
	for i, e := range q.Effects {
		at := fmt.Sprintf("/effects/%d", i)
		switch {
		case !offered.Has(e):
			out = append(out, gap{at, fmt.Sprintf("the effect %q", e), "an effect that " + by})
		case e == ahp.EffectAsk && !interactive:
			out = append(out, gap{at, "ask", "somebody who can be asked: the context isn't interactive"})
		}
	}
	for _, target := range sortedTargets(q.Modify) {
		asked, may := q.Modify[target], offered.Modify[target]
		at := "/modify/" + escape(string(target))
		switch _, is := offered.Modify[target]; {
		case !is:
			out = append(out, gap{at, fmt.Sprintf("the target %q", target), "a target that " + by})
		case asked.Replace && !may.Replace:
			out = append(out, gap{at + "/replace", "replace", "an operation that " + by})
		case asked.Merge && !may.Merge:
			out = append(out, gap{at + "/merge", "merge", "an operation that " + by})
		}
	}
	for i, op := range q.Flow.Operations {
		if offered.Flow == nil || !slices.Contains(offered.Flow.Operations, op) {
			out = append(out, gap{fmt.Sprintf("/flow/operations/%d", i), fmt.Sprintf("the operation %q", op), "an operation that " + by})
		}
	}
	for i, d := range q.Inject.Context.DeliverAt {
		if offered.Inject == nil || !slices.Contains(offered.Inject.Context.DeliverAt, d) {
			out = append(out, gap{fmt.Sprintf("/inject/context/deliverAt/%d", i), fmt.Sprintf("the delivery %q", d), "a delivery that " + by})
		}
	}
	return out
}

func sortedTargets(m map[ahp.Target]ahp.ModifyCapability) []ahp.Target {
	var out []ahp.Target
	for t := range m {
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b ahp.Target) int { return strings.Compare(string(a), string(b)) })
	return out
}
