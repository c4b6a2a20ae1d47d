package install

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/confedit"
	"github.com/abhed/abhed/internal/hostconf"
	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/strictjson"
)

// TestMatchersLeaveNoToolOut holds that an installed entry has no matcher at all, or one
// that the host takes for every tool: of those that it has under names of its own, of
// servers, and of those that come tomorrow (I009). The sibling is the star: it is every
// tool for some hosts, and for others an invalid expression that switches the hook off.
func TestMatchersLeaveNoToolOut(t *testing.T) {
	t.Parallel()
	stars := []string{"qwen", "droid", "openhands", "kiro"} // of those that were measured, or document it
	everywhere(t, func(t *testing.T, h hostconf.Host, w world) {
		for _, target := range h.In(w.o.Scope) {
			if target.Existing {
				w.write(t, strings.ReplaceAll(w.o.Roots.Path(target.File), "*", "coder"), existing(target))
			}
		}
		w.install(t, h.Name)
		seen := 0
		for _, target := range h.In(w.o.Scope) {
			paths, err := places(target, w.o)
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range paths {
				list := matchers(t, target, path)
				seen += len(list)
				for _, m := range list {
					switch every, err := regexp.Compile(m); {
					case m == "" || m == "*" && slices.Contains(stars, h.Name):
					case err != nil:
						t.Errorf("%s: the matcher %q: %v", path, m, err)
					default:
						for _, tool := range append(policy.NativeNames(h.Name), "tomorrows_writer", "mcp__server__tool", "a.b:c/d e") {
							if !slices.Equal(every.FindStringIndex(tool), []int{0, len(tool)}) {
								t.Errorf("%s: the matcher %q leaves %s out", path, m, tool)
							}
						}
					}
				}
				if target.Shape == hostconf.Scripts || target.Shape == hostconf.Bridge {
					seen++ // a program is for every tool
				}
			}
		}
		if seen == 0 {
			t.Error("nothing was installed")
		}
	})
}

// matchers returns the matchers of our entries, "" for one that has none.
func matchers(t *testing.T, target hostconf.Target, path string) (out []string) {
	t.Helper()
	if target.Shape == hostconf.Scripts || target.Shape == hostconf.Bridge {
		return nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if target.Shape == hostconf.Tables {
		d, err := confedit.ParseTOML(data, path)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range d.Blocks("hooks") {
			if IsLine(b.Values["command"]) {
				out = append(out, b.Values["matcher"])
			}
		}
		return out
	}
	d, err := confedit.ParseJSON(data, confedit.JSONOptions{Name: path, Comments: target.Format == hostconf.JSONC})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range d.List(listPattern(target.Shape)...) {
		if _, is := readOurs(target.Shape, f.Path, f.JSON); !is {
			continue
		}
		var e struct {
			Matcher string `json:"matcher"`
		}
		if err := strictjson.Unmarshal(f.JSON, &e, strictjson.Options{}); err != nil {
			t.Fatal(err)
		}
		out = append(out, e.Matcher)
	}
	return out
}
