package httpapi

import (
	"testing"

	"github.com/abhed/abhed/internal/strictjson"
)

func FuzzRepairHalves(f *testing.F) {
	f.Add([]byte(`{"a":"\ud83d\ude00\ud83d"}`))
	f.Add([]byte(`"\\ud83d\u12"`))
	f.Fuzz(func(t *testing.T, in []byte) {
		out, lone, marked := RepairHalves(in)
		if lone == 0 && (string(out) != string(in) || marked) {
			t.Errorf("changed without a half: %q", out)
		}
		if strictjson.Check(in, strictjson.Options{}) == nil && lone > 0 {
			t.Errorf("%q passes the door and has %d halves", in, lone)
		}
		if _, again, _ := RepairHalves(out); again != 0 {
			t.Errorf("halves are left in %q", out)
		}
	})
}
