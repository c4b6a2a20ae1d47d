package policy

import "testing"

// TestRulesThroughLinks holds that a rule which is written through a link holds
// for the place itself.
func TestRulesThroughLinks(t *testing.T) {
	w := newWorld(t)
	link(t, w.home, w.base+"/link")
	link(t, w.base+"/link", w.base+"/again")
	link(t, w.home, w.root+"/inner")
	link(t, w.root+"/sub", w.home+"/up")
	link(t, w.base+"/st*r", w.base+"/odd")
	for _, c := range []struct {
		rule, path string
		want       Verdict
	}{
		{w.base + "/link/**", w.home + "/x", Deny}, {w.base + "/link/**", w.home + "/a/b", Deny}, {w.base + "/link/**", w.home, Deny}, {w.base + "/link/x", w.home + "/x", Deny}, {w.base + "/link/x", w.home + "/y", Allow}, {w.base + "/link", w.home, Deny}, {w.base + "/link", w.home + "/x", Allow},
		{w.base + "/again/*.key", w.home + "/a.key", Deny}, {w.base + "/again/*.key", w.home + "/a/b.key", Allow}, {w.base + "/link/new/x", w.home + "/new/x", Deny}, {w.base + "/link/**", w.base + "/again/x", Deny}, {w.base + "/link/**", w.root + "/x", Allow},
		{"inner/**", w.home + "/x", Deny}, {"inner/x", "~/x", Deny}, {"~/up/**", "sub/x", Deny}, {"~/up/**", w.root + "/sub/deep/x", Deny}, {"~/up/x", "sub/y", Allow}, {"**/x", w.home + "/x", Allow}, {w.base + "/odd/x", w.base + "/st*r/x", Deny}, {w.base + "/odd/x", w.base + "/star/x", Allow},
	} {
		for _, list := range []string{"deny", "ask"} {
			want := c.want
			if list == "ask" {
				want = min(want, Ask)
			}
			rs := rules(t, list+" read("+c.rule+")")
			check(t, rs, w.file(ModeBypass, "read", c.path), want, "")
			check(t, rs, w.bash(ModeBypass, "cat "+shellQuote(w.expand(c.path))), want, "")
			check(t, rs, w.bash(ModeBypass, "cat < "+shellQuote(w.expand(c.path))), want, "")
		}
		// An allow rule is about where a path truly lands.
		if c.want == Deny {
			in := w.file(ModeDefault, "write", c.path)
			if got := rules(t, "allow write("+c.rule+")").Evaluate(in); got.Verdict == Allow {
				t.Errorf("allow write(%s) covers %q", c.rule, c.path)
			}
		}
	}
	rs := rules(t, "deny read("+w.base+"/link/secret/**)")
	for _, c := range []string{"cat " + w.home + "/$X", "cat " + w.home + "/s*/x", "cat $X/secret/y", "cd $X; cat home/secret/y"} {
		check(t, rs, w.bash(ModeBypass, c), Ask, StepUnjudgeable)
	}
	check(t, rs, w.bash(ModeBypass, "cat "+w.home+"/n*/x"), Allow, StepMode)
}

// expand returns a path with the home directory in the place of "~".
func (w world) expand(p string) string {
	if len(p) > 1 && p[:2] == "~/" {
		return w.home + p[1:]
	}
	return p
}
