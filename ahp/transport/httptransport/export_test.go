package httptransport

import "crypto/x509"

// TrustForTest has t's own pool trust the certificate authorities.
func TrustForTest(t *Transport, roots *x509.CertPool) {
	t.own.tls.RootCAs = roots
	t.own.renew()
}
