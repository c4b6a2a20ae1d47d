// Command ask is a backend that wants a person's approval before a command uses the
// network.
package main

import (
	"context"
	"regexp"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/backend"
)

var network = regexp.MustCompile(`\b(curl|wget|ssh|scp|rsync|nc|npm (install|publish)|pip install)\b`)

func main() {
	backend.Main(&backend.Handlers{On: map[ahp.EventType]backend.Func{ahp.ToolBefore: ask}}, backend.Options{})
}

// ask asks, and denies where the harness has nobody to ask: that it may do so is
// this policy's choice, and so it says it.
func ask(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
	command, runs := backend.InputText(q.Event, "command")
	if !runs || !network.MatchString(command) {
		return nil, nil
	}
	return backend.Reply(q).AskOrDeny("Commands that use the network need a person's approval, and nobody can be asked here.").Effects()
}
