package abhed_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/abhed/abhed"
)

// script writes what a scripted model says, and returns settings that name it. A real
// program names a real model.
func script(dir, text string) []byte {
	file := filepath.Join(dir, "script.json")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		log.Fatal(err)
	}
	return fmt.Appendf(nil, `{"model":"play/it","custom_providers":[{"name":"play","api":"script","base_url":%q}],"sandbox":{"min_tier":"none"}}`, file)
}

// A program gives the agent a tool of its own, and vetoes what it doesn't want.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Mkdir(filepath.Join(dir, "work"), 0o700); err != nil {
		log.Print(err)
		return
	}
	settings := script(dir, `{"steps":[
		{"calls":[{"name":"ticket","args":{"id":"7"}},{"name":"write","args":{"path":"notes.txt","content":"seven"}}]},
		{"text":"Ticket 7 is open. I was not allowed to write it down."}]}`)

	s, err := abhed.New(context.Background(), abhed.Options{
		Workspace: filepath.Join(dir, "work"), Settings: settings, Mode: "accept-edits", Store: abhed.FileStore(filepath.Join(dir, "state")),
		Tools: []abhed.Tool{{
			Name: "ticket", Version: "1", Description: "Look up a ticket", ReadOnly: true, Subject: "id",
			Schema: []byte(`{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}`),
			Run:    func(context.Context, abhed.Call) (string, error) { return "it is open", nil },
		}},
		Hooks: []abhed.Hook{{Name: "read-only", Judge: func(_ context.Context, c abhed.Call) abhed.Objection {
			if c.Mutates {
				return abhed.Deny("this program only looks")
			}
			return abhed.Objection{}
		}}},
		OnEvent: func(e abhed.Event) {
			if e.Type == "decision" {
				fmt.Println("decided:", strings.Contains(string(e.JSON), `"outcome":"run"`))
			}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	answer, err := s.Run(context.Background(), "what about ticket 7?")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.Reason, answer.Text)
	// Output:
	// decided: true
	// decided: false
	// completed Ticket 7 is open. I was not allowed to write it down.
}
