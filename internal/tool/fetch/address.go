package fetch

import (
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// maxURL bounds a URL, in bytes.
const maxURL = 8 << 10

// parse returns a URL that means to the server what it said to the gate, or what is
// wrong with it in words for the model. Everything that a server or a client may take
// for something else than a rule was compared with is refused: other characters than
// ASCII in the host, a user, and ways up in the path.
func parse(raw string) (*url.URL, string) {
	if len(raw) > maxURL {
		return nil, fmt.Sprintf("The URL has %d bytes; at most %d are possible.", len(raw), maxURL)
	}
	if i := strings.IndexFunc(raw, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '\\' }); i >= 0 {
		return nil, fmt.Sprintf("The URL holds %q at offset %d; write it percent-encoded.", raw[i], i)
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, "The URL can't be read; give an absolute one, as https://example.org/page."
	}
	host := u.Hostname()
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Sprintf("Only http and https URLs can be fetched, not %q. For a file use read.", u.Scheme)
	case u.User != nil:
		return nil, "The URL holds a user or a password; those can't be sent. Give it without."
	case u.Opaque != "" || host == "":
		return nil, "The URL names no host; give an absolute one, as https://example.org/page."
	case strings.ContainsFunc(host, func(r rune) bool { return r > 0x7e || r == '%' }):
		return nil, "The host has characters that are not ASCII, or a zone; write it in its ASCII form (xn--…)."
	case !validPort(u.Port()):
		return nil, fmt.Sprintf("The port %q is none.", u.Port())
	case climbs(u.Path):
		return nil, "The path has \".\" or \"..\" in it; give the URL as it is without."
	}
	u.Fragment, u.RawFragment = "", ""
	return u, ""
}

func validPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return port == "" || err == nil && n > 0
}

// climbs reports whether a decoded path has a component that means another place.
func climbs(path string) bool {
	for part := range strings.SplitSeq(strings.ReplaceAll(path, `\`, "/"), "/") {
		if part == "." || part == ".." {
			return true
		}
	}
	return false
}

// privateError says that a host leads to a place that isn't of the public network.
type privateError struct {
	host string
	addr netip.Addr
}

func (e *privateError) Error() string {
	return fmt.Sprintf("%s leads to %s, which is not an address of the public network", e.host, e.addr)
}

// reserved are the networks beyond those that netip knows which don't lead to a public
// host: this network, shared addresses of providers, protocol assignments, benchmarks,
// documentation, the future, and their like of version 6.
func reserved() []string {
	return []string{
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
		"64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "3fff::/20", "5f00::/16", "fec0::/10",
	}
}

// public reports whether an address is one of the public network.
func public(a netip.Addr) bool {
	a = a.Unmap()
	switch {
	case !a.IsValid(), a.Zone() != "", a.IsPrivate(), a.IsLoopback(), a.IsLinkLocalUnicast(), a.IsMulticast(), a.IsUnspecified():
		return false
	}
	for _, network := range reserved() {
		if netip.MustParsePrefix(network).Contains(a) {
			return false
		}
	}
	if inner, ok := embedded(a); ok {
		return public(inner)
	}
	return true
}

// embedded returns the address of version 4 that one of version 6 stands for:
// translated (64:ff9b::/96), tunnelled (2002::/16) or compatible (::/96).
func embedded(a netip.Addr) (netip.Addr, bool) {
	if !a.Is6() {
		return netip.Addr{}, false
	}
	b := a.As16()
	switch {
	case netip.MustParsePrefix("64:ff9b::/96").Contains(a), netip.MustParsePrefix("::/96").Contains(a):
		return netip.AddrFrom4([4]byte(b[12:])), true
	case netip.MustParsePrefix("2002::/16").Contains(a):
		return netip.AddrFrom4([4]byte(b[2:6])), true
	}
	return netip.Addr{}, false
}
