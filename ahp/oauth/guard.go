package oauth

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// errAddress is the refusal of an address.
type errAddress struct{ addr netip.Addr }

// Error names the address.
func (e *errAddress) Error() string {
	return fmt.Sprintf("the name leads to %s, which isn't a public address; if it is meant, allow it in the local policy", e.addr)
}

// blocked returns the networks that look public to package netip and aren't, or
// that a cloud's metadata service answers at.
func blocked() []netip.Prefix {
	var out []netip.Prefix
	for _, s := range []string{
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24",
		"203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4", "168.63.129.16/32",
		"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", // special use, documentation, 6to4
	} {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

// isPublic reports whether a is an ordinary address of the Internet. Of IPv6, only
// the range of global unicast addresses counts, so that whatever embeds or maps an
// IPv4 address, by NAT64 for example, doesn't.
func isPublic(a netip.Addr) bool {
	if !a.IsValid() || a.Zone() != "" {
		return false
	}
	a = a.Unmap()
	if !a.IsGlobalUnicast() || a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() {
		return false
	}
	if a.Is6() && !netip.MustParsePrefix("2000::/3").Contains(a) {
		return false
	}
	for _, p := range blocked() {
		if p.Contains(a) {
			return false
		}
	}
	return true
}

// guard decides on the addresses that may be dialled.
type guard struct {
	local bool                  // the endpoint is on this machine
	allow func(netip.Addr) bool // the local policy, or nil
}

func (g guard) check(a netip.Addr) error {
	a = a.Unmap()
	if isPublic(a) || g.local && a.IsLoopback() || g.allow != nil && g.allow(a) {
		return nil
	}
	return &errAddress{a}
}

// dialer returns a dialer that asks check about the address of each attempt, after
// the name is resolved and before the first packet leaves: a name that resolves
// differently the next time gains nothing.
func dialer(check func(netip.Addr) error) *net.Dialer {
	return &net.Dialer{Timeout: 10 * time.Second, ControlContext: func(_ context.Context, network, address string, _ syscall.RawConn) error {
		if network != "tcp4" && network != "tcp6" {
			return errors.New("not a TCP address")
		}
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return errors.New("the address to dial can't be read")
		}
		return check(at.Addr())
	}}
}

func onlyLoopback(a netip.Addr) error {
	if a.Unmap().IsLoopback() {
		return nil
	}
	return errors.New("plain http, and the name doesn't lead to this machine")
}

// checkName decides on a name that a proxy will resolve: by what it is here, where
// it is anything here. A name that can't be resolved here is the proxy's to judge.
func (g guard) checkName(ctx context.Context, host string) error {
	if a, err := netip.ParseAddr(host); err == nil {
		return g.check(a)
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return ctx.Err()
	}
	for _, a := range addrs {
		if err := g.check(a); err != nil {
			return err
		}
	}
	return nil
}
