package hostconf

import "strings"

// unheard is why an event is left alone that means nothing to AHP.
const unheard = "no event of AHP stands for it"

// events reads a list of event names: "!" in front marks a gate, "+" one about a
// tool call.
func events(list string) []Event {
	var out []Event
	for name := range strings.FieldsSeq(list) {
		e := Event{}
		for {
			if rest, is := strings.CutPrefix(name, "!"); is {
				e.Gate, name = true, rest
			} else if rest, is := strings.CutPrefix(name, "+"); is {
				e.Tool, name = true, rest
			} else {
				break
			}
		}
		e.Name = name
		out = append(out, e)
	}
	return out
}

// command is the member that most hosts want beside the command line.
func command() []Field { return []Field{{Name: "type", Value: `"command"`}} }

// files makes carriers of hooks of one scope and format.
func files(s Scope, f Format, paths ...string) []File {
	var out []File
	for _, p := range paths {
		out = append(out, File{Path: p, Scope: s, Format: f, Carries: true})
	}
	return out
}

// moved names the variable that moves a folder of the home.
func moved(variable, folder string, list []File) []File {
	for i := range list {
		list[i].Variable, list[i].Moves = variable, folder
	}
	return list
}

// of marks files as another host's.
func of(host string, list []File) []File {
	for i := range list {
		list[i].Of = host
	}
	return list
}

// joined makes one list of several.
func joined(lists ...[]File) []File {
	var out []File
	for _, l := range lists {
		out = append(out, l...)
	}
	return out
}

// at makes the targets of a host whose scopes differ in the file alone.
func at(like Target, list ...File) []Target {
	var out []Target
	for _, f := range list {
		t := like
		t.File = f
		out = append(out, t)
	}
	return out
}

// claudeFiles are the files of Claude Code, which others read as well.
func claudeFiles() []File {
	return joined(
		moved("CLAUDE_CONFIG_DIR", "~/.claude", files(User, JSON, "~/.claude/settings.json")),
		files(Project, JSON, ".claude/settings.json", ".claude/settings.local.json"),
	)
}
