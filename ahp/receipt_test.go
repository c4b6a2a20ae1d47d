package ahp_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
)

func TestReceipt(t *testing.T) {
	hash := strings.Repeat("0a", 32)
	good := ahp.Receipt{Ref: "r", Size: 14, SHA256: hash}
	data, err := good.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ahp.DecodeReceipt(data); err != nil || *got != good {
		t.Errorf("%+v, %v", got, err)
	}
	for name, text := range map[string]string{
		"another member":  `{"ref":"r","size":1,"sha256":"` + hash + `","url":"x"}`,
		"no ref":          `{"size":1,"sha256":"` + hash + `"}`,
		"an empty ref":    `{"ref":"","size":1,"sha256":"` + hash + `"}`,
		"a negative size": `{"ref":"r","size":-1,"sha256":"` + hash + `"}`,
		"half a byte":     `{"ref":"r","size":1.5,"sha256":"` + hash + `"}`,
		"capitals":        `{"ref":"r","size":1,"sha256":"` + strings.ToUpper(hash) + `"}`,
		"a short hash":    `{"ref":"r","size":1,"sha256":"00"}`,
		"a member twice":  `{"ref":"r","ref":"s","size":1,"sha256":"` + hash + `"}`,
		"a list":          `[]`,
		"two values":      string(data) + string(data),
	} {
		var e *ahp.Error
		if got, err := ahp.DecodeReceipt([]byte(text)); !errors.As(err, &e) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if _, err := (&ahp.Receipt{}).Encode(); err == nil {
		t.Error("an empty receipt was encoded")
	}
}

func FuzzReceipt(f *testing.F) {
	f.Add([]byte(`{"ref":"r","size":1,"sha256":"` + strings.Repeat("0", 64) + `"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := ahp.DecodeReceipt(data)
		if err != nil {
			return
		}
		out, err := r.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if again, err := ahp.DecodeReceipt(out); err != nil || *again != *r {
			t.Fatalf("%+v, %v", again, err)
		}
	})
}
