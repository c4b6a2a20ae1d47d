package httpapi

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
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

// tlsConfig trusts the system's authorities, those in $SSL_CERT_FILE and those in
// caFile. Without the last two it leaves the reading of the first to the time of
// the first connection.
func tlsConfig(caFile string) (*tls.Config, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	envFile := os.Getenv(certFileEnv)
	if caFile == "" && envFile == "" {
		return conf, nil
	}
	var err error
	conf.RootCAs, err = roots(caFile, envFile, systemBundles())
	return conf, err
}

// roots returns the system's authorities with those of the two files, each of which
// may be "". The bundles are read where the variable may have hidden the system's.
func roots(caFile, envFile string, bundles []string) (*x509.CertPool, error) {
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("the system's certificate authorities can't be read: %w", err)
	}
	if envFile != "" {
		if err := addAuthorities(pool, "$"+certFileEnv, envFile); err != nil {
			return nil, err
		}
		for _, b := range bundles {
			if pem, err := os.ReadFile(b); err == nil && pool.AppendCertsFromPEM(pem) {
				break // the others are the same under another name
			}
		}
	}
	if caFile != "" {
		if err := addAuthorities(pool, "ca_file", caFile); err != nil {
			return nil, err
		}
	}
	return pool, nil
}

func addAuthorities(pool *x509.CertPool, setting, file string) error {
	pem, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("%s: %w", setting, err)
	}
	if !pool.AppendCertsFromPEM(pem) {
		return fmt.Errorf("%s %s holds no PEM certificate", setting, file)
	}
	return nil
}
