package harness

import (
	"fmt"
	"slices"
	"strings"

	"github.com/abhed/abhed/ahp"
)

// Misfit is one thing that a registration asks for and a manifest doesn't offer.
type Misfit struct {
	// Backend is the backend's id, and Subscription the subscription's place within
	// it, from 0; -1 is the backend itself.
	Backend      string
	Subscription int
	// Pointer is the JSON pointer of what asks, in the registration.
	Pointer string
	// Why says what is asked for and what is offered.
	Why string
}

// Misfits returns everything for which New would refuse the registration against
// the manifest (§15), in the order of the registration. Both are valid; neither is
// kept.
func Misfits(reg *ahp.Registration, m *ahp.Manifest) []Misfit {
	var out []Misfit
	for i := range reg.Hooks {
		b, at := &reg.Hooks[i], fmt.Sprintf("/hooks/%d", i)
		if !slices.Contains(m.Transports, b.Transport.Type) {
			out = append(out, Misfit{b.ID, -1, at + "/transport/type", fmt.Sprintf("transport %q isn't one of %s", b.Transport.Type, strings.Join(m.Transports, ", "))})
		}
		if a := b.Authentication; a != nil && !slices.Contains(m.Authentication, a.Type) {
			out = append(out, Misfit{b.ID, -1, at + "/authentication/type", fmt.Sprintf("authentication %q isn't one of %q", a.Type, m.Authentication)})
		}
		for j := range b.Subscriptions {
			if why := checkSubscription(&b.Subscriptions[j], m); why != "" {
				out = append(out, Misfit{b.ID, j, fmt.Sprintf("%s/subscriptions/%d", at, j), why})
			}
		}
	}
	return out
}
