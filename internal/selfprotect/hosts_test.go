package selfprotect

import (
	"bytes"
	goflag "flag"
	"fmt"
	"go/format"
	"os"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/hostconf"
)

var update = goflag.Bool("update", false, "write hosts.go")

// TestHostPlaces holds that the places of hosts are those that package hostconf knows, in
// its order.
func TestHostPlaces(t *testing.T) {
	var b bytes.Buffer
	b.WriteString(`package selfprotect

// hostPlaces are the files of package hostconf, which has much more of each host than
// a set needs: this is laid out when the program is linked. TestHostPlaces holds that
// they are the same, and writes this file with -update. It is never changed.
var hostPlaces = [...]hostPlace{
`)
	for _, h := range hostconf.All() {
		for _, f := range h.Files {
			folder := f.Format == hostconf.Script || f.Format == hostconf.Plugin
			what := "settings of " + h.Name + " that can turn hooks off"
			switch {
			case folder:
				what = "hooks of " + h.Name
			case f.Carries:
				what = "the hook configuration of " + h.Name
			}
			moves := ""
			if rest, is := strings.CutPrefix(f.Path, f.Moves); f.Variable != "" && is {
				moves = fmt.Sprintf(", variable: %q, rest: %q", f.Variable, rest)
			}
			for _, p := range []string{f.Path, f.Mac} {
				if p != "" {
					fmt.Fprintf(&b, "\t{Place: Place{%q, %v, %q}%s},\n", p, folder, what, moves)
				}
			}
		}
	}
	b.WriteString("}\n")
	want, err := format.Source(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("hosts.go", want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("hosts.go")
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("hosts.go isn't what package hostconf has (%v): run \"go test ./internal/selfprotect -run TestHostPlaces -update\"", err)
	}
}
