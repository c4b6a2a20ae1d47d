package hookd

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/strictjson"
)

// The names of the tools that no agent has: a call of one, before it is made, whose
// input is {"canary": ID} with an announced id, is a canary of "ahp doctor". No backend
// is asked about it: the first is refused and the second passes, and the log has the
// decision under the canary's id.
const (
	CanaryDeny = "ahp_canary_deny"
	CanaryPass = "ahp_canary_pass"
)

// Canary is the id under which a canary's answer stands in the log.
const Canary = "org.abhed.canary"

// canaryPrefix begins every canary's id, and canaryAge bounds how long it is announced.
const (
	canaryPrefix = "canary-"
	canaryAge    = 2 * time.Minute
)

// AnnounceCanary lets one call with the canary's id be answered without a backend, within
// two minutes: else an agent could have a tool of that name, and be free of every policy.
// It returns what takes that back.
func AnnounceCanary(state, id string) (withdraw func(), err error) {
	if !canaryID(id) {
		return nil, fmt.Errorf("found the canary id %.60q, expected %q and letters, digits and hyphens", id, canaryPrefix)
	}
	path := announced(state, id)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return func() { _ = os.Remove(path) }, f.Close()
}

func announced(state, id string) string { return filepath.Join(state, "canary", id) }

// canaryID reports whether id is one of a canary, and so the name of a file.
func canaryID(id string) bool {
	rest, is := strings.CutPrefix(id, canaryPrefix)
	return is && rest != "" && len(rest) <= 64 && strings.Trim(rest, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// canary answers a canary. It reports whether the call is one; any other is judged as
// always, whatever its name.
func (x *judgement) canary() (a Answer, is bool, err error) {
	e := x.event.AHP
	if e.Type != ahp.ToolBefore || e.Tool == nil {
		return a, false, nil
	}
	name := e.Tool.Name
	if e.Tool.MCP != nil { // a host may tell the names of such tools alone
		name = e.Tool.MCP.ToolName
	}
	if name != CanaryDeny && name != CanaryPass {
		return a, false, nil
	}
	var input struct {
		Canary string `json:"canary"`
		MCP    struct {
			Canary string `json:"canary"`
		} `json:"mcp_tool_arguments"`
	}
	if strictjson.Unmarshal(e.Tool.Input, &input, strictjson.Options{}) != nil {
		return a, false, nil
	}
	id := input.Canary
	if id == "" {
		id = input.MCP.Canary
	}
	if !canaryID(id) || !x.takeCanary(id) {
		return a, false, nil
	}
	e.ID, x.entry.ID = id, id
	by := ahp.SubscriptionID{Backend: Canary}
	o := &ahp.Outcome{Event: e, Trace: []ahp.Answer{{By: by, Kind: ahp.AnswerEffects, Attempts: 1}}}
	if name == CanaryDeny {
		deny := &ahp.Deny{Reason: "this is the canary of \"ahp doctor\" that has to be refused.", Code: Canary}
		o.Permission, o.Denials = ahp.PermissionDeny, []ahp.Denial{{By: by, Reason: deny.Reason, Code: deny.Code}}
		o.Trace[0].Effects = []ahp.Effect{deny}
	}
	if err := x.heard(o); err != nil {
		return a, true, err
	}
	a, err = x.say(o)
	return a, true, err
}

// takeCanary reports whether the canary is announced, which it then is no longer.
func (x *judgement) takeCanary(id string) bool {
	path := announced(x.j.state, id)
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || time.Since(info.ModTime()) > canaryAge {
		return false
	}
	return os.Remove(path) == nil // of two that find it, one removes it
}
