package gate

import (
	"github.com/abhed/abhed/internal/policy"
)

// Rules is what judges now: a rule set, the facts that it is evaluated with, and
// the stored form of both. Make it with NewRules; it is immutable.
type Rules struct {
	set  *policy.Ruleset
	env  policy.Env
	doc  []byte
	hash string
}

// NewRules returns what judges with set and env. It fails if they can't be stored
// for a later judgement.
func NewRules(set *policy.Ruleset, env policy.Env) (*Rules, error) {
	doc, hash, err := set.Snapshot(env)
	if err != nil {
		return nil, err
	}
	return &Rules{set: set, env: env, doc: doc, hash: hash}, nil
}

// evaluate judges a call by the rules alone.
func (r *Rules) evaluate(c policy.Call, d policy.Declaration) policy.Result {
	return r.set.Evaluate(policy.Input{Call: c, Declaration: d, Env: r.env})
}

// Explain judges a call by the rules alone, with the trace of all steps.
func (r *Rules) Explain(c policy.Call, d policy.Declaration) policy.Result {
	return r.set.Evaluate(policy.Input{Call: c, Declaration: d, Env: r.env, Trace: true})
}

// place returns where the path of a call lands, as it was judged. ok is false if
// the call's subject isn't a path.
func place(r policy.Result, d policy.Declaration) (p policy.Place, ok bool) {
	if d.Kind != policy.SubjectPath || len(r.Paths) == 0 {
		return policy.Place{}, false
	}
	return r.Paths[0].Place, true
}
