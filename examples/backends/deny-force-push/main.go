// Command deny-force-push is a backend that refuses forced pushes. It is a whole
// policy in 15 lines.
package main

import (
	"regexp"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/backend"
)

var forced = regexp.MustCompile(`\bgit\b.*\bpush\b.*\s(--force|-\w*f|\+)`)

func main() {
	backend.Main(backend.DenyFunc(func(e *ahp.Event) string {
		if command, _ := backend.InputText(e, "command"); forced.MatchString(command) {
			return "Forced pushes are not allowed here. Push a new commit instead."
		}
		return ""
	}), backend.Options{})
}
