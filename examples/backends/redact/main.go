// Command redact is a backend that removes credentials from what tools give back,
// before the model sees it.
package main

import (
	"context"
	"regexp"
	"slices"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/backend"
)

var credential = regexp.MustCompile(`\b(AKIA[A-Z0-9]{16}|gh[pos]_[A-Za-z0-9]{20,}|sk-[A-Za-z0-9_-]{20,})\b`)

func main() {
	backend.Main(&backend.Handlers{On: map[ahp.EventType]backend.Func{ahp.ToolAfter: redact}}, backend.Options{})
}

// redact replaces the whole output if a text in it holds a credential. Where the
// harness doesn't take edits the answer fails, and the failure policy decides: a
// silent pass would show the credential.
func redact(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
	found := false
	output := slices.Clone(q.Event.Items.Messages)
	for i := range output {
		output[i].Parts = slices.Clone(output[i].Parts)
		for j, part := range output[i].Parts {
			if part.Text != nil && credential.MatchString(*part.Text) {
				clean := credential.ReplaceAllString(*part.Text, "[credential removed]")
				output[i].Parts[j].Text, found = &clean, true
			}
		}
	}
	if !found {
		return nil, nil
	}
	return backend.Reply(q).ReplaceItems(output...).Effects()
}
