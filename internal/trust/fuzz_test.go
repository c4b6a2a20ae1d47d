package trust

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/strictjson"
)

// FuzzDecode holds that a store that can be read says each place once, in order, and is
// read again as it was.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"version":1,"trusted":[{"path":"/a","sha256":"` + strings.Repeat("ab", 32) + `","time":"2026-01-01T00:00:00Z"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		entries, err := decode("store", text)
		if err != nil {
			return
		}
		for i, e := range entries {
			if !filepath.IsAbs(e.Path) || len(e.SHA256) != 64 || i > 0 && entries[i-1].Path >= e.Path {
				t.Fatalf("%s gives %+v", text, entries)
			}
		}
		again, err := strictjson.Marshal(document{Version: 1, Trusted: entries})
		if err != nil {
			t.Fatal(err)
		}
		if same, err := decode("store", again); err != nil || !slices.Equal(same, entries) {
			t.Fatalf("%s becomes %s, %v", text, again, err)
		}
	})
}
