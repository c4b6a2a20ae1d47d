package conformance

// Claim is what a run entitles its peer to say (§25): AHP-CORE-001 wants role,
// bindings and profiles named, AHP-CORE-002 Base and one capability profile.
type Claim struct {
	Role     Role      `json:"role"`
	Revision string    `json:"revision"`
	Bindings []Binding `json:"bindings"`
	// Profiles holds those that were run, in the order of the specification.
	Profiles []ProfileClaim `json:"profiles"`
	// Partial tells that only some checks were asked for: that is no ground for a
	// claim.
	Partial bool `json:"partial,omitempty"`
	// Holds tells that Base, a binding's profile and a capability profile are met.
	Holds bool `json:"holds"`
}

// ProfileClaim says whether one profile is met, whatever a baseline says.
type ProfileClaim struct {
	Profile Profile `json:"profile"`
	Met     bool    `json:"met"`
	// Broken names the checks that stand against it, but for those that were
	// blocked.
	Broken []string `json:"broken,omitempty"`
	// Blocked, Passed and Warned count checks.
	Blocked int `json:"blocked"`
	Passed  int `json:"passed"`
	Warned  int `json:"warned"`
}

// profiles lists all profiles in the order of the specification.
func profiles() []Profile {
	return []Profile{ProfileBase, ProfileToolInterception, ProfileObservation, ProfileStdio, ProfileHTTP}
}

// claim derives the claim from results.
func claim(role Role, revision string, binding Binding, results []Result, partial bool) Claim {
	c := Claim{Role: role, Revision: revision, Bindings: []Binding{binding}, Profiles: []ProfileClaim{}, Partial: partial}
	met := map[Profile]bool{}
	for _, profile := range profiles() {
		pc := ProfileClaim{Profile: profile}
		tried := false
		for i := range results {
			r := &results[i]
			if r.Profile != profile || r.Verdict == NotApplicable {
				continue
			}
			tried = true
			switch {
			case r.Failed() && r.Verdict == Blocked:
				pc.Blocked++
			case r.Failed() || r.Verdict == SuiteError:
				pc.Broken = append(pc.Broken, r.ID)
			case r.Verdict == Warn:
				pc.Warned++
			case r.Verdict == Pass:
				pc.Passed++
			}
		}
		if !tried {
			continue
		}
		pc.Met = len(pc.Broken) == 0 && pc.Blocked == 0 && pc.Passed > 0
		met[profile] = pc.Met
		c.Profiles = append(c.Profiles, pc)
	}
	capability := met[ProfileToolInterception] || met[ProfileObservation]
	c.Holds = !partial && met[ProfileBase] && capability && (met[ProfileStdio] || met[ProfileHTTP])
	return c
}
