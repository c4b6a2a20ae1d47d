package hookline

import "testing"

// TestHelp holds that a person who asks for help isn't answered like an agent.
func TestHelp(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"-h"}} {
		if begin(append([]string{"ahp", "hook"}, args...)) != nil {
			t.Errorf("%q is taken for the line of an agent", args)
		}
	}
	for _, args := range [][]string{nil, {"droid"}, {"droid", "--help"}, {"--help", "--limit"}} {
		if asksForHelp(args) {
			t.Errorf("%q is taken for a question", args)
		}
	}
}
