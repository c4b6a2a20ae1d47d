package harness

import (
	"fmt"
	"slices"
	"strings"

	"github.com/abhed/abhed/ahp"
)

// Misfit is one thing that a registration asks for and a manifest doesn't offer.
type Misfit struct {
	// Pointer is the JSON pointer of the backend's part or the subscription.
	Pointer string
	// Why says what is asked for and what is offered.
	Why string
}

// Misfits returns everything for which New would refuse the registration against
// the manifest (§15), in the order of the registration. Both are valid; neither is
// kept.
func Misfits(reg *ahp.Registration, m *ahp.Manifest) []Misfit {
	var out []Misfit
	add := func(pointer, format string, args ...any) {
		out = append(out, Misfit{pointer, fmt.Sprintf(format, args...)})
	}
	for i := range reg.Hooks {
		b, at := &reg.Hooks[i], fmt.Sprintf("/hooks/%d", i)
		if !slices.Contains(m.Transports, b.Transport.Type) {
			add(at+"/transport/type", "transport %q isn't one of %s", b.Transport.Type, strings.Join(m.Transports, ", "))
		}
		if a := b.Authentication; a != nil && !slices.Contains(m.Authentication, a.Type) {
			add(at+"/authentication/type", "authentication %q isn't one of %q", a.Type, m.Authentication)
		}
		for j := range b.Subscriptions {
			if why := checkSubscription(&b.Subscriptions[j], m); why != "" {
				add(fmt.Sprintf("%s/subscriptions/%d", at, j), "%s", why)
			}
		}
	}
	return out
}
