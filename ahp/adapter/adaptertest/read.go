package adaptertest

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
)

// sample is one native event.
type sample struct {
	name string
	data []byte
}

// samples returns what there is to read, without those that repeat another.
func samples(t *testing.T, o Options) []sample {
	var out []sample
	add := func(name string, data []byte) {
		if !slices.ContainsFunc(out, func(s sample) bool { return string(s.data) == string(data) }) {
			out = append(out, sample{name, data})
		}
	}
	if o.Samples != "" {
		for _, s := range recorded(t, o.Samples) {
			add(s.name, s.data)
		}
	}
	var names []string
	for name := range o.Events {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		add(name, []byte(o.Events[name]))
	}
	if len(out) == 0 {
		t.Fatal("no native event to read: an adapter that is never fed is not tested")
	}
	return out
}

// recorded returns what the JSON files of a folder hold, in the order of the files.
func recorded(t *testing.T, dir string) []sample {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no samples in %s: %v", dir, err)
	}
	var out []sample
	for _, f := range files {
		out = append(out, sample{strings.TrimSuffix(filepath.Base(f), ".json"), File(t, f)})
	}
	return out
}

// Recorded returns the samples of a folder by their names. There is at least one.
func Recorded(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, s := range recorded(t, dir) {
		out[s.name] = string(s.data)
	}
	return out
}

// unread returns why a sample is no event of the host, "" if it is one.
func (o *Options) unread(name string) string {
	for pattern, why := range o.Unread {
		if is, _ := path.Match(pattern, name); is {
			return why
		}
	}
	return ""
}

// read reads native bytes as a caller does.
func read(h *adapter.Host, o *Options, name string, data []byte) (*adapter.Event, error) {
	in := adapter.Input{Markers: o.Markers}
	if o.Native != nil {
		in.Native = o.Native(name)
	}
	var err error
	if in.Data, err = adapter.Trim(data); err != nil {
		return nil, err
	}
	return h.Read(in)
}

// readAll reads each sample and compares the event with the golden file.
func readAll(t *testing.T, h *adapter.Host, o Options) {
	var b strings.Builder
	var rows []string
	for _, s := range samples(t, o) {
		e, err := read(h, &o, s.name, s.data)
		if why := o.unread(s.name); why != "" {
			if err == nil {
				t.Errorf("%s was read, though it is no event of the host: %s", s.name, why)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", s.name, err)
			continue
		}
		rows = append(rows, e.Row.Native)
		b.WriteString("== " + s.name + "\n" + show(t, h, s.name, e))
	}
	slices.Sort(rows)
	t.Logf("%d of %d native events have a sample", len(slices.Compact(rows)), len(h.Rows))
	golden(t, o.Update, "read.golden", b.String())
}

// show checks an event and returns it as indented JSON.
func show(t *testing.T, h *adapter.Host, name string, e *adapter.Event) string {
	switch a := e.AHP; {
	case e.Row == nil || h.Row(e.Row.Native) != e.Row:
		t.Errorf("%s: the row isn't one of the host's", name)
		return ""
	case a.Type != e.Row.Type:
		t.Errorf("%s: an event %s, and the row says %s", name, a.Type, e.Row.Type)
	case a.ID != "" || a.Source != "" || a.Time != "":
		t.Errorf("%s: the adapter made up an id, a source or a time", name)
	case a.Call != nil && (a.Call.ID == "") != a.Call.Synthesized:
		t.Errorf("%s: a call id is the host's, or it is empty and marked: %+v", name, *a.Call)
	case a.Tool != nil && !a.Tool.Input.IsObject():
		t.Errorf("%s: the input is no object: %s", name, a.Tool.Input)
	}
	Complete(e.AHP)
	if err := e.AHP.Validate(); err != nil {
		t.Errorf("%s: not a valid event: %v", name, err)
	}
	if e.AHP.Manifest != nil { // the table is compared in write.golden
		e.AHP.Manifest = ahp.NewManifest()
	}
	text := indent(t, e.AHP)
	if e.Version != "" {
		text += "version: " + e.Version + "\n"
	}
	if e.Agent {
		text += "of a sub-agent\n"
	}
	if e.Detail != "" {
		text += "detail: " + e.Detail + "\n"
	}
	return text
}

// Complete gives an event what is the caller's to give.
func Complete(e *ahp.Event) {
	e.ID, e.Source, e.Time = "event-1", "urn:adaptertest", "2026-11-30T12:00:00Z"
	if e.Call != nil && e.Call.ID == "" {
		e.Call.ID = "made-up-1"
	}
}

func indent(t *testing.T, e *ahp.Event) string {
	data, err := e.Encode()
	if err != nil {
		t.Errorf("encoding: %v", err)
		return ""
	}
	return pretty(data)
}

// golden compares text with a file of the caller's testdata.
func golden(t *testing.T, update bool, name, text string) {
	file := filepath.Join("testdata", name)
	if update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; run the test with -update and read what it writes", err)
	}
	if string(want) == text {
		return
	}
	a, b := strings.Split(string(want), "\n"), strings.Split(text, "\n")
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			t.Errorf("%s, line %d\n  found    %s\n  expected %s\nif the change is right, run the test with -update", file, i+1, at(b, i), at(a, i))
			return
		}
	}
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "the end"
}

// File returns what a file holds.
func File(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
