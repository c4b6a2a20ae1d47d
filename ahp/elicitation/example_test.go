package elicitation_test

import (
	"fmt"

	"github.com/abhed/abhed/ahp/elicitation"
)

// An answer is held against the form that asked for it.
func Example() {
	q, err := elicitation.ParseRequest([]byte(`{"message": "Where to?", "requestedSchema": {"type": "object",
		"properties": {"mail": {"type": "string", "format": "email"}}, "required": ["mail"]}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = elicitation.ParseResult([]byte(`{"action": "accept", "content": {"mail": "nowhere"}}`), q)
	fmt.Println(err)
	// Output: ahp: /content/mail (byte 41): found "nowhere", expected the format "email"
}
