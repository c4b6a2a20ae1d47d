package config

import (
	"crypto/x509"
	"time"
)

// HTTP says how requests to model APIs are made.
type HTTP struct {
	// CAFile is a PEM file of authorities that are trusted beside the system's;
	// empty is none.
	CAFile       string `json:"ca_file"`
	StallSeconds int64  `json:"stall_seconds"`
	Retries      int64  `json:"retries"`
}

// StallTimeout returns how long the next byte of a reply may take.
func (h HTTP) StallTimeout() time.Duration { return time.Duration(h.StallSeconds) * time.Second }

// CheckCAFile reads http.ca_file by read, if it is set, and refuses one that can't
// be read or holds no certificate. The error is an *Error. It is to be called at
// the start: an authority that is missing must not come to light, or be missed, in
// the middle of a session.
func (s *Settings) CheckCAFile(read func(path string) ([]byte, error)) error {
	if s.HTTP.CAFile == "" {
		return nil
	}
	origin, _ := s.Origin("http.ca_file")
	data, err := read(s.HTTP.CAFile)
	if err != nil {
		return &Error{Origin: origin, Found: quote(s.HTTP.CAFile) + ", which can't be read: " + printableText(err.Error()), Expected: "a PEM file of certificates"}
	}
	if !x509.NewCertPool().AppendCertsFromPEM(data) {
		return &Error{Origin: origin, Found: quote(s.HTTP.CAFile) + ", which holds no certificate", Expected: "a PEM file of certificates"}
	}
	return nil
}
