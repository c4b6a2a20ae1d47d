package tool

import (
	"errors"
	"sync"

	"github.com/abhed/abhed/internal/policy"
)

// Permit is the gate's leave to run one call once. The zero Permit redeems
// nothing. A copy is the same permit: whichever copy is redeemed first spends it.
type Permit struct {
	token *token
}

// token is what a permit points at. Its identity is the proof: only a Minter
// puts one into an authority's set.
type token struct {
	call  policy.Call
	hash  string
	place *policy.Place
}

// Hash returns the hash of the call that the permit is for, "" for the zero
// Permit.
func (p Permit) Hash() string {
	if p.token == nil {
		return ""
	}
	return p.token.hash
}

// ErrNoPermit is returned for a permit that is zero, spent or of another
// authority.
var ErrNoPermit = errors.New("no valid permit for this call")

// authority holds the permits that were issued and not yet redeemed.
type authority struct {
	mu   sync.Mutex
	live map[*token]struct{}
}

// Minter issues permits. Only the gate holds one.
type Minter struct{ a *authority }

// Verifier redeems permits. Only the executor uses it.
type Verifier struct{ a *authority }

// NewAuthority returns the two halves of a new authority. Only the composition
// root (and tests) call it; a repository test holds that.
func NewAuthority() (*Minter, *Verifier) {
	a := &authority{live: map[*token]struct{}{}}
	return &Minter{a}, &Verifier{a}
}

// Mint returns a permit for exactly this call. place is where its path lands,
// nil if its subject isn't a path.
func (m *Minter) Mint(call policy.Call, place *policy.Place) Permit {
	t := &token{call: call, hash: call.Hash(), place: place}
	m.a.mu.Lock()
	defer m.a.mu.Unlock()
	m.a.live[t] = struct{}{}
	return Permit{t}
}

// redeem spends the permit.
func (v *Verifier) redeem(p Permit) (*token, error) {
	if p.token == nil {
		return nil, ErrNoPermit
	}
	v.a.mu.Lock()
	defer v.a.mu.Unlock()
	if _, ok := v.a.live[p.token]; !ok {
		return nil, ErrNoPermit
	}
	delete(v.a.live, p.token)
	return p.token, nil
}
