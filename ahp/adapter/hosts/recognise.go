package hosts

import (
	"slices"

	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/copilot"
	"github.com/abhed/abhed/ahp/adapter/cursor"
)

// Markers returns the variables by which Recognise knows a host, sorted, each once: what
// a caller has to look up in its environment.
func Markers() []string {
	var out []string
	for _, h := range All() {
		out = append(out, h.Markers...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Recognise returns the host that really sent data to a line that names named: some
// agents run the hooks of Claude Code's files (Copilot CLI, VS Code, Cursor and
// Continue), and have events and answers of their own. It returns named where there is no
// sign of another, and where data can't be read. markers are the variables of Markers
// that are set.
//
// The payload decides, by members that its host alone sends at the top level; markers
// count only where it has none of those, because a variable is inherited by what the
// other agent starts, and a repository can set it for Claude Code. A mistake still
// blocks: each of these hosts' refusals blocks in Claude Code too.
//
// The line's wrapper was written for named: it passes standard output on with exit code 0
// for an answer, and delivers a refusal as named.Deny says. So a refusal of the returned
// host is always one of the two: a document on standard output (its Delivery has exit
// code 0 and Stdout, and the caller hands it over as an answer), or the reason by
// named.Deny itself. What makes each block:
//
//   - Copilot CLI and VS Code: hookSpecificOutput on standard output (measured in Copilot
//     for PascalCase). Exit code 2 blocks there as well, but loses the reason, and so is
//     kept for requests for permission, whose PascalCase document isn't known.
//   - Cursor: exit code 2, which it takes in its own dialect and in Claude Code's.
//   - Continue: exit code 2, as in Claude Code.
//
// Where the returned host can't read data, the caller refuses as named.
func Recognise(named *adapter.Host, data []byte, markers map[string]string) *adapter.Host {
	if named == nil || named.Name != "claude-code" {
		return named
	}
	data, err := adapter.Trim(data)
	if err != nil {
		return named
	}
	o, err := adapter.ParseObject(data)
	if err != nil {
		return named
	}
	switch sender(o, markers) {
	case "copilot":
		return copilot.Guest(named.Deny)
	case "cursor":
		return cursor.Guest()
	case "continue":
		if h := Lookup("continue"); h != nil {
			return h
		}
	}
	return named
}

// sender returns the name of the host that a payload is of, "" for Claude Code. Each of
// Claude Code's payloads has the path of a transcript and none has a time (measured in
// all of its events that there is a sample of); Copilot's always have a time; Continue
// sends an empty path.
func sender(o *adapter.Object, markers map[string]string) string {
	path, isPath := o.Raw("transcript_path"), o.Has("transcript_path")
	switch {
	case o.Has("cursor_version"), o.Has("conversation_id"):
		return "cursor"
	case o.Has("hookEventName"), o.Has("sessionId"):
		return "copilot"
	case o.Has("timestamp") && !o.Has("permission_mode", "prompt_id"):
		return "copilot"
	case isPath && string(path) != `""`:
		return ""
	case markers["COPILOT_CLI"] != "":
		return "copilot"
	case markers["CURSOR_VERSION"] != "":
		return "cursor"
	case isPath:
		return "continue"
	}
	return ""
}
