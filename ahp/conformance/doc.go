// Package conformance judges a peer of the Agent Hooks Protocol by what it does on
// the wire and, if it is a harness, by what it runs: it plays the other role, sends
// good and bad messages, and says for each rule whether the peer keeps it, with the
// lines of the conversation that prove it.
//
// It guarantees that every check names the requirements it stands for, and is
// tested against a peer that breaks exactly that; that what was sent is judged as
// strictly as what came back, so that a fault of the suite is reported as one and
// never held against the peer; that a check whose prerequisite failed counts as
// failed (blocked), never as skipped; that the report says which requirements were
// not exercised; and that no credential given to the suite appears in a report.
// Every process and connection that a run opens ends with the run.
//
// Do not assume that a peer without a failure is safe, or decides well: the suite
// sees the wire and no more, and can't make a policy reveal all it would say.
package conformance
