package policy

import (
	"bytes"
	"flag"
	"fmt"
	"go/format"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write nativeindex.go")

// TestNativeIndex holds that the index is that of the table.
func TestNativeIndex(t *testing.T) {
	index := indexOfRows()
	var names, rows bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(index)) {
		for _, n := range index[name] {
			fmt.Fprintf(&names, "\t%q,\n", name)
			fmt.Fprintf(&rows, "\t{Tool: %q, Kind: %s", n.Tool, [...]string{"SubjectNone", "SubjectCommand", "SubjectPath", "SubjectURL", "SubjectText"}[n.Kind])
			for _, f := range []struct {
				name string
				is   bool
			}{{"Patch", n.Patch}, {"Foreign", n.Foreign}, {"Optional", n.Optional}, {"Verbs", n.Verbs}, {"Globs", n.Globs}} {
				if f.is {
					fmt.Fprintf(&rows, ", %s: true", f.name)
				}
			}
			fmt.Fprintf(&rows, "},\n")
		}
	}
	want, err := format.Source(fmt.Appendf(nil, `package policy

// nativeNames are the names of nativeRows in lower case, sorted, one as often as it means
// something else, and natives what they mean: it is laid out when the program is linked,
// where to make it would take each start of it as long as to judge a call.
// TestNativeIndex holds that it is the table's, and writes this file with -update. It is
// never changed.
var nativeNames = [...]string{
%s}

var natives = [...]Native{
%s}
`, &names, &rows))
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("nativeindex.go", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got, err := os.ReadFile("nativeindex.go"); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("nativeindex.go isn't the index of the table (%v): run \"go test ./internal/policy -run TestNativeIndex -update\"", err)
	}
	for name, want := range index {
		if got := LookupNative(strings.ToUpper(name)); !slices.Equal(got, want) {
			t.Errorf("%s: found %v, expected %v", name, got, want)
		}
		if !slices.Contains(nativeNames[:], name+"x") && LookupNative(name+"x") != nil {
			t.Errorf("%sx is known", name)
		}
	}
}

// indexOfRows is the table by name.
func indexOfRows() map[string][]Native {
	index := map[string][]Native{}
	traits, tools := nativeTraits(), AbhedTools()
	for _, row := range nativeRows() {
		for name := range strings.FieldsSeq(row.names) {
			name = strings.ToLower(name)
			n := traits[name]
			n.Tool, n.Kind = row.tool, tools[row.tool]
			if !slices.Contains(index[name], n) {
				index[name] = append(index[name], n)
			}
		}
	}
	return index
}
