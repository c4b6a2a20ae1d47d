package hosts

import (
	"bytes"
	"slices"

	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/continuecli"
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

// Recognise returns the host that really sent data to a line that names named: Copilot
// CLI, VS Code, Cursor and Continue run the hooks of Claude Code's files, VS Code those of
// Copilot's too, and each has events and answers of its own. It returns named where there
// is no sign of another, and where data can't be read. markers are the variables of
// Markers that are set. VS Code's host is on no list: it has no files of its own.
//
// The payload decides, by members that its host alone sends at the top level; markers
// count only where it has none of those, because a variable is inherited by what the
// other agent starts, and a repository can set it for Claude Code. A mistake still
// blocks: each of these hosts' refusals of a call blocks in Claude Code too.
//
// The line's wrapper was written for named: it passes standard output on with exit code 0
// for an answer, and delivers a refusal as named.Deny says. So a refusal of the returned
// host is always one of the two: a document on standard output (its Delivery has exit
// code 0 and Stdout, and the caller hands it over as an answer), or the exit code of
// named.Deny, with the reason on the stream that named's line uses. What makes each block:
//
//   - Copilot CLI: the document that the event is answered with in Copilot's own files,
//     hookSpecificOutput before a tool and top-level members elsewhere (measured with
//     1.0.102 for a line in .claude/settings.json). Exit code 2, which the wrapper is left
//     with where there is no answer, blocks as well and loses the reason (measured).
//   - VS Code: hookSpecificOutput before a tool, "continue" elsewhere (documented).
//   - Cursor: exit code 2, which it takes in its own dialect and in Claude Code's
//     (documented).
//   - Continue: exit code 2, as in Claude Code.
//
// Where the returned host can't read data, the caller refuses as named.
func Recognise(named *adapter.Host, data []byte, markers map[string]string) *adapter.Host {
	if named == nil || named.Name != "claude-code" && named.Name != "copilot" {
		return named
	}
	if plain(data, markers) {
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
	if o.Has("hookEventName") {
		return copilot.VSCode()
	}
	if named.Name == "copilot" {
		return named
	}
	switch sender(o, markers) {
	case "copilot":
		return copilot.Host()
	case "cursor":
		return cursor.Guest()
	case "continue":
		return continuecli.Host()
	}
	return named
}

// plain reports, of most that Claude Code sends and without reading it as JSON, that it
// has no sign of another host: no member anywhere that would be one, no variable, and no
// path of a transcript that is empty. A name may be spelled with escapes, so that what
// has any is read.
func plain(data []byte, markers map[string]string) bool {
	if markers["COPILOT_CLI"] != "" || markers["CURSOR_VERSION"] != "" || bytes.Contains(data, []byte(`\u`)) {
		return false
	}
	for _, name := range []string{"hookEventName", "cursor_version", "conversation_id", "sessionId", "timestamp"} {
		if bytes.Contains(data, []byte(name)) {
			return false
		}
	}
	const path = `"transcript_path"`
	for rest := data; ; {
		at := bytes.Index(rest, []byte(path))
		if at < 0 {
			return true
		}
		rest = rest[at+len(path):]
		if bytes.HasPrefix(bytes.TrimLeft(rest, " \t\r\n:"), []byte(`""`)) {
			return false
		}
	}
}

// sender returns the name of the host that a payload is of, "" for Claude Code. Each of
// Claude Code's payloads has the path of a transcript and none has a time (measured in
// all of its events that there is a sample of); Copilot's always have a time, and neither
// a permission mode nor a prompt's id, so that Claude Code stays known if it adds a time;
// Continue sends an empty path.
func sender(o *adapter.Object, markers map[string]string) string {
	path, isPath := o.Raw("transcript_path"), o.Has("transcript_path")
	switch {
	case o.Has("cursor_version"), o.Has("conversation_id"):
		return "cursor"
	case o.Has("sessionId"):
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
