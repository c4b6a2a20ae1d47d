package ahp

// Receipt confirms an upload (§19). It is a closed object, and the only answer that
// does.
type Receipt struct {
	// Ref is the receiver's name for the bytes: opaque, and of no use in another
	// authorisation scope.
	Ref string `json:"ref" ahp:"req,min1"`
	// Size is the number of bytes received.
	Size int64 `json:"size" ahp:"req,nonneg"`
	// SHA256 is their hash in 64 lower-case hex digits.
	SHA256 string `json:"sha256" ahp:"req,sha256"`
}

// DecodeReceipt decodes and validates a receipt. Whether it is that of the bytes
// that were sent is for the sender to compare.
func DecodeReceipt(data []byte) (*Receipt, error) { return decode[Receipt](data) }

// Encode returns r as JSON, validated.
func (r *Receipt) Encode() ([]byte, error) { return encodeChecked(r) }
