package ahp_test

import (
	"fmt"

	"github.com/abhed/abhed/ahp"
)

// Errors say where, what was found and what was expected.
func ExampleDecodeEffects() {
	_, err := ahp.DecodeEffects([]byte(`[{"type":"message","text":"hi"},{"type":"deny","reason":""}]`))
	fmt.Println(err)
	// Output: ahp: /1/reason (byte 56): found "", expected a text that isn't empty [AHP-DEC-001]
}
