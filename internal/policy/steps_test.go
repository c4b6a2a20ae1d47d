package policy

import (
	"testing"
)

func TestSteps(t *testing.T) {
	w := newWorld(t)
	rs := rules(t, "deny bash(rm *)", "ask bash(git push*)", "allow bash(go test*)", "deny write(/etc/**)", "allow write(sub/**)")
	check(t, rs, w.bash(ModeDefault, "rm x"), Deny, StepDenyRule)
	check(t, rs, w.bash(ModeDefault, "go vet && rm x"), Deny, StepDenyRule)
	check(t, rs, w.bash(ModeDefault, "git push"), Ask, StepAskRule)
	check(t, rs, w.bash(ModeDefault, "go test ./..."), Allow, StepAllowRule)
	check(t, rs, w.bash(ModeDefault, "go test ./... | tee x"), Ask, StepDefault)
	check(t, rs, w.bash(ModePlan, "go test ./..."), Deny, StepPlanMode)
	check(t, rs, w.auto("make all"), Allow, StepMode)
	check(t, rs, w.auto("make all; git reset --hard"), Ask, StepDestructive)
	check(t, rs, w.auto("$X"), Ask, StepUnjudgeable)
	check(t, rs, w.bash(ModeBypass, "make"), Allow, StepMode)
	check(t, rs, w.file(ModeDefault, "read", "sub/a"), Allow, StepDefault)
	check(t, rs, w.file(ModeDefault, "read", "/etc/passwd"), Ask, StepDefault)
	check(t, rs, w.file(ModeDefault, "write", "sub/a"), Allow, StepAllowRule)
	check(t, rs, w.file(ModeDefault, "write", "a"), Ask, StepDefault)
	check(t, rs, w.file(ModeAcceptEdits, "edit", "a"), Allow, StepMode)
	check(t, rs, w.file(ModeBypass, "write", "/etc/x/y"), Deny, StepDenyRule)
	check(t, rs, w.bash(ModeBypass, "echo x > /etc/x/y"), Deny, StepDenyRule)
}
