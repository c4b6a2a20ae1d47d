package gate

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/abhed/abhed/internal/extension"
	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/strictjson"
	"github.com/go-json-experiment/json/jsontext"
)

// maxRounds is how often the extensions are asked about arguments that they keep
// changing (gate.md §2 step 2).
const maxRounds = 3

// askExtensions is step 2. Everything in it is a function of the set of answers,
// never of their order.
func (j *judgement) askExtensions(ctx context.Context) {
	if j.g.o.Extensions == nil && len(j.g.o.Hooks) == 0 {
		return
	}
	j.matchedByName = map[string]bool{}
	for round := 1; ctx.Err() == nil; round++ {
		answers := j.askRound(ctx, round, false)
		if j.denied() {
			return
		}
		proposals := changed(j.call.Args, answers)
		if len(proposals) == 0 {
			return
		}
		if round == maxRounds {
			j.rewriteTrouble(fmt.Sprintf("%s still rewrite the arguments after %d rounds", names(proposals), maxRounds), "rewrite_unstable")
			return
		}
		merged, trouble := merge(j.call.Args, proposals)
		if trouble != "" {
			j.rewriteTrouble(trouble, "rewrite_conflict")
			return
		}
		if !j.rewrite(merged, names(proposals)) {
			return
		}
	}
}

func (j *judgement) rewriteTrouble(reason, code string) {
	j.object(policy.ObjectDeny(policy.Source{Kind: "gate", Name: "rewrites"}, reason, code), "extension")
}

// askRound asks every extension and every hook once about the effective arguments.
func (j *judgement) askRound(ctx context.Context, round int, final bool) []extension.Answer {
	defer j.askHooks(ctx, round)
	if j.g.o.Extensions == nil {
		return nil
	}
	q := extension.ToolCall{Call: j.call, Decl: j.decl, Round: round, Final: final, Sticky: j.matchedByName}
	if round > 1 || final {
		q.Original = j.original.Args
	}
	answers := j.g.o.Extensions.PolicyHook(ctx, q)
	for _, a := range answers {
		j.matchedByName[a.Name] = true
		j.object(a.Objection, "extension")
		j.d.Asked = append(j.d.Asked, a.Asked)
	}
	return answers
}

// finalRound lets the extensions judge what backends made of the arguments; a
// rewrite here is a refusal.
func (j *judgement) finalRound(ctx context.Context) {
	if j.g.o.Extensions == nil && len(j.g.o.Hooks) == 0 || ctx.Err() != nil {
		return
	}
	answers := j.askRound(ctx, maxRounds+1, true)
	if proposals := changed(j.call.Args, answers); len(proposals) > 0 && !j.denied() {
		j.rewriteTrouble(names(proposals)+" rewrite the arguments after a backend changed them", "rewrite_final")
	}
}

// changed returns the answers that propose other arguments than those asked
// about, sorted by name.
func changed(asked []byte, answers []extension.Answer) []extension.Answer {
	var out []extension.Answer
	for _, a := range answers {
		if a.Args != nil && !strictjson.Equal(a.Args, asked) {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, func(a, b extension.Answer) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func names(answers []extension.Answer) string {
	var s []string
	for _, a := range answers {
		s = append(s, a.Name)
	}
	return strings.Join(s, " and ")
}

// change is one proposal for one member; a nil value removes it.
type change struct {
	by    string
	value jsontext.Value
}

// merge applies the proposals to the arguments that were asked about, member by
// member. trouble names two extensions that change the same member differently.
func merge(asked []byte, proposals []extension.Answer) (merged []byte, trouble string) {
	base, err := members(asked)
	if err != nil {
		return nil, err.Error()
	}
	changes := map[string]change{}
	var conflicts []string
	for _, p := range proposals {
		next, err := members(p.Args)
		if err != nil {
			return nil, p.Name + ": " + err.Error()
		}
		for _, name := range slices.Sorted(maps.Keys(union(base, next))) {
			if bytes.Equal(base[name], next[name]) {
				continue
			}
			if had, ok := changes[name]; ok && !bytes.Equal(had.value, next[name]) {
				conflicts = append(conflicts, fmt.Sprintf("%s and %s rewrite `%s` differently", had.by, p.Name, name))
				continue
			}
			if _, ok := changes[name]; !ok {
				changes[name] = change{p.Name, next[name]}
			}
		}
	}
	if len(conflicts) > 0 {
		slices.Sort(conflicts)
		return nil, conflicts[0]
	}
	for name, c := range changes {
		if c.value == nil {
			delete(base, name)
		} else {
			base[name] = c.value
		}
	}
	merged, err = strictjson.Marshal(base)
	if err != nil {
		return nil, err.Error()
	}
	return merged, ""
}

// members returns the members of an object, each in canonical form.
func members(obj []byte) (map[string]jsontext.Value, error) {
	canon, err := strictjson.Canonical(obj)
	if err != nil {
		return nil, err
	}
	var m map[string]jsontext.Value
	if err := strictjson.Unmarshal(canon, &m, strictjson.Options{MaxBytes: len(canon)}); err != nil {
		return nil, err
	}
	return m, nil
}

func union(a, b map[string]jsontext.Value) map[string]jsontext.Value {
	u := maps.Clone(a)
	maps.Copy(u, b)
	return u
}
