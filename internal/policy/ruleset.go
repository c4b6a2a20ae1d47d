package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
	"unicode/utf8"

	"github.com/abhed/abhed/internal/strictjson"
)

// snapshotVersion is the version of the stored form of a rule set.
const snapshotVersion = 1

// Ruleset is a compiled set of rules. It is immutable and safe for concurrent
// use. Make it with Compile or Restore.
type Ruleset struct {
	lists RuleLists
	known Known
	deny  []*rule
	ask   []*rule
	allow []*rule
	// looks is what the path rules of read and write look at in commands.
	looks looks
	// starts are the deny and ask rules about commands by the first byte of their
	// pattern.
	starts [256][]*rule
	// parsers is the only part that changes; it is safe for concurrent use.
	parsers *parserPool
	// stored returns the rules as they are stored, and the hash of that.
	stored func() (json []byte, hash string)
}

// RuleRef names a rule in a result.
type RuleRef struct {
	// List is "deny", "ask" or "allow".
	List string `json:"list"`
	RuleText
}

// String returns the list, the text and the place of the rule.
func (r RuleRef) String() string {
	s := fmt.Sprintf("%s rule %s", r.List, r.Text)
	if o := r.Origin.String(); o != "" {
		s += " (" + o + ")"
	}
	return s
}

type rulesJSON struct {
	Version int       `json:"version"`
	Rules   RuleLists `json:"rules"`
	Known   Known     `json:"known"`
}

type snapshotJSON struct {
	rulesJSON
	Env Env `json:"env"`
}

// finish computes what is derived from the rules.
func (r *Ruleset) finish() error {
	r.looks = makeLooks(r)
	for _, list := range [...][]*rule{r.deny, r.ask} {
		for _, rule := range list {
			if rule.text != nil && !rule.bare && rule.text.prefix != "" {
				first := rule.text.prefix[0]
				r.starts[first] = append(r.starts[first], rule)
			}
		}
	}
	r.parsers = &parserPool{}
	store := func() (b []byte, hash string, err error) {
		b, err = encode(rulesJSON{snapshotVersion, r.lists, r.known})
		return b, digest(b), err
	}
	if r.storable() { // most are never stored
		r.stored = sync.OnceValues(func() ([]byte, string) {
			b, hash, err := store()
			if err != nil {
				panic(fmt.Sprintf("policy: bug: rules that can be stored can't be: %v", err))
			}
			return b, hash
		})
		return nil
	}
	b, hash, err := store()
	if err != nil {
		return fmt.Errorf("the rules can't be stored: %w", err)
	}
	r.stored = func() ([]byte, string) { return b, hash }
	return nil
}

// maxStorable is the size of rules about which storable says nothing.
const maxStorable = 1 << 20

// storable reports whether the rules are such that they can be stored. It may be wrong
// about some that can.
func (r *Ruleset) storable() bool {
	size, valid := 0, true
	text := func(list ...string) {
		for _, s := range list {
			size, valid = size+len(s)+64, valid && utf8.ValidString(s)
		}
	}
	for _, list := range [...][]RuleText{r.lists.Deny, r.lists.Ask, r.lists.Allow} {
		for i := range list {
			text(list[i].Text, list[i].Origin.File, list[i].Origin.Key)
		}
	}
	text(r.known.MCPServers...)
	for name, kind := range r.known.Tools {
		text(name)
		valid = valid && int(kind) < len(subjectNames)
	}
	return valid && size <= maxStorable
}

func encode(v any) ([]byte, error) {
	b, err := strictjson.Marshal(v)
	if err != nil {
		return nil, err
	}
	return strictjson.Canonical(b)
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// JSON returns the rules and what they were compiled against as canonical JSON.
// The bytes are shared and must not be changed.
func (r *Ruleset) JSON() []byte {
	b, _ := r.stored()
	return b
}

// Hash returns the SHA-256 of JSON in lower-case hex.
func (r *Ruleset) Hash() string {
	_, hash := r.stored()
	return hash
}

// Snapshot returns the rules together with env (its functions aside) as
// canonical JSON, and the SHA-256 of that in lower-case hex: all that a later
// judgement of the same call needs besides the call. It fails if a string isn't
// UTF-8.
func (r *Ruleset) Snapshot(env Env) (doc []byte, hash string, err error) {
	doc, err = encode(snapshotJSON{rulesJSON{snapshotVersion, r.lists, r.known}, env})
	if err != nil {
		return nil, "", fmt.Errorf("the rules in force can't be stored: %w", err)
	}
	return doc, digest(doc), nil
}

// Restore returns the rule set and the environment of a Snapshot. The functions
// of the environment are nil, which means the real ones; set those that shall
// answer as they did then.
func Restore(doc []byte) (*Ruleset, Env, error) {
	var s snapshotJSON
	if err := strictjson.Unmarshal(doc, &s, strictjson.Options{RejectUnknown: true}); err != nil {
		return nil, Env{}, fmt.Errorf("the stored rules can't be read: %w", err)
	}
	if s.Version != snapshotVersion {
		return nil, Env{}, fmt.Errorf("the stored rules have version %d; this program reads version %d", s.Version, snapshotVersion)
	}
	rs, problems := Compile(s.Rules, s.Known)
	if rs == nil {
		for _, p := range problems {
			if !p.Warning {
				return nil, Env{}, fmt.Errorf("the stored rules don't compile: %w", &p)
			}
		}
	}
	return rs, s.Env, nil
}
