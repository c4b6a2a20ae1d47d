package validate_test

import (
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/validate"
)

func TestLines(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "1:0",
		"\n":                              "1:0",
		observe + "\n":                    "",
		observe + "\n" + observe + "\n":   "",
		observe:                           "1:end",
		observe + "\n\n" + observe + "\n": "2:empty",
		observe + "\n" + observe + " " + observe + "\n": "2:rest",
		observe + "\n{\n}\n":                            "2:brace 3:brace2",
	} {
		places := map[string]int{"0": 0, "end": len(observe), "empty": len(observe) + 1, "rest": 2*len(observe) + 2, "brace": len(observe) + 2, "brace2": len(observe) + 3}
		r, err := validate.Lines([]byte(text), validate.ObserveNotification, validate.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if len(strings.Fields(want)) != len(r.Findings) {
			t.Errorf("%q: %+v, want %q", text, r.Findings, want)
			continue
		}
		for i, w := range strings.Fields(want) {
			line, place, _ := strings.Cut(w, ":")
			if f := r.Findings[i]; line != string(rune('0'+f.Line)) || int(f.Offset) != places[place] {
				t.Errorf("%q: finding at line %d, byte %d, want %s = %d", text, f.Line, f.Offset, w, places[place])
			}
		}
	}
	r, err := validate.Lines([]byte(observe+"\r\n"), validate.Any, validate.Options{})
	if err != nil || !r.Valid() || len(r.Warnings) != 1 || int(r.Warnings[0].Offset) != len(observe) {
		t.Errorf("%+v, %v", r, err)
	}
	r, err = validate.Lines([]byte(strings.Repeat("x\n", 5000)), validate.Any, validate.Options{})
	if err != nil || len(r.Findings) != 1000 {
		t.Errorf("%d findings, %v", len(r.Findings), err)
	}
}

func TestStream(t *testing.T) {
	child := strings.Replace(observe, `"id":"e"`, `"id":"f","parentEventId":"e"`, 1)
	loop := strings.Replace(observe, `"id":"e"`, `"id":"e","parentEventId":"f"`, 1)
	broken := strings.Replace(observe, `"id":"e"`, `"id":"g","parentEventId":"g"`, 1)
	again := strings.Replace(observe, `"id":"e"`, `"id":"h","parentEventId":"g"`, 1)
	s := validate.NewStream(ahp.LineageOptions{})
	for i, step := range []struct{ line, kind string }{
		{intercept, ""}, {observe, ""}, {child, ""}, {effects(""), ""}, {failed, ""}, {discover, ""}, {discovered, ""},
		{loop, "lineage"}, {broken, "lineage"}, {again, ""},
		{"", "schema"}, {"{", "schema"}, {observe + "\n" + observe, "schema"}, {"[" + observe + "]", "schema"}, {receipt, "schema"}, {registered, "schema"},
		{strings.Replace(intercept, `"id":"e"`, `"id":"other"`, 1), "schema"},
		{strings.Replace(observe, `"native"}`, `"foreign"}`, 1), ""},
	} {
		got := s.Judge([]byte(step.line))
		kind := ""
		if got.ErrorKind != nil {
			kind = *got.ErrorKind
		}
		if got.Accepted != (step.kind == "") || kind != step.kind || (got.Finding == nil) != got.Accepted {
			t.Errorf("step %d: accepted %v, %q, %+v", i, got.Accepted, kind, got.Finding)
		}
		if f := got.Finding; f != nil && f.Layer == "lineage" && (f.Pointer != "/params/event/parentEventId" || !strings.HasPrefix(step.line[f.Offset:], `"`)) {
			t.Errorf("step %d: %+v", i, f)
		}
	}
}

func FuzzMessage(f *testing.F) {
	for _, s := range []string{intercept, observe, discover, discovered, failed, receipt, registered, effects(`{"type":"modify","target":"input","operation":"merge","value":{}}`)} {
		f.Add([]byte(s))
	}
	c := &validate.ResponseContext{Event: ahp.ToolBefore}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, kind := range validate.Kinds() {
			r, err := validate.Message(data, kind, validate.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, finding := range r.Findings {
				if finding.Offset < 0 || finding.Offset > int64(len(data)) || finding.Found == "" || finding.Expected == "" {
					t.Errorf("%s: %+v", kind, finding)
				}
			}
			if r.Valid() && r.Kind == validate.InterceptResponse {
				if _, err := validate.Message(data, r.Kind, validate.Options{Response: c}); err != nil {
					t.Error(err)
				}
			}
		}
		_ = validate.NewStream(ahp.LineageOptions{}).Judge(data)
	})
}

func FuzzContexts(f *testing.F) {
	for _, s := range []string{`{"event":"tool.after","current":{"output":[]}}`, `{"event":"user.elicitation.result","current":{"content":{"a":1}},"mode":"form","action":"accept"}`,
		`{"event":"workspace.change.before","current":{"workspace":{"cwd":"/"}}}`, `{"interactive":true,"environment":{"A":"b"},"requirements":[{"event":"tool.before","effects":["modify"],"modify":{"x":{}}}],"manifest":` + manifest + `}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if c, err := validate.DecodeResponseContext(data); err == nil {
			for _, list := range []string{``, `{"type":"deny","reason":"r"}`, `{"type":"modify","target":"content","operation":"merge","value":{}}`} {
				// A context that was read can be used.
				if _, err := validate.Message([]byte(effects(list)), validate.InterceptResponse, validate.Options{Response: c}); err != nil {
					t.Error(err)
				}
			}
		}
		if c, err := validate.DecodeRegistrationContext(data); err == nil {
			if _, err := validate.Message([]byte(registered), validate.Registration, validate.Options{Registration: c}); err != nil {
				t.Error(err)
			}
		}
	})
}
