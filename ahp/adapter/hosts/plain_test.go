package hosts

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/abhed/abhed/ahp/adapter"
)

// TestPlainIsRight holds that what isn't read as JSON would have been taken for Claude
// Code's had it been read.
func TestPlainIsRight(t *testing.T) {
	quick := 0
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"session_id", "cwd", "tool_input", "transcript_path", "transcript_path", "permission_mode", "x", "prompt",
			"hookEventName", `hookEventN\u0061me`, "cursor_version", "conversation_id", "sessionId", "timestamp", `transcript_p\u0061th`, "prompt_id"})
		value := rapid.SampledFrom([]string{`""`, `"/x"`, `null`, `{"sessionId":1}`, `{"transcript_path":""}`, `"\"timestamp\""`, `["cursor_version"]`, `"é"`, `1`, `"\u0000"`})
		space := rapid.SampledFrom([]string{"", "", "", " ", "\n\t"})
		var b strings.Builder
		b.WriteString(space.Draw(t, "before") + "{")
		for i := range rapid.IntRange(0, 4).Draw(t, "members") {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(space.Draw(t, "space") + `"` + name.Draw(t, "name") + `"` + space.Draw(t, "space") + ":" + space.Draw(t, "space") + value.Draw(t, "value"))
		}
		b.WriteString(rapid.SampledFrom([]string{"}", "}", "}", "", "}x"}).Draw(t, "end"))
		markers := map[string]string{rapid.SampledFrom([]string{"", "COPILOT_CLI", "CURSOR_VERSION", "CLAUDECODE"}).Draw(t, "marker"): "1"}
		data := []byte(b.String())
		if !plain(data, markers) {
			return
		}
		quick++
		data, err := adapter.Trim(data)
		if err != nil {
			return
		}
		if o, err := adapter.ParseObject(data); err == nil && (o.Has("hookEventName") || sender(o, markers) != "") {
			t.Fatalf("%s with %v was taken for plain", data, markers)
		}
	})
	if quick == 0 {
		t.Error("nothing was plain")
	}
}
