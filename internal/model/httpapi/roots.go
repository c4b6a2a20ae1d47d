package httpapi

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"slices"
	"strings"
)

// certFileEnv names a PEM file of authorities. Go's own reading of it replaces the
// system's, and passes over a file that isn't there.
const certFileEnv = "SSL_CERT_FILE"

// systemBundles lists where systems keep their authorities in one file.
func systemBundles() []string {
	return []string{
		"/etc/ssl/certs/ca-certificates.crt",
		"/etc/pki/tls/certs/ca-bundle.crt",
		"/etc/ssl/ca-bundle.pem",
		"/etc/pki/tls/cacert.pem",
		"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
		"/etc/ssl/cert.pem",
	}
}

// authorities are the files whose authorities are trusted besides the system's; each
// may be "".
type authorities struct{ caFile, envFile string }

// check reads the files, so that a wrong one is an error at the start.
func (f authorities) check() error {
	for setting, file := range map[string]string{"ca_file": f.caFile, "$" + certFileEnv: f.envFile} {
		if file == "" {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("%s: %w", setting, err)
		}
		if !holdsCertificate(data) {
			return fmt.Errorf("%s %s holds no PEM certificate", setting, file)
		}
	}
	return nil
}

// holdsCertificate reports whether a certificate is among the PEM blocks of data. It
// stops at the first: there may be hundreds.
func holdsCertificate(data []byte) bool {
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			if _, err := x509.ParseCertificate(block.Bytes); err == nil {
				return true
			}
		}
	}
	return false
}

// pool returns the system's authorities with those of the files, nil if the
// system's are all. It takes some milliseconds. The bundles are where the system's
// may lie, which the variable may have hidden.
func (f authorities) pool(bundles []string) (*x509.CertPool, error) {
	if f.caFile == "" && (f.envFile == "" || slices.Contains(bundles, f.envFile)) {
		return nil, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("the system's certificate authorities can't be read: %w", err)
	}
	if f.envFile != "" {
		for _, b := range bundles {
			if data, err := os.ReadFile(b); err == nil && pool.AppendCertsFromPEM(data) {
				break // the others are the same under another name
			}
		}
	}
	for _, file := range []string{f.envFile, f.caFile} {
		if file == "" {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		pool.AppendCertsFromPEM(data)
	}
	return pool, nil
}

// trust makes the pool before the first connection by TLS.
func (a *API) trust() error {
	if a.own == nil || a.trusting || !strings.HasPrefix(a.url, "https:") {
		return nil
	}
	pool, err := a.files.pool(systemBundles())
	if err != nil {
		return err
	}
	a.own.TLSClientConfig.RootCAs, a.trusting = pool, true
	return nil
}
