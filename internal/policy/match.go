package policy

// Matches reports whether a deny rule of r matches any part of the call, or the
// call can't be judged: what an extension's `match` rules mean (extensions.md
// "Configuration"). No other step is taken, and allow and ask rules don't count.
func (r *Ruleset) Matches(in Input) bool {
	e := &evaluation{rules: r, in: &in, mode: in.Env.mode()}
	e.paths.home = in.Env.Home
	if !e.prepare() || e.matchList(r.deny, r.looks.deny).rule != nil {
		return true
	}
	return e.shell != nil && (e.shell.unjudgeable() != "" || e.possible() != "")
}
