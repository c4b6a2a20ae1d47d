package rules

import "github.com/abhed/abhed/internal/policy"

// contentMembers are members that hold what is written into a file.
const contentMembers = "content contents filecontent filecontents newcontent newcontents text filetext newtext newfiletext inserttext body data bytes base64 blob " +
	"newstring newstr newsource newcode codecontent codeedit patch diff unifieddiff edits replacement replacements replacementchunks"

// likely reads what a tool that isn't in the table seems to write: a host may have a
// tool to write files under a name that nobody knows here, and rules about writing are
// to hold for it.
func (r *reader) likely() {
	if len(r.members(contentMembers)) == 0 {
		return
	}
	before, missed := len(r.subjects), len(r.unread)
	r.pathsIn(r.input, pathMembers, []string{"write", "edit"}, 0)
	for i := range r.subjects[before:] {
		r.subjects[before+i].guess = true
	}
	r.unread = r.unread[:missed] // what isn't a path may stand there: nobody knows the tool
}

// guesses reports whether it matters what an unknown tool writes.
func (b *Backend) guesses() bool { return b.named["write"] || b.named["edit"] }

// guessed is the judgement of what a tool only seems to do: a person decides where a
// rule would refuse.
func guessed(r policy.Result) policy.Result {
	if r.Verdict != policy.Allow {
		r.Verdict = policy.Ask
		r.Reason = "a person must approve this call, because the tool isn't known here and seems to write a file. Of a tool that does: " + r.Reason
	}
	return r
}
