package ahp

import (
	"bytes"
	"testing"
)

// FuzzDecodeManifest holds that what is accepted can be encoded, and is then
// accepted with the same encoding.
func FuzzDecodeManifest(f *testing.F) {
	f.Add([]byte(`{"events":[{"event":"tool.before","modes":["intercept"],"capabilities":{"effects":["deny"]}}],"gaps":[],"transports":["stdio"],"authentication":[],"toolPaths":["native"],"contentCategories":[],"limits":{},"managedPolicy":{"scopes":[],"disableable":true},"correlationIdentityFields":[]}`))
	f.Add([]byte(`{"events":[],"limits":{"maxUploadBytes":1.0}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := DecodeManifest(data)
		if err != nil {
			return
		}
		once, err := m.Encode()
		if err != nil {
			t.Fatalf("%q was accepted and can't be encoded: %v", data, err)
		}
		again, err := DecodeManifest(once)
		if err != nil {
			t.Fatalf("%q was accepted and encoded as %q, which is refused: %v", data, once, err)
		}
		if twice, err := again.Encode(); err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%q becomes %q and then %q (%v)", data, once, twice, err)
		}
	})
}
