package conformance

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/abhed/abhed/ahp"
)

// Requirement is one rule of the protocol, in our own words.
type Requirement struct {
	// ID is the protocol's own id, such as "AHP-RPC-001", or that with a letter
	// behind a dot where one requirement holds several rules: those are ours.
	ID    string `json:"id"`
	Level Level  `json:"level"`
	// Role is "backend", "harness" or "both".
	Role    string  `json:"role"`
	Profile Profile `json:"profile"`
	// Section is where the rule stands in our digest of the protocol.
	Section string `json:"section"`
	Text    string `json:"text"`
}

// concerns reports whether the requirement binds a peer of the role.
func (r *Requirement) concerns(role Role) bool { return r.Role == "both" || r.Role == string(role) }

// The list of a published revision is never edited: a later rule goes into the
// list of the next. "draft" is the working list.
//
//go:embed requirements/draft.tsv
var draftRequirements string

// Requirements returns the requirements of a protocol revision, in order, nil for
// one that this suite doesn't know.
func Requirements(revision string) []Requirement {
	if revision != ahp.Version {
		return nil
	}
	out, err := parseRequirements(draftRequirements)
	if err != nil {
		return nil // a test holds that the embedded list is well-formed
	}
	return out
}

const requirementColumns = "id\tlevel\trole\tprofile\tsection\ttext"

// parseRequirements reads a list: a line of column names, then a line each.
func parseRequirements(text string) ([]Requirement, error) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if lines[0] != requirementColumns {
		return nil, fmt.Errorf("conformance: the first line is %q, expected %q", lines[0], requirementColumns)
	}
	var out []Requirement
	seen := map[string]bool{}
	for i, line := range lines[1:] {
		f := strings.Split(line, "\t")
		if len(f) != 6 {
			return nil, fmt.Errorf("conformance: line %d has %d columns, expected 6", i+2, len(f))
		}
		r := Requirement{ID: f[0], Level: Level(f[1]), Role: f[2], Profile: Profile(f[3]), Section: f[4], Text: f[5]}
		if seen[r.ID] {
			return nil, fmt.Errorf("conformance: line %d: %s is there twice", i+2, r.ID)
		}
		seen[r.ID] = true
		out = append(out, r)
	}
	return out, nil
}

// unexercised returns the ids that bind the role and that no check of the results
// looked at; those of another binding's profile are left out. A requirement with
// parts is exercised when one of its parts was. The first two are about the claim,
// which every report makes.
func unexercised(role Role, binding Binding, results []Result) []string {
	met := map[string]bool{"AHP-CORE-001": true, "AHP-CORE-002": true}
	for i := range results {
		r := &results[i]
		if r.Verdict == NotApplicable || r.Verdict == Blocked || r.Verdict == SuiteError {
			continue
		}
		for _, id := range r.Requirements {
			met[id] = true
			whole, _, _ := strings.Cut(id, ".")
			met[whole] = true
		}
	}
	other := ProfileHTTP
	if binding == HTTP {
		other = ProfileStdio
	}
	out := []string{}
	for _, r := range Requirements(ahp.Version) {
		if r.concerns(role) && r.Profile != other && !met[r.ID] {
			out = append(out, r.ID)
		}
	}
	return out
}
