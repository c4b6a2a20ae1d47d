package cursor

import (
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
)

// answer is what the host reads on standard output. "allow" is no value of any member.
type answer struct {
	Permission   string  `json:"permission,omitzero"`
	UserMessage  string  `json:"user_message,omitzero"`
	AgentMessage string  `json:"agent_message,omitzero"`
	Input        ahp.Raw `json:"updated_input,omitzero"`
	Context      string  `json:"additional_context,omitzero"`
	Continue     *bool   `json:"continue,omitzero"`
	Followup     string  `json:"followup_message,omitzero"`
}

// write says a verdict. Silence is an empty object: the installed entries fail closed,
// and an output that is no document isn't known to pass there.
func write(e *adapter.Event, v *adapter.Verdict) ([]byte, error) {
	a := answer{Input: v.Input, Context: strings.Join(v.Context, "\n"), Followup: v.Continue}
	switch {
	case v.Deny != "" && e.Row.Type == ahp.TurnStart:
		no := false
		a = answer{Continue: &no, UserMessage: adapter.Reason(v.Deny)}
	case v.Deny != "":
		a = answer{Permission: "deny", UserMessage: adapter.Reason(v.Deny), AgentMessage: adapter.Reason(v.Deny)}
	case v.Ask != "":
		a.Permission, a.UserMessage, a.AgentMessage = "ask", v.Ask, v.Ask
	}
	return adapter.Encode(a)
}
