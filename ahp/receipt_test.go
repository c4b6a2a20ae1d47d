package ahp_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
)

func TestReceipts(t *testing.T) {
	sum := strings.Repeat("0a", 32)
	for text, pointer := range map[string]string{
		`{"ref":"r","size":0,"sha256":"` + sum + `"}`:                         "valid",
		`{"ref":"r","size":3.0,"sha256":"` + sum + `"}`:                       "valid",
		`{"ref":"","size":0,"sha256":"` + sum + `"}`:                          "/ref",
		`{"size":0,"sha256":"` + sum + `"}`:                                   "",
		`{"ref":"r","sha256":"` + sum + `"}`:                                  "",
		`{"ref":"r","size":0}`:                                                "",
		`{"ref":"r","size":-1,"sha256":"` + sum + `"}`:                        "/size",
		`{"ref":"r","size":true,"sha256":"` + sum + `"}`:                      "/size",
		`{"ref":"r","size":"1","sha256":"` + sum + `"}`:                       "/size",
		`{"ref":"r","size":1.5,"sha256":"` + sum + `"}`:                       "/size",
		`{"ref":"r","size":1,"sha256":"` + strings.ToUpper(sum) + `"}`:        "/sha256",
		`{"ref":"r","size":1,"sha256":"` + sum + `00"}`:                       "/sha256",
		`{"ref":"r","size":1,"sha256":"` + sum + `\n"}`:                       "/sha256",
		`{"ref":"r","size":1,"sha256":"` + sum + `","mediaType":"image/png"}`: "/mediaType",
		`{"ref":"r","size":1,"sha256":"` + sum + `","ref":"s"}`:               "/ref",
		`[]`: "", `null`: "",
	} {
		r, err := ahp.DecodeReceipt([]byte(text))
		if pointer == "valid" {
			if err != nil {
				t.Errorf("%s: %v", text, err)
				continue
			}
			again, err := r.Encode()
			if err != nil {
				t.Errorf("%s: %v", text, err)
			}
			if got, err := ahp.DecodeReceipt(again); err != nil || *got != *r {
				t.Errorf("%s: came back as %s, %v", text, again, err)
			}
			continue
		}
		var e *ahp.Error
		if !errors.As(err, &e) || e.Pointer != pointer {
			t.Errorf("%s: got %v, want a fault at %q", text, err, pointer)
		}
	}
}
