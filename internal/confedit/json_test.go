package confedit

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const ours = `{"matcher":"*","hooks":[{"type":"command","command":": ahp \"x\" 'y' \\","timeout":60}]}`

func parsed(t testing.TB, data string, comments bool) *JSON {
	t.Helper()
	d, err := ParseJSON([]byte(data), JSONOptions{Name: "settings.json", Comments: comments})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// install does what an installer does: add what isn't there.
func install(d *JSON) error {
	if err := d.Set([]byte("1"), "version"); err != nil {
		return err
	}
	for _, event := range []string{"PreToolUse", "PostToolUse", "Stop"} {
		there := false
		for _, f := range d.List("hooks", event, "*") {
			there = there || isOurs(f.JSON)
		}
		if there {
			continue
		}
		if err := d.Append([]byte(ours), "hooks", event); err != nil {
			return err
		}
	}
	return nil
}

func isOurs(element []byte) bool { return bytes.Contains(element, []byte(": ahp ")) }

func uninstall(d *JSON, traces []Trace) error {
	for {
		found := false
		for _, f := range d.List("hooks", "*", "*") {
			if isOurs(f.JSON) {
				if err := d.Remove(f.Path...); err != nil {
					return err
				}
				found = true
				break
			}
		}
		if !found {
			return d.Undo(traces)
		}
	}
}

func TestAppendGolden(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"nothing", "", "{\n  \"hooks\": {\n    \"E\": [\n      {\n        \"a\": 1\n      }\n    ]\n  }\n}\n"},
		{"one line", `{"x":1}`, `{"x":1,"hooks":{"E":[{"a":1}]}}`},
		{"empty list", "{\n\t\"hooks\": {\"E\": []}\n}", "{\n\t\"hooks\": {\"E\": [\n\t\t\t{\n\t\t\t\t\"a\": 1\n\t\t\t}\n\t\t]}\n}"},
		{"carriage returns", "{\r\n \"x\": 1\r\n}\r\n", "{\r\n \"x\": 1,\r\n \"hooks\": {\r\n  \"E\": [\r\n   {\r\n    \"a\": 1\r\n   }\r\n  ]\r\n }\r\n}\r\n"},
		{"comment after the last", "{\n  \"hooks\": {\"E\": [\n    2 // two\n  ]}\n}", "{\n  \"hooks\": {\"E\": [\n    2, // two\n      {\n        \"a\": 1\n      }\n  ]}\n}"},
		{"trailing comma", "{\"hooks\":{\"E\":[2,]}}", "{\"hooks\":{\"E\":[2,{\"a\":1},]}}"},
		{"byte order mark", bom + "{}\n", bom + "{\n  \"hooks\": {\n    \"E\": [\n      {\n        \"a\": 1\n      }\n    ]\n  }\n}\n"},
	} {
		d := parsed(t, c.in, true)
		if err := d.Append([]byte(`{"a":1}`), "hooks", "E"); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if diff := cmp.Diff(c.want, string(d.Bytes())); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", c.name, diff)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"half", "{\n \"a\": [1,\n", "settings.json:3:1: "},
		{"two values", "{} {}", "settings.json:1:4: "},
		{"a list at the top", "[1]", "settings.json:1:1: found a list, expected an object at the top"},
		{"hooks is a list", "{\n  \"hooks\": []}", "settings.json:2:12: found a list at hooks, expected an object"},
		{"the event is a string", "{\"hooks\":{\"PreToolUse\":\"x\"}}", "settings.json:1:24: found a string at hooks.PreToolUse, expected a list"},
		{"hooks twice", "{\"hooks\":{},\n\"hooks\":{}}", "settings.json:2:1: \"hooks\" is there twice"},
		{"comment", "{\n// x\n}", "settings.json:2:1: found a comment"},
		{"trailing comma", "{\"a\":1,}", "settings.json:1:7: found a comment or a trailing comma"},
		{"Latin 1", "{\"a\":\"\xe9\"}", "settings.json:1:7: a byte that is not UTF-8"},
		{"deep", strings.Repeat(`{"a":`, maxDepth+1), "nested deeper than 200 levels"},
		{"deep behind a quoted comment", "/*\"*/" + strings.Repeat("[", maxDepth+1), "nested deeper"},
	} {
		d, err := ParseJSON([]byte(c.in), JSONOptions{Name: "settings.json"})
		if err == nil {
			err = install(d)
			if string(d.Bytes()) != c.in && !strings.Contains(string(d.Bytes()), c.in[:len(c.in)-1]) {
				t.Errorf("%s: changed to %q", c.name, d.Bytes())
			}
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || !errors.As(err, new(*Error)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// Others add to the list and to the file after us; what goes is ours alone.
func TestRemoveAmongOthers(t *testing.T) {
	d := parsed(t, "{\n  \"x\": 1\n}\n", true)
	if err := install(d); err != nil {
		t.Fatal(err)
	}
	traces := d.Traces()
	if err := d.Append([]byte(`{"theirs":1}`), "hooks", "PreToolUse"); err != nil {
		t.Fatal(err)
	}
	if err := uninstall(d, traces); err != nil {
		t.Fatal(err)
	}
	want := "{\n  \"x\": 1,\n  \"hooks\": {\n    \"PreToolUse\": [\n      {\n        \"theirs\": 1\n      }\n    ]\n  }\n}\n"
	if diff := cmp.Diff(want, string(d.Bytes())); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// space draws white space, with comments where they are allowed.
func space(t *rapid.T, comments bool) string {
	pieces := []string{"", "", " ", "\n", "\r\n", "\t", "\n\n  "}
	if comments {
		pieces = append(pieces, "// it's \"one\" }\n", "/* {[ \" */", "// x\r\n  ")
	}
	var b strings.Builder
	for range rapid.IntRange(0, 2).Draw(t, "pieces") {
		b.WriteString(rapid.SampledFrom(pieces).Draw(t, "space"))
	}
	return b.String()
}

// value draws a document's text; hooks lets the names through that an install uses.
func value(t *rapid.T, depth int, comments bool, shape string) string {
	s := func() string { return space(t, comments) }
	switch shape {
	case "any":
		if depth > 2 {
			shape = "leaf"
		} else {
			shape = rapid.SampledFrom([]string{"leaf", "leaf", "object", "list"}).Draw(t, "shape")
		}
		return value(t, depth, comments, shape)
	case "list":
		var items []string
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			items = append(items, s()+value(t, depth+1, comments, "any")+s())
		}
		end := ""
		if comments && len(items) > 0 && rapid.Bool().Draw(t, "comma") {
			end = "," + s()
		}
		if len(items) == 0 {
			end = s()
		}
		return "[" + strings.Join(items, ",") + end + "]"
	case "leaf":
		return rapid.SampledFrom([]string{"1", "-0.5e3", "true", "null", `"a//b /* \" "`, `"é\u0041"`, `""`}).Draw(t, "leaf")
	}
	names := []string{"a", "b c", `\"`, "é"}
	inside := map[string]string{}
	switch shape {
	case "top":
		names = append(names, "hooks")
		inside["hooks"] = "hooks"
	case "hooks":
		names = append(names, "PreToolUse", "Stop")
		inside["PreToolUse"], inside["Stop"] = "list", "list"
	}
	var items []string
	for _, name := range rapid.Permutation(names).Draw(t, "names")[:rapid.IntRange(0, len(names)).Draw(t, "members")] {
		kind := inside[name]
		if kind == "" {
			kind = "any"
		}
		items = append(items, s()+`"`+name+`"`+s()+":"+s()+value(t, depth+1, comments, kind)+s())
	}
	end := ""
	if comments && len(items) > 0 && rapid.Bool().Draw(t, "comma") {
		end = "," + s()
	}
	if len(items) == 0 {
		end = s()
	}
	return "{" + strings.Join(items, ",") + end + "}"
}

func document(t *rapid.T) (string, bool) {
	comments := rapid.Bool().Draw(t, "comments")
	mark := rapid.SampledFrom([]string{"", bom}).Draw(t, "mark")
	if rapid.IntRange(0, 9).Draw(t, "blank") == 0 {
		return mark + rapid.SampledFrom([]string{"", "\n", " \r\n"}).Draw(t, "nothing"), comments
	}
	return mark + space(t, comments) + value(t, 0, comments, "top") + space(t, comments), comments
}

func TestInstallAndUninstallIsNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in, comments := document(t)
		if err := roundTrip(in, comments); err != nil {
			t.Fatal(err)
		}
	})
}

// roundTrip checks: once is twice, what was there stays in its order, and taking
// it back gives the bytes before.
func roundTrip(in string, comments bool) error {
	d, err := ParseJSON([]byte(in), JSONOptions{Comments: comments})
	if err != nil {
		return err
	}
	before := len(d.List("hooks", "*", "*"))
	if err := install(d); err != nil {
		return err
	}
	once := string(d.Bytes())
	if got := len(d.List("hooks", "*", "*")); got != before+3 {
		return fmt.Errorf("%d entries of %d+3 in %q", got, before, once)
	}
	if !isSubsequence(in, once) {
		return fmt.Errorf("%q lost something of %q", once, in)
	}
	traces := d.Traces()
	again, err := ParseJSON([]byte(once), JSONOptions{Comments: comments})
	if err != nil {
		return err
	}
	if err := install(again); err != nil {
		return err
	}
	if string(again.Bytes()) != once {
		return fmt.Errorf("the second time %q became %q", once, again.Bytes())
	}
	if err := uninstall(again, traces); err != nil {
		return err
	}
	if string(again.Bytes()) != in {
		return fmt.Errorf("after all %q, before it was %q; installed %q", again.Bytes(), in, once)
	}
	return nil
}

// isSubsequence reports whether all of part is in whole, in order.
func isSubsequence(part, whole string) bool {
	if strings.TrimSpace(strings.TrimPrefix(part, bom)) == "" {
		return true
	}
	i := 0
	for j := 0; i < len(part) && j < len(whole); j++ {
		if part[i] == whole[j] {
			i++
		} else if isSpace(part[i]) {
			// White space inside an empty container may become other white space.
			for i < len(part) && isSpace(part[i]) {
				i++
			}
			j--
		}
	}
	for i < len(part) && isSpace(part[i]) {
		i++
	}
	return i == len(part)
}

func FuzzJSON(f *testing.F) {
	for _, s := range []string{"", "{}", `{"hooks":{"Stop":[1,]}}`, "{\n// x\n\"a\":1}", bom + "{\r\n}"} {
		f.Add(s, true)
	}
	f.Fuzz(func(t *testing.T, in string, comments bool) {
		d, err := ParseJSON([]byte(in), JSONOptions{Comments: comments})
		if err != nil {
			if !errors.As(err, new(*Error)) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		if install(d) != nil {
			return
		}
		for _, x := range d.List("hooks", "*", "*") {
			if isOurs(x.JSON) && len(d.List("hooks", "*", "*")) > 3 {
				return // the input holds what looks like ours
			}
		}
		again := parsed(t, string(d.Bytes()), comments)
		if err := uninstall(again, d.Traces()); err != nil {
			t.Fatal(err)
		}
		if string(again.Bytes()) != in {
			t.Fatalf("%q became %q", in, again.Bytes())
		}
	})
}

// What others have changed or filled since is theirs.
func TestUndoLeavesWhatOthersUse(t *testing.T) {
	for _, c := range []struct{ name, in, from, to, want string }{
		{"a member with another value", "{\n  \"a\": 1\n}", `"version": 1`, `"version": 2`, "{\n  \"a\": 1,\n  \"version\": 2\n}"},
		{"a file that we made", "", `"version": 1`, `"version": 1, "b": 2`, "{\n  \"version\": 1, \"b\": 2\n}\n"},
		{"a container", "{\n  \"a\": 1\n}", `"hooks": {`, `"hooks": {"b": 2,`, "{\n  \"a\": 1,\n  \"hooks\": {\"b\": 2\n  }\n}"},
		{"a comment", "{\n  \"a\": 1\n}", `"Stop": [`, `"Stop": [ // why`, "{\n  \"a\": 1,\n  \"hooks\": {\n    \"Stop\": [ // why\n    ]\n  }\n}"},
	} {
		d := parsed(t, c.in, true)
		if err := install(d); err != nil {
			t.Fatal(err)
		}
		changed := strings.Replace(string(d.Bytes()), c.from, c.to, 1)
		again := parsed(t, changed, true)
		if err := uninstall(again, d.Traces()); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if diff := cmp.Diff(c.want, string(again.Bytes())); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", c.name, diff)
		}
	}
}
