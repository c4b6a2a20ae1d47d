package conformance

// harnessEnv is what the checks of a harness work with.
type harnessEnv struct{}

// harnessChecks returns the checks of the role harness, in the order in which they
// run.
func harnessChecks() []scenario[*harnessEnv] { return nil }
