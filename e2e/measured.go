// Package e2e runs real coding agents, headless, against a scripted model on
// loopback, and measures whether a hook that guards them does.
//
//	e2e/install.sh DIR claude codex …      puts agents into a folder
//	go test ./e2e -agents-dir=DIR          runs those that are there
//	go test ./e2e -agents=claude-code,pi   runs these alone
//	go test ./e2e -update                  runs the whole matrix and writes internal/coverage/measured.json
//
// Without -agents-dir the folder is taken from ABHED_AGENTS. crush is no package: it is
// run where CRUSH_DIR names the folder with its program. An agent that is not
// there is skipped, or fails where ABHED_REQUIRE names agent-HOST.
//
// It guarantees that a row says what happened to the file that the tool call
// makes, to what the model was told next and to the log of decisions, and that
// an agent which never asked its model counts as nothing. No run sees the
// network, the user's configuration or another run, where the system lets a test
// have a network of its own; each run's processes are gone when it ends.
//
// Do not assume that a host which was measured in one version behaves so in
// another, or headless as with a person in front of it.
package e2e

// Measured is the document that -update writes and that `ahp hosts` reads: one
// row per cell of the matrix agent × scenario × policy.
//
//	{"schema":1,"rows":[{"host":"codex","version":"0.171.0","date":"2026-11-30","system":"linux/amd64",
//	  "scenario":"deny","policy":"fail-closed","scope":"user",
//	  "native":"PreToolUse","ran":false,"changed":false,"told":true,"logged":true,"note":""}]}
//
// Rows are sorted by host, version, scenario and policy, and no two agree in
// these four. An update of some agents alone keeps the rows of the others.
type Measured struct {
	// Schema is the version of this form: MeasuredSchema.
	Schema int   `json:"schema"`
	Rows   []Row `json:"rows"`
}

// MeasuredSchema is the version of Measured that this package writes.
const MeasuredSchema = 1

// Row is one measured cell.
type Row struct {
	// Host is the agent's name as `ahp install` takes it; Version is that of its
	// package as it was run.
	Host    string `json:"host"`
	Version string `json:"version"`
	// Date is the day of the run, UTC, as 2006-01-02; System the operating system
	// and architecture as GOOS/GOARCH.
	Date   string `json:"date"`
	System string `json:"system"`
	// Scenario is what the backend, or the installation, did; see Scenarios.
	Scenario string `json:"scenario"`
	// Policy is PolicyClosed or PolicyOpen: what the registration, and the installed
	// line itself, do when there is no answer.
	Policy string `json:"policy"`
	// Scope is where the hook was installed: user.
	Scope string `json:"scope"`
	// Native is the host's own name of the event at which the call was judged, as the
	// log has it; empty where the log has nothing. Others at which a host may ask
	// before a tool runs are not measured.
	Native string `json:"native,omitempty"`
	// Ran says that the tool call was carried out as the model wrote it. Told says that the model was told
	// why it was not, or else its result.
	// Logged says that the decision is in the log of this machine.
	// Changed says that it was carried out as the backend rewrote it.
	Ran     bool `json:"ran"`
	Changed bool `json:"changed"`
	Told    bool `json:"told"`
	Logged  bool `json:"logged"`
	// Note says what is remarkable: the proof of an exception, and how often the
	// run had to be repeated because the agent never asked its model.
	Note string `json:"note,omitempty"`
}

// The policies.
const (
	PolicyClosed = "fail-closed"
	PolicyOpen   = "fail-open"
)

// Scenario names what happens when the agent is about to act.
type Scenario string

// The scenarios.
const (
	// Allow: the backend has no objection.
	Allow Scenario = "allow"
	// Deny: the backend denies with a reason.
	Deny Scenario = "deny"
	// Ask: the backend wants a person to be asked, and there is none.
	Ask Scenario = "ask"
	// Rewrite: the backend replaces the command by another.
	Rewrite Scenario = "rewrite"
	// Crash: the backend dies when it is asked.
	Crash Scenario = "crash"
	// Hang: the backend never answers.
	Hang Scenario = "hang"
	// Garbage: the backend answers what is no JSON.
	Garbage Scenario = "garbage"
	// Missing: the program that the installed line starts is gone once the session
	// has begun. Where it is gone before that, most hosts refuse the person's prompt,
	// and the model is never asked.
	Missing Scenario = "missing"
)

// Scenarios returns all scenarios, in the order of the table.
func Scenarios() []Scenario {
	return []Scenario{Allow, Deny, Ask, Rewrite, Crash, Hang, Garbage, Missing}
}
