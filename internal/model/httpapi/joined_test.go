package httpapi

import (
	"io"
	"testing"
	"testing/iotest"
)

// TestJoined reads parts as one text, as many bytes at a time as there is room for.
func TestJoined(t *testing.T) {
	parts := func() *joined { return &joined{[][]byte{[]byte("ab"), nil, []byte("c"), []byte("defgh")}} }
	if err := iotest.TestReader(parts(), []byte("abcdefgh")); err != nil {
		t.Error(err)
	}
	j, p := parts(), make([]byte, 5)
	if n, err := j.Read(p); n != 5 || err != nil || string(p) != "abcde" {
		t.Errorf("the first read has %d bytes, %q, %v", n, p[:n], err)
	}
	if rest, err := io.ReadAll(j); string(rest) != "fgh" || err != nil {
		t.Errorf("%q, %v", rest, err)
	}
}
