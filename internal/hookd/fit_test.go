package hookd_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter/hosts"
	"github.com/abhed/abhed/internal/hookd"
)

// TestFit holds what becomes of a subscription where the host can do less: it watches, or
// is noted and dropped, and a promise that can't be held is an error.
func TestFit(t *testing.T) {
	m := hosts.Lookup("claude-code").Manifest()
	for _, tt := range []struct {
		name, events, rest string
		want               []string // each subscription as "mode events timeout policy"
		note, err          string
	}{
		{"what it can", `["tool.before"]`, `"intercept","timeoutMs":100,"failurePolicy":"fail-closed"`, []string{"intercept [tool.before] 100 fail-closed"}, "", ""},
		{"some watched", `["context.compact.before","tool.before"]`, `"intercept","timeoutMs":100,"failurePolicy":"fail-open"`,
			[]string{"intercept [tool.before] 100 fail-open", "observe [context.compact.before] - "}, "context.compact.before is only observed here", ""},
		{"a promise", `["tool.before","session.start","model.request.before"]`, `"intercept","timeoutMs":100,"failurePolicy":"fail-closed"`, nil, "", "no way to block"},
		{"never", `["model.request.before"]`, `"observe"`, nil, "model.request.before never happens here", ""},
		{"a family", `["tool.*"]`, `"intercept","timeoutMs":100,"failurePolicy":"fail-open"`, []string{"intercept [tool.*] 100 fail-open"}, "", ""},
		{"a family that is only watched", `["context.*"]`, `"intercept","timeoutMs":100,"failurePolicy":"fail-open"`, []string{"observe [context.*] - "}, "context.* is only observed here", ""},
		{"a promise about a family", `["context.*","tool.before"]`, `"intercept","timeoutMs":100,"failurePolicy":"fail-closed"`, nil, "", "context.*, which this host has no way to block"},
		{"a promise about some of a family", `["tool.*"]`, `"intercept","timeoutMs":100,"failurePolicy":"fail-closed"`, []string{"intercept [tool.*] 100 fail-closed"}, "", ""},
		{"a family that never happens", `["model.*","tool.before"]`, `"observe"`, []string{"observe [tool.before] - "}, "model.* never happens here", ""},
	} {
		reg, err := ahp.DecodeRegistration([]byte(`{"protocolVersion":"draft","hooks":[{"id":"com.example.b","transport":{"type":"stdio","command":"x","lifecycle":"persistent"},"subscriptions":[{"events":` +
			tt.events + `,"content":{"default":"body"},"mode":` + tt.rest + `}]}]}`))
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		out, notes, err := hookd.Fit(reg, m)
		if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: the error %v, expected %q", tt.name, err, tt.err)
		}
		if err != nil {
			continue
		}
		var got []string
		for _, b := range out.Hooks {
			for _, s := range b.Subscriptions {
				timeout := "-"
				if s.TimeoutMs != nil {
					timeout = fmt.Sprint(*s.TimeoutMs)
				}
				got = append(got, fmt.Sprint(s.Mode, " ", s.Events, " ", timeout, " ", s.FailurePolicy))
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(tt.want) || !strings.Contains(strings.Join(notes, "\n"), tt.note) || tt.note == "" && len(notes) > 0 {
			t.Errorf("%s: found %q with the notes %q, expected %q and %q", tt.name, got, notes, tt.want, tt.note)
		}
	}
}
