package confedit

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const tomlOurs = `: ahp "x" 'y' \ é`

func installTOML(d *TOML) error {
	for _, event := range []string{"PreToolUse", "Stop"} {
		there := false
		for _, b := range d.Blocks("hooks") {
			there = there || b.Values["command"] == tomlOurs && b.Values["event"] == event
		}
		if there {
			continue
		}
		if err := d.Append([]string{"hooks"}, true, Pair{"event", TOMLString(event)}, Pair{"command", TOMLString(tomlOurs)}, Pair{"timeout", "60"}); err != nil {
			return err
		}
	}
	return d.Ensure("features", "hooks", "true")
}

func uninstallTOML(d *TOML, traces []Trace) error {
	for {
		var ours []Block
		for _, b := range d.Blocks("hooks") {
			if b.Values["command"] == tomlOurs {
				ours = append(ours, b)
			}
		}
		if len(ours) == 0 {
			return d.Undo(traces)
		}
		if err := d.Remove(ours[0]); err != nil {
			return err
		}
	}
}

func TestTOMLGolden(t *testing.T) {
	in := "# mine\nmodel = \"x\" # why\n\n[features] # f\n\n[[hooks]]\nevent = 'Stop'\ncommand = \"\"\"\n[[hooks]]\n\"\"\""
	d, err := ParseTOML([]byte(in), "config.toml")
	if err != nil {
		t.Fatal(err)
	}
	if err := installTOML(d); err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(in, "# f\n", "# f\nhooks = true\n", 1) +
		"\n\n[[hooks]]\nevent = \"PreToolUse\"\ncommand = \": ahp \\\"x\\\" 'y' \\\\ é\"\ntimeout = 60\n" +
		"\n[[hooks]]\nevent = \"Stop\"\ncommand = \": ahp \\\"x\\\" 'y' \\\\ é\"\ntimeout = 60\n"
	if diff := cmp.Diff(want, string(d.Bytes())); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if blocks := d.Blocks("hooks"); len(blocks) != 3 || blocks[1].Values["command"] != tomlOurs || blocks[0].Line != 7 {
		t.Errorf("%+v", blocks)
	}
}

func TestTOMLRefused(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"a = \n", "config.toml:1:"},
		{"a = 1\na = 2\n", "config.toml:2:"},
		{"hooks = []\n", "config.toml:"},
		{"[hooks]\n", "config.toml:"},
		{"[features]\nhooks = false\n", "features.hooks is false, expected true"},
		{"features = 1\n", "found no table at features"},
		{"features.x = 1\n", "features has no header of its own"},
		{"a = " + strings.Repeat("[", maxDepth+1), "nested deeper"},
	} {
		d, err := ParseTOML([]byte(c.in), "config.toml")
		if err == nil {
			err = installTOML(d)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || !errors.As(err, new(*Error)) {
			t.Errorf("%q: %v, want %q", c.in, err, c.want)
		}
	}
}

func TestTOMLSetValue(t *testing.T) {
	d, err := ParseTOML([]byte("[hooks.state.\"/a b:pre:0:0\"]\ntrusted_hash = 'old' # h\nenabled = true\n[x]"), "config.toml")
	if err != nil {
		t.Fatal(err)
	}
	b := d.Blocks("hooks", "state", "*")
	if len(b) != 1 || b[0].Name[2] != "/a b:pre:0:0" || b[0].Values["enabled"] != "true" {
		t.Fatalf("%+v", b)
	}
	if err := d.SetValue(b[0], "trusted_hash", TOMLString("new")); err != nil {
		t.Fatal(err)
	}
	if err := d.SetValue(d.Blocks("x")[0], "k", "1"); err != nil {
		t.Fatal(err)
	}
	want := "[hooks.state.\"/a b:pre:0:0\"]\ntrusted_hash = \"new\" # h\nenabled = true\n[x]\nk = 1"
	if diff := cmp.Diff(want, string(d.Bytes())); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func roundTripTOML(t interface{ Fatalf(string, ...any) }, in string) {
	d, err := ParseTOML([]byte(in), "")
	if err != nil || installTOML(d) != nil {
		return
	}
	once, traces := string(d.Bytes()), d.Traces()
	again, err := ParseTOML([]byte(once), "")
	if err != nil {
		t.Fatalf("%q: %v", once, err)
	}
	if err := installTOML(again); err != nil || string(again.Bytes()) != once {
		t.Fatalf("the second time %q became %q: %v", once, again.Bytes(), err)
	}
	if err := uninstallTOML(again, traces); err != nil || string(again.Bytes()) != in {
		t.Fatalf("after all %q, before it was %q: %v", again.Bytes(), in, err)
	}
}

func TestTOMLInstallAndUninstallIsNothing(t *testing.T) {
	lines := []string{"", "", "# c [x]", "[features]", "[features] # f", "[[hooks]]\nevent = 'a'", "[a.'b c']", "  [z] ", "\t"}
	rapid.Check(t, func(t *rapid.T) {
		eol := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "eol")
		b := rapid.SampledFrom([]string{"", bom}).Draw(t, "mark")
		once := map[string]bool{}
		n := rapid.IntRange(0, 6).Draw(t, "lines")
		for i := range n {
			line := rapid.SampledFrom(append(lines, "k"+string(rune('0'+i))+" = 1 # v", "m"+string(rune('0'+i))+" = \"\"\"\n[features]\n\"\"\"")).Draw(t, "line")
			name := strings.TrimSuffix(line, " # f")
			if strings.Contains(name, "[") && !strings.Contains(name, "[[") && once[name] {
				continue
			}
			once[name] = true
			b += strings.ReplaceAll(line, "\n", eol)
			if i < n-1 || rapid.Bool().Draw(t, "end") {
				b += eol
			}
		}
		if _, err := ParseTOML([]byte(b), ""); err != nil {
			t.Fatalf("%q: %v", b, err)
		}
		roundTripTOML(t, b)
	})
}

func FuzzTOML(f *testing.F) {
	for _, s := range []string{"", "a = 1", "[features]\r\nx=1\r\n", "[[hooks]]\nevent='x'"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		if strings.Contains(in, "ahp") {
			return
		}
		roundTripTOML(t, in)
	})
}

func TestTOMLUndoLeavesWhatOthersUse(t *testing.T) {
	for _, c := range []struct{ name, in, from, to, want string }{
		{"another value", "[features]\nx = 1\n", "hooks = true", "hooks = false", "[features]\nhooks = false\nx = 1\n"},
		{"a table that we made", "a = 1\n", "hooks = true\n", "hooks = true\ny = 2\n", "a = 1\n\n[features]\nhooks = true\ny = 2\n"},
		{"the last line", "a = 1", "a = 1\n", "a = 2\n", "a = 2\n"},
	} {
		d, err := ParseTOML([]byte(c.in), "")
		if err != nil {
			t.Fatal(err)
		}
		if err := installTOML(d); err != nil {
			t.Fatal(err)
		}
		again, err := ParseTOML([]byte(strings.Replace(string(d.Bytes()), c.from, c.to, 1)), "")
		if err != nil {
			t.Fatal(err)
		}
		if err := uninstallTOML(again, d.Traces()); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if diff := cmp.Diff(c.want, string(again.Bytes())); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", c.name, diff)
		}
	}
}
