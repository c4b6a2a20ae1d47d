package fetch

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// transport returns what makes the one connection of a call.
func (t *Tool) transport(ctx context.Context, u *url.URL) (*http.Transport, error) {
	proxy, err := t.o.Proxy(u)
	if err != nil {
		return nil, fmt.Errorf("which proxy to use is not clear: %w", err)
	}
	host := u.Hostname()
	open := t.o.AllowPrivate || t.o.Private != nil && t.o.Private(host)
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	transport := &http.Transport{
		DialContext: dialer.DialContext, DisableKeepAlives: true, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: 10 * time.Second, MaxResponseHeaderBytes: 64 << 10,
	}
	switch {
	case proxy != nil:
		transport.Proxy = http.ProxyURL(proxy) // whose own address is the operator's choice
		if !open {
			return transport, lookedUp(ctx, host)
		}
	case !open:
		// The address is checked when it is used: a name can mean another one each time
		// it is looked up.
		dialer.Control = func(_, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil {
				return fmt.Errorf("the address %q can't be read", address)
			}
			if !public(at.Addr()) {
				return &privateError{host, at.Addr()}
			}
			return nil
		}
	}
	return transport, nil
}

// lookedUp checks a host that a proxy will look up: what its name says, and what it
// means here, if it means anything.
func lookedUp(ctx context.Context, host string) error {
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return &privateError{host, netip.MustParseAddr("127.0.0.1")}
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil // behind a proxy there often is nobody to ask
	}
	for _, a := range addrs {
		if !public(a) {
			return &privateError{host, a}
		}
	}
	return nil
}
